from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from server_api.controller import monitor
from server_api.controller.election import LostLeadership
from server_api.controller.metrics import Metrics
from server_api.controller.monitor import Monitor
from server_api.servers.model import Condition, Phase, Server
from server_api.servers.ports import Ambiguous, Missing, PortError, Refused, Tenancy, TimedOut, Unavailable
from server_api.servers.surroundings import FlavorMetadata, Region
from tests.unit.controller.doubles import (
    NOW,
    FakeTime,
    FixedClock,
    MemoryCloud,
    MemoryCompute,
    MemoryDirectory,
    MemoryServers,
    RecordedEvents,
    a_server,
    an_instance,
)


class Watched:
    """A monitor over stored servers; ``known`` is what the informer would show."""

    def __init__(self, *servers: Server, **projects: MemoryCompute) -> None:
        self.servers = MemoryServers(*servers)
        self.cloud = MemoryCloud({("region", name): compute for name, compute in projects.items()})
        self.directory = MemoryDirectory()
        self.metrics = Metrics()
        self.events = RecordedEvents()
        self.time = FakeTime()
        self.woken: list[str] = []
        self.stop = threading.Event()
        self.known: Sequence[Server] = ()
        self.refresh()
        store: Any = self.servers
        cloud: Any = self.cloud
        directory: Any = self.directory
        self.monitor = Monitor(
            lambda: self.known,
            self.woken.append,
            store,
            directory,
            cloud,
            self.events,
            FixedClock(),
            self.metrics,
            self.time,
        )

    def refresh(self) -> None:
        self.known = self.servers.snapshot()[0]

    def poll(self) -> Watched:
        self.monitor.poll(self.stop)
        return self

    def phase(self, server_id: str = "s1") -> str | None:
        return self.servers.get(server_id).status.phase

    def states(self) -> dict[str, float]:
        return {
            sample.labels["state"]: sample.value
            for family in self.metrics.census.collect()
            for sample in family.samples
        }

    def counted(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


def project(*servers: Server, failure: PortError | None = None) -> MemoryCompute:
    return MemoryCompute([an_instance(server) for server in servers], failure)


S1, S2 = a_server("s1"), a_server("s2")


def test_what_the_cloud_shows_is_written() -> None:
    watched = Watched(S1, identity=project(S1)).poll()
    status = watched.servers.get("s1").status
    condition = status.condition("Healthy")
    assert status.phase == Phase.RUNNING
    assert status.launched_at == NOW - timedelta(seconds=10)
    assert condition is not None
    assert condition.reason == "Healthy"


def test_one_list_per_project_serves_all_its_servers() -> None:
    servers = [a_server(f"s{number}") for number in range(50)]
    compute = project(*servers)
    watched = Watched(*servers, identity=compute).poll()
    assert compute.lists == 1
    assert {watched.phase(server.id) for server in servers} == {"Running"}


def test_each_project_is_listed_once() -> None:
    other = a_server("s2", identity_id="other")
    first, second = project(S1), project(other)
    Watched(S1, other, identity=first, other=second).poll()
    assert (first.lists, second.lists) == (1, 1)


def test_an_unchanged_server_is_not_written_again() -> None:
    watched = Watched(S1, identity=project(S1)).poll()
    watched.refresh()
    watched.poll()
    assert watched.servers.writes == ["status s1"]


def test_only_changed_servers_are_written() -> None:
    compute = project(S1, S2)
    watched = Watched(S1, S2, identity=compute).poll()
    watched.refresh()
    watched.servers.writes.clear()
    compute.listed[1] = replace(compute.listed[1], status="SHUTOFF", power_state=4)
    watched.poll()
    assert watched.servers.writes == ["status s2"]
    assert watched.phase("s2") == "Stopped"


def test_b26_a_build_that_ends_in_error_shows_on_the_next_poll() -> None:
    compute = project(S1)
    compute.listed[0] = replace(compute.listed[0], status="BUILD", power_state=0, launched_at=None)
    watched = Watched(S1, identity=compute).poll()
    assert watched.phase() == "Building"
    watched.refresh()
    compute.listed[0] = replace(compute.listed[0], status="ERROR", fault="No valid host was found")
    watched.poll()
    condition = watched.servers.get("s1").status.condition("Healthy")
    assert condition is not None
    assert condition.reason == "Errored"
    assert "No valid host" in condition.message


def reason(name: str) -> tuple[Condition, ...]:
    """An Available condition with that reason."""
    return (Condition("Available", "False", name),)


def test_m15_a_server_whose_instance_is_missing_is_left_alone() -> None:
    watched = Watched(a_server(phase=Phase.BUILDING), identity=project()).poll()
    assert watched.servers.writes == []
    assert watched.states() == {"building": 1}


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        pytest.param({}, [], id="never had an instance"),
        pytest.param({"scheduled_at": NOW}, ["s1"], id="had one"),
        pytest.param({"provisioned_at": NOW, "conditions": reason("Provisioned")}, ["s1"], id="provisioned"),
        pytest.param({"scheduled_at": NOW, "conditions": reason("Provisioning")}, ["s1"], id="in a pass's hands"),
        pytest.param({"scheduled_at": NOW, "conditions": reason("Errored")}, [], id="says so already"),
        pytest.param({"scheduled_at": NOW, "pause": True}, [], id="paused"),
    ],
)
def test_b30_a_pass_is_wanted_for_a_server_that_lost_its_instance(change: dict[str, Any], woken: list[str]) -> None:
    watched = Watched(a_server(**change), identity=project()).poll()
    assert watched.woken == woken
    assert watched.servers.writes == []


