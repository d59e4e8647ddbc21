from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from server_api import deadline, trace
from server_api.controller.election import LostLeadership
from server_api.controller.metrics import Metrics
from server_api.controller.reconciler import BACKING_OFF, NEVER, PASS_SECONDS, SHORTLY, Reconciler, Requeue
from server_api.servers.conditions import available
from server_api.servers.model import CloudRequest, CloudRequestKind, Phase, Reason, Server, ServerStatus
from server_api.servers.outcomes import Outcome, PassEvent, PassResult
from server_api.servers.ports import EventType, PortError, Refused, Unavailable
from tests.unit.controller.doubles import (
    NOW,
    FixedClock,
    MemoryServers,
    RecordedEvents,
    ScriptedPass,
    a_server,
)

LATER = Requeue(after=10)
DELETED: dict[str, Any] = {"deleted_at": NOW, "finalizers": ("unikorn",)}


@dataclass
class Bench:
    """A reconciler over doubles, with one stored server, s1."""

    servers: MemoryServers
    provisioner: ScriptedPass = field(default_factory=ScriptedPass)
    deprovisioner: ScriptedPass = field(default_factory=ScriptedPass)
    events: RecordedEvents = field(default_factory=RecordedEvents)
    metrics: Metrics = field(default_factory=Metrics)

    def reconcile(self, server_id: str = "s1") -> Requeue:
        reconciler = Reconciler(
            self.servers,
            self.provisioner,
            self.deprovisioner,
            self.events,
            FixedClock(),
            self.metrics,
            retry_seconds=10,
        )
        return reconciler.reconcile(server_id)

    @property
    def passes(self) -> int:
        return len(self.provisioner.seen) + len(self.deprovisioner.seen)

    def counted(self, operation: str, outcome: str) -> float | None:
        return self.metrics.registry.get_sample_value(
            "server_api_controller_passes_total", {"operation": operation, "outcome": outcome}
        )


def bench(**changes: Any) -> Bench:
    return Bench(MemoryServers(a_server(**changes)))


def ending(
    outcome: Outcome, reason: Reason = Reason.PROVISIONING, again_in: float | None = None, message: str = "because"
) -> Callable[[Server], PassResult]:
    """A pass with that outcome, whose condition says so."""
    return lambda server: PassResult(outcome, available(server.status, reason, message, NOW), again_in=again_in)


def failing(error: Exception) -> Callable[[Server], PassResult]:
    def act(server: Server) -> PassResult:
        raise error

    return act


def test_a_server_that_does_not_exist_wants_nothing() -> None:
    tried = bench()
    assert tried.reconcile("other") == NEVER
    assert tried.passes == 0


@pytest.mark.parametrize("change", [{}, DELETED], ids=["present", "deleted"])
def test_a_paused_server_is_left_alone(change: dict[str, Any]) -> None:
    tried = bench(pause=True, **change)
    assert tried.reconcile() == NEVER
    assert (tried.passes, tried.servers.writes) == (0, [])


def test_the_finalizer_is_there_before_the_first_pass() -> None:
    tried = bench(finalizers=("other",))
    tried.reconcile()
    assert tried.provisioner.seen[0].metadata.finalizers == ("other", "unikorn")
    assert tried.servers.get("s1").metadata.finalizers == ("other", "unikorn")


def test_a_finalizer_that_is_there_is_not_written_again() -> None:
    tried = bench(finalizers=("unikorn",))
    tried.reconcile()
    assert tried.servers.writes == []


def test_a_lost_race_for_the_finalizer_begins_no_pass() -> None:
    tried = bench()
    get = tried.servers.get

    def get_then_another_writes(server_id: str) -> Server:
        server = get(server_id)
        tried.servers.get = get  # type: ignore[method-assign]
        tried.servers.create(replace(server, spec=replace(server.spec, flavor_id="other")))
        return server

    tried.servers.get = get_then_another_writes  # type: ignore[method-assign]
    assert tried.reconcile() == SHORTLY
    assert tried.passes == 0


@pytest.mark.parametrize(
    ("outcome", "requeue"),
    [(Outcome.SUCCESS, NEVER), (Outcome.YIELD, LATER), (Outcome.ERROR, LATER), (Outcome.TERMINAL, NEVER)],
)
def test_the_outcome_of_a_pass_decides_when_the_next_comes(outcome: Outcome, requeue: Requeue) -> None:
    tried = bench()
    tried.provisioner.act = ending(outcome)
    assert tried.reconcile() == requeue
    assert tried.counted("provision", outcome.value) == 1


@pytest.mark.parametrize(
    ("outcome", "requeue"), [(Outcome.YIELD, LATER), (Outcome.ERROR, BACKING_OFF), (Outcome.TERMINAL, NEVER)]
)
def test_a_deletion_that_fails_backs_off(outcome: Outcome, requeue: Requeue) -> None:
    tried = bench(**DELETED)
    tried.deprovisioner.act = ending(outcome)
    assert tried.reconcile() == requeue
    assert tried.counted("deprovision", outcome.value) == 1
    assert tried.servers.get("s1").metadata.finalizers == ("unikorn",)


