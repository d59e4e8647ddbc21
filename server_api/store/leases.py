"""Leases, by which replicas agree on one of them (coordination.k8s.io/v1)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from server_api.servers.ports import Missing
from server_api.servers.replica_ports import Lease
from server_api.store import kinds
from server_api.store.client import KubernetesClient, RawObject
from server_api.store.tolerant import integer, mapping, moment, text


class KubernetesLeases:
    """``replica_ports.Leases`` over one namespace."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def get(self, name: str) -> Lease | None:
        """Return the lease, None if it does not exist."""
        try:
            return _lease(self._client.get(kinds.LEASE, self._namespace, name))
        except Missing:
            return None

    def create(self, lease: Lease) -> Lease:
        """Create it. Raises AlreadyExists."""
        body = {
            "apiVersion": kinds.LEASE.api_version,
            "kind": kinds.LEASE.name,
            "metadata": {"name": lease.name},
            "spec": _spec(lease),
        }
        return _lease(self._client.create(kinds.LEASE, self._namespace, body))

    def replace(self, lease: Lease) -> Lease:
        """Write it if nobody wrote since it was read; others' labels on it stay. Raises StateConflict, Missing."""
        patch = {"metadata": {"resourceVersion": lease.resource_version}, "spec": _spec(lease)}
        return _lease(self._client.patch(kinds.LEASE, self._namespace, lease.name, patch))


def _lease(stored: RawObject) -> Lease:
    metadata, spec = mapping(stored.get("metadata")), mapping(stored.get("spec"))
    return Lease(
        name=text(metadata.get("name")) or "",
        holder=text(spec.get("holderIdentity")) or "",
        duration_seconds=integer(spec.get("leaseDurationSeconds")) or 0,
        acquired_at=moment(spec.get("acquireTime")),
        renewed_at=moment(spec.get("renewTime")),
        transitions=integer(spec.get("leaseTransitions")) or 0,
        resource_version=text(metadata.get("resourceVersion")) or "",
    )


def _spec(lease: Lease) -> dict[str, Any]:
    return {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": lease.duration_seconds,
        "acquireTime": _micro_time(lease.acquired_at),
        "renewTime": _micro_time(lease.renewed_at),
        "leaseTransitions": lease.transitions,
    }


def _micro_time(value: datetime | None) -> str | None:
    # The API refuses a MicroTime without its six decimals.
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if value else None
