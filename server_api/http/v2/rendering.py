"""A server as v2 reads show it (contract 2.1, 2.4 and 2.6): plain dicts, which is many times faster than schemas.

Optional members are left out, never null.
"""

from __future__ import annotations

import base64
from typing import Any

from server_api.http.schemas.metadata import HEALTH_REASONS, PROVISIONING_REASONS
from server_api.servers import derived_status, provider_create_gates, ssh_access
from server_api.servers.model import Condition, ConditionType, Phase, Server, ServerSpec
from server_api.servers.source_addresses import masked

_PHASES = frozenset(phase.value for phase in Phase)
_PROVISIONING_REASONS = frozenset(PROVISIONING_REASONS)
_HEALTH_REASONS = frozenset(HEALTH_REASONS)


class UnreadableServer(Exception):
    """The stored object lacks what every server has, so it cannot be shown (contract 2.6)."""


def server_document(server: Server) -> dict[str, Any]:
    """Return the document of one server. Raises UnreadableServer."""
    return {"metadata": _metadata(server), "spec": _spec(server), "status": _status(server)}


def _metadata(server: Server) -> dict[str, Any]:
    metadata = server.metadata
    if metadata.created_at is None:
        raise UnreadableServer(f"server {server.id} has no creation time")
    available = server.status.condition(ConditionType.AVAILABLE)
    healthy = server.status.condition(ConditionType.HEALTHY)
    document = {
        "id": server.id,
        "name": metadata.name,
        "creationTime": metadata.created_at,
        "organizationId": metadata.organization_id,
        "projectId": metadata.project_id,
        "provisioningStatus": derived_status.provisioning_status(server),
        "healthStatus": derived_status.health_status(server),
    }
    if server.spec.tags:
        document["tags"] = [{"name": tag.name, "value": tag.value} for tag in server.spec.tags]
    # While a rebuild is recorded, the condition speaks of the image before it.
    if available is not None and available.reason in _PROVISIONING_REASONS and not derived_status.is_masked(server):
        document["provisioningStatusDetail"] = _detail(available)
    if healthy is not None and healthy.reason in _HEALTH_REASONS:
        document["healthStatusDetail"] = _detail(healthy)
    _add(document, "description", metadata.description)
    _add(document, "createdBy", metadata.creator)
    _add(document, "modifiedTime", metadata.modified_at)
    _add(document, "modifiedBy", metadata.modifier)
    _add(document, "deletionTime", metadata.deleted_at)
    return document


def _spec(server: Server) -> dict[str, Any]:
    spec = server.spec
    if not spec.image_id:
        raise UnreadableServer(f"server {server.id} has no image")
    document: dict[str, Any] = {"flavorId": spec.flavor_id, "imageId": spec.image_id}
    networking = _networking(spec)
    if networking:
        document["networking"] = networking
    if spec.user_data:
        document["userData"] = base64.b64encode(spec.user_data).decode()
    return document


def _networking(spec: ServerSpec) -> dict[str, Any]:
    networking: dict[str, Any] = {}
    if spec.security_group_ids:
        networking["securityGroups"] = spec.security_group_ids
    # False is not told apart from absent (contract 2.4).
    if spec.public_ip:
        networking["publicIP"] = True
    if spec.networks and spec.networks[0].allowed_address_pairs:
        prefixes = (masked(pair.cidr) for pair in spec.networks[0].allowed_address_pairs)
        networking["allowedSourceAddresses"] = list(dict.fromkeys(prefixes))
    return networking


def _status(server: Server) -> dict[str, Any]:
    spec, status = server.spec, server.status
    if not server.metadata.region_id or not spec.networks:
        raise UnreadableServer(f"server {server.id} has no region or no network")
    document: dict[str, Any] = {
        "regionId": server.metadata.region_id,
        "networkId": spec.networks[0].id,
        "sshInjection": ssh_access.resolved_mode(spec).value,
    }
    gates = provider_create_gates.remaining(spec, status)
    if gates is not None:
        document["remainingProviderCreateGates"] = gates
    # A phase this version does not know would break clients that trust the enumeration.
    if status.phase in _PHASES:
        document["powerState"] = status.phase
    _add(document, "sshCertificateAuthorityId", spec.ssh_certificate_authority_id)
    _add(document, "infrastructureRef", spec.infrastructure_ref)
    _add(document, "privateIP", status.private_ip)
    _add(document, "publicIP", status.public_ip)
    _add(document, "macAddress", status.mac_address)
    return document


def _detail(condition: Condition) -> dict[str, str]:
    return {"reason": condition.reason, "message": condition.message}


def _add(document: dict[str, Any], name: str, value: object) -> None:
    if value:
        document[name] = value
