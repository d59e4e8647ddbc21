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
from server_api.servers.model import Phase, Reason, RebuildMarker, Server, ServerStatus
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
    outcome: Outcome, reason: Reason = Reason.PROVISIONING, again_in: float | None = None
) -> Callable[[Server], PassResult]:
    """A pass with that outcome, whose condition says so."""
    return lambda server: PassResult(outcome, available(server.status, reason, "because", NOW), again_in=again_in)


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


@pytest.mark.parametrize(
    ("standing", "kept"),
    [
        pytest.param(RebuildMarker("new", "Initiated"), RebuildMarker("new", "Rebuilding"), id="the same target"),
        pytest.param(RebuildMarker("other", "Initiated"), RebuildMarker("other", "Initiated"), id="another target"),
        pytest.param(None, None, id="none"),
    ],
)
def test_that_the_cloud_took_a_rebuild_survives_a_lost_race(
    standing: RebuildMarker | None, kept: RebuildMarker | None
) -> None:
    tried = bench(finalizers=("unikorn",), rebuild=RebuildMarker("new", "Initiated"))

    def act(server: Server) -> PassResult:
        meanwhile = replace(server.status, phase=Phase.STOPPING, rebuild=standing)
        tried.servers.patch_status(server, replace(server, status=meanwhile))
        accepted = replace(server.status, rebuild=RebuildMarker("new", "Rebuilding"))
        return PassResult(Outcome.SUCCESS, accepted)

    tried.provisioner.act = act
    assert tried.reconcile() == SHORTLY
    status = tried.servers.get("s1").status
    assert (status.phase, status.rebuild) == (Phase.STOPPING, kept)


def test_events_are_recorded_after_the_status() -> None:
    tried = bench(finalizers=("unikorn",))
    events = (PassEvent(EventType.WARNING, "NoHost", "no valid host"), PassEvent(EventType.NORMAL, "Retry", "1/3"))
    tried.provisioner.act = lambda server: PassResult(
        Outcome.YIELD, replace(server.status, phase=Phase.PENDING), events
    )
    tried.reconcile()
    assert tried.events.recorded == [("s1", "NoHost", "no valid host"), ("s1", "Retry", "1/3")]


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