@pytest.mark.parametrize("change", [{}, DELETED], ids=["provision", "deprovision"])
@pytest.mark.parametrize("outcome", [Outcome.YIELD, Outcome.ERROR])
def test_a_pass_may_say_when_it_wants_the_next(change: dict[str, Any], outcome: Outcome) -> None:
    tried = bench(**change)
    tried.provisioner.act = tried.deprovisioner.act = ending(outcome, again_in=2)
    assert tried.reconcile() == Requeue(after=2)


def test_b32_a_failed_deletion_says_why_and_keeps_the_finalizer() -> None:
    tried = bench(**DELETED)
    tried.deprovisioner.act = ending(Outcome.ERROR, Reason.ERRORED)
    tried.reconcile()
    stored = tried.servers.get("s1")
    condition = stored.status.condition("Available")
    assert condition is not None
    assert (condition.reason, condition.message) == ("Errored", "because")
    assert stored.metadata.finalizers == ("unikorn",)


def test_a_pass_writes_its_status_once() -> None:
    tried = bench(finalizers=("unikorn",))
    tried.provisioner.act = ending(Outcome.YIELD)
    tried.reconcile()
    assert tried.servers.writes == ["status s1"]


def test_a_pass_that_changes_nothing_writes_nothing() -> None:
    tried = bench(finalizers=("unikorn",))
    tried.provisioner.act = ending(Outcome.YIELD)
    tried.reconcile()
    tried.reconcile()
    assert tried.passes == 2
    assert tried.servers.writes == ["status s1"]


def test_a_pass_sees_the_server_as_it_is_stored_now() -> None:
    tried = bench(finalizers=("unikorn",))
    stored = tried.servers.get("s1")
    tried.servers.update(replace(stored, spec=replace(stored.spec, flavor_id="new")))
    tried.reconcile()
    assert tried.provisioner.seen[0].spec.flavor_id == "new"


def test_a_status_of_a_server_that_changed_meanwhile_is_not_written_and_the_pass_comes_again() -> None:
    tried = bench(finalizers=("unikorn",))

    def act(server: Server) -> PassResult:
        tried.servers.patch_status(server, replace(server, status=ServerStatus(phase=Phase.STOPPING)))
        events = (PassEvent(EventType.NORMAL, "Told", "too early"),)
        return PassResult(Outcome.SUCCESS, replace(server.status, phase=Phase.RUNNING), events)

    tried.provisioner.act = act
    assert tried.reconcile() == SHORTLY
    assert tried.servers.get("s1").status.phase == Phase.STOPPING
    assert tried.events.recorded == []
    assert (
        tried.metrics.registry.get_sample_value("server_api_controller_write_conflicts_total", {"writer": "reconciler"})
        == 1
    )


def test_the_status_goes_onto_what_the_pass_itself_has_written() -> None:
    tried = bench(finalizers=("unikorn",))

    def act(server: Server) -> PassResult:
        metadata = replace(server.metadata, cloud_request=CloudRequest(CloudRequestKind.CREATE, NOW))
        stored = tried.servers.update(replace(server, metadata=metadata))
        return PassResult(Outcome.YIELD, replace(server.status, phase=Phase.BUILDING), stored=stored)

    tried.provisioner.act = act
    assert tried.reconcile() == LATER
    stored = tried.servers.get("s1")
    assert (stored.status.phase, stored.metadata.cloud_request is not None) == (Phase.BUILDING, True)
    assert tried.servers.writes == ["update s1", "status s1"]


def test_somebody_who_wrote_after_the_pass_did_wins() -> None:
    tried = bench(finalizers=("unikorn",))

    def act(server: Server) -> PassResult:
        stored = tried.servers.update(server)
        tried.servers.patch_status(stored, replace(stored, status=ServerStatus(phase=Phase.STOPPING)))
        return PassResult(Outcome.YIELD, replace(server.status, phase=Phase.BUILDING), stored=stored)

    tried.provisioner.act = act
    assert tried.reconcile() == SHORTLY
    assert tried.servers.get("s1").status.phase == Phase.STOPPING


def test_a_deletion_removes_the_finalizer_from_what_the_pass_itself_has_written() -> None:
    tried = bench(**DELETED)

    def act(server: Server) -> PassResult:
        return PassResult(Outcome.SUCCESS, server.status, stored=tried.servers.update(server))

    tried.deprovisioner.act = act
    assert tried.reconcile() == NEVER
    assert not tried.servers.has("s1")


@pytest.mark.parametrize("change", [{}, DELETED], ids=["provision", "deprovision"])
@pytest.mark.parametrize(
    ("outcome", "unreachable", "reached"),
    [
        (Outcome.SUCCESS, False, True),
        (Outcome.YIELD, False, None),
        (Outcome.ERROR, False, None),
        (Outcome.TERMINAL, False, None),
        (Outcome.YIELD, True, False),
        (Outcome.ERROR, True, False),
    ],
)
def test_a_pass_tells_whether_it_reached_the_project_as_far_as_it_knows(
    change: dict[str, Any], outcome: Outcome, unreachable: bool, reached: bool | None
) -> None:
    tried = bench(**change)
    tried.provisioner.act = tried.deprovisioner.act = lambda server: PassResult(
        outcome, server.status, unreachable=unreachable
    )
    assert tried.reconcile().reached is reached


