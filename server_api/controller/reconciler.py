"""One pass over one server: read it, let the rules act, write its status, and say when to look again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

import structlog

from server_api import deadline, trace
from server_api.controller.metrics import Metrics
from server_api.controller.transitions import report
from server_api.servers.finalizers import FINALIZER
from server_api.servers.model import ConditionType, Server
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import Clock, Events, Missing, PortError, ServerStore, StateConflict

PASS_SECONDS = 60.0
"""Longest a pass may take, its status write excepted. A healthy one needs a second or two for its ten or so
calls; when every call is answered only just before its time-out, a worker is free again after a minute and
not after two."""

CONFLICT_SECONDS = 0.5
"""Pause after a lost write. The next pass reads from the store itself, so there is no cache to wait for; the pause
only keeps two writers from running in step."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Requeue:
    """When a server wants its next pass.

    ``after``: in that many seconds; None: when something wakes it. ``backing_off``: after a time that grows with
    each failure instead. ``reached``: whether a pass reached the server's project; None when it does not tell, or when
    there was none.
    """

    after: float | None = None
    backing_off: bool = False
    reached: bool | None = field(default=None, compare=False)


NEVER = Requeue()
SHORTLY = Requeue(after=CONFLICT_SECONDS)
BACKING_OFF = Requeue(backing_off=True)


class Pass(Protocol):
    """The rules of one kind of pass."""

    def run(self, server: Server, now: datetime) -> PassResult:
        """Drive the server on. Raises nothing that a dependency did: that is an outcome."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Runs the pass that a server wants.

    ``servers`` and the ports inside the passes are fenced. ``retry_seconds`` is when a pass that yielded or failed is
    tried again. ``monotonic`` returns seconds.
    """

    servers: ServerStore
    provisioner: Pass
    deprovisioner: Pass
    events: Events
    clock: Clock
    metrics: Metrics
    retry_seconds: float
    monotonic: Callable[[], float] = time.monotonic

    def reconcile(self, server_id: str) -> Requeue:
        """Do one pass over the server as it is stored now, in a trace of its own.

        Raises LostLeadership when this replica stops leading meanwhile: then nothing more was written.
        """
        token = trace.begin()
        try:
            return self._reconcile(server_id)
        except Missing:
            return NEVER
        except StateConflict:
            self.metrics.conflicts.labels("reconciler").inc()
            return SHORTLY
        except PortError as error:
            _log.warning("a server could not be read or written", server_id=server_id, error=str(error))
            return Requeue(after=self.retry_seconds)
        finally:
            trace.end(token)

    def _reconcile(self, server_id: str) -> Requeue:
        # Not from the informer: what it last saw may be older than our own last write.
        server = self.servers.get(server_id)
        if server.spec.pause:
            return NEVER
        if server.metadata.deleted_at is not None:
            return self._deprovision(server)
        return self._provision(server)

    def _provision(self, server: Server) -> Requeue:
        if FINALIZER not in server.metadata.finalizers:
            # Before anything exists in the cloud, so that no deletion can overtake its removal.
            server = self.servers.update(_with_finalizers(server, (*server.metadata.finalizers, FINALIZER)))
        result = self._run(self.provisioner, "provision", server)
        self._write(server, result)
        requeue = self._retry(result) if result.outcome in (Outcome.YIELD, Outcome.ERROR) else NEVER
        return replace(requeue, reached=_reached(result))

    def _deprovision(self, server: Server) -> Requeue:
        if FINALIZER not in server.metadata.finalizers:
            # No pass ever began, or the last one is done: the rest is Kubernetes' business.
            return NEVER
        result = self._run(self.deprovisioner, "deprovision", server)
        server = self._write(server, result)
        if result.outcome is Outcome.SUCCESS:
            others = tuple(finalizer for finalizer in server.metadata.finalizers if finalizer != FINALIZER)
            self.servers.update(_with_finalizers(server, others))
            _log.info("server deleted", server_id=server.id)
        return replace(self._after_deprovisioning(result), reached=_reached(result))

    def _after_deprovisioning(self, result: PassResult) -> Requeue:
        if result.outcome in (Outcome.SUCCESS, Outcome.TERMINAL):
            return NEVER
        if result.outcome is Outcome.ERROR and result.again_in is None:
            return BACKING_OFF
        return self._retry(result)

    def _retry(self, result: PassResult) -> Requeue:
        return Requeue(after=self.retry_seconds if result.again_in is None else result.again_in)

    def _run(self, rules: Pass, operation: str, server: Server) -> PassResult:
        began = self.monotonic()
        outcome = "aborted"
        try:
            with deadline.within(PASS_SECONDS):
                result = rules.run(server, self.clock.now())
            outcome = result.outcome.value
            return result
        finally:
            self.metrics.passes.labels(operation, outcome).inc()
            self.metrics.pass_seconds.labels(operation).observe(self.monotonic() - began)

    def _write(self, server: Server, result: PassResult) -> Server:
        """Write the pass's status, if it changed, on condition that nobody wrote since the pass began or last wrote."""
        before = written = result.stored or server
        if result.status != before.status:
            written = self.servers.patch_status(before, replace(before, status=result.status))
            _log_outcome(server, result)
            report(before, written, self.metrics, self.events)
        for event in result.events:
            self.events.record(written, event.type, event.reason, event.message)
        return written


def _reached(result: PassResult) -> bool | None:
    if result.unreachable:
        return False
    # Any other outcome may be that of a pass which ended before it asked the cloud anything, as at a closed gate.
    return True if result.outcome is Outcome.SUCCESS else None


def _with_finalizers(server: Server, finalizers: tuple[str, ...]) -> Server:
    return replace(server, metadata=replace(server.metadata, finalizers=finalizers))


def _log_outcome(server: Server, result: PassResult) -> None:
    condition = result.status.condition(ConditionType.AVAILABLE)
    _log.info(
        "pass ended",
        server_id=server.id,
        outcome=result.outcome.value,
        reason=condition.reason if condition else None,
        message=condition.message if condition else None,
    )
