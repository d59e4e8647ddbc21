"""The bounded retry of a create that failed in the cloud (contract 7.5).

A server that ever launched is never touched by it: there may be something on its disk.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from server_api.servers import naming, removal
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.conditions import with_condition
from server_api.servers.lookup import BETWEEN_ATTEMPTS, find_instance
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionStatus,
    ConditionType,
    Phase,
    Reason,
    ServerStatus,
)
from server_api.servers.observed_state import observe_health_and_phase
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.ports import EventType, Tenancy
from server_api.servers.progress import Progress
from server_api.servers.provider_create_gates import closed_again

_NOT_YET_UP = frozenset({None, "", Phase.PENDING, Phase.QUEUED, Phase.BUILDING})


def failed(status: ServerStatus) -> bool:
    """Say whether the server's instance came to nothing before it ever ran."""
    if status.provisioned_at or status.launched_at or status.phase not in _NOT_YET_UP:
        return False
    healthy = status.condition(ConditionType.HEALTHY)
    return healthy is not None and (healthy.status, healthy.reason) == (ConditionStatus.FALSE, Reason.ERRORED)


def recovered(before: ServerStatus, after: ServerStatus) -> bool:
    """Say whether a failed create turned out well after all, or an operator allows more attempts."""
    allowed = after.provider_create_failures < before.provider_create_failures
    healthy = after.condition(ConditionType.HEALTHY)
    return allowed or (failed(before) and healthy is not None and healthy.status == ConditionStatus.TRUE)


def due(progress: Progress, attempts: int) -> bool:
    """Say whether a failed instance is to be removed, or its removal to be continued.

    ``attempts`` is how many creates may fail in all, at least one. Raises Stop, terminal, when they all have: only an
    operator who sets ``providerCreateFailures`` back, or a new server, ends that.
    """
    status = progress.server.status
    if status.provider_create_retrying:
        return True
    if not failed(status):
        return False
    attempts = max(1, attempts)
    if status.provider_create_failures + 1 < attempts:
        return True
    progress.learn(provider_create_failures=attempts, provider_create_retrying=False)
    message = f"attempt {attempts}/{attempts} to create the instance failed{_fault(status)}"
    progress.tell(EventType.WARNING, "ProviderCreateFailed", message)
    raise Stop(Outcome.TERMINAL, f"provider_create_failed: {message}")


def remove_failed_instance(progress: Progress, tenancy: Tenancy, attempts: int) -> None:
    """Remove what a failed create has left, and make ready for another.

    Returns without doing anything when a fresh look shows that nothing failed after all; raises Stop otherwise.
    """
    status = progress.server.status
    _wait_for_a_late_port(progress)
    instance = find_instance(tenancy, progress.server)
    if instance is not None and (instance.launched_at is not None or not _removable(status, instance.status)):
        # It was mended meanwhile, or the status was old.
        progress.learn(provider_create_retrying=False)
        progress.become(observe_health_and_phase(progress.server.status, instance, progress.now))
        return
    if instance is None and not status.provider_create_retrying:
        _wait_for_a_fresh_list(progress)
    ports = tenancy.networking.ports_named(naming.cloud_port(progress.server.id))
    attempt = _begin_removal(progress, attempts)
    # Conditional, and after the looks: a pass that was held up while another made the next attempt removes none of it.
    progress.record(CloudRequest(CloudRequestKind.REMOVE, progress.moment()))
    if instance is not None:
        removal.remove_instance(tenancy.compute, instance)
    removal.remove_ports(tenancy.networking, ports)
    # What comes next is a create of its own, which need not wait for this one.
    progress.record(None)
    progress.learn(provider_create_retrying=False)
    progress.become(closed_again(progress.server.spec, progress.server.status, progress.now))
    progress.tell(EventType.NORMAL, "ProviderCreateRetryReady", f"{attempt} is removed, the next one may begin")
    raise Stop(Outcome.YIELD, f"{attempt} to create the instance failed; trying again")


def _begin_removal(progress: Progress, attempts: int) -> str:
    """Count the failure, unless its removal is under way already, and return which attempt it was, for texts."""
    status = progress.server.status
    failures = status.provider_create_failures + (not status.provider_create_retrying)
    progress.learn(provider_create_failures=failures, provider_create_retrying=True)
    attempt = f"attempt {failures}/{max(1, attempts)}"
    if not status.provider_create_retrying:
        message = f"{attempt} to create the instance failed and is being removed{_fault(status)}"
        progress.tell(EventType.NORMAL, "ProviderCreateRetrying", message)
    progress.become(_reset(progress.server.status, progress.now))
    return attempt


def _wait_for_a_late_port(progress: Progress) -> None:
    """Stop while a port may still come into being: what is recorded next would let it be forgotten."""
    if may_come_late(progress.server.metadata.cloud_request, CloudRequestKind.CREATE_PORT, progress.now):
        raise Stop(Outcome.YIELD, "waiting to see whether the cloud created the port")


def _wait_for_a_fresh_list(progress: Progress) -> None:
    """Stop while a list of Nova's may be too old to show the instance, which somebody saw: it is not gone then."""
    if may_come_late(progress.server.metadata.cloud_request, CloudRequestKind.CREATE, progress.now):
        raise Stop(Outcome.YIELD, "waiting for the cloud to show the instance that failed")


def _removable(status: ServerStatus, nova_status: str) -> bool:
    return status.provider_create_retrying or nova_status == "ERROR"


def _reset(status: ServerStatus, now: datetime) -> ServerStatus:
    status = with_condition(
        status,
        ConditionType.HEALTHY,
        *BETWEEN_ATTEMPTS,
        "the instance failed and is being replaced",
        now,
    )
    return replace(status, phase=Phase.PENDING, private_ip=None, public_ip=None, launched_at=None, scheduled_at=None)


def _fault(status: ServerStatus) -> str:
    healthy = status.condition(ConditionType.HEALTHY)
    return f": {healthy.message}" if healthy is not None and healthy.message else ""
