"""What a server stands on, from the stored objects (contract 4.9). All of it is only read here."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from server_api.servers.model import ConditionType, Reason
from server_api.servers.surroundings import (
    FlavorMetadata,
    Identity,
    Network,
    PlacementPreflight,
    Region,
    SecurityGroup,
    SSHCertificateAuthority,
)
from server_api.store import labels, quantity
from server_api.store.tolerant import boolean, integer, mapping, mappings, text, texts

_PEM = "-----BEGIN "


def network_from(stored: Mapping[str, Any]) -> Network:
    """Return the network in a stored object."""
    metadata = mapping(stored.get("metadata"))
    label = _labels(metadata)
    return Network(
        id=text(metadata.get("name")) or "",
        uid=text(metadata.get("uid")) or "",
        name=text(label.get(labels.NAME)) or "",
        organization_id=text(label.get(labels.ORGANIZATION)),
        project_id=text(label.get(labels.PROJECT)),
        region_id=text(label.get(labels.REGION_ID)),
        identity_id=text(label.get(labels.IDENTITY_ID)),
        api_version=text(label.get(labels.API_VERSION)),
    )


def security_group_from(stored: Mapping[str, Any]) -> SecurityGroup:
    """Return the security group in a stored object."""
    metadata = mapping(stored.get("metadata"))
    label = _labels(metadata)
    return SecurityGroup(
        id=text(metadata.get("name")) or "",
        organization_id=text(label.get(labels.ORGANIZATION)),
        project_id=text(label.get(labels.PROJECT)),
        network_id=text(label.get(labels.NETWORK_ID)),
        api_version=text(label.get(labels.API_VERSION)),
    )


def ssh_certificate_authority_from(stored: Mapping[str, Any]) -> SSHCertificateAuthority:
    """Return the certificate authority in a stored object."""
    metadata = mapping(stored.get("metadata"))
    label = _labels(metadata)
    return SSHCertificateAuthority(
        id=text(metadata.get("name")) or "",
        organization_id=text(label.get(labels.ORGANIZATION)),
        project_id=text(label.get(labels.PROJECT)),
        api_version=text(label.get(labels.API_VERSION)),
        public_key=text(mapping(stored.get("spec")).get("publicKey")) or "",
    )


def identity_from(stored: Mapping[str, Any]) -> Identity:
    """Return the identity in a stored object."""
    metadata = mapping(stored.get("metadata"))
    label = _labels(metadata)
    conditions = mappings(mapping(stored.get("status")).get("conditions"))
    return Identity(
        id=text(metadata.get("name")) or "",
        organization_id=text(label.get(labels.ORGANIZATION)),
        project_id=text(label.get(labels.PROJECT)),
        region_id=text(label.get(labels.REGION_ID)),
        ready=any(
            condition.get("type") == ConditionType.AVAILABLE and condition.get("reason") == Reason.PROVISIONED
            for condition in conditions
        ),
    )


def region_from(stored: Mapping[str, Any]) -> Region:
    """Return the region in a stored object; its Secret is in the region's namespace unless it says otherwise."""
    metadata = mapping(stored.get("metadata"))
    spec = mapping(stored.get("spec"))
    openstack = mapping(spec.get("openstack"))
    secret = mapping(openstack.get("serviceAccountSecret"))
    compute = mapping(openstack.get("compute"))
    flavors = mapping(compute.get("flavors"))
    image_selector = mapping(mapping(openstack.get("image")).get("selector"))
    networks = mapping(mapping(openstack.get("network")).get("externalNetworks"))
    network_selector = mapping(networks.get("selector"))
    return Region(
        id=text(metadata.get("name")) or "",
        name=text(_labels(metadata).get(labels.NAME)) or "",
        provider=text(spec.get("provider")) or "",
        endpoint=text(openstack.get("endpoint")) or "",
        secret_namespace=text(secret.get("namespace")) or text(metadata.get("namespace")) or "",
        secret_name=text(secret.get("name")) or "",
        # An empty list selects nothing in particular, hence everything (contract 6.7).
        flavor_ids=frozenset(texts(mapping(flavors.get("selector")).get("ids"))) or None,
        flavor_metadata=tuple(map(_flavor_metadata_from, mappings(flavors.get("metadata")))),
        image_signing_key=pem(image_selector.get("signingKey")),
        external_network_ids=frozenset(texts(network_selector.get("ids"))),
        external_network_tags=frozenset(texts(network_selector.get("tags"))),
        placement_preflight=_preflight_from(mapping(compute.get("placementPreflight"))),
    )


def _preflight_from(stored: Mapping[str, Any]) -> PlacementPreflight | None:
    if not boolean(stored.get("enabled")):
        return None
    return PlacementPreflight(texts(stored.get("requiredTraits")))


def pem(value: Any) -> str | None:
    """Return a key as PEM text, whether it is stored as such or, as the reference does with bytes, in base64."""
    stored = text(value)
    if stored is None or stored.startswith(_PEM):
        return stored
    try:
        return base64.b64decode(stored, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _flavor_metadata_from(flavor: Mapping[str, Any]) -> FlavorMetadata:
    cpu = mapping(flavor.get("cpu"))
    return FlavorMetadata(
        id=text(flavor.get("id")) or "",
        baremetal=boolean(flavor.get("baremetal")) or False,
        pinned_only=boolean(flavor.get("pinnedOnly")) or False,
        architecture=text(cpu.get("architecture")),
        cpu_count=integer(cpu.get("count")),
        cpu_family=text(cpu.get("family")),
        memory_bytes=quantity.whole(flavor.get("memory")),
    )


def _labels(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(metadata.get("labels"))
