from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from server_api.controller.census import StateCensus, StateLabels


def labels(state: str, flavor: str = "f1") -> StateLabels:
    return StateLabels(state, "r1", "Region", flavor, f"name-{flavor}")


def shown(census: StateCensus) -> list[str]:
    registry = CollectorRegistry()
    registry.register(census)
    lines = generate_latest(registry).decode().splitlines()
    return sorted(line for line in lines if not line.startswith("#"))


def test_servers_are_counted_by_state_region_and_flavor() -> None:
    census = StateCensus()
    census.replace([labels("running"), labels("running"), labels("running", "f2"), labels("stopped")])
    rest = 'region_id="r1",region_name="Region"'
    assert shown(census) == sorted(
        [
            f'unikorn_region_server_state{{flavor_id="f1",flavor_name="name-f1",{rest},state="running"}} 2.0',
            f'unikorn_region_server_state{{flavor_id="f2",flavor_name="name-f2",{rest},state="running"}} 1.0',
            f'unikorn_region_server_state{{flavor_id="f1",flavor_name="name-f1",{rest},state="stopped"}} 1.0',
        ]
    )


def test_the_labels_of_vanished_servers_vanish() -> None:
    census = StateCensus()
    census.replace([labels("running"), labels("stopped")])
    census.replace([labels("stopped")])
    assert len(shown(census)) == 1
    census.replace([])
    assert shown(census) == []
