"""For whom a service calls: the headers ``X-Principal`` and ``X-Impersonate`` (contract 5.7).

They are read only beside a verified client certificate. The certificate's owner is trusted to say whom it works for,
as it is trusted with its own role; with ``X-Impersonate`` it asks for less, namely what that user may do as well.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from server_api.access.authentication import InvalidCredentials
from server_api.access.client_certificate import ClientCertificate

SIGNATURE_ALGORITHM = "PS512"
TYPES = frozenset({"user", "service", "system"})

_LONGEST = 512
_UNREADABLE = "the header X-Principal cannot be decoded"
# These become values of labels, which Kubernetes does not let be anything else.
_IDENTIFIER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Delegation:
    """A principal as a service states it; every member but ``impersonate`` is optional, empty when not given."""

    actor: str = ""
    type: str = ""
    organization_id: str = ""
    organization_ids: tuple[str, ...] = ()
    project_id: str = ""
    impersonate: bool = False

    def header(self) -> str:
        """Return it as the value of ``X-Principal``, for the next service."""
        members = {
            "organizationId": self.organization_id,
            "organizationIds": list(self.organization_ids),
            "projectId": self.project_id,
            "type": self.type,
            "actor": self.actor,
        }
        document = orjson.dumps({name: value for name, value in members.items() if value}, option=orjson.OPT_SORT_KEYS)
        return base64.urlsafe_b64encode(document).rstrip(b"=").decode()


def decode(principal: str | None, impersonate: str | None, certificate: ClientCertificate) -> Delegation:
    """Return whom a service with that certificate calls for. Raises InvalidCredentials."""
    if not principal:
        raise InvalidCredentials("the header X-Principal is required with a client certificate")
    try:
        # A dot is in every compact JWS, and in no base64url.
        text = _signed(principal, certificate) if "." in principal else _base64url(principal)
        document = orjson.loads(text)
    except (ValueError, JoseError):
        raise InvalidCredentials(_UNREADABLE) from None
    if not isinstance(document, dict):
        raise InvalidCredentials(_UNREADABLE)
    delegation = Delegation(
        actor=_text(document, "actor"),
        type=_text(document, "type"),
        organization_id=_identifier(document, "organizationId"),
        organization_ids=_identifiers(document, "organizationIds"),
        project_id=_identifier(document, "projectId"),
        impersonate=_asks_to_impersonate(impersonate),
    )
    if delegation.type and delegation.type not in TYPES:
        raise InvalidCredentials("X-Principal: type is none of user, service and system")
    if delegation.impersonate and not delegation.actor:
        raise InvalidCredentials("X-Impersonate needs an actor in X-Principal")
    if delegation.impersonate and delegation.type == "system":
        raise InvalidCredentials("X-Impersonate: a principal of type system cannot be impersonated")
    return delegation


def _asks_to_impersonate(header: str | None) -> bool:
    if header in (None, "", "false"):
        return False
    if header != "true":
        # Taken for "no", a misspelt wish for fewer rights would be answered with all of the service's.
        raise InvalidCredentials("X-Impersonate is neither true nor false")
    return True


def _base64url(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("not base64url") from None


def _signed(text: str, certificate: ClientCertificate) -> bytes:
    if not isinstance(certificate.public_key, RSAPublicKey):
        raise ValueError("the key cannot have made the signature")
    key = RSAKey.import_key(certificate.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    registry = jws.JWSRegistry(algorithms=[SIGNATURE_ALGORITHM], strict_check_header=False)
    return jws.deserialize_compact(text, key, registry=registry).payload


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str) or len(value) > _LONGEST or not (value.isprintable()):
        raise InvalidCredentials(f"X-Principal: {name} is no text of at most {_LONGEST} printable characters")
    return value


def _identifier(document: dict[str, Any], name: str) -> str:
    return _checked_identifier(document.get(name, ""), name)


def _identifiers(document: dict[str, Any], name: str) -> tuple[str, ...]:
    values = document.get(name, [])
    if not isinstance(values, list):
        raise InvalidCredentials(f"X-Principal: {name} is no list")
    return tuple(_checked_identifier(value, name) for value in values)


def _checked_identifier(value: object, name: str) -> str:
    if not isinstance(value, str) or (value and not _IDENTIFIER.fullmatch(value)):
        raise InvalidCredentials(f"X-Principal: {name} holds what is no ID")
    return value