def test_a_list_that_failed_says_nothing_about_any_server() -> None:
    watched = Watched(a_server(scheduled_at=NOW), identity=project(failure=Unavailable("nova", "down"))).poll()
    assert watched.woken == []


@pytest.mark.parametrize("stranger", [{"server_id": None}, {"server_id": "s9"}])
def test_a_stranger_of_the_same_name_is_not_taken_for_ours(stranger: dict[str, Any]) -> None:
    compute = MemoryCompute([an_instance(S1, **stranger)])
    assert Watched(S1, identity=compute).poll().servers.writes == []


def test_an_instance_that_was_renamed_in_the_cloud_is_still_the_servers() -> None:
    compute = MemoryCompute([an_instance(S1, name="renamed")])
    watched = Watched(S1, identity=compute).poll()
    assert (watched.phase(), watched.woken) == ("Running", [])


def test_of_two_instances_with_a_servers_id_the_one_with_its_name_counts() -> None:
    compute = MemoryCompute([an_instance(S1, id="copy", name="copy", status="ERROR"), an_instance(S1)])
    assert Watched(S1, identity=compute).poll().phase() == "Running"


@pytest.mark.parametrize("name", [S1.metadata.name, "renamed"])
def test_two_instances_of_one_server_are_not_chosen_between_and_want_a_pass(name: str) -> None:
    compute = MemoryCompute([an_instance(S1, name=name), an_instance(S1, name=name, id="twin", status="ERROR")])
    watched = Watched(S1, identity=compute).poll()
    assert (watched.servers.writes, watched.woken) == ([], ["s1"])


def test_two_instances_that_a_pass_has_told_of_want_no_other() -> None:
    compute = MemoryCompute([an_instance(S1), an_instance(S1, id="twin")])
    assert Watched(a_server(conditions=reason("Errored")), identity=compute).poll().woken == []


def baremetal(*servers: Server) -> Watched:
    """Servers on a bare-metal flavor whose instances are being built."""
    building = [an_instance(s, status="BUILD", power_state=0, launched_at=None) for s in servers]
    watched = Watched(*servers, identity=MemoryCompute(building))
    watched.directory.flavor_metadata = (FlavorMetadata("flavor", baremetal=True),)
    return watched


@pytest.mark.parametrize(("state", "phase"), [("available", "Queued"), ("deploying", "Building"), (None, "Building")])
def test_m11_a_bare_metal_build_shows_how_far_its_node_is(state: str | None, phase: str) -> None:
    watched = baremetal(S1)
    watched.cloud.nodes.states = {} if state is None else {"instance-s1": state}
    assert watched.poll().phase() == phase


def test_m11_nodes_that_cannot_be_read_are_told_of_once_and_change_nothing_else() -> None:
    watched = baremetal(S1, S2)
    watched.cloud.nodes.failure = Unavailable("ironic", "down")
    with capture_logs() as lines:
        watched.poll().poll()
    assert (watched.phase("s1"), watched.phase("s2")) == ("Building", "Building")
    assert len(watched.cloud.nodes.asked) == 2, "one a poll: the next would fail as well"
    assert [line["event"] for line in lines if "bare-metal" in line["event"]] == ["bare-metal nodes cannot be read"]
    assert watched.counted("server_api_controller_monitor_project_failures_total") == 0


def test_m11_one_node_that_is_not_the_only_one_hides_no_other() -> None:
    watched = baremetal(S1, S2)
    watched.cloud.nodes.failure = Ambiguous("ironic", "two nodes")
    assert len(watched.poll().cloud.nodes.asked) == 2


def test_m12_a_build_on_a_virtual_flavor_asks_for_no_node() -> None:
    watched = Watched(S1, identity=MemoryCompute([an_instance(S1, status="BUILD", power_state=0)])).poll()
    assert (watched.phase(), watched.cloud.nodes.asked) == ("Building", [])


