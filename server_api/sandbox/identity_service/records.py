"""What the stand-in knows: tokens, services, projects, and how to misbehave.

The document is that of a file of tokens (``server_api.access.token_file``) with more in it::

    tokens: [...]
    services: [...]
    organizations:
      - id: 5f0e…
        projects: [0c8d…]
    revoked: [9f86…]             # digests of tokens that are accepted no more
    passportSeconds: 300
    rules:
      - endpoint: exchange       # or acl, or project
        delay: 0.5               # seconds
        status: 503              # answered with this, and with body, if there is one
        body: '{"error": "invalid_scope"}'
        drop: true               # the connection is closed without an answer
        claims: {typ: other}     # of the passport; null takes one away
        times: 2                 # how often; without it, always
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from server_api.access.acl import Acl


@dataclass(frozen=True)
class Person:
    """The owner of a token."""

    subject: str
    account_type: str
    acl: Mapping[str, Any]

    @property
    def organization_ids(self) -> list[str]:
        """The organizations that its rights name."""
        return [organization["id"] for organization in self.acl.get("organizations", [])]

    def may_enter(self, organization_id: str) -> bool:
        """Tell whether the scope of its tokens includes an organization."""
        return bool(self.acl.get("global")) or organization_id in self.organization_ids


@dataclass
class Rule:
    """How one endpoint misbehaves, `times` more times; None: for ever."""

    endpoint: str
    delay: float = 0.0
    status: int | None = None
    body: str = ""
    drop: bool = False
    claims: Mapping[str, Any] = field(default_factory=dict)
    times: int | None = None


class Records:
    """One version of the document. Raises KeyError, TypeError or ValueError for one of another shape."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        revoked = set(document.get("revoked") or ())
        self._people = {
            entry["sha256"]: Person(entry["subject"], entry["accountType"], entry["acl"])
            for entry in document.get("tokens") or ()
            if entry["sha256"] not in revoked
        }
        self._services: dict[str, Mapping[str, Any]] = {
            entry["commonName"]: entry["acl"] for entry in document.get("services") or ()
        }
        self._projects = {
            organization["id"]: set(organization.get("projects") or ())
            for organization in document.get("organizations") or ()
        }
        self.passport_seconds = float(document.get("passportSeconds", 300))
        self._rules = [Rule(**rule) for rule in document.get("rules") or ()]
        self._lock = Lock()

    def owner(self, digest: str) -> Person | None:
        """Return the owner of a token that is still accepted."""
        return self._people.get(digest)

    def knows(self, organization_id: str) -> bool:
        """Tell whether the organization exists."""
        return organization_id in self._projects

    def has_project(self, organization_id: str, project_id: str) -> bool:
        """Tell whether the project exists."""
        return project_id in self._projects.get(organization_id, ())

    def rights_of_service(self, common_name: str) -> Mapping[str, Any]:
        """Return the access control list of a service; an unknown one has no rights."""
        return self._services.get(common_name, {})

    def rights_as(self, common_name: str, actor: str, type_: str) -> Mapping[str, Any]:
        """Return what an actor may do and the service has everywhere."""
        mine = Acl.from_document(self.rights_of_service(common_name)).everywhere
        theirs = Acl.union(
            Acl.from_document(person.acl)
            for person in self._people.values()
            if person.subject == actor and person.account_type != "system" and type_ in ("", person.account_type)
        )
        return _document(theirs.limited_to(mine))

    def rule(self, endpoint: str) -> Rule:
        """Return how an endpoint is to misbehave this time, and count it."""
        with self._lock:
            for rule in self._rules:
                if rule.endpoint == endpoint and rule.times != 0:
                    if rule.times is not None:
                        rule.times -= 1
                    return rule
        return Rule(endpoint)


def _document(acl: Acl) -> dict[str, Any]:
    return {
        "global": _endpoints(acl.everywhere),
        "organizations": [
            {
                "id": id_,
                "endpoints": _endpoints(organization.grants),
                "projects": [
                    {"id": project, "endpoints": _endpoints(grants)}
                    for project, grants in organization.projects.items()
                ],
            }
            for id_, organization in acl.organizations.items()
        ],
    }


def _endpoints(grants: frozenset[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"name": name, "operations": [operation]} for name, operation in sorted(grants)]
