"""What an update replaces, and what it leaves as it is stored (contract 1.6)."""

from __future__ import annotations

from dataclasses import replace

from server_api.servers import ssh_access
from server_api.servers.model import AddressPair, NetworkAttachment, ServerSpec
from server_api.servers.requests import ServerUpdate
from server_api.servers.source_addresses import address_pairs, masked


def normal_form(spec: ServerSpec) -> ServerSpec:
    """Return the spec with every way of saying "nothing" written as None, and the SSH mode spelled out."""
    return replace(
        spec,
        networks=_networks_in_normal_form(spec.networks),
        security_group_ids=spec.security_group_ids or None,
        public_ip=spec.public_ip or None,
        user_data=spec.user_data or None,
        ssh_injection=ssh_access.resolved_mode(spec),
    )


def _networks_in_normal_form(networks: tuple[NetworkAttachment, ...]) -> tuple[NetworkAttachment, ...]:
    return tuple(replace(network, allowed_address_pairs=network.allowed_address_pairs or None) for network in networks)


def replaced(stored: ServerSpec, request: ServerUpdate, groups: tuple[str, ...]) -> ServerSpec:
    """Return the stored spec with what the body can say replaced; what it cannot say stays."""
    pairs = address_pairs(request.networking.allowed_source_addresses)
    return replace(
        normal_form(stored),
        image_id=request.image_id,
        networks=_with_pairs(stored.networks, pairs),
        tags=request.tags,
        security_group_ids=groups or None,
        public_ip=request.networking.public_ip or None,
        user_data=request.user_data or None,
    )


def _with_pairs(
    networks: tuple[NetworkAttachment, ...], wanted: tuple[AddressPair, ...]
) -> tuple[NetworkAttachment, ...]:
    """Return the networks with the wanted pairs on the first, which is the one a body speaks of.

    A body names prefixes only, in masked form, so a prefix that stays keeps how it is stored and the MAC addresses
    beside it.
    """
    if not networks:
        return networks
    stored = networks[0].allowed_address_pairs or ()
    if list(dict.fromkeys(masked(pair.cidr) for pair in stored)) == [pair.cidr for pair in wanted]:
        return _networks_in_normal_form(networks)
    pairs: list[AddressPair] = []
    for pair in wanted:
        pairs.extend([kept for kept in stored if masked(kept.cidr) == pair.cidr] or [pair])
    return (replace(networks[0], allowed_address_pairs=tuple(pairs) or None), *networks[1:])
