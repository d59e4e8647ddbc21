"""The address a request comes from, as far as it can be believed.

The other end of the connection is usually a proxy. What it says in ``X-Forwarded-For`` counts if it is one of ours, and
so on from right to left: everything left of the first address that is none of our proxies may be made up.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from flask import Flask, current_app, request

from server_api.access.client_certificate import Networks, trusted_networks

_NETWORKS = "TRUSTED_PROXIES"


def install(app: Flask, trusted_proxies: str) -> None:
    """Say which proxies the application believes. Raises ValueError for what is no list of networks."""
    try:
        app.config[_NETWORKS] = trusted_networks(trusted_proxies)
    except ValueError as error:
        raise ValueError(f"SERVER_API_TRUSTED_PROXIES: {error}") from None


def client_address() -> str:
    """Return where the request in hand comes from; empty over a local socket."""
    return believed(
        request.remote_addr or "", request.headers.getlist("X-Forwarded-For"), current_app.config[_NETWORKS]
    )


def believed(peer: str, forwarded: list[str], proxies: Networks) -> str:
    """Return the last address that is none of our proxies, of those the headers tell and the connection's own."""
    told = [address.strip() for header in forwarded for address in header.split(",")]
    while told and _is_one_of(peer, proxies):
        following = _parsed(told.pop())
        if following is None:
            break
        peer = str(following)
    return peer


def _is_one_of(address: str, networks: Networks) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
