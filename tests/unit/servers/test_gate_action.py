"""What a satisfied gate lets happen: satisfying one, the passes before and after, and the wake (contract 1.11 and 7.4).

The action's own checks and the list of what remains are in test_provider_create_gates.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_api.controller.triggers import wakes
from server_api.servers.derived_status import provisioning_status
from server_api.servers.model import GateStatus, Server, ServerStatus
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import ReferentKind
from server_api.servers.provider_create_gates import GateAction, ProviderCreateGates, remaining, satisfied
from server_api.servers.provisioning import Provisioner
from tests.doubles.caller import StubCaller
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import (
    EARLIER,
    IDENTITY,
    NETWORK,
    NOW,
    NOW_IN_SECONDS,
    SERVER,
    identity,
    instance,
    region,
    server,
    spec,
)

A, B = "example.unikorn-cloud.org/pre-create-ready", "example.unikorn-cloud.org/another"


class World:
    """A server that nothing exists of in the cloud, held back by gates."""

    def __init__(self, *gates: str, status: ServerStatus | None = None) -> None:
        self.store = InMemoryServerStore(server(spec(provider_create_gates=gates), status))
        self.cloud = OneProjectCloud()
        references = InMemoryReferences()
        references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
        self.provisioner = Provisioner(self.store, InMemoryDirectory(identity(), region()), references, self.cloud)
        self.clock = FixedClock()
        self.gates = ProviderCreateGates(self.store, self.clock)

    def run(self) -> PassResult:
        before = self.stored
        result = self.provisioner.run(before, self.clock.now())
        assert result.stored is not None
        self.store.patch_status(result.stored, replace(result.stored, status=result.status))
        return result

    def satisfy(self, condition_type: str, reason: str = "Ready", message: str = "", by: str = "a-service") -> None:
        self.gates.satisfy(StubCaller(by, "a-user"), SERVER, GateAction(condition_type, reason, message))

    @property
    def stored(self) -> Server:
        return self.store.stored(SERVER)

    @property
    def left(self) -> tuple[str, ...] | None:
        return remaining(self.stored.spec, self.stored.status)


def test_g02_while_a_gate_remains_the_cloud_is_not_asked_for_anything_and_that_is_no_error() -> None:
    world = World(A)

    for _ in range(3):
        assert world.run().outcome is Outcome.YIELD

    assert (world.cloud.journal, world.cloud.asked_for) == ([], [])
    assert provisioning_status(world.stored) == "provisioning"
    assert world.left == (A,)


def test_g03_g04_a_satisfied_gate_wakes_the_controller_whose_next_pass_creates() -> None:
    world = World(A)
    world.run()
    before = world.stored

    world.satisfy(A)

    assert wakes(before, world.stored)
    assert world.run().outcome is Outcome.SUCCESS
    assert len(world.cloud.compute.orders) == 1


def test_g11_two_gates_hold_until_both_are_satisfied_and_each_one_wakes() -> None:
    world = World(A, B)

    before = world.stored
    world.satisfy(B)
    assert wakes(before, world.stored)
    assert world.run().outcome is Outcome.YIELD
    assert (world.left, world.cloud.journal) == ((A,), [])

    before = world.stored
    world.satisfy(A)
    assert wakes(before, world.stored)
    assert world.run().outcome is Outcome.SUCCESS


def test_g05_satisfying_again_only_refreshes_who_and_why_and_does_not_wake() -> None:
    world = World(A)
    world.satisfy(A, "Ready", "first", by="a-service")
    first = world.stored
    world.clock.advance(3600)

    world.satisfy(A, "StillReady", "second", by="another-service")

    (gate,) = world.stored.status.provider_create_gates
    assert gate == GateStatus(A, "True", NOW_IN_SECONDS, "another-service", "StillReady", "second")
    assert not wakes(first, world.stored)


def test_g05_satisfying_again_in_the_same_words_writes_nothing() -> None:
    world = World(A)
    world.satisfy(A)
    world.store.writes.clear()
    world.clock.advance(3600)

    world.satisfy(A)

    assert world.store.writes == []


def test_a_pass_keeps_what_was_recorded_of_gates() -> None:
    world = World(A)
    world.satisfy(A)
    recorded = world.stored.status.provider_create_gates

    world.run()

    assert world.stored.status.provider_create_gates == recorded


def test_an_instance_that_exists_is_converged_whatever_its_gates_say() -> None:
    world = World(A, status=ServerStatus(scheduled_at=EARLIER))
    world.cloud.compute.held.append(instance(launched_at=EARLIER))

    assert world.run().outcome is Outcome.SUCCESS
    assert world.left == (A,)


def test_the_record_of_one_gate_leaves_the_others_and_their_order_alone() -> None:
    recorded = tuple(GateStatus(gate, "Unknown", EARLIER, "region", "ProviderCreateRetry", "") for gate in (B, A))
    status = ServerStatus(provider_create_gates=recorded, provider_create_failures=1)

    after = satisfied(status, GateAction(A, "Ready", "go"), "a-service", NOW)

    assert after.provider_create_gates == (
        recorded[0],
        GateStatus(A, "True", NOW_IN_SECONDS, "a-service", "Ready", "go"),
    )
    assert replace(after, provider_create_gates=recorded) == status


def test_a_gate_recorded_without_a_time_gets_one() -> None:
    status = ServerStatus(provider_create_gates=(GateStatus(A, "True", None, "region", "Ready", ""),))

    after = satisfied(status, GateAction(A, "Ready", ""), "a-service", NOW)

    assert after.provider_create_gates[0].last_transition_time == NOW_IN_SECONDS


@pytest.mark.parametrize("races", [1, 2, 3])
def test_a_lost_race_is_decided_on_what_the_winner_wrote(races: int) -> None:
    """The winner satisfied the other gate: both have to be there in the end, and only these two."""
    world = World(A, B)
    for number in range(races):
        world.store.lose_race(
            lambda found, number=number: replace(  # type: ignore[misc]
                found, status=satisfied(found.status, GateAction(B, f"Ready{number}", ""), "another", NOW)
            )
        )

    world.satisfy(A)

    assert world.left == ()
    assert [gate.reason for gate in world.stored.status.provider_create_gates] == [f"Ready{races - 1}", "Ready"]
    assert world.store.calls == ["get", "patch_status"] * (races + 1)


def test_a_race_lost_to_the_winner_who_satisfied_the_same_gate_keeps_its_time() -> None:
    world = World(A)
    world.store.lose_race(
        lambda found: replace(found, status=satisfied(found.status, GateAction(A, "Ready", ""), "another", EARLIER))
    )

    world.satisfy(A)

    (gate,) = world.stored.status.provider_create_gates
    assert (gate.actor, gate.last_transition_time) == ("a-service", EARLIER)
