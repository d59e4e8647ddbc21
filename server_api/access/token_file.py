"""A file of bearer tokens: for the sandbox, and for an installation without an identity service.

The file is YAML. It holds no token, only SHA-256 digests (``server-api hash-token`` prints one), and the rights of
services by the common names of their certificates::

    tokens:
      - sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        subject: alice@example.com
        accountType: user
        acl:
          organizations:
            - id: 5f0e…
              projects:
                - id: 0c8d…
                  endpoints:
                    - name: region:servers
                      operations: [create, read, update, delete]
    services:
      - commonName: unikorn-compute
        acl:
          global:
            - name: region:servers
              operations: [create, read, update, delete]
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server_api.access import local_rights
from server_api.access.acl import Acl, InvalidAcl
from server_api.access.authentication import Unauthenticated
from server_api.access.client_certificate import ClientCertificate
from server_api.access.delegation import Delegation
from server_api.access.digests import token_digest
from server_api.access.principal import Principal
from server_api.access.source import Place
from server_api.access.watched_file import WatchedFile

ACCOUNT_TYPES = frozenset({"user", "service", "system"})
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MEMBERS = frozenset({"tokens", "services"})


class InvalidTokenFile(ValueError):
    """The document lists no tokens and services; the text names the place."""


class TokenFile:
    """``access.source.IdentitySource`` over the file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises UnusableFile."""
        self._file = WatchedFile(path, "tokens", _Tokens.from_document)

    def owner(
        self, token: str, place: Place, certificate: ClientCertificate | None, delegation: Delegation | None
    ) -> Principal:
        """Return who the token belongs to. Raises Unauthenticated, InvalidCredentials."""
        local_rights.refuse_to_impersonate(delegation)
        principal = self._file.content.owner(token)
        if principal is None:
            raise Unauthenticated("the token is not valid")
        return principal

    def service(self, certificate: ClientCertificate, place: Place, delegation: Delegation) -> Principal:
        """Return a service with the rights of its common name."""
        return local_rights.service(self._file.content, certificate, delegation)


@dataclass(frozen=True, slots=True)
class _Entry:
    digest: str
    principal: Principal


class _Tokens:
    """One version of the file.

    Tokens are found by their digest under a key that is drawn anew for each version. How long a plain look-up by
    SHA-256 takes depends on how far the digest of what was sent agrees with one that is stored; who knows tokens with
    any beginning of a digest could learn stored digests from it, bit by bit, and guess at a token that is too simple.
    Under a key that nobody knows, what was sent and what is compared have nothing to do with each other, and the last
    comparison takes the same time whatever it finds.
    """

    def __init__(self, entries: Mapping[str, Principal], services: Mapping[str, Acl]) -> None:
        self._key = secrets.token_bytes(32)
        self._entries = {self._hidden(digest): _Entry(digest, entry) for digest, entry in entries.items()}
        self._services = services
        actors: dict[tuple[str, str], list[Acl]] = defaultdict(list)
        for principal in entries.values():
            if principal.account_type != "system":
                for type_ in (principal.account_type, ""):
                    actors[principal.subject, type_].append(principal.acl)
        self._actors = {name: Acl.union(lists) for name, lists in actors.items()}

    def owner(self, token: str) -> Principal | None:
        """Return who a token belongs to, None if nobody."""
        digest = token_digest(token)
        entry = self._entries.get(self._hidden(digest))
        return entry.principal if entry is not None and hmac.compare_digest(entry.digest, digest) else None

    def of_service(self, common_name: str) -> Acl:
        """Return what a service may do."""
        return self._services.get(common_name, Acl())

    def of_actor(self, actor: str, type_: str) -> Acl:
        """Return what all tokens of a subject together allow, those of services themselves left out."""
        return self._actors.get((actor, type_), Acl())

    def _hidden(self, digest: str) -> bytes:
        return hmac.digest(self._key, digest.encode(), "sha256")

    @classmethod
    def from_document(cls, document: object) -> _Tokens:
        """Read the document. Raises InvalidTokenFile."""
        if not isinstance(document, Mapping) or not isinstance(document.get("tokens"), list):
            raise InvalidTokenFile("a list named tokens is required")
        for name in document:
            if name not in _MEMBERS:
                raise InvalidTokenFile(f"{str(name)[:64]}: only tokens and services are known")
        entries: dict[str, Principal] = {}
        for where, entry in _objects(document, "tokens"):
            key = entry.get("sha256")
            if not isinstance(key, str) or not _DIGEST.fullmatch(key):
                raise InvalidTokenFile(f"{where}.sha256: 64 lower-case hexadecimal digits are required")
            if key in entries:
                raise InvalidTokenFile(f"{where}.sha256: given twice")
            entries[key] = _principal(entry, where)
        services: dict[str, Acl] = {}
        for where, entry in _objects(document, "services"):
            name = _text(entry, "commonName", where)
            if name in services:
                raise InvalidTokenFile(f"{where}.commonName: given twice")
            services[name] = _acl(entry, where)
        return cls(entries, services)


def _objects(document: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    items = document.get(name, [])
    if not isinstance(items, list):
        raise InvalidTokenFile(f"{name}: not a list")
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise InvalidTokenFile(f"{name}[{index}]: not an object")
        yield f"{name}[{index}]", item


def _principal(entry: Mapping[str, Any], where: str) -> Principal:
    subject = _text(entry, "subject", where)
    account_type = entry.get("accountType")
    if not isinstance(account_type, str) or account_type not in ACCOUNT_TYPES:
        raise InvalidTokenFile(f"{where}.accountType: one of {', '.join(sorted(ACCOUNT_TYPES))} is required")
    return Principal(subject=subject, account_type=account_type, acl=_acl(entry, where))


def _text(entry: Mapping[str, Any], name: str, where: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidTokenFile(f"{where}.{name}: a text is required")
    return value


def _acl(entry: Mapping[str, Any], where: str) -> Acl:
    try:
        return Acl.from_document(entry.get("acl"))
    except InvalidAcl as error:
        raise InvalidTokenFile(f"{where}.acl: {error}") from error
