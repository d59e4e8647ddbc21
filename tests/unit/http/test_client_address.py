"""Whose word on a client's address counts."""

from __future__ import annotations

import pytest

from server_api.access.client_certificate import trusted_networks
from server_api.http.client_address import believed

PROXIES = trusted_networks("10.0.0.0/24, fd00::/64")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.7, nonsense"], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        ("", ["198.51.100.7"], ""),
    ],
)
def test_only_what_our_own_proxies_say_is_believed(peer: str, forwarded: list[str], address: str) -> None:
    assert believed(peer, forwarded, PROXIES) == address


def test_nobody_is_believed_by_default() -> None:
    assert believed("127.0.0.1", ["198.51.100.7"], ()) == "127.0.0.1"
