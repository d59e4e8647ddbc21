"""Who may do what: one table of what each endpoint asks for, and one of what each caller may (contract 5.4).

What is to come out of each pair follows from the two, by a rule of this module's own: it knows nothing of the code that
decides in the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.api.service_caller import headers as service_headers
from tests.api.world import (
    EVERYTHING,
    FLAVOR,
    GATES,
    IDENTITY,
    IMAGE,
    IMAGES,
    NETWORK,
    ORGANIZATION,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    REFERENCES,
    SECOND_PROJECT,
    SERVERS,
    endpoints,
    in_project,
)

NETWORKS = "region:networks:v2"


class Scope(StrEnum):
    """Where a right is asked for, or held."""

    PROJECT = "project"
    ORGANIZATION = "organization"
    GLOBAL = "global"


@dataclass(frozen=True)
class Need:
    """A right that an endpoint asks for, in the project or in the organization of what it is about."""

    permission: str
    operation: str
    scope: Scope = Scope.PROJECT


@dataclass(frozen=True)
class Endpoint:
    """One entry of the URL map: what it asks for, what it answers a caller who may, and a body that is accepted.

    ``open``: it asks nobody who they are.
    """

    needs: tuple[Need, ...] = ()
    success: int = 200
    body: Any = None
    open: bool = False


READ = Need(SERVERS, "read")
UPDATE, DELETE, CREATE = (Need(SERVERS, operation) for operation in ("update", "delete", "create"))
IN_ORGANIZATION = Need(SERVERS, "read", Scope.ORGANIZATION)

GATE = "example.unikorn-cloud.org/ready"
NAME = "matrix"


def _v2_body(name: str = NAME) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"networkId": NETWORK, "flavorId": FLAVOR, "imageId": IMAGE}}


def _v1_body(name: str = NAME) -> dict[str, Any]:
    spec = {"flavorId": FLAVOR, "imageId": IMAGE, "networks": [{"id": NETWORK}]}
    return {"metadata": {"name": name}, "spec": spec}


V2 = "/api/v2/servers"
V2_SERVER = f"{V2}/<server_id:serverID>"
V1_ORGANIZATION = "/api/v1/organizations/<organization_id:organizationID>"
V1 = f"{V1_ORGANIZATION}/projects/<project_id:projectID>/identities/<identity_id:identityID>/servers"
V1_SERVER = f"{V1}/<server_id:serverID>"
_VERBS = ("start", "stop", "softreboot", "hardreboot")
_OPEN = (
    "/.well-known/openid-protected-resource",
    "/docs",
    "/docs/<name>",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/readyz",
)

ENDPOINTS: Mapping[tuple[str, str], Endpoint] = {
    **{("GET", path): Endpoint(open=True) for path in _OPEN},
    ("GET", "/api/version"): Endpoint(),
    ("GET", V2): Endpoint(),
    ("POST", V2): Endpoint((Need(NETWORKS, "read"), CREATE), 201, _v2_body("another")),
    ("GET", V2_SERVER): Endpoint((READ,)),
    ("PUT", V2_SERVER): Endpoint((READ, UPDATE), 202, _v2_body()),
    ("DELETE", V2_SERVER): Endpoint((READ, DELETE), 202),
    # The identity has no key here, and only who may read the server learns that.
    ("GET", f"{V2_SERVER}/sshkey"): Endpoint((READ,), 404),
    ("GET", f"{V2_SERVER}/consoleoutput"): Endpoint((READ,)),
    ("GET", f"{V2_SERVER}/consolesessions"): Endpoint((READ,)),
    **{("POST", f"{V2_SERVER}/{verb}"): Endpoint((READ, UPDATE), 202) for verb in _VERBS},
    ("POST", f"{V2_SERVER}/snapshot"): Endpoint(
        (READ, Need(IMAGES, "create", Scope.ORGANIZATION)), 201, {"metadata": {"name": "a-snapshot"}, "spec": {}}
    ),
    ("POST", f"{V2_SERVER}/provider-create-gates"): Endpoint(
        (READ, Need(GATES, "update")), 202, {"conditionType": GATE, "reason": "Ready", "message": "go"}
    ),
    ("GET", f"{V1_ORGANIZATION}/servers"): Endpoint((IN_ORGANIZATION,)),
    ("POST", V1): Endpoint((CREATE,), 201, _v1_body("another")),
    ("GET", V1_SERVER): Endpoint((READ,)),
    # Not update: contract 5.4, endpoint 6.
    ("PUT", V1_SERVER): Endpoint((CREATE,), 202, _v1_body()),
    ("DELETE", V1_SERVER): Endpoint((DELETE,), 202),
    **{("POST", f"{V1_SERVER}/{verb}"): Endpoint((UPDATE,), 202) for verb in _VERBS},
    ("GET", f"{V1_SERVER}/consoleoutput"): Endpoint((READ,)),
    ("GET", f"{V1_SERVER}/consolesessions"): Endpoint((READ,)),
}


@dataclass(frozen=True)
class Rights:
    """What somebody may, and where: in one project, in one organization, or everywhere."""

    grants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scope: Scope = Scope.PROJECT
    organization_id: str = ORGANIZATION
    project_id: str = PROJECT

    def allow(self, need: Need) -> bool:
        """Say whether a need of what is in PROJECT of ORGANIZATION is met."""
        if need.operation not in self.grants.get(need.permission, ()):
            return False
        if self.scope is Scope.GLOBAL:
            return True
        if self.organization_id != ORGANIZATION:
            return False
        return self.scope is Scope.ORGANIZATION or (need.scope is Scope.PROJECT and self.project_id == PROJECT)

    def document(self) -> dict[str, Any]:
        """Return them as the identity service tells them."""
        if self.scope is Scope.GLOBAL:
            return {"global": endpoints(self.grants)}
        if self.scope is Scope.ORGANIZATION:
            return {"organizations": [{"id": self.organization_id, "endpoints": endpoints(self.grants)}]}
        return in_project(self.organization_id, self.project_id, self.grants)


_READ_REFERENCES = dict.fromkeys(REFERENCES, ("read",))
_READER = {SERVERS: ("read",), **_READ_REFERENCES}
_USER = {SERVERS: EVERYTHING, **_READ_REFERENCES}
_ADMIN = {**_USER, IMAGES: ("create",), GATES: ("update",)}
SERVICE = Rights({**_USER, IMAGES: ("create",)}, Scope.GLOBAL)
"""A service of the platform: it satisfies no gates, so that impersonation shows as an intersection both ways."""

PEOPLE: Mapping[str, Rights] = {
    "reader": Rights(_READER),
    "user": Rights(_USER),
    "user of another project": Rights(_USER, project_id=SECOND_PROJECT),
    "user of another organization": Rights(_USER, organization_id=OTHER_ORGANIZATION, project_id=OTHER_PROJECT),
    "organization admin": Rights(_ADMIN, Scope.ORGANIZATION),
    "admin of another organization": Rights(_ADMIN, Scope.ORGANIZATION, OTHER_ORGANIZATION),
    "global admin": Rights(_ADMIN, Scope.GLOBAL),
}


def token(name: str) -> str:
    """Return a person's token."""
    return "token-of-" + name.replace(" ", "-")


