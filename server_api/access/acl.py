"""An access control list and its evaluation (contract 5.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from server_api.servers.ports import GrantScope

OPERATIONS = frozenset({"create", "read", "update", "delete"})

Grants = frozenset[tuple[str, str]]
"""Pairs of a permission's name and an operation."""


class InvalidAcl(ValueError):
    """The document is not an access control list; the text names the place."""


@dataclass(frozen=True, slots=True)
class OrganizationGrants:
    """What is granted in one organization, and in its projects by ID."""

    grants: Grants = frozenset()
    projects: Mapping[str, Grants] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Acl:
    """What a principal may do, at three scopes. A grant at a wider scope satisfies a narrower check."""

    everywhere: Grants = frozenset()
    organizations: Mapping[str, OrganizationGrants] = field(default_factory=dict)

    def allows(self, permission: str, operation: str, organization_id: str, project_id: str | None = None) -> bool:
        """Say whether the operation is granted at that project, or at that organization without a project."""
        # Asked for every server of a list, so it stops at the first grant.
        grant = (permission, operation)
        if grant in self.everywhere:
            return True
        organization = self.organizations.get(organization_id)
        if organization is None:
            return False
        if grant in organization.grants:
            return True
        return project_id is not None and grant in organization.projects.get(project_id, frozenset())

    def granted_at(
        self, permission: str, operation: str, organization_id: str, project_id: str
    ) -> frozenset[GrantScope]:
        """Return every scope at which the operation is granted that covers the project."""
        grant = (permission, operation)
        organization = self.organizations.get(organization_id, OrganizationGrants())
        scopes = {
            GrantScope.GLOBAL: grant in self.everywhere,
            GrantScope.ORGANIZATION: grant in organization.grants,
            GrantScope.PROJECT: grant in organization.projects.get(project_id, frozenset()),
        }
        return frozenset(scope for scope, granted in scopes.items() if granted)

    def limited_to(self, limit: Grants) -> Acl:
        """Return what of this list is in ``limit`` too (contract 5.7: an impersonated user's rights and the service's).

        Organizations stay named when nothing of their grants is left: a list that names none is not restricted by
        them (contract 5.6).
        """
        return Acl(
            everywhere=self.everywhere & limit,
            organizations={
                id_: OrganizationGrants(
                    grants=organization.grants & limit,
                    projects={project: grants & limit for project, grants in organization.projects.items()},
                )
                for id_, organization in self.organizations.items()
            },
        )

    @classmethod
    def union(cls, lists: Iterable[Acl]) -> Acl:
        """Return everything that any of the lists grants."""
        everywhere: Grants = frozenset()
        organizations: dict[str, OrganizationGrants] = {}
        for acl in lists:
            everywhere |= acl.everywhere
            for id_, added in acl.organizations.items():
                known = organizations.get(id_, OrganizationGrants())
                projects = dict(known.projects)
                for project, grants in added.projects.items():
                    projects[project] = projects.get(project, frozenset()) | grants
                organizations[id_] = OrganizationGrants(known.grants | added.grants, projects)
        return cls(everywhere, organizations)

    @classmethod
    def from_document(cls, document: object) -> Acl:
        """Read the document of contract 5.3: ``global`` and ``organizations``; other members are ignored.

        Raises InvalidAcl.
        """
        top = _mapping(document, "acl")
        organizations: dict[str, OrganizationGrants] = {}
        for index, item in enumerate(_list(top.get("organizations"), "organizations")):
            where = f"organizations[{index}]"
            organization = _mapping(item, where)
            id_ = _text(organization, "id", where)
            # An organization or project may stand there more than once, as after merging roles: all of it counts.
            known = organizations.get(id_, OrganizationGrants())
            organizations[id_] = OrganizationGrants(
                grants=known.grants | read_grants(organization.get("endpoints"), f"{where}.endpoints"),
                projects=_projects(organization.get("projects"), f"{where}.projects", known.projects),
            )
        return cls(everywhere=read_grants(top.get("global"), "global"), organizations=organizations)


def _projects(value: object, where: str, known: Mapping[str, Grants]) -> dict[str, Grants]:
    projects = dict(known)
    for index, item in enumerate(_list(value, where)):
        project = _mapping(item, f"{where}[{index}]")
        id_ = _text(project, "id", f"{where}[{index}]")
        grants = read_grants(project.get("endpoints"), f"{where}[{index}].endpoints")
        projects[id_] = projects.get(id_, frozenset()) | grants
    return projects


def read_grants(value: object, where: str) -> Grants:
    """Return the grants in a list of endpoints (contract 5.3), found at ``where``. Raises InvalidAcl."""
    grants: set[tuple[str, str]] = set()
    for index, item in enumerate(_list(value, where)):
        endpoint = _mapping(item, f"{where}[{index}]")
        name = _text(endpoint, "name", f"{where}[{index}]")
        if "operations" not in endpoint:
            raise InvalidAcl(f"{where}[{index}].operations: a list is required")
        for operation in _list(endpoint["operations"], f"{where}[{index}].operations"):
            if not isinstance(operation, str) or operation not in OPERATIONS:
                raise InvalidAcl(f"{where}[{index}].operations: only {', '.join(sorted(OPERATIONS))}")
            grants.add((name, operation))
    return frozenset(grants)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidAcl(f"{where}: not an object")
    return value


def _list(value: object, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidAcl(f"{where}: not a list")
    return value


def _text(value: Mapping[str, Any], name: str, where: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text:
        raise InvalidAcl(f"{where}.{name}: a text is required")
    return text
