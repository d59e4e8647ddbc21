"""Which provider-create gates remain, and satisfying one (contract 1.11 and 7.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from server_api.servers.errors import Conflict, Forbidden, InvalidRequest, NotFound, Rejection, Unprocessable
from server_api.servers.model import GateStatus, Server, ServerStatus
from server_api.servers.ports import Missing, Unavailable
from server_api.servers.provider_create_gates import GateAction, ProviderCreateGates, check_unique, remaining
from tests.doubles.caller import Check, StubCaller
from tests.doubles.clock import FixedClock
from tests.doubles.store import DELETED_AT, InMemoryServerStore
from tests.unit.servers.builders import EARLIER, NOW_IN_SECONDS, ORGANIZATION, PROJECT, SERVER, server, spec

A, B = "example.org/b-first", "example.org/a-second"


def recorded(condition_type: str, status: str) -> GateStatus:
    return GateStatus(condition_type, status, EARLIER, "an-actor", "Because", "")


@pytest.mark.parametrize(
    ("configured", "recorded_gates", "expected"),
    [
        pytest.param(None, (), None, id="g16 none configured"),
        pytest.param(None, (recorded(A, "False"),), None, id="none configured, one recorded"),
        pytest.param((), (), (), id="an empty list"),
        pytest.param((A,), (), (A,), id="g01 nothing recorded"),
        pytest.param((A, B), (), (A, B), id="in the order of the spec"),
        pytest.param((A,), (recorded(A, "True"),), (), id="g03 satisfied"),
        pytest.param((A,), (recorded(A, "False"),), (A,), id="False"),
        pytest.param((A,), (recorded(A, "Unknown"),), (A,), id="Unknown"),
        pytest.param((A, B), (recorded(A, "True"),), (B,), id="g11 one of two satisfied"),
        pytest.param((A, B), (recorded(B, "True"), recorded(A, "True")), (), id="both satisfied"),
        pytest.param((A,), (recorded(B, "True"),), (A,), id="another one satisfied"),
    ],
)
def test_g01_g03_g11_gates_remain_until_recorded_as_true(
    configured: tuple[str, ...] | None, recorded_gates: tuple[GateStatus, ...], expected: tuple[str, ...] | None
) -> None:
    status = ServerStatus(provider_create_gates=recorded_gates)

    assert remaining(spec(provider_create_gates=configured), status) == expected


@pytest.mark.parametrize("gates", [None, (), (A,), (A, B)])
def test_gates_listed_once_pass(gates: tuple[str, ...] | None) -> None:
    check_unique(gates)


def test_g17_a_gate_listed_twice_is_refused() -> None:
    with pytest.raises(Unprocessable, match=A) as refusal:
        check_unique((B, A, A))

    assert refusal.value.field == "spec.providerCreateGates"


ACTION = GateAction(A, "Ready", "go ahead")
GATE_RIGHT = "region:servers:v2/provider-create-gates update"


class World:
    """A server held back by two gates, of which one is recorded as unknown."""

    def __init__(self, *recorded_gates: GateStatus, **changes: Any) -> None:
        status = ServerStatus(phase="Pending", provider_create_gates=recorded_gates)
        self.store = InMemoryServerStore(server(spec(provider_create_gates=(A, B)), status, **changes))
        self.gates = ProviderCreateGates(self.store, FixedClock())

    def satisfy(self, caller: StubCaller | None = None, action: GateAction = ACTION) -> None:
        self.gates.satisfy(caller or StubCaller("a-service", "a-user"), SERVER, action)

    @property
    def stored(self) -> Server:
        return self.store.stored(SERVER)


def test_g03_satisfying_records_the_authenticated_subject_reason_and_message() -> None:
    world = World(recorded(B, "Unknown"))

    world.satisfy()

    assert world.stored.status.provider_create_gates == (
        recorded(B, "Unknown"),
        GateStatus(A, "True", NOW_IN_SECONDS, "a-service", "Ready", "go ahead"),
    )
    assert world.stored.status.phase == "Pending"
    assert remaining(world.stored.spec, world.stored.status) == (B,)
    assert world.store.writes == ["patch_status"]


def test_g05_satisfying_again_refreshes_all_but_the_transition_time() -> None:
    world = World(recorded(A, "True"))

    world.satisfy()

    assert world.stored.status.provider_create_gates == (
        GateStatus(A, "True", EARLIER, "a-service", "Ready", "go ahead"),
    )


@pytest.mark.parametrize("before", ["False", "Unknown"])
def test_the_transition_time_moves_when_a_gate_becomes_true(before: str) -> None:
    world = World(recorded(A, before))

    world.satisfy()

    assert world.stored.status.provider_create_gates[0].last_transition_time == NOW_IN_SECONDS


def test_satisfying_needs_the_right_to_read_the_server_and_the_gates_own() -> None:
    caller = StubCaller()

    World().satisfy(caller)

    assert caller.checks == [
        Check("region:servers", "read", ORGANIZATION, PROJECT),
        Check("region:servers:v2/provider-create-gates", "update", ORGANIZATION, PROJECT),
    ]


@pytest.mark.parametrize("refused", [GATE_RIGHT, "region:servers read"])
def test_g07_g08_without_either_right_nothing_is_recorded(refused: str) -> None:
    world = World()

    with pytest.raises(Forbidden):
        world.satisfy(StubCaller(refused=[refused]))
    assert world.store.writes == []


@pytest.mark.parametrize(
    ("world", "action", "rejection"),
    [
        pytest.param(World(server_id="another"), ACTION, NotFound, id="g09 no server"),
        pytest.param(World(api_version=None), ACTION, NotFound, id="g09 of another generation"),
        pytest.param(World(deleted_at=DELETED_AT), ACTION, InvalidRequest, id="being deleted"),
        pytest.param(World(), GateAction("example.org/c", "Ready", ""), Unprocessable, id="g06 not in the spec"),
        pytest.param(
            World(deleted_at=DELETED_AT),
            GateAction("example.org/c", "Ready", ""),
            InvalidRequest,
            id="deletion comes before the list",
        ),
    ],
)
def test_g06_g09_what_cannot_be_satisfied_is_refused(
    world: World, action: GateAction, rejection: type[Rejection]
) -> None:
    with pytest.raises(rejection):
        world.satisfy(action=action)
    assert world.store.writes == []


def test_g06_a_server_without_gates_has_none_to_satisfy() -> None:
    store = InMemoryServerStore(server())

    with pytest.raises(Unprocessable):
        ProviderCreateGates(store, FixedClock()).satisfy(StubCaller(), SERVER, ACTION)


def test_a_lost_race_is_tried_again_three_times_from_a_fresh_read() -> None:
    world = World()
    for failures in (1, 2, 3):
        world.store.lose_race(_with_failures(failures))

    world.satisfy()

    assert world.stored.status.provider_create_failures == 3
    assert remaining(world.stored.spec, world.stored.status) == (B,)


def _with_failures(failures: int) -> Callable[[Server], Server]:
    return lambda found: replace(found, status=replace(found.status, provider_create_failures=failures))


def test_a_race_lost_four_times_is_a_conflict() -> None:
    world = World()
    for _ in range(4):
        world.store.lose_race()

    with pytest.raises(Conflict):
        world.satisfy()
    assert world.store.calls == ["get", "patch_status"] * 4


def test_a_server_gone_meanwhile_is_not_found() -> None:
    world = World()
    world.store.fail("patch_status", Missing("kubernetes", "servers not found"))

    with pytest.raises(NotFound):
        world.satisfy()


def test_a_store_that_is_down_is_not_tried_again() -> None:
    world = World()
    world.store.fail("patch_status", Unavailable("kubernetes", "it broke"))

    with pytest.raises(Unavailable):
        world.satisfy()
    assert world.store.calls == ["get", "patch_status"]
