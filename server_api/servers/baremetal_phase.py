"""The phase of a server on bare metal while it is being built: what its node says (contract 6.12)."""

from __future__ import annotations

from server_api.servers.cloud_model import Instance
from server_api.servers.model import Phase
from server_api.servers.surroundings import Region

_BUILDING = frozenset(
    {
        "deploying",
        "wait call-back",
        "deploy hold",
        "active",
        "clean failed",
        "inspect failed",
        "adopt failed",
        "deploy failed",
        "error",
    }
)


def wants_node(instance: Instance, region: Region, flavor_id: str) -> bool:
    """Say whether the node is worth looking up: only while Nova builds, on a flavor the region calls bare metal."""
    if instance.status != "BUILD":
        return False
    return any(entry.id == flavor_id and entry.baremetal for entry in region.flavor_metadata)


def phase_of(provision_state: str) -> Phase:
    """Return the phase of a server whose node is in that provision state: waiting in line, or being built."""
    return Phase.BUILDING if provision_state in _BUILDING else Phase.QUEUED