def test_b31_what_the_poll_saw_is_told_in_events_once() -> None:
    watched = Watched(S1, identity=project(S1)).poll()
    watched.refresh()
    compute = watched.cloud.projects["region", "identity"]
    compute.listed[0] = replace(compute.listed[0], status="ERROR", fault="No valid host was found")
    watched.poll()
    watched.refresh()
    watched.poll()
    assert watched.events.recorded == [
        ("s1", "InstanceCreated", "the cloud has an instance of the server"),
        ("s1", "InstanceLaunched", "the instance runs for the first time"),
        ("s1", "InstanceErrored", "the instance is ERROR: No valid host was found"),
    ]


def test_a_write_that_lost_its_race_tells_nothing() -> None:
    watched = Watched(S1, identity=project(S1))
    watched.servers.update(watched.servers.get("s1"))
    watched.poll()
    assert watched.events.recorded == []


def test_a_poll_that_runs_out_of_time_leaves_the_rest_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "PROJECTS_AT_ONCE", 1)
    servers = [a_server(identity, identity_id=identity) for identity in ("a", "b", "c")]
    watched = Watched(*servers, **{server.id: project(server) for server in servers})
    tenancy = watched.cloud.tenancy

    def slow(region: Region, identity_id: str) -> Tenancy:
        watched.time.passes(monitor.POLL_SECONDS * 0.6)
        return tenancy(region, identity_id)

    watched.cloud.tenancy = slow  # type: ignore[method-assign]
    watched.poll()
    assert [watched.phase(server.id) for server in servers] == ["Running", "Running", None]
    watched.refresh()
    watched.poll()
    assert watched.phase("c") == "Running"


def test_an_unavailable_store_ends_the_look_at_a_project_at_its_first_write() -> None:
    servers = [a_server(f"s{number}") for number in range(20)]
    watched = Watched(*servers, identity=project(*servers))
    tried = []

    def refuse(before: Server, after: Server) -> Server:
        tried.append(before.id)
        raise Unavailable("kubernetes", "down")

    watched.servers.patch_status = refuse  # type: ignore[method-assign]
    watched.poll()
    assert len(tried) == 1


@pytest.mark.parametrize(
    "change",
    [{"deleted_at": NOW, "finalizers": ("unikorn",)}, {"region_id": None}, {"identity_id": None}],
    ids=["deleted", "no region", "no identity"],
)
def test_servers_that_are_not_to_be_mirrored_cost_nothing(change: dict[str, Any]) -> None:
    compute = project(S1)
    watched = Watched(a_server(**change), identity=compute).poll()
    assert compute.lists == 0
    assert watched.servers.writes == []


def test_a_server_that_changed_meanwhile_waits_for_the_next_poll() -> None:
    watched = Watched(S1, S2, identity=project(S1, S2))
    stored = watched.servers.get("s1")
    watched.servers.update(replace(stored, spec=replace(stored.spec, flavor_id="new")))
    watched.poll()
    assert (watched.phase("s1"), watched.phase("s2")) == (None, "Running")
    assert watched.counted("server_api_controller_write_conflicts_total", writer="monitor") == 1
    watched.refresh()
    assert watched.poll().phase("s1") == "Running"


@pytest.mark.parametrize("error", [Missing("kubernetes", "gone"), Refused("kubernetes", "schema")])
def test_a_status_that_cannot_be_written_does_not_stop_the_others(error: PortError) -> None:
    watched = Watched(S1, S2, identity=project(S1, S2))
    write = watched.servers.patch_status

    def refuse_the_first(before: Server, after: Server) -> Server:
        if before.id == "s1":
            raise error
        return write(before, after)

    watched.servers.patch_status = refuse_the_first  # type: ignore[method-assign]
    assert watched.poll().phase("s2") == "Running"


@pytest.mark.parametrize("error", [TimedOut("nova", "slow"), Unavailable("keystone", "down"), Refused("nova", "no")])
def test_one_broken_project_does_not_stop_the_rest(error: PortError) -> None:
    other = a_server("s2", identity_id="other")
    watched = Watched(S1, other, identity=project(failure=error), other=project(other)).poll()
    assert watched.phase("s2") == "Running"
    assert watched.counted("server_api_controller_monitor_project_failures_total") == 1


def test_a_broken_project_is_logged_when_it_breaks_and_when_it_is_whole_again() -> None:
    compute = project(S1, failure=Unavailable("nova", "down"))
    watched = Watched(S1, identity=compute)
    with capture_logs() as lines:
        watched.poll().poll()
        compute.failure = None
        watched.poll()
    told = [line["event"] for line in lines if "identity_id" in line]
    assert told == ["a project cannot be read", "a project can be read again"]


