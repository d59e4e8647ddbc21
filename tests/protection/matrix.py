"""The protection matrix: what every endpoint needs, what every caller has, and the status that follows from both.

Everything here is written down from the contract (5.1, 5.4, 5.7) and evaluated without the code under test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.api import service_caller
from tests.api.service_caller import COMPUTE
from tests.api.world import (
    AUTHORITY,
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
    SECURITY_GROUP,
    SERVERS,
    create_body,
    update_body,
)

HOME_SERVER = "a0000000-0000-4000-8000-000000000001"
SIBLING_SERVER = "a0000000-0000-4000-8000-000000000002"
FOREIGN_SERVER = "a0000000-0000-4000-8000-000000000003"
HOME_NAME = "home-name"
PLACES = {
    HOME_SERVER: (ORGANIZATION, PROJECT),
    SIBLING_SERVER: (ORGANIZATION, SECOND_PROJECT),
    FOREIGN_SERVER: (OTHER_ORGANIZATION, OTHER_PROJECT),
}
"""The servers there are, and where. Every request of the matrix is about the first, or about all."""

GATE = "example.com/ready"
NETWORKS, GROUPS, AUTHORITIES = REFERENCES
PERMISSIONS = (SERVERS, *REFERENCES, IMAGES, GATES)

Grants = frozenset[tuple[str, str]]
Place = tuple[str, str]


def grants(permission: str, *operations: str) -> Grants:
    """Return the grants of one permission."""
    return frozenset((permission, operation) for operation in operations)


@dataclass(frozen=True)
class Rights:
    """What somebody may do everywhere, in organizations, and in projects by organization and project."""

    everywhere: Grants = frozenset()
    organizations: Mapping[str, Grants] = field(default_factory=dict)
    projects: Mapping[Place, Grants] = field(default_factory=dict)

    def allow(self, grant: tuple[str, str], place: Place, *, in_whole_organization: bool = False) -> bool:
        """Say whether something is granted at a project, or at the whole of its organization."""
        if grant in self.everywhere or grant in self.organizations.get(place[0], ()):
            return True
        return not in_whole_organization and grant in self.projects.get(place, ())

    def limited_to(self, role: Grants) -> Rights:
        """Return what a service with that role may do when it impersonates whoever has these rights."""
        return Rights(
            self.everywhere & role,
            {id_: granted & role for id_, granted in self.organizations.items()},
            {place: granted & role for place, granted in self.projects.items()},
        )

    def document(self) -> dict[str, Any]:
        """Return them as an access control list (contract 5.3)."""
        ids = dict.fromkeys([*self.organizations, *(organization for organization, _ in self.projects)])
        return {
            "global": _listed(self.everywhere),
            "organizations": [
                {
                    "id": id_,
                    "endpoints": _listed(self.organizations.get(id_, frozenset())),
                    "projects": [
                        {"id": project, "endpoints": _listed(granted)}
                        for (organization, project), granted in self.projects.items()
                        if organization == id_
                    ],
                }
                for id_ in ids
            ],
        }


def _listed(granted: Grants) -> list[dict[str, Any]]:
    return [{"name": permission, "operations": [operation]} for permission, operation in sorted(granted)]


@dataclass(frozen=True)
class Need:
    """A right that an endpoint needs, at the project of what it is about or at the organization."""

    permission: str
    operation: str
    in_whole_organization: bool = False

    @property
    def grant(self) -> tuple[str, str]:
        """Permission and operation."""
        return self.permission, self.operation

    def __str__(self) -> str:
        return f"{self.permission} {self.operation}"


@dataclass(frozen=True)
class Endpoint:
    """One row: a request that succeeds for whoever has what it needs."""

    method: str
    rule: str
    success: int
    needs: tuple[Need, ...] = ()
    public: bool = False
    body: Mapping[str, Any] | None = None
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.rule} {self.variant}".strip()

    @property
    def key(self) -> tuple[str, str]:
        """How the application's URL map knows it."""
        return self.method, self.rule

    @property
    def path(self) -> str:
        """The path, about the first server."""
        return re.sub(r"<(?:\w+:)?(\w+)>", lambda match: _IDS[match[1]], self.rule)

    def body_number(self, number: int) -> Mapping[str, Any] | None:
        """Return a body; a create's has a name that no other number has."""
        if self.body is None or self.success != 201:
            return self.body
        return {**self.body, "metadata": {"name": f"new-{number}"}}

    def expects(self, caller: Caller) -> int:
        """Return the status the contract says."""
        if self.public:
            return self.success
        if caller.refused is not None:
            return caller.refused
        permitted = all(
            caller.rights.allow(need.grant, (ORGANIZATION, PROJECT), in_whole_organization=need.in_whole_organization)
            for need in self.needs
        )
        return self.success if permitted else 403

    def rows(self, caller: Caller) -> set[str]:
        """Return which of the servers a list shows."""
        seen = {id_ for id_, place in PLACES.items() if caller.rights.allow((SERVERS, "read"), place)}
        return seen if self.rule == V2 else {id_ for id_ in seen if PLACES[id_][0] == ORGANIZATION}


