"""``allowedAddressPairs`` of v1."""

from __future__ import annotations

import pytest

from server_api.servers.errors import Unprocessable
from server_api.servers.model import AddressPair
from server_api.servers.v1.address_pairs import storable


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("192.168.1.7/24", "192.168.1.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("10.0.0.1", None),
        ("10.0.0.0/33", None),
        ("10.0.0.0/255.0.0.0", None),
        ("fd00::1", None),
        ("fd00::/129", None),
        ("", None),
    ],
)
def test_w09_w10_prefixes_are_masked_and_what_is_none_is_passed_over(text: str, kept: str | None) -> None:
    pairs = storable([AddressPair("10.9.0.0/16"), AddressPair(text, "fa:16:3e:00:00:01")])

    assert pairs == (AddressPair("10.9.0.0/16"), *([AddressPair(kept, "fa:16:3e:00:00:01")] if kept else []))


def test_w11_one_prefix_may_be_allowed_with_several_mac_addresses() -> None:
    pairs = tuple(AddressPair("10.0.0.0/8", mac) for mac in ("a", "b", ""))

    assert storable(pairs) == pairs


@pytest.mark.parametrize("text", ["fd00::/64", "::/0", "::ffff:10.0.0.1/128"])
def test_a_prefix_that_cannot_be_stored_is_refused(text: str) -> None:
    with pytest.raises(Unprocessable, match=r"allowedAddressPairs\[0\]\.cidr"):
        storable([AddressPair(text)])
