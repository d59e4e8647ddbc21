"""A server as v2 reads show it (contract 2.4 and 2.6)."""

from __future__ import annotations

import base64
from typing import Any

from server_api.http.rendering import NIL_ID, PHASES, add, metadata_document, network_id
from server_api.servers import provider_create_gates, ssh_access
from server_api.servers.model import Server, ServerSpec
from server_api.servers.source_addresses import masked


class UnreadableServer(Exception):
    """The stored object has no image, so no answer can hold it (contract 2.6)."""


def server_document(server: Server) -> dict[str, Any]:
    """Return the document of one server. Raises UnreadableServer."""
    if not server.spec.image_id:
        raise UnreadableServer(f"server {server.id} has no image")
    return {
        "metadata": metadata_document(server, masked=True),
        "spec": _spec(server.spec),
        "status": _status(server),
    }


def _spec(spec: ServerSpec) -> dict[str, Any]:
    document: dict[str, Any] = {"flavorId": spec.flavor_id or NIL_ID, "imageId": spec.image_id}
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
    document: dict[str, Any] = {
        "regionId": server.metadata.region_id or NIL_ID,
        "networkId": network_id(server),
        "sshInjection": ssh_access.resolved_mode(spec).value,
    }
    gates = provider_create_gates.remaining(spec, status)
    if gates is not None:
        document["remainingProviderCreateGates"] = gates
    if status.phase in PHASES:
        document["powerState"] = status.phase
    add(document, "sshCertificateAuthorityId", spec.ssh_certificate_authority_id)
    add(document, "infrastructureRef", spec.infrastructure_ref)
    add(document, "privateIP", status.private_ip)
    add(document, "publicIP", status.public_ip)
    add(document, "macAddress", status.mac_address)
    return document
