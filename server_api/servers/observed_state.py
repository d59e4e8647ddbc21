"""From what Nova shows to what a server's status says (contract 4.5 and 6.12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from server_api.servers.baremetal_phase import phase_of
from server_api.servers.cloud_model import Instance, PowerState
from server_api.servers.conditions import with_condition
from server_api.servers.model import ConditionStatus, ConditionType, Phase, Reason, ServerStatus
from server_api.servers.rebuild import advance

_HEALTH: dict[str, tuple[ConditionStatus, Reason]] = {
    "ACTIVE": (ConditionStatus.TRUE, Reason.HEALTHY),
    "ERROR": (ConditionStatus.FALSE, Reason.ERRORED),
    "REBUILD": (ConditionStatus.FALSE, Reason.PROVISIONING),
    "UNKNOWN": (ConditionStatus.UNKNOWN, Reason.UNKNOWN),
}


def observe(
    status: ServerStatus, instance: Instance, now: datetime, network_name: str, node_state: str | None = None
) -> ServerStatus:
    """Return ``status`` as one read of the instance makes it: health, rebuild, MAC address, phase and times.

    ``network_name`` is the cloud name of the server's network, whose port's MAC address counts. ``node_state`` is the
    provision state of the node that an instance on bare metal is being built on, None if that is not known.
    """
    status = observe_health_and_phase(status, instance, now)
    if node_state is not None and instance.status == "BUILD":
        status = replace(status, phase=phase_of(node_state))
    if status.rebuild is not None:
        status = replace(status, rebuild=advance(status.rebuild, instance))
    return _with_times(_with_mac_address(status, instance, network_name), instance)


def observe_health_and_phase(status: ServerStatus, instance: Instance, now: datetime) -> ServerStatus:
    """Return ``status`` with health and phase as one read of the instance makes them."""
    return _with_phase(_with_health(status, instance, now), instance)


def rebuild_accepted(status: ServerStatus, now: datetime) -> ServerStatus:
    """Return ``status`` as a rebuild that the cloud has taken leaves it, before anybody looked at the instance."""
    status = with_condition(
        status,
        ConditionType.HEALTHY,
        ConditionStatus.FALSE,
        Reason.PROVISIONING,
        "the instance is being rebuilt from another image",
        now,
    )
    return replace(status, phase=Phase.BUILDING)


def _with_health(status: ServerStatus, instance: Instance, now: datetime) -> ServerStatus:
    value, reason = _HEALTH.get(instance.status, (ConditionStatus.FALSE, Reason.DEGRADED))
    message = f"the instance is {instance.status}"
    if instance.fault and reason is Reason.ERRORED:
        message = f"{message}: {instance.fault}"
    return with_condition(status, ConditionType.HEALTHY, value, reason, message, now)


def _with_mac_address(status: ServerStatus, instance: Instance, network_name: str) -> ServerStatus:
    if instance.status != "ACTIVE":
        return status
    return replace(status, mac_address=instance.mac_addresses.get(network_name) or status.mac_address)


def _with_times(status: ServerStatus, instance: Instance) -> ServerStatus:
    return replace(
        status,
        scheduled_at=instance.created_at or status.scheduled_at,
        launched_at=instance.launched_at or status.launched_at,
        # Written once: a retry clears the launch time, and this one then still says the server had lived.
        provisioned_at=status.provisioned_at or instance.launched_at,
    )


def _with_phase(status: ServerStatus, instance: Instance) -> ServerStatus:
    phase = status.phase or Phase.PENDING
    if instance.status in ("BUILD", "REBUILD"):
        phase = Phase.BUILDING
    elif instance.power_state == PowerState.RUNNING:
        phase = Phase.RUNNING
    elif instance.power_state == PowerState.SHUTDOWN:
        phase = Phase.STOPPED
    return replace(status, phase=phase)
