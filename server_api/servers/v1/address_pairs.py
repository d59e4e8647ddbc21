"""``allowedAddressPairs`` of v1 (contract 2.2)."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Network

from server_api.servers.errors import Unprocessable
from server_api.servers.model import AddressPair
from server_api.servers.source_addresses import prefix


def storable(pairs: Iterable[AddressPair]) -> tuple[AddressPair, ...]:
    """Return the pairs whose text is an IPv4 prefix, with host bits masked off; other text is passed over in silence.

    That is what v1 always did with what it could not understand. An IPv6 prefix is understood, and cannot be stored:
    to drop it would be to do something else than was asked. Raises Unprocessable for one.
    """
    kept = []
    for index, pair in enumerate(pairs):
        masked = prefix(pair.cidr)
        if masked is not None:
            kept.append(AddressPair(masked, pair.mac_address))
        elif _is_ipv6(pair.cidr):
            raise Unprocessable("only IPv4 is supported", f"spec.networks[0].allowedAddressPairs[{index}].cidr")
    return tuple(kept)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Network(text, strict=False)
    except ValueError:
        return False
    return "/" in text
