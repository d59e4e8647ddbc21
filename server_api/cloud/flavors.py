"""Which of Nova's flavors a region exports, and as what (contract 6.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from server_api.servers.cloud_model import Flavor
from server_api.servers.surroundings import FlavorMetadata, Region

DEFAULT_ARCHITECTURE = "x86_64"
MIB = 1 << 20


def exported_flavors(records: Iterable[Mapping[str, Any]], region: Region) -> list[Flavor]:
    """Return the flavors a region exports, by name, from Nova's JSON.

    Raises LookupError, TypeError or ValueError when the JSON is of another shape.
    """
    metadata = {entry.id: entry for entry in region.flavor_metadata}
    flavors = [
        _flavor(record, metadata.get(record["id"]) or FlavorMetadata(record["id"]))
        for record in records
        if record["os-flavor-access:is_public"]
        if not region.flavor_ids or record["id"] in region.flavor_ids
    ]
    return sorted(flavors, key=lambda flavor: (flavor.name, flavor.id))


def _flavor(record: Mapping[str, Any], metadata: FlavorMetadata) -> Flavor:
    memory_mib = record["ram"] if metadata.memory_bytes is None else metadata.memory_bytes // MIB
    return Flavor(
        id=record["id"],
        name=record["name"],
        cpus=int(record["vcpus"] if metadata.cpu_count is None else metadata.cpu_count),
        memory_mib=int(memory_mib),
        # Nova: disk 0 means "as large as the image"; such a flavor says nothing about what fits.
        disk_gb=int(record["disk"]) or None,
        architecture=metadata.architecture or DEFAULT_ARCHITECTURE,
        baremetal=metadata.baremetal,
        pinned_only=metadata.pinned_only,
        cpu_family=metadata.cpu_family,
        # Nova leaves them out where its policy says so.
        extra_specs=dict(record.get("extra_specs") or {}),
    )
