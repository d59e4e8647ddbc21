"""What a read says of a server's provisioning and health (contract 4.7 and 4.8)."""

from __future__ import annotations

from server_api.servers.model import ConditionType, Reason, Server

_PROVISIONING = {
    "Provisioning": "provisioning",
    "DependencyNotReady": "provisioning",
    "DependencyFailed": "provisioning",
    "Provisioned": "provisioned",
    "Errored": "error",
    "DependencyNotFound": "error",
    "Deprovisioning": "deprovisioning",
    "Deprovisioned": "deprovisioning",
}

_HEALTH = {"Healthy": "healthy", "Degraded": "degraded", "Errored": "error"}


def provisioning_status(server: Server) -> str:
    """Return ``metadata.provisioningStatus`` as v2 reads show it.

    Provisioned means settled: while a rebuild is recorded, in any state, the desired image is not known to be
    realised, so the server still reads as provisioning. A parked rebuild is an error and stays visible as one.
    """
    status = reconciled_status(server)
    return "provisioning" if status == "provisioned" and is_masked(server) else status


def reconciled_status(server: Server) -> str:
    """Return how far the controller is, whether or not a rebuild is recorded."""
    if server.metadata.deleted_at is not None:
        return "deprovisioning"
    condition = server.status.condition(ConditionType.AVAILABLE)
    return "pending" if condition is None else _PROVISIONING.get(condition.reason, "provisioning")


def is_masked(server: Server) -> bool:
    """Say whether the Available condition says provisioned and a recorded rebuild says that it is not so."""
    condition = server.status.condition(ConditionType.AVAILABLE)
    return condition is not None and condition.reason == Reason.PROVISIONED and server.status.rebuild is not None


def health_status(server: Server) -> str:
    """Return ``metadata.healthStatus``."""
    condition = server.status.condition(ConditionType.HEALTHY)
    return "unknown" if condition is None else _HEALTH.get(condition.reason, "unknown")
