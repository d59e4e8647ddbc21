"""Passports: what the identity service says of the owner of a token (contract 5.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError

ALGORITHM = "ES512"
TYPE = "passport"

_ORGANIZATION_IDS = re.compile(r"[\x21-\x7e]{1,100}")


class UnusablePassport(Exception):
    """The identity service accepted a token and answered with what is no passport: a failure of it or of ours."""


@dataclass(frozen=True, slots=True)
class Passport:
    """Who owns a token. ``expires_at`` is in seconds since the epoch; ``issuer`` is where the token came from."""

    subject: str
    account_type: str
    expires_at: float
    source: str
    issuer: str = ""
    organization_ids: tuple[str, ...] = ()
    email: str = field(default="", repr=False)


class _Registry(jws.JWSRegistry):
    """The shape of what we take for a passport. Its lists of organizations may be long."""

    max_header_length = 4_096
    max_payload_length = 1_000_000


_registry = _Registry(algorithms=[ALGORITHM], strict_check_header=False)


def read(text: object, now: float) -> Passport:
    """Return the passport in a compact JWS, ``now`` in seconds since the epoch. Raises UnusablePassport.

    The signature is not verified: it comes straight from the identity service over a connection that is trusted.
    """
    if not isinstance(text, str):
        raise UnusablePassport("there is none")
    try:
        token = jws.extract_compact(text.encode(), registry=_registry)
        claims = orjson.loads(token.payload)
    except (ValueError, JoseError):
        raise UnusablePassport("it is not a JWS") from None
    if token.headers().get("alg") != ALGORITHM:
        raise UnusablePassport(f"it is not signed with {ALGORITHM}")
    if not isinstance(claims, dict):
        raise UnusablePassport("its claims are no object")
    return _checked(claims, now)


def _checked(claims: dict[str, Any], now: float) -> Passport:
    if claims.get("typ") != TYPE:
        raise UnusablePassport("typ is not passport")
    expires_at = _moment(claims, "exp")
    if expires_at is None or expires_at <= now:
        raise UnusablePassport("it has expired, or does not say when it does")
    not_before = _moment(claims, "nbf")
    if not_before is not None and not_before > now:
        raise UnusablePassport("it is not valid yet")
    return Passport(
        subject=_required(claims, "sub"),
        account_type=_required(claims, "acctype"),
        expires_at=expires_at,
        source=_required(claims, "source"),
        issuer=_optional(claims, "src_iss"),
        organization_ids=_organizations(claims.get("org_ids")),
        email=_optional(claims, "email"),
    )


def _moment(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnusablePassport(f"{name} is no time")
    return value


def _required(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UnusablePassport(f"{name} is missing")
    return value


def _optional(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _organizations(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str) and _ORGANIZATION_IDS.fullmatch(item))
