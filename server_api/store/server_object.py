"""A server's metadata and spec: from the stored object and back (contract 4.2 and 4.3).

Reading is tolerant, since other versions and people write these objects too. Writing lays what the rules changed over
the object as it was read, and leaves everything else in it as it was: what this version cannot express, and what it
could not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from server_api.servers.model import AddressPair, Metadata, NetworkAttachment, Server, ServerSpec, Tag
from server_api.store import kinds, labels
from server_api.store.cloud_request import request_from, to_annotation
from server_api.store.server_status import status_from
from server_api.store.tolerant import (
    boolean,
    decoded,
    encoded,
    integer,
    mapping,
    mappings,
    moment,
    text,
    texts,
    timestamp,
)

_LABELS = {
    "name": labels.NAME,
    "organization_id": labels.ORGANIZATION,
    "project_id": labels.PROJECT,
    "region_id": labels.REGION_ID,
    "identity_id": labels.IDENTITY_ID,
    "network_id": labels.NETWORK_ID,
    "api_version": labels.API_VERSION,
    "principal_organization_id": labels.PRINCIPAL_ORGANIZATION,
    "principal_project_id": labels.PRINCIPAL_PROJECT,
}
_ANNOTATIONS = {
    "description": labels.DESCRIPTION,
    "creator": labels.CREATOR,
    "principal_creator": labels.PRINCIPAL_CREATOR,
    "modifier": labels.MODIFIER,
    "principal_modifier": labels.PRINCIPAL_MODIFIER,
}


def from_object(stored: Mapping[str, Any]) -> Server:
    """Return the server in a stored object, which it keeps and which must not be changed from then on."""
    metadata = mapping(stored.get("metadata"))
    return Server(
        id=metadata.get("name") or "",
        metadata=_metadata_from(metadata),
        spec=_spec_from(mapping(stored.get("spec"))),
        status=status_from(mapping(stored.get("status"))),
        stored=stored,
    )


def to_object(server: Server) -> dict[str, Any]:
    """Return the object to store: metadata and spec of the server over the object it was read from, if it was."""
    stored = server.stored
    result: dict[str, Any] = orjson.loads(orjson.dumps(stored)) if stored else {}
    result["apiVersion"], result["kind"] = kinds.SERVER.api_version, kinds.SERVER.name
    metadata = result["metadata"] = dict(mapping(result.get("metadata")))
    spec = result["spec"] = dict(mapping(result.get("spec")))
    metadata["name"] = server.id
    if server.metadata.resource_version:
        metadata["resourceVersion"] = server.metadata.resource_version
    before = from_object(stored) if stored else None
    _write_metadata(metadata, before.metadata if before else None, server)
    _write_spec(spec, before.spec if before else ServerSpec(flavor_id="", image_id=None), server.spec)
    return result


def _metadata_from(metadata: Mapping[str, Any]) -> Metadata:
    label = mapping(metadata.get("labels")).get
    annotation = mapping(metadata.get("annotations")).get
    return Metadata(
        name=label(labels.NAME) or "",
        organization_id=label(labels.ORGANIZATION) or "",
        project_id=label(labels.PROJECT) or "",
        region_id=label(labels.REGION_ID) or None,
        identity_id=label(labels.IDENTITY_ID) or None,
        network_id=label(labels.NETWORK_ID) or None,
        api_version=label(labels.API_VERSION) or None,
        description=annotation(labels.DESCRIPTION) or None,
        creator=annotation(labels.CREATOR) or None,
        principal_creator=annotation(labels.PRINCIPAL_CREATOR) or None,
        principal_organization_id=label(labels.PRINCIPAL_ORGANIZATION) or None,
        principal_project_id=label(labels.PRINCIPAL_PROJECT) or None,
        modifier=annotation(labels.MODIFIER) or None,
        principal_modifier=annotation(labels.PRINCIPAL_MODIFIER) or None,
        modified_at=moment(annotation(labels.MODIFIED_AT)),
        created_at=moment(metadata.get("creationTimestamp")),
        deleted_at=moment(metadata.get("deletionTimestamp")),
        finalizers=texts(metadata.get("finalizers")),
        owner_uid=_owner_uid(metadata),
        cloud_request=request_from(annotation(labels.CLOUD_REQUEST)),
        uid=metadata.get("uid") or "",
        generation=integer(metadata.get("generation")) or 0,
        resource_version=metadata.get("resourceVersion") or "",
    )


def _owner_uid(metadata: Mapping[str, Any]) -> str | None:
    for owner in mappings(metadata.get("ownerReferences")):
        if owner.get("kind") == kinds.NETWORK.name:
            return text(owner.get("uid"))
    return None


def _spec_from(spec: Mapping[str, Any]) -> ServerSpec:
    groups = spec.get("securityGroups")
    gates = spec.get("providerCreateGates")
    return ServerSpec(
        flavor_id=text(spec.get("flavorID")) or "",
        image_id=text(mapping(spec.get("image")).get("id")),
        networks=tuple(map(_network_from, mappings(spec.get("networks")))),
        tags=tuple(Tag(_word(tag, "name"), _word(tag, "value")) for tag in mappings(spec.get("tags"))),
        security_group_ids=_identified(groups, "id") if isinstance(groups, list) else None,
        public_ip=boolean(mapping(spec.get("publicIPAllocation")).get("enabled")),
        user_data=decoded(spec.get("userData")),
        ssh_certificate_authority_id=text(spec.get("sshCertificateAuthorityID")),
        ssh_injection=text(spec.get("sshInjection")),
        infrastructure_ref=text(spec.get("infrastructureRef")),
        provider_create_gates=_identified(gates, "conditionType") if isinstance(gates, list) else None,
        pause=boolean(spec.get("pause")) or False,
    )


def _network_from(network: Mapping[str, Any]) -> NetworkAttachment:
    pairs = network.get("allowedAddressPairs")
    return NetworkAttachment(
        id=_word(network, "id"),
        allowed_address_pairs=tuple(
            AddressPair(_word(pair, "cidr"), _word(pair, "macAddress")) for pair in mappings(pairs)
        )
        if isinstance(pairs, list)
        else None,
    )


def _identified(items: Any, key: str) -> tuple[str, ...]:
    return tuple(filter(None, (text(item.get(key)) for item in mappings(items))))


def _word(item: Mapping[str, Any], key: str) -> str:
    return text(item.get(key)) or ""


def _write_metadata(metadata: dict[str, Any], before: Metadata | None, server: Server) -> None:
    after = server.metadata
    for key, fields in (("labels", _LABELS), ("annotations", _ANNOTATIONS)):
        values = dict(mapping(metadata.get(key)))
        for field, entry in fields.items():
            wanted = getattr(after, field) or None
            if before is None or (getattr(before, field) or None) != wanted:
                _put(values, entry, wanted)
        metadata[key] = values
    if before is None or before.modified_at != after.modified_at:
        _put(metadata["annotations"], labels.MODIFIED_AT, timestamp(after.modified_at))
    if before is None or before.cloud_request != after.cloud_request:
        _put(metadata["annotations"], labels.CLOUD_REQUEST, to_annotation(after.cloud_request))
    if before is None or before.finalizers != after.finalizers:
        metadata["finalizers"] = list(after.finalizers)
    if before is None and after.owner_uid:
        metadata["ownerReferences"] = [_owner_reference(server, after.owner_uid)]


def _owner_reference(server: Server, uid: str) -> dict[str, Any]:
    networks = server.spec.networks
    return {
        "apiVersion": kinds.NETWORK.api_version,
        "kind": kinds.NETWORK.name,
        "name": server.metadata.network_id or (networks[0].id if networks else ""),
        "uid": uid,
        "controller": False,
        "blockOwnerDeletion": True,
    }


def _write_spec(spec: dict[str, Any], before: ServerSpec, after: ServerSpec) -> None:
    if before.flavor_id != after.flavor_id:
        spec["flavorID"] = after.flavor_id
    if before.image_id != after.image_id:
        _put(spec, "image", {**mapping(spec.get("image")), "id": after.image_id} if after.image_id else None)
    if before.networks != after.networks:
        spec["networks"] = _networks(spec.get("networks"), after)
    if before.tags != after.tags:
        _put(spec, "tags", [{"name": tag.name, "value": tag.value} for tag in after.tags] or None)
    if before.security_group_ids != after.security_group_ids:
        _put(spec, "securityGroups", _overlaid(spec.get("securityGroups"), "id", after.security_group_ids))
    if before.public_ip != after.public_ip:
        allocation = {**mapping(spec.get("publicIPAllocation")), "enabled": after.public_ip}
        _put(spec, "publicIPAllocation", None if after.public_ip is None else allocation)
    if before.user_data != after.user_data:
        _put(spec, "userData", None if after.user_data is None else encoded(after.user_data))
    if before.ssh_certificate_authority_id != after.ssh_certificate_authority_id:
        _put(spec, "sshCertificateAuthorityID", after.ssh_certificate_authority_id)
    if before.ssh_injection != after.ssh_injection:
        _put(spec, "sshInjection", after.ssh_injection)
    if before.infrastructure_ref != after.infrastructure_ref:
        _put(spec, "infrastructureRef", after.infrastructure_ref)
    if before.provider_create_gates != after.provider_create_gates:
        gates = _overlaid(spec.get("providerCreateGates"), "conditionType", after.provider_create_gates)
        _put(spec, "providerCreateGates", gates)
    if before.pause != after.pause:
        _put(spec, "pause", after.pause or None)


def _networks(stored: Any, after: ServerSpec) -> list[dict[str, Any]]:
    attachments = _overlaid(stored, "id", tuple(network.id for network in after.networks)) or []
    for item, network in zip(attachments, after.networks, strict=True):
        pairs = network.allowed_address_pairs
        _put(item, "allowedAddressPairs", None if pairs is None else [_pair(pair) for pair in pairs])
    return attachments


def _pair(pair: AddressPair) -> dict[str, str]:
    return {"cidr": pair.cidr, "macAddress": pair.mac_address} if pair.mac_address else {"cidr": pair.cidr}


def _overlaid(stored: Any, key: str, ids: tuple[str, ...] | None) -> list[dict[str, Any]] | None:
    """Return items with these IDs, each with whatever else the stored item of that ID holds."""
    if ids is None:
        return None
    known = {item.get(key): item for item in mappings(stored)}
    return [{**known.get(id_, {}), key: id_} for id_ in ids]


def _put(target: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        target.pop(key, None)
    else:
        target[key] = value
