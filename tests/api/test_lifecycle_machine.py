"""The service as a whole against a world in which anything may happen at any time (issue 4, Proof).

Hypothesis makes up what happens, out of ``lifecycle_steps``; ``lifecycle_invariants`` says what must hold after every
step, and what must be once nothing fails any more. Every run is the same each time. More of them, and longer, are had
with the environment variables ``SERVER_API_MACHINE_RUNS`` (how many) and ``SERVER_API_MACHINE_SEED`` (the first one's
number).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import integers

from server_api.controller import triggers
from server_api.http.services import Services
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers import create_retry, creation, deprovisioning, derived_status, lookup, rebuild_pass
from server_api.servers.cloud_model import Instance, Port
from server_api.servers.model import Server
from server_api.servers.ports import Networking, Tenancy
from server_api.servers.progress import Progress
from server_api.settings import Settings
from server_api.store.client import KubernetesClient
from tests.api.lifecycle_bench import LifecycleBench
from tests.api.lifecycle_expectations import SLOTS
from tests.api.lifecycle_invariants import check, check_gone, check_settled
from tests.api.lifecycle_steps import (
    ChangeImage,
    Create,
    Delete,
    Finish,
    GoOn,
    Meddle,
    Meddling,
    PassTime,
    See,
    Sight,
    Step,
    Trouble,
    Work,
)
from tests.api.lifecycle_strategies import steps
from tests.doubles.fault_plan import Fault
from tests.doubles.programmable_nova import Ending

LONG = "SERVER_API_MACHINE_RUNS" in os.environ
RUNS = int(os.environ.get("SERVER_API_MACHINE_RUNS", "3"))
FIRST = int(os.environ.get("SERVER_API_MACHINE_SEED", "0"))
PROFILE = settings(
    # From the eleventh on Hypothesis varies examples more than it makes new ones: hence several runs.
    max_examples=10,
    stateful_step_count=60 if LONG else 30,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

NewBench = Callable[[], LifecycleBench]


class LifecycleMachine(RuleBasedStateMachine):
    """One bench and what happens on it.

    There is one rule, which draws any step: with a rule for each, Hypothesis would leave most of them out of an
    example, and it takes several together for anything to go wrong.
    """

    def __init__(self, bench: LifecycleBench) -> None:
        super().__init__()
        self.bench = bench

    @initialize(running=integers(0, 2))
    def servers_run_already(self, running: int) -> None:
        for slot in SLOTS[:running]:
            self.bench.create(slot)
        self.bench.settle()

    @rule(step=steps)
    def happens(self, step: Step) -> None:
        step.take(self.bench)

    @invariant()
    def holds(self) -> None:
        check(self.bench)

    def teardown(self) -> None:
        if not self.bench.broken:
            finish(self.bench)


def finish(bench: LifecycleBench) -> None:
    """Fail unless everything comes to a good end: by itself, under another controller, and when all is deleted."""
    bench.settle()
    check_settled(bench)
    bench.restart()
    bench.settle()
    check_settled(bench)
    for known in list(bench.expected.values()):
        bench.delete(known.slot)
    bench.settle()
    check_gone(bench)


@pytest.fixture
def new_bench(
    kubernetes: tuple[EmbeddedKubernetes, KubernetesClient], services: Services, settings: Settings
) -> NewBench:
    return lambda: LifecycleBench(*kubernetes, services, settings)


@pytest.mark.timeout(1800 if LONG else 300)
@pytest.mark.parametrize("number", range(FIRST, FIRST + RUNS))
def test_whatever_happens_the_lifecycle_does_not_lie(new_bench: NewBench, number: int) -> None:
    @seed(number)
    class Machine(LifecycleMachine):
        def __init__(self) -> None:
            super().__init__(new_bench())

    run_state_machine_as_test(Machine, settings=PROFILE)


@dataclass(frozen=True)
class Mutation:
    """A guard taken away, what happens, and what is found to be wrong then."""

    name: str
    take_away: Callable[[pytest.MonkeyPatch], None]
    happens: tuple[Step, ...]
    wrong: str


def _look_up_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(tenancy: Tenancy, server: Server) -> Instance | None:
        return tenancy.compute.find(server.metadata.name, server.id)

    monkeypatch.setattr(deprovisioning, "find_instance", find)


def _retry_whatever_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(tenancy: Tenancy, server: Server) -> Instance | None:
        instance = lookup.find_instance(tenancy, server)
        return None if instance is None else replace(instance, launched_at=None, status="ERROR")

    monkeypatch.setattr(create_retry, "find_instance", find)


def _leave_floating_ips(monkeypatch: pytest.MonkeyPatch) -> None:
    def remove(networking: Networking, ports: Sequence[Port]) -> None:
        for port in ports:
            networking.delete_port(port.id)

    monkeypatch.setattr(deprovisioning, "remove_ports", remove)


MUTATIONS = (
    Mutation(
        "a create is repeated",
        lambda monkeypatch: monkeypatch.setattr(creation, "_refuse_second", lambda _: None),
        (Create(0, trouble=Trouble("compute.create", Fault.LATE, 50.0)), PassTime(10), PassTime(60)),
        "2 instances",
    ),
    Mutation(
        "nothing is written ahead",
        lambda monkeypatch: monkeypatch.setattr(Progress, "record", lambda *_: None),
        (Create(0, trouble=Trouble("compute.create", Fault.LATE, 50.0)), PassTime(10), PassTime(60)),
        "2 instances",
    ),
    Mutation(
        "a rebuild is repeated",
        lambda monkeypatch: monkeypatch.setattr(rebuild_pass, "_sent", lambda *_: None),
        (
            Create(0),
            ChangeImage(0, trouble=Trouble("compute.rebuild", Fault.LOST_ANSWER)),
            Finish(0, Ending.UNDONE),
            PassTime(10),
            PassTime(1),
        ),
        "rebuilt 2 times",
    ),
    Mutation(
        "a deletion does not wait for a late create",
        lambda monkeypatch: monkeypatch.setattr(deprovisioning, "may_come_late", lambda *_: False),
        (Create(0, trouble=Trouble("compute.create", Fault.LATE, 50.0)), Delete(0), PassTime(60)),
        "outlives its server",
    ),
    Mutation(
        "a deletion does not wait for a late port",
        lambda monkeypatch: monkeypatch.setattr(deprovisioning, "may_come_late", lambda *_: False),
        (Create(0, trouble=Trouble("networking.create_port", Fault.LATE, 50.0)), Delete(0), PassTime(60)),
        "outlives its server",
    ),
    Mutation(
        "a retry removes what had launched",
        _retry_whatever_is_there,
        (Create(0), Finish(0, Ending.FAILED, noticed=False), See(Sight.LOOK), Meddle(0, Meddling.MEND), Work(3)),
        "had launched, and was deleted",
    ),
    Mutation(
        "an instance is looked up by its name only",
        _look_up_by_name_only,
        (Create(0), GoOn(1), Meddle(0, Meddling.RENAME), Delete(0)),
        "outlives its server",
    ),
    Mutation(
        "a floating IP is left behind", _leave_floating_ips, (Create(0, public_ip=True), Delete(0)), "has no port"
    ),
    Mutation(
        "a read does not see a rebuild under way",
        lambda monkeypatch: monkeypatch.setattr(derived_status, "is_masked", lambda _: False),
        (Create(0), ChangeImage(0)),
        "provisioned while it is being rebuilt",
    ),
    Mutation(
        "a rebuild that settles wakes nobody",
        lambda monkeypatch: monkeypatch.setattr(triggers, "settled", lambda _: False),
        (Create(0), ChangeImage(0)),
        "for ever",
    ),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_guard_that_is_taken_away_is_missed(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch, mutation: Mutation
) -> None:
    _play(new_bench(), mutation.happens)
    mutation.take_away(monkeypatch)
    with pytest.raises(AssertionError, match=mutation.wrong):
        _play(new_bench(), mutation.happens)


def _play(bench: LifecycleBench, happens: tuple[Step, ...]) -> None:
    for step in happens:
        step.take(bench)
        check(bench)
    finish(bench)
