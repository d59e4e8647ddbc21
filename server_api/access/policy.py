"""A file of roles and who has them where, for installations whose tokens say who somebody is and not what they may do.

The file is YAML::

    roles:
      server-user:
        - name: region:servers
          operations: [create, read, update, delete]
        - name: region:networks:v2
          operations: [read]
    bindings:
      - role: server-user
        subjects: [alice]
        groups: [developers]
        organization: 5f0e…
        project: 0c8d…
      - role: server-user
        services: [unikorn-compute]
        everywhere: true

A binding gives its role to every subject, group and service that it names; services by the common names of their
certificates. It holds in one project, in one organization, or everywhere, which has to be said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from server_api.access.acl import Acl, Grants, InvalidAcl, OrganizationGrants, read_grants

_TOP = frozenset({"roles", "bindings"})
_HOLDERS = ("subjects", "groups", "services")
_BINDING = frozenset({"role", "organization", "project", "everywhere", *_HOLDERS})

Lists = Mapping[str, Acl]


class InvalidPolicy(ValueError):
    """The document is no policy; the text names the place."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Rights by subject, by group and by service."""

    subjects: Lists
    groups: Lists
    services: Lists

    def of_user(self, subject: str, groups: Iterable[str]) -> Acl:
        """Return what a subject may do that is in those groups."""
        own = [self.subjects.get(subject), *(self.groups.get(group) for group in groups)]
        return Acl.union(acl for acl in own if acl is not None)

    def of_service(self, common_name: str) -> Acl:
        """Return what a service may do."""
        return self.services.get(common_name, Acl())

    def of_actor(self, actor: str, type_: str) -> Acl:
        """Return what a subject may do by itself: of which groups it is, only its own token would say."""
        return self.subjects.get(actor, Acl())

    @classmethod
    def from_document(cls, document: object) -> Policy:
        """Read the document. Raises InvalidPolicy."""
        top = _mapping(document, "policy", _TOP)
        roles = {
            _name(name, "roles"): _grants(value, f"roles.{str(name)[:64]}")
            for name, value in _mapping(top.get("roles"), "roles").items()
        }
        bindings = top.get("bindings")
        if not isinstance(bindings, list):
            raise InvalidPolicy("bindings: a list is required")
        found: dict[str, dict[str, list[Acl]]] = {kind: defaultdict(list) for kind in _HOLDERS}
        for index, item in enumerate(bindings):
            where = f"bindings[{index}]"
            binding = _mapping(item, where, _BINDING)
            acl = _scoped(binding, _role(binding, roles, where), where)
            holders = {kind: _names(binding, kind, where) for kind in _HOLDERS}
            if not any(holders.values()):
                raise InvalidPolicy(f"{where}: names nobody: one of {', '.join(_HOLDERS)} is required")
            for kind, names in holders.items():
                for name in names:
                    found[kind][name].append(acl)
        return cls(**{kind: {name: Acl.union(acls) for name, acls in lists.items()} for kind, lists in found.items()})


def _role(binding: Mapping[str, Any], roles: Mapping[str, Grants], where: str) -> Grants:
    role = binding.get("role")
    if not isinstance(role, str) or role not in roles:
        raise InvalidPolicy(f"{where}.role: the name of one of the roles is required")
    return roles[role]


def _scoped(binding: Mapping[str, Any], grants: Grants, where: str) -> Acl:
    organization = _optional(binding, "organization", where)
    project = _optional(binding, "project", where)
    everywhere = binding.get("everywhere", False)
    if not isinstance(everywhere, bool):
        raise InvalidPolicy(f"{where}.everywhere: only true or false")
    # A forgotten line must not turn a right in one organization into a right in all of them.
    if everywhere == (organization is not None):
        raise InvalidPolicy(f"{where}: either an organization or everywhere: true is required")
    if organization is None:
        if project is not None:
            raise InvalidPolicy(f"{where}.project: needs its organization")
        return Acl(everywhere=grants)
    if project is None:
        return Acl(organizations={organization: OrganizationGrants(grants)})
    return Acl(organizations={organization: OrganizationGrants(projects={project: grants})})


def _grants(value: object, where: str) -> Grants:
    try:
        return read_grants(value, where)
    except InvalidAcl as error:
        raise InvalidPolicy(str(error)) from None


def _mapping(value: object, where: str, members: frozenset[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidPolicy(f"{where}: not an object")
    for name in value:
        if members is not None and name not in members:
            raise InvalidPolicy(f"{where}.{str(name)[:64]}: only {', '.join(sorted(members))} are known")
    return value


def _names(binding: Mapping[str, Any], kind: str, where: str) -> list[str]:
    names = binding.get(kind, [])
    if not isinstance(names, list):
        raise InvalidPolicy(f"{where}.{kind}: not a list")
    return [_name(name, f"{where}.{kind}") for name in names]


def _optional(binding: Mapping[str, Any], name: str, where: str) -> str | None:
    return _name(binding[name], f"{where}.{name}") if name in binding else None


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidPolicy(f"{where}: a text is required")
    return value