V2 = "/api/v2/servers"
ONE_V2 = f"{V2}/<server_id:serverID>"
LIST_V1 = "/api/v1/organizations/<organization_id:organizationID>/servers"
V1 = (
    "/api/v1/organizations/<organization_id:organizationID>/projects/<project_id:projectID>"
    "/identities/<identity_id:identityID>/servers"
)
ONE_V1 = f"{V1}/<server_id:serverID>"
LISTS = (V2, LIST_V1)

_IDS = {
    "organizationID": ORGANIZATION,
    "projectID": PROJECT,
    "identityID": IDENTITY,
    "serverID": HOME_SERVER,
    "name": "start.js",
}
_CREATE, _READ, _UPDATE, _DELETE = (Need(SERVERS, operation) for operation in EVERYTHING)
_NETWORK, _GROUP, _AUTHORITY = (Need(permission, "read") for permission in REFERENCES)
_GROUPS_IN_BODY: dict[str, Any] = {"networking": {"securityGroups": [SECURITY_GROUP]}}
_V1_BODY = {
    "metadata": {"name": HOME_NAME},
    "spec": {"flavorId": FLAVOR, "imageId": IMAGE, "networks": [{"id": NETWORK}]},
}


def _endpoints_table() -> Iterator[Endpoint]:
    needs: tuple[Need, ...]
    for path in ("/metrics", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/<name>"):
        yield Endpoint("GET", path, 200, public=True)
    yield Endpoint("GET", "/.well-known/openid-protected-resource", 200, public=True)
    yield Endpoint("GET", "/api/version", 200)

    yield Endpoint("GET", V2, 200)
    yield Endpoint("POST", V2, 201, (_NETWORK, _CREATE), body=create_body())
    with_references = create_body(sshCertificateAuthorityId=AUTHORITY, **_GROUPS_IN_BODY)
    needs = (_NETWORK, _CREATE, _GROUP, _AUTHORITY)
    yield Endpoint("POST", V2, 201, needs, body=with_references, variant="with references")
    yield Endpoint("GET", ONE_V2, 200, (_READ,))
    yield Endpoint("PUT", ONE_V2, 202, (_READ, _UPDATE, _NETWORK), body=update_body(HOME_NAME))
    with_group = update_body(HOME_NAME, **_GROUPS_IN_BODY)
    needs = (_READ, _UPDATE, _NETWORK, _GROUP)
    yield Endpoint("PUT", ONE_V2, 202, needs, body=with_group, variant="with a group")
    yield Endpoint("DELETE", ONE_V2, 202, (_READ, _DELETE))
    for verb in ("start", "stop", "softreboot", "hardreboot"):
        yield Endpoint("POST", f"{ONE_V2}/{verb}", 202, (_READ, _UPDATE))
        yield Endpoint("POST", f"{ONE_V1}/{verb}", 202, (_UPDATE,))
    for what in ("consolesessions", "consoleoutput"):
        yield Endpoint("GET", f"{ONE_V2}/{what}", 200, (_READ,))
        yield Endpoint("GET", f"{ONE_V1}/{what}", 200, (_READ,))
    yield Endpoint("GET", f"{ONE_V2}/sshkey", 200, (_READ,))
    needs = (_READ, Need(IMAGES, "create", in_whole_organization=True))
    yield Endpoint("POST", f"{ONE_V2}/snapshot", 201, needs, body={"metadata": {"name": "copy"}, "spec": {}})
    action = {"conditionType": GATE, "reason": "Ready", "message": "it is"}
    needs = (_READ, Need(GATES, "update"))
    yield Endpoint("POST", f"{ONE_V2}/provider-create-gates", 202, needs, body=action)

    yield Endpoint("GET", LIST_V1, 200, (replace(_READ, in_whole_organization=True),))
    yield Endpoint("POST", V1, 201, (_CREATE,), body=_V1_BODY)
    yield Endpoint("GET", ONE_V1, 200, (_READ,))
    yield Endpoint("PUT", ONE_V1, 202, (_CREATE,), body=_V1_BODY)
    yield Endpoint("DELETE", ONE_V1, 202, (_DELETE,))


ENDPOINTS = tuple(_endpoints_table())


@dataclass(frozen=True)
class Caller:
    """One column. ``refused`` is the status for whoever is not let in at all; ``peer`` is where the request is from."""

    name: str
    headers: Mapping[str, str]
    rights: Rights = Rights()
    refused: int | None = None
    peer: str = "127.0.0.1"


_REFERENCES_READ: Grants = frozenset((permission, "read") for permission in REFERENCES)
READER = grants(SERVERS, "read") | _REFERENCES_READ
USER = grants(SERVERS, *EVERYTHING) | _REFERENCES_READ
ADMIN = USER | grants(IMAGES, "create") | grants(GATES, "update")
ALL: Grants = frozenset((permission, operation) for permission in PERMISSIONS for operation in EVERYTHING)

READING_SERVICE = "unikorn-reading"
SERVICES = {COMPUTE: ADMIN, READING_SERVICE: READER}
"""Roles of services, which they have everywhere (contract 5.4)."""

PEOPLE = {
    "nobody": Rights(),
    "guest of the organization": Rights(organizations={ORGANIZATION: frozenset()}),
    "reader": Rights(projects={(ORGANIZATION, PROJECT): READER}),
    "user": Rights(projects={(ORGANIZATION, PROJECT): USER}),
    "project administrator": Rights(projects={(ORGANIZATION, PROJECT): ADMIN}),
    "administrator of another project": Rights(projects={(ORGANIZATION, SECOND_PROJECT): ADMIN}),
    "user of another organization": Rights(projects={(OTHER_ORGANIZATION, OTHER_PROJECT): USER}),
    "administrator of another organization": Rights(organizations={OTHER_ORGANIZATION: ADMIN}),
    # A project's ID counts in its own organization only, and an organization's is none of a project.
    "user of a namesake project": Rights(projects={(OTHER_ORGANIZATION, PROJECT): USER}),
    "organization reader": Rights(organizations={ORGANIZATION: READER}),
    "organization administrator": Rights(organizations={ORGANIZATION: ADMIN}),
    "user in both organizations": Rights(
        projects={(ORGANIZATION, PROJECT): USER, (OTHER_ORGANIZATION, OTHER_PROJECT): ADMIN}
    ),
    "global reader": Rights(everywhere=READER),
    "global administrator": Rights(everywhere=ADMIN),
}
EXPIRED = "expired"


def token(name: str) -> str:
    """Return the token of somebody by name."""
    return re.sub("[^a-z0-9]+", "-", name)


def subject(name: str) -> str:
    """Return the subject of somebody by name."""
    return f"{token(name)}@example.com"


def bearer(name: str) -> dict[str, str]:
    """Return the headers of somebody's request."""
    return {"Authorization": f"Bearer {token(name)}"}


def impersonating(name: str, service: str = COMPUTE) -> dict[str, str]:
    """Return the headers of a service that asks to be somebody."""
    return service_caller.headers({"actor": subject(name)}, impersonate="true", common_name=service)


def _callers_table() -> Iterator[Caller]:
    yield Caller("anonymous", {}, refused=401)
    yield Caller("another scheme", {"Authorization": "Basic dXNlcjp1c2Vy"}, refused=401)
    yield Caller("bad token", bearer("a bad one"), refused=401)
    yield Caller("expired token", bearer(EXPIRED), refused=401)
    for name, rights in PEOPLE.items():
        yield Caller(name, bearer(name), rights)
    yield from _services()
    for service, role in SERVICES.items():
        for name, rights in PEOPLE.items():
            yield Caller(f"{service} as {name}", impersonating(name, service), rights.limited_to(role))
        yield Caller(f"{service} as a stranger", impersonating("a stranger", service))
        yield Caller(f"{service} as the owner of an expired token", impersonating(EXPIRED, service))


def _services() -> Iterator[Caller]:
    here = {"actor": "alice", "organizationId": ORGANIZATION, "projectId": PROJECT}
    elsewhere = {"actor": "bob", "organizationId": OTHER_ORGANIZATION, "projectId": OTHER_PROJECT}
    attributed = service_caller.headers(here)
    for service, role in SERVICES.items():
        its = service_caller.headers(here, common_name=service)
        yield Caller(f"{service} with a principal", its, Rights(everywhere=role))
    yield Caller("service for another tenant", service_caller.headers(elsewhere), Rights(everywhere=ADMIN))
    yield Caller("unknown service", service_caller.headers(here, common_name="unknown"))
    yield Caller("unknown service as administrator", impersonating("global administrator", "unknown"))
    yield Caller("service without principal", service_caller.headers(), refused=400)
    yield Caller("service with garbage for one", attributed | {"X-Principal": "%%"}, refused=400)
    yield Caller("service as no one", service_caller.headers({}, impersonate="true"), refused=400)
    system = {"actor": COMPUTE, "type": "system"}
    yield Caller("service as a system", service_caller.headers(system, impersonate="true"), refused=400)
    yield Caller("service that may impersonate", attributed | {"X-Impersonate": "perhaps"}, refused=400)
    yield Caller("unverified certificate", attributed | {"Ssl-Client-Verify": "FAILED"}, refused=400)
    yield Caller("certificate from no proxy", attributed, refused=400, peer="192.0.2.1")
    yield Caller("user with a certificate from no proxy", attributed | bearer("user"), refused=400, peer="192.0.2.1")
    # A token that comes with a certificate is its owner's, with no more rights.
    yield Caller("service with a user's token", attributed | bearer("user"), PEOPLE["user"])
    yield Caller("service with an expired token", attributed | bearer(EXPIRED), refused=401)
    yield Caller("user with a principal", bearer("user") | {"X-Principal": attributed["X-Principal"]}, PEOPLE["user"])
    claim = {"X-Principal": attributed["X-Principal"], "X-Impersonate": "true"}
    yield Caller("user who asks to impersonate", bearer("user") | claim, PEOPLE["user"])
    yield Caller("principal without a certificate", claim, refused=401)


CALLERS = tuple(_callers_table())


def exactly(endpoint: Endpoint) -> Rights:
    """Return what an endpoint needs and nothing else."""
    wide = frozenset(need.grant for need in endpoint.needs if need.in_whole_organization)
    narrow = frozenset(need.grant for need in endpoint.needs if not need.in_whole_organization)
    return Rights(organizations={ORGANIZATION: wide}, projects={(ORGANIZATION, PROJECT): narrow})


def all_but(need: Need) -> Rights:
    """Return every right there is but one; one for a whole organization remains in its projects."""
    everything = ALL - {need.grant}
    places = {place: frozenset({need.grant}) for place in PLACES.values()} if need.in_whole_organization else {}
    return Rights(everywhere=everything, projects=places)


def _all_needs() -> Iterable[Need]:
    return dict.fromkeys(need for endpoint in ENDPOINTS for need in endpoint.needs)


LACKING = {f"all but {need}{' in the organization' * need.in_whole_organization}": need for need in _all_needs()}
"""Callers with everything but one right, by name."""

EXACT = {f"exactly {number}": endpoint for number, endpoint in enumerate(ENDPOINTS) if endpoint.needs}
"""Callers with exactly what one endpoint needs, by name."""


def everybody() -> dict[str, Rights]:
    """Return who has a token, with their rights."""
    return (
        PEOPLE
        | {EXPIRED: Rights(everywhere=ADMIN)}
        | {name: all_but(need) for name, need in LACKING.items()}
        | {name: exactly(endpoint) for name, endpoint in EXACT.items()}
    )


def callers_of(endpoint: Endpoint) -> list[Caller]:
    """Return everybody an endpoint is tried with."""
    made = [Caller(name, bearer(name), all_but(need)) for name, need in LACKING.items()]
    made += [Caller(name, bearer(name), exactly(one)) for name, one in EXACT.items() if one is endpoint]
    return [*CALLERS, *made]
