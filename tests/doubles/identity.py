"""What a stand-in identity service knows, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from server_api.access.digests import token_digest


def person(
    token: str, acl: Mapping[str, Any], subject: str | None = None, account_type: str = "user"
) -> dict[str, Any]:
    """Return the owner of a token."""
    return {
        "sha256": token_digest(token),
        "subject": subject or f"{token}@example.com",
        "accountType": account_type,
        "acl": dict(acl),
    }


def known(
    *people: dict[str, Any],
    services: Mapping[str, Mapping[str, Any]] | None = None,
    projects: Mapping[str, list[str]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the document of the stand-in: ``services`` are lists of rights by common name, ``projects`` those that
    exist, by organization; ``more`` are further members of the document.
    """
    return {
        "tokens": list(people),
        "services": [{"commonName": name, "acl": dict(acl)} for name, acl in (services or {}).items()],
        "organizations": [{"id": id_, "projects": list(ids)} for id_, ids in (projects or {}).items()],
        **more,
    }
