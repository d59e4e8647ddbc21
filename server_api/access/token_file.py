"""A file of bearer tokens: for the sandbox, and for an installation without an identity service.

The file is YAML. It holds no token, only SHA-256 digests (``server-api hash-token`` prints one)::

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
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from server_api.access.acl import Acl, InvalidAcl
from server_api.access.authentication import Unauthenticated, bearer_token
from server_api.access.principal import Principal

ACCOUNT_TYPES = frozenset({"user", "service", "system"})
_DIGEST = re.compile(r"[0-9a-f]{64}")


class InvalidTokenFile(ValueError):
    """The file cannot be used; the text says where and why."""


class TokenFile:
    """Authenticates by the file, read once."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises InvalidTokenFile."""
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise InvalidTokenFile(f"{path}: {type(error).__name__}") from error
        self._principals = _principals(document, str(path))

    def authenticate(self, authorization: str | None) -> Principal:
        """Return who the token belongs to. Raises Unauthenticated."""
        token = bearer_token(authorization)
        # Looked up by digest: how long it takes says nothing about any token in the file.
        principal = self._principals.get(digest(token))
        if principal is None:
            raise Unauthenticated("the token is not valid")
        return principal


def digest(token: str) -> str:
    """Return the digest that stands for a token in the file."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _principals(document: object, path: str) -> dict[str, Principal]:
    entries = document.get("tokens") if isinstance(document, Mapping) else None
    if not isinstance(entries, list):
        raise InvalidTokenFile(f"{path}: a list named tokens is required")
    principals: dict[str, Principal] = {}
    for index, entry in enumerate(entries):
        where = f"{path}: tokens[{index}]"
        if not isinstance(entry, Mapping):
            raise InvalidTokenFile(f"{where}: not an object")
        key = entry.get("sha256")
        if not isinstance(key, str) or not _DIGEST.fullmatch(key):
            raise InvalidTokenFile(f"{where}.sha256: 64 lower-case hexadecimal digits are required")
        if key in principals:
            raise InvalidTokenFile(f"{where}.sha256: given twice")
        principals[key] = _principal(entry, where)
    return principals


def _principal(entry: Mapping[str, Any], where: str) -> Principal:
    subject = entry.get("subject")
    if not isinstance(subject, str) or not subject:
        raise InvalidTokenFile(f"{where}.subject: a text is required")
    account_type = entry.get("accountType")
    if not isinstance(account_type, str) or account_type not in ACCOUNT_TYPES:
        raise InvalidTokenFile(f"{where}.accountType: one of {', '.join(sorted(ACCOUNT_TYPES))} is required")
    try:
        acl = Acl.from_document(entry.get("acl"))
    except InvalidAcl as error:
        raise InvalidTokenFile(f"{where}.acl: {error}") from error
    return Principal(subject=subject, account_type=account_type, acl=acl)
