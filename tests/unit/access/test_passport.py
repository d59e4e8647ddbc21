"""Passports: which are usable and what is in them (contract 5.2)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from server_api.access.passport import UnusablePassport, read

NOW = 1_700_000_000.0
KEY = ECKey.generate_key("P-521")
CLAIMS: dict[str, Any] = {
    "typ": "passport",
    "sub": "alice@example.com",
    "exp": NOW + 60,
    "acctype": "user",
    "source": "local",
    "src_iss": "https://identity.example.com",
    "email": "alice@example.com",
    "org_ids": ["O1", "O2"],
}


def passport(**changes: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not ...}
    return jwt.encode({"alg": "ES512"}, claims, KEY, algorithms=["ES512"])


def test_the_claims_are_read() -> None:
    found = read(passport(), NOW)

    assert (found.subject, found.account_type, found.source) == ("alice@example.com", "user", "local")
    assert (found.expires_at, found.issuer) == (NOW + 60, "https://identity.example.com")
    assert found.organization_ids == ("O1", "O2")


@pytest.mark.parametrize("absent", ["src_iss", "email", "org_ids", "nbf", "iat"])
def test_some_claims_may_be_absent(absent: str) -> None:
    assert read(passport(**{absent: ...}), NOW).subject == "alice@example.com"


def test_a_passport_with_many_organizations_is_read() -> None:
    many = [f"10000000-0000-4000-8000-{number:012}" for number in range(5_000)]

    assert len(read(passport(org_ids=many), NOW).organization_ids) == 5_000


@pytest.mark.parametrize(
    "changes",
    [
        {"typ": "access"},
        {"typ": ...},
        {"typ": "Passport"},
        {"sub": ...},
        {"sub": ""},
        {"sub": " "},
        {"sub": 7},
        {"exp": ...},
        {"exp": NOW},
        {"exp": NOW - 1},
        {"exp": str(NOW + 60)},
        {"exp": True},
        {"nbf": NOW + 1},
        {"nbf": "soon"},
        {"acctype": ...},
        {"acctype": ""},
        {"source": ...},
        {"source": ""},
    ],
    ids=str,
)
def test_a_passport_whose_claims_do_not_hold_is_unusable(changes: dict[str, Any]) -> None:
    with pytest.raises(UnusablePassport):
        read(passport(**changes), NOW)


@pytest.mark.parametrize("changes", [{"nbf": NOW}, {"nbf": NOW - 1}, {"exp": NOW + 0.5}])
def test_the_edges_of_its_life_are_inside_of_it(changes: dict[str, Any]) -> None:
    assert read(passport(**changes), NOW).subject == "alice@example.com"


def forged(part: int, text: str) -> str:
    parts = passport().split(".")
    parts[part] = text
    return ".".join(parts)


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "s3cret",
        "a.b",
        "a.b.c",
        "é.é.é",
        passport() + ".x",
        forged(0, "e30"),
        forged(1, "W10"),
        forged(1, "!"),
    ],
)
def test_what_is_no_jws_is_unusable_and_not_repeated(text: object) -> None:
    with pytest.raises(UnusablePassport) as failure:
        read(text, NOW)

    assert "s3cret" not in str(failure.value)


def test_a_passport_of_another_algorithm_is_unusable() -> None:
    other = jwt.encode({"alg": "HS256"}, dict(CLAIMS), OctKey.generate_key(256), algorithms=["HS256"])

    with pytest.raises(UnusablePassport, match="ES512"):
        read(other, NOW)


def test_the_signature_is_not_verified_again() -> None:
    """The contract trusts the channel; the settings see to it that there is one to trust (``checked_url``)."""
    assert read(forged(2, "AAAA"), NOW).subject == "alice@example.com"


def test_an_expiry_that_is_no_number_at_all_is_unusable() -> None:
    text = b'{"typ":"passport","sub":"a","acctype":"user","source":"s","exp":1e999}'
    with pytest.raises(UnusablePassport):
        read(forged(1, base64.urlsafe_b64encode(text).rstrip(b"=").decode()), NOW)
