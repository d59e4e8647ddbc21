"""Start, stop and reboot (contract 6.8 and 1.9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from server_api.servers.errors import Forbidden, InvalidRequest, NotFound
from server_api.servers.model import ConditionType, RebuildMarker, Server, ServerStatus
from server_api.servers.ports import (
    Ambiguous,
    Denied,
    Missing,
    PortError,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)
from server_api.servers.power import Power
from tests.doubles.caller import StubCaller
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import IMAGE, NAME, SERVER, condition, instance, region, server

Verb = Callable[[Power, StubCaller], None]

VERBS: dict[str, Verb] = {
    "start": lambda power, caller: power.start(caller, SERVER),
    "stop": lambda power, caller: power.stop(caller, SERVER),
    "soft_reboot": lambda power, caller: power.soft_reboot(caller, SERVER),
    "hard_reboot": lambda power, caller: power.hard_reboot(caller, SERVER),
}
every_verb = pytest.mark.parametrize("verb", list(VERBS))
STATUS = ServerStatus(
    conditions=(condition(ConditionType.AVAILABLE, "True", "Provisioned"),),
    phase="Running",
    private_ip="192.168.0.7",
    rebuild=RebuildMarker(IMAGE, "Rebuilding"),
)


class World:
    """A server with its instance in the cloud."""

    def __init__(self, stored: Server | None = None) -> None:
        self.store = InMemoryServerStore(stored or server(status=STATUS))
        self.cloud = OneProjectCloud()
        self.cloud.compute.held.append(instance())
        self.power = Power(self.store, InMemoryDirectory(region()), self.cloud)

    def do(self, verb: str, caller: StubCaller | None = None) -> None:
        VERBS[verb](self.power, caller or StubCaller())

    @property
    def status(self) -> ServerStatus:
        return self.store.stored(SERVER).status


@every_verb
def test_v02_v03_v07_the_verb_reaches_the_servers_own_instance(verb: str) -> None:
    world = World()
    # B-05: neighbours whose names contain ours, and a stranger of the same name.
    world.cloud.compute.held[:0] = [
        instance(id="a", name=f"{NAME}-1", server_id="a"),
        instance(id="b", server_id=None),
    ]

    world.do(verb)

    assert world.cloud.journal == [f"find {NAME}", f"{verb} instance-1"]


@pytest.mark.parametrize(("verb", "phase"), [("start", "Pending"), ("stop", "Stopping")])
def test_v02_v03_start_and_stop_leave_their_phase_and_nothing_else(verb: str, phase: str) -> None:
    world = World()

    world.do(verb)

    assert world.status == replace(STATUS, phase=phase)
    assert world.store.writes == ["patch_status"]


@pytest.mark.parametrize("verb", ["soft_reboot", "hard_reboot"])
def test_v07_a_reboot_writes_nothing(verb: str) -> None:
    world = World()

    world.do(verb)

    assert world.store.writes == []


@every_verb
def test_v01_no_server_is_not_found(verb: str) -> None:
    world = World(server(server_id="another"))

    with pytest.raises(NotFound):
        world.do(verb)
    assert world.cloud.journal == []


@every_verb
@pytest.mark.parametrize("refused", ["region:servers read", "region:servers update"])
def test_every_verb_needs_the_right_to_read_and_to_update(verb: str, refused: str) -> None:
    world = World()

    with pytest.raises(Forbidden):
        world.do(verb, StubCaller(refused=[refused]))
    assert world.cloud.journal == []


@every_verb
def test_v05_no_instance_is_not_found(verb: str) -> None:
    world = World()
    world.cloud.compute.held.clear()

    with pytest.raises(NotFound, match="no instance"):
        world.do(verb)
    assert world.store.writes == []


@every_verb
def test_v05_an_instance_gone_meanwhile_is_not_found(verb: str) -> None:
    world = World()
    world.cloud.compute.fail(verb, Missing("nova", "not found"))

    with pytest.raises(NotFound, match="no instance"):
        world.do(verb)
    assert world.store.writes == []


@pytest.mark.parametrize(
    ("verb", "participle"),
    [("start", "started"), ("stop", "stopped"), ("soft_reboot", "rebooted"), ("hard_reboot", "rebooted")],
)
def test_v04_a_state_that_does_not_allow_the_verb_is_an_invalid_request(verb: str, participle: str) -> None:
    world = World()
    world.cloud.compute.fail(verb, StateConflict("nova", "Cannot do that while it is in task_state rebuilding"))

    with pytest.raises(InvalidRequest, match=f"cannot be {participle}"):
        world.do(verb)
    assert world.store.writes == []


@every_verb
@pytest.mark.parametrize("error", [Unavailable, TimedOut, Denied, Refused])
def test_v06_b37_any_other_failure_of_the_cloud_is_not_the_callers(verb: str, error: type[PortError]) -> None:
    world = World()
    world.cloud.compute.fail(verb, error("nova", "it broke"))

    with pytest.raises(error):
        world.do(verb)
    assert world.store.writes == []


@every_verb
@pytest.mark.parametrize("error", [Ambiguous, Unavailable])
def test_b06_a_lookup_that_failed_leads_to_no_verb(verb: str, error: type[PortError]) -> None:
    world = World()
    world.cloud.compute.fail("find", error("nova", "two of them"))

    with pytest.raises(error):
        world.do(verb)
    assert world.cloud.journal == [f"find {NAME}"]


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_a_lost_race_for_the_phase_does_not_undo_the_verb(verb: str) -> None:
    world = World()
    world.store.lose_race(lambda found: replace(found, status=replace(found.status, phase="Stopped")))

    world.do(verb)

    assert world.status.phase == "Stopped"


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_a_server_deleted_meanwhile_does_not_undo_the_verb(verb: str) -> None:
    world = World()
    world.store.fail("patch_status", Missing("kubernetes", "servers not found"))

    world.do(verb)

    assert world.cloud.journal[-1] == f"{verb} instance-1"


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_a_store_that_fails_after_the_verb_does_not_undo_it(verb: str) -> None:
    world = World()
    world.store.fail("patch_status", Unavailable("kubernetes", "it broke"))

    world.do(verb)
