"""``allowedSourceAddresses`` (contract 1.5 step 13, design section 4, known failures section 9)."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_api.servers.errors import Unprocessable
from server_api.servers.model import AddressPair
from server_api.servers.source_addresses import address_pairs

octets = st.integers(0, 255)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("10.0.0.0/24", "10.0.0.0/24"),
        ("10.0.0.5/24", "10.0.0.0/24"),
        ("10.0.0.5/32", "10.0.0.5/32"),
        ("10.0.0.1/31", "10.0.0.0/31"),
        ("255.255.255.255/1", "128.0.0.0/1"),
        ("192.168.77.9/16", "192.168.0.0/16"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("1.2.3.4/0", "0.0.0.0/0"),
    ],
)
def test_b82_c43_host_bits_are_masked_off(text: str, stored: str) -> None:
    assert address_pairs([text]) == (AddressPair(cidr=stored),)


@pytest.mark.parametrize(
    "text",
    [
        "definitely-not-a-cidr",
        "",
        "/",
        "/24",
        "10.0.0.1",
        "10.0.0.0/",
        "10.0.0.0/255.255.255.0",
        "10.0.0.0/0.0.0.255",
        "10.0.0.0/33",
        "10.0.0.0/99",
        "10.0.0.0/100",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "10.0.0.0/08",
        "10.0.0.0/00",
        "10.0.0.0/8/8",
        "010.0.0.0/8",
        "10.00.0.0/8",
        "10.0.0.01/8",
        "0x0a.0.0.0/8",
        "10.0.0/8",
        "10/8",
        "10.0.0.0.0/8",
        "256.0.0.0/8",
        "10.0.0.256/8",
        "10.0.0.999/8",
        "1000.0.0.0/8",
        " 10.0.0.0/8",
        "10.0.0.0/8 ",
        "10.0.0.0/8\n",
        "10.0.0.0 /8",
        "10.0.0.0/ 8",
        "10,0,0,0/8",
        "10.0.0.0\\8",
        "-1.0.0.0/8",
        "1\N{ARABIC-INDIC DIGIT ZERO}.0.0.0/8",
        "10.0.0.0/\N{FULLWIDTH DIGIT EIGHT}",
        "fe80::1%eth0/128",
        "2001:db8::/32",
        "::ffff:10.0.0.0/104",
        "168427520/8",
    ],
)
def test_b83_c42_whatever_is_not_an_ipv4_prefix_is_refused(text: str) -> None:
    with pytest.raises(Unprocessable, match="not an IPv4 prefix"):
        address_pairs([text])


def test_b84_the_whole_of_ipv4_is_accepted_and_the_whole_of_ipv6_refused() -> None:
    assert address_pairs(["0.0.0.0/0"]) == (AddressPair(cidr="0.0.0.0/0"),)
    with pytest.raises(Unprocessable):
        address_pairs(["::/0"])


def test_the_refusal_names_the_entry_and_does_not_repeat_its_text() -> None:
    with pytest.raises(Unprocessable) as refusal:
        address_pairs(["10.0.0.0/8", "secret" * 1000])

    assert refusal.value.field == "spec.networking.allowedSourceAddresses[1]"
    assert "secret" not in str(refusal.value)


def test_b34_a_prefix_given_twice_is_kept_once_in_the_order_given() -> None:
    pairs = address_pairs(["10.2.0.0/16", "10.1.0.0/16", "10.2.3.4/16"])

    assert [pair.cidr for pair in pairs] == ["10.2.0.0/16", "10.1.0.0/16"]
    assert all(pair.mac_address == "" for pair in pairs)


def test_no_address_gives_no_pair() -> None:
    assert address_pairs([]) == ()


@given(st.tuples(octets, octets, octets, octets), st.integers(0, 32))
def test_every_prefix_becomes_the_network_it_lies_in(address: tuple[int, int, int, int], length: int) -> None:
    text = f"{'.'.join(map(str, address))}/{length}"

    (pair,) = address_pairs([text])

    assert IPv4Network(pair.cidr) == IPv4Network(text, strict=False)
    assert address_pairs([pair.cidr]) == (pair,)


@given(st.one_of(st.text(), st.text("0123456789./ :abcdef", max_size=20), st.from_regex(r"\d+\.\d+\.\d+\.\d+/\d+")))
def test_any_text_is_a_network_or_unprocessable(text: str) -> None:
    try:
        (pair,) = address_pairs([text])
    except Unprocessable:
        return
    assert IPv4Network(pair.cidr) == IPv4Network(text, strict=False)