def test_where_no_pass_was_run_nothing_is_said_of_the_project() -> None:
    told = [bench(pause=True).reconcile().reached, bench().reconcile("other").reached]
    assert told == [None, None]


def test_events_are_recorded_after_the_status() -> None:
    tried = bench(finalizers=("unikorn",))
    events = (PassEvent(EventType.WARNING, "NoHost", "no valid host"), PassEvent(EventType.NORMAL, "Retry", "1/3"))
    tried.provisioner.act = lambda server: PassResult(
        Outcome.YIELD, replace(server.status, phase=Phase.PENDING), events
    )
    tried.reconcile()
    assert tried.events.recorded == [("s1", "NoHost", "no valid host"), ("s1", "Retry", "1/3")]


def test_b31_b35_a_create_that_fails_tells_the_clouds_words_and_who_asked_for_it_once() -> None:
    tried = bench(finalizers=("unikorn",), creator="alice")
    tried.provisioner.act = ending(Outcome.ERROR, Reason.ERRORED, message="nova: no valid host")
    tried.reconcile()
    tried.reconcile()
    assert tried.events.recorded == [
        ("s1", "Provisioning", "provisioning has begun (asked for by alice)"),
        ("s1", "ProvisioningFailed", "nova: no valid host (asked for by alice)"),
    ]


def test_b38_a_deletion_that_succeeded_removes_the_finalizer_after_its_status() -> None:
    tried = bench(deleted_at=NOW, finalizers=("unikorn", "held by another"))
    tried.deprovisioner.act = ending(Outcome.SUCCESS, Reason.DEPROVISIONED)
    assert tried.reconcile() == NEVER
    assert tried.servers.writes == ["status s1", "update s1"]
    stored = tried.servers.get("s1")
    assert stored.metadata.finalizers == ("held by another",)
    condition = stored.status.condition("Available")
    assert condition is not None
    assert condition.reason == "Deprovisioned"


def test_b38_a_controller_killed_before_the_finalizer_was_removed_removes_it_after_its_restart() -> None:
    tried = bench(**DELETED)
    tried.deprovisioner.act = ending(Outcome.SUCCESS, Reason.DEPROVISIONED)
    update = tried.servers.update
    tried.servers.update = failing(KeyboardInterrupt())  # type: ignore[method-assign, assignment, arg-type]
    with pytest.raises(KeyboardInterrupt):
        tried.reconcile()
    assert tried.servers.has("s1")
    tried.servers.update = update  # type: ignore[method-assign]
    restarted = Bench(tried.servers, deprovisioner=tried.deprovisioner)
    assert restarted.reconcile() == NEVER
    assert not tried.servers.has("s1")


def test_a_deleted_server_without_our_finalizer_is_not_ours_any_more() -> None:
    tried = bench(deleted_at=NOW, finalizers=("foregroundDeletion",))
    assert tried.reconcile() == NEVER
    assert (tried.passes, tried.servers.writes) == (0, [])


def test_a_server_that_vanished_during_its_pass_wants_nothing() -> None:
    tried = bench(finalizers=())

    def act(server: Server) -> PassResult:
        tried.servers.update(replace(server, metadata=replace(server.metadata, deleted_at=NOW, finalizers=())))
        return PassResult(Outcome.YIELD, replace(server.status, phase=Phase.PENDING))

    tried.provisioner.act = act
    assert tried.reconcile() == NEVER


@pytest.mark.parametrize("error", [Unavailable("kubernetes", "down"), Refused("kubernetes", "schema")])
def test_a_store_that_fails_is_asked_again_later(error: PortError) -> None:
    tried = bench(finalizers=("unikorn",))
    tried.provisioner.act = ending(Outcome.SUCCESS)
    tried.servers.patch_status = lambda before, after: failing(error)(before)  # type: ignore[method-assign, assignment, return-value]
    assert tried.reconcile() == LATER


@pytest.mark.parametrize("error", [LostLeadership("lost"), ZeroDivisionError()])
def test_a_pass_that_is_cut_off_writes_nothing_more_and_is_counted(error: Exception) -> None:
    tried = bench(finalizers=("unikorn",))
    tried.provisioner.act = failing(error)
    with pytest.raises(type(error)):
        tried.reconcile()
    assert tried.servers.writes == []
    assert tried.counted("provision", "aborted") == 1


def test_each_pass_has_a_trace_and_a_budget_of_its_own() -> None:
    tried = bench(finalizers=("unikorn",))
    traces: list[str | None] = []
    budgets: list[float] = []

    def act(server: Server) -> PassResult:
        traces.append(trace.current())
        budgets.append(deadline.remaining(1000))
        return PassResult(Outcome.SUCCESS, server.status)

    tried.provisioner.act = act
    tried.reconcile()
    tried.reconcile()
    assert None not in traces
    assert len(set(traces)) == 2
    assert all(0 < budget <= PASS_SECONDS for budget in budgets)
    assert trace.current() is None
    assert deadline.remaining(1000) == 1000
