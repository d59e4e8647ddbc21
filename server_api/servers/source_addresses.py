"""``allowedSourceAddresses``: which texts are IPv4 prefixes (contract 1.5 step 13, design section 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network

from server_api.servers.errors import Unprocessable
from server_api.servers.model import AddressPair

# Decimal numbers without leading zeroes: ipaddress alone would also take netmasks after the slash.
_PREFIX = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})/(?:0|[1-9][0-9]?)", re.ASCII)


def address_pairs(texts: Iterable[str]) -> tuple[AddressPair, ...]:
    """Return the prefixes with host bits masked off, each once, in order.

    Raises Unprocessable for anything that is not an IPv4 prefix such as ``10.0.0.0/24``.
    """
    prefixes = [_parse(index, text) for index, text in enumerate(texts)]
    return tuple(AddressPair(cidr=prefix) for prefix in dict.fromkeys(prefixes))


def prefix(text: str) -> str | None:
    """Return an IPv4 prefix such as ``10.0.0.0/24`` with host bits masked off, None for any other text."""
    with suppress(ValueError):
        if _PREFIX.fullmatch(text):
            return str(IPv4Network(text, strict=False))
    return None


def masked(text: str) -> str:
    """Return a stored prefix with host bits masked off; text that is no prefix comes back as it is."""
    try:
        return str(IPv4Network(text, strict=False))
    except ValueError:
        return text


def _parse(index: int, text: str) -> str:
    parsed = prefix(text)
    if parsed is not None:
        return parsed
    raise Unprocessable("not an IPv4 prefix such as 10.0.0.0/24", f"spec.networking.allowedSourceAddresses[{index}]")
