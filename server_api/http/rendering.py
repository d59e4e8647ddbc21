"""What the documents of servers have in common in every generation of the API (contract 2.1).

Plain dicts, which is many times faster than schemas. Optional members are left out, never null. A stored object may
lack what every server should have, because an older version or somebody's hand left it so. It is shown all the same,
with something in that place that the schema allows: one odd object must not take a whole list away from its readers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from server_api.http.schemas.metadata import HEALTH_REASONS, PROVISIONING_REASONS
from server_api.servers import derived_status
from server_api.servers.model import Condition, ConditionType, Phase, Server

NIL_ID = "00000000-0000-0000-0000-000000000000"
"""Stands in the place of a required ID that the stored object lacks (RFC 9562, 5.9). No object has it."""

PHASES = frozenset(phase.value for phase in Phase)
"""Phases that are shown: one this version does not know would break clients that trust the enumeration."""

_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_PROVISIONING_REASONS = frozenset(PROVISIONING_REASONS)
_HEALTH_REASONS = frozenset(HEALTH_REASONS)


def metadata_document(server: Server, *, masked: bool) -> dict[str, Any]:
    """Return ``metadata``. ``masked``: a server with a recorded rebuild does not read as provisioned (contract 4.7)."""
    metadata = server.metadata
    status = derived_status.provisioning_status if masked else derived_status.reconciled_status
    available = server.status.condition(ConditionType.AVAILABLE)
    healthy = server.status.condition(ConditionType.HEALTHY)
    document = {
        "id": server.id,
        "name": metadata.name or server.id,
        "creationTime": metadata.created_at or _NO_TIME,
        "organizationId": metadata.organization_id,
        "projectId": metadata.project_id,
        "provisioningStatus": status(server),
        "healthStatus": derived_status.health_status(server),
    }
    if server.spec.tags:
        document["tags"] = [{"name": tag.name, "value": tag.value} for tag in server.spec.tags]
    # While a rebuild is recorded, the condition speaks of the image before it.
    is_masked = masked and derived_status.is_masked(server)
    if available is not None and available.reason in _PROVISIONING_REASONS and not is_masked:
        document["provisioningStatusDetail"] = _detail(available)
    if healthy is not None and healthy.reason in _HEALTH_REASONS:
        document["healthStatusDetail"] = _detail(healthy)
    add(document, "description", metadata.description)
    add(document, "createdBy", metadata.creator)
    add(document, "modifiedTime", metadata.modified_at)
    add(document, "modifiedBy", metadata.modifier)
    add(document, "deletionTime", metadata.deleted_at)
    return document


def network_id(server: Server) -> str:
    """Return the ID of the server's network: that of its attachment, else of its label, else the nil UUID."""
    attached = server.spec.networks[0].id if server.spec.networks else None
    return attached or server.metadata.network_id or NIL_ID


def add(document: dict[str, Any], name: str, value: object) -> None:
    """Put a member into a document unless there is nothing to say."""
    if value:
        document[name] = value


def _detail(condition: Condition) -> dict[str, str]:
    return {"reason": condition.reason, "message": condition.message}
