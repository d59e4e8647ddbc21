from __future__ import annotations

import pytest

from server_api.controller.rota import Project, Rota
from tests.unit.controller.doubles import FakeTime, a_server

SERVERS = [a_server(identity, identity_id=identity) for identity in ("a", "b", "c")]


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def rota(time: FakeTime) -> Rota:
    return Rota(time)


def looked_at(rota: Rota, time: FakeTime, identity: str, *, broken: bool = False) -> bool:
    time.passes(1)
    return rota.note(Project("region", identity, ()), broken=broken)


def order(rota: Rota) -> str:
    return "".join(project.identity_id for project in rota.order(SERVERS))


def test_servers_are_grouped_by_region_and_identity(rota: Rota) -> None:
    far = a_server("far", region_id="far", identity_id="a")
    more = a_server("more", identity_id="a")
    projects = {project.key: [s.id for s in project.servers] for project in rota.order([*SERVERS, far, more])}
    assert projects == {
        ("region", "a"): ["a", "more"],
        ("region", "b"): ["b"],
        ("region", "c"): ["c"],
        ("far", "a"): ["far"],
    }


def test_servers_without_region_or_identity_are_in_no_project(rota: Rota) -> None:
    assert rota.order([a_server(region_id=None), a_server(identity_id=None)]) == []


def test_whoever_was_left_out_comes_first_the_next_time(rota: Rota, time: FakeTime) -> None:
    assert order(rota) == "abc"
    looked_at(rota, time, "a")
    looked_at(rota, time, "b")
    assert order(rota) == "cab"


def test_broken_projects_come_last(rota: Rota, time: FakeTime) -> None:
    looked_at(rota, time, "a", broken=True)
    looked_at(rota, time, "b")
    assert order(rota) == "cba"


def test_only_a_change_is_worth_telling(rota: Rota, time: FakeTime) -> None:
    told = [looked_at(rota, time, "a", broken=broken) for broken in (False, True, True, False, False)]
    assert told == [False, True, False, True, False]


def test_a_project_without_servers_is_forgotten(rota: Rota, time: FakeTime) -> None:
    looked_at(rota, time, "a", broken=True)
    rota.order(SERVERS[1:])
    assert order(rota) == "abc"
