"""A server as v1 reads show it (contract 2.2 and 2.3), whichever generation created it."""

from __future__ import annotations

import base64
from typing import Any

from server_api.http.rendering import NIL_ID, PHASES, add, metadata_document, network_id
from server_api.servers.model import AddressPair, Server
from server_api.servers.source_addresses import masked


def server_document(server: Server) -> dict[str, Any]:
    """Return the document of one server."""
    return {"metadata": metadata_document(server, masked=False), "spec": _spec(server), "status": _status(server)}


def _spec(server: Server) -> dict[str, Any]:
    spec = server.spec
    document: dict[str, Any] = {
        "flavorId": spec.flavor_id or NIL_ID,
        "imageId": spec.image_id or NIL_ID,
        "networks": [_network(server)],
    }
    # Unlike v2, v1 tells a stored False and an empty list apart from nothing.
    if spec.public_ip is not None:
        document["publicIPAllocation"] = {"enabled": spec.public_ip}
    if spec.security_group_ids is not None:
        document["securityGroups"] = [{"id": group_id} for group_id in spec.security_group_ids]
    if spec.user_data:
        document["userData"] = base64.b64encode(spec.user_data).decode()
    return document


def _network(server: Server) -> dict[str, Any]:
    network: dict[str, Any] = {"id": network_id(server)}
    pairs = server.spec.networks[0].allowed_address_pairs if server.spec.networks else None
    if pairs is not None:
        network["allowedAddressPairs"] = [_pair(pair) for pair in pairs]
    return network


def _pair(pair: AddressPair) -> dict[str, str]:
    document = {"cidr": masked(pair.cidr)}
    add(document, "macAddress", pair.mac_address)
    return document


def _status(server: Server) -> dict[str, Any]:
    status = server.status
    document: dict[str, Any] = {}
    if status.phase in PHASES:
        document["phase"] = status.phase
    add(document, "privateIP", status.private_ip)
    add(document, "publicIP", status.public_ip)
    return document