def subject(name: str) -> str:
    """Return a person's subject."""
    return name.replace(" ", ".") + "@example.com"


@dataclass(frozen=True)
class Caller:
    """Somebody who calls. ``refused``: with that status, before any right is looked at."""

    headers: Mapping[str, str]
    rights: tuple[Rights, ...] = ()
    refused: int | None = None

    def expected(self, endpoint: Endpoint) -> int:
        """Return the status an endpoint is to answer with. Every one of several rights has to allow it."""
        if endpoint.open:
            return endpoint.success
        if self.refused is not None:
            return self.refused
        allowed = all(rights.allow(need) for rights in self.rights for need in endpoint.needs)
        return endpoint.success if allowed else 403


def _bearer(value: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {value}"}


def _principal(name: str) -> dict[str, str]:
    rights = PEOPLE[name]
    return {
        "actor": subject(name),
        "type": "user",
        "organizationId": rights.organization_id,
        "projectId": rights.project_id,
    }


EXPIRED = "token-that-was-revoked"
CALLERS: Mapping[str, Caller] = {
    "anonymous": Caller({}, refused=401),
    "bad token": Caller(_bearer("nobodys"), refused=401),
    "expired token": Caller(_bearer(EXPIRED), refused=401),
    "another scheme": Caller({"Authorization": "Basic dXNlcjpwYXNz"}, refused=401),
    **{name: Caller(_bearer(token(name)), (rights,)) for name, rights in PEOPLE.items()},
    "service without principal": Caller(service_headers(), refused=400),
    "service": Caller(service_headers(_principal("user")), (SERVICE,)),
    **{
        f"service impersonating {name}": Caller(
            service_headers(_principal(name), impersonate="true"), (SERVICE, rights)
        )
        for name, rights in PEOPLE.items()
    },
}


def path(rule: str, server_id: str) -> str:
    """Return a path of the rule, about that server of PROJECT."""
    for parameter, value in (
        ("<organization_id:organizationID>", ORGANIZATION),
        ("<project_id:projectID>", PROJECT),
        ("<identity_id:identityID>", IDENTITY),
        ("<server_id:serverID>", server_id),
        ("<name>", "swagger-ui.css"),
    ):
        rule = rule.replace(parameter, value)
    return rule
