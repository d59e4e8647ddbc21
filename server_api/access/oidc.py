"""A standard OpenID Connect issuer as the source of callers; a policy file says what they may do.

A token has to be a JWT of the issuer for our audience, signed with one of its keys. Nobody is asked about it, so that
one that was withdrawn is good until it expires: docs/operations.md says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError, SecurityWarning

from server_api.access import local_rights
from server_api.access.authentication import Unauthenticated
from server_api.access.client_certificate import ClientCertificate
from server_api.access.delegation import Delegation
from server_api.access.policy import Policy
from server_api.access.principal import Principal
from server_api.access.signing_keys import SigningKeys
from server_api.access.source import Place
from server_api.access.watched_file import WatchedFile

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"}
)
"""Signatures that somebody who can verify them cannot make: those with a shared secret are not among them."""

LEEWAY_SECONDS = 10
"""How far the issuer's clock and ours may be apart."""

# RFC 9068 for access tokens; what logs somebody out, or proves the possession of a key, is no token to come in with.
_TYPES = frozenset({"jwt", "application/jwt", "at+jwt", "application/at+jwt"})

_NOT_VALID = "the token is not valid"

# Its name is what is deprecated: RFC 9864 calls the same signature Ed25519, which issuers are slow to take up.
warnings.filterwarnings("ignore", message="EdDSA is deprecated", category=SecurityWarning)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token has to be. ``subject_claim`` and ``groups_claim`` name the claims with those."""

    issuer: str
    audience: str
    algorithms: Sequence[str]
    subject_claim: str = "sub"
    groups_claim: str = "groups"


class _Registry(jws.JWSRegistry):
    """A token may carry its certificates, and many groups: what bounds it is the size of a header."""

    max_header_length = 16_384


class OidcSource:
    """``access.source.IdentitySource`` over the issuer's keys and the policy, which is read again when it changes."""

    def __init__(self, keys: SigningKeys, rules: TokenRules, policy: Path) -> None:
        """Read the policy. Raises UnusableFile."""
        self._keys = keys
        self._rules = rules
        self._registry = _Registry(algorithms=list(rules.algorithms), strict_check_header=False)
        self._claims = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": rules.issuer},
            aud={"essential": True, "value": rules.audience},
            exp={"essential": True},
        )
        self._policy = WatchedFile(policy, "policy", Policy.from_document)

    def owner(
        self, token: str, place: Place, certificate: ClientCertificate | None, delegation: Delegation | None
    ) -> Principal:
        """Return the owner of a token. Raises as ``access.source.IdentitySource``."""
        local_rights.refuse_to_impersonate(delegation)
        claims = self._verified(token)
        subject = claims.get(self._rules.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise _refused("it names no subject")
        groups = _texts(claims.get(self._rules.groups_claim))
        return Principal(subject, "user", self._policy.content.of_user(subject, groups))

    def service(self, certificate: ClientCertificate, place: Place, delegation: Delegation) -> Principal:
        """Return a service with the rights that the policy gives its common name."""
        return local_rights.service(self._policy.content, certificate, delegation)

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            header = jws.extract_compact(token.encode("ascii"), registry=self._registry).headers()
            algorithm, key_id = header.get("alg"), header.get("kid")
            if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
                raise _refused("its algorithm is not allowed")
            if not isinstance(key_id, str | None):
                raise _refused("its key ID is no text")
            if str(header.get("typ", "jwt")).lower() not in _TYPES:
                raise _refused("it is of another type")
            key = self._keys.find(key_id, algorithm)
            if key is None:
                raise _refused("it is signed with a key that the issuer does not have")
            claims = jwt.decode(token, key, registry=self._registry).claims
            self._claims.validate(claims)
        except ExpiredTokenError:
            raise Unauthenticated("the token has expired") from None
        except (JoseError, ValueError, RecursionError) as error:
            raise _refused(type(error).__name__) from None
        return claims


def _refused(why: str) -> Unauthenticated:
    # Why is for the operator alone: to tell everybody would help to make a better forgery.
    _log.info("a token was refused", why=why)
    return Unauthenticated(_NOT_VALID)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
