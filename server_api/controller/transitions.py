"""What is told of a status that changed: log lines, durations and events (contract 7.8)."""

from __future__ import annotations

from datetime import datetime

import structlog
from prometheus_client import Histogram

from server_api.controller.metrics import Metrics
from server_api.servers.lifecycle_events import events_of
from server_api.servers.model import ConditionType, Phase, Server, ServerStatus
from server_api.servers.ports import Events

_log = structlog.get_logger(__name__)


def report(before: Server, after: Server, metrics: Metrics, events: Events) -> None:
    """Tell of the change from ``before`` to ``after``.

    To be called after ``after.status`` was written on condition that ``before`` was still what is stored: so
    each change is told once, whoever saw it first.
    """
    _log_changes(before, after)
    _measure(before, after, metrics)
    for event in events_of(before, after):
        events.record(after, event.type, event.reason, event.message)


def _log_changes(before: Server, after: Server) -> None:
    if before.status.phase != after.status.phase:
        _log.info("phase changed", server_id=after.id, old=before.status.phase, new=after.status.phase)
    old, new = _health(before.status), _health(after.status)
    if old != new:
        _log.info("health changed", server_id=after.id, old=old, new=new)


def _health(status: ServerStatus) -> str | None:
    condition = status.condition(ConditionType.HEALTHY)
    return condition.status if condition else None


def _measure(before: Server, after: Server, metrics: Metrics) -> None:
    began = after.metadata.created_at
    if began is None or after.status.phase != Phase.RUNNING or before.status.phase == Phase.RUNNING:
        return
    # The launch time is empty until the first launch: a server that was stopped and started again counts only
    # once. The creation time of the instance is known long before the server runs, so it cannot tell the
    # first time.
    if before.status.launched_at is None:
        _observe(metrics.provision_seconds, began, after.status.launched_at)
        _observe(metrics.scheduling_seconds, began, after.status.scheduled_at)


def _observe(histogram: Histogram, began: datetime, ended: datetime | None) -> None:
    if ended is None:
        return
    seconds = (ended - began).total_seconds()
    # The cloud's clock may be behind ours; such a duration would only distort the sum.
    if seconds >= 0:
        histogram.observe(seconds)