def test_an_identity_without_a_project_is_no_failure() -> None:
    watched = Watched(S1).poll()
    assert watched.counted("server_api_controller_monitor_project_failures_total") == 0


def test_a_broken_region_does_not_stop_the_rest() -> None:
    far = a_server("s2", region_id="far")
    watched = Watched(S1, far, identity=project(S1))
    watched.cloud.projects["far", "identity"] = project(far)
    watched.directory.broken["region"] = Unavailable("kubernetes", "down")
    watched.poll()
    assert (watched.phase("s1"), watched.phase("s2")) == (None, "Running")


def test_flavors_that_cannot_be_listed_only_lose_their_names() -> None:
    watched = Watched(S1, identity=project(S1))
    watched.cloud.flavors_failure = Unavailable("nova", "down")
    assert watched.poll().phase() == "Running"
    assert (
        watched.counted(
            "unikorn_region_server_state",
            state="running",
            region_id="region",
            region_name="name-of-region",
            flavor_id="flavor",
            flavor_name="",
        )
        == 1
    )


def test_the_state_gauge_shows_every_server_as_it_is_after_the_poll() -> None:
    servers = [S1, a_server("s2", phase=Phase.STOPPED), a_server("s3"), a_server("s4", region_id=None)]
    watched = Watched(*servers, identity=project(S1)).poll()
    assert watched.states() == {"running": 1, "stopped": 1, "pending": 1}
    assert (
        watched.counted(
            "unikorn_region_server_state",
            state="running",
            region_id="region",
            region_name="name-of-region",
            flavor_id="flavor",
            flavor_name="small",
        )
        == 1
    )


def test_the_state_gauge_forgets_servers_that_are_gone() -> None:
    watched = Watched(S1, identity=project(S1)).poll()
    watched.known = ()
    assert watched.poll().states() == {}


def test_m14_durations_are_recorded_by_the_poll_that_writes_them_and_by_no_other() -> None:
    watched = Watched(S1, identity=project(S1))
    stale = watched.known
    watched.poll()
    watched.known = stale
    watched.poll()
    assert watched.counted("unikorn_region_server_provision_duration_seconds_count") == 1
    assert watched.counted("unikorn_region_server_provision_duration_seconds_sum") == 30


def test_a_stopped_poll_writes_nothing_and_counts_nothing() -> None:
    compute = project(S1)
    watched = Watched(S1, identity=compute)
    watched.stop.set()
    watched.poll()
    assert (compute.lists, watched.servers.writes, watched.states()) == (0, [], {})


def test_losing_the_lead_ends_the_poll() -> None:
    watched = Watched(S1, identity=project(S1))

    def refuse(before: Server, after: Server) -> Server:
        raise LostLeadership("lost")

    watched.servers.patch_status = refuse  # type: ignore[method-assign]
    with pytest.raises(LostLeadership):
        watched.poll()


def test_polls_that_take_longer_than_the_interval_do_not_pile_up() -> None:
    watched = Watched(S1, identity=project(S1))
    under_way: list[int] = []
    most: list[int] = []
    flavors = watched.cloud.flavors

    def slow() -> Any:
        under_way.append(1)
        most.append(len(under_way))
        watched.time.passes(1000)
        under_way.pop()
        return flavors()

    watched.cloud.flavors = slow  # type: ignore[method-assign]
    rounds = Rounds(3)
    watched.monitor.run(rounds, 10, lambda: True)
    assert most == [1, 1, 1]
    assert rounds.waited == [10, 10, 10, 10], "a whole interval after each poll"


class Rounds(threading.Event):
    """A stop that lets a number of intervals pass without waiting."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.left = rounds
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        self.left -= 1
        return self.left < 0


def test_only_a_leader_polls_and_a_former_one_reports_nothing() -> None:
    compute = project(S1)
    watched = Watched(S1, identity=compute)
    watched.monitor.run(Rounds(1), 10, lambda: True)
    assert (compute.lists, watched.states()) == (1, {"running": 1})
    watched.monitor.run(Rounds(3), 10, lambda: False)
    assert (compute.lists, watched.states()) == (1, {})


@pytest.mark.parametrize("error", [ZeroDivisionError(), LostLeadership("lost")])
def test_a_poll_that_fails_is_followed_by_the_next(error: Exception) -> None:
    watched = Watched(S1, identity=project(S1))
    flavors = watched.cloud.flavors

    def fail_once() -> Any:
        watched.cloud.flavors = flavors  # type: ignore[method-assign]
        raise error

    watched.cloud.flavors = fail_once  # type: ignore[method-assign]
    watched.monitor.run(Rounds(2), 10, lambda: True)
    assert watched.phase() == "Running"
