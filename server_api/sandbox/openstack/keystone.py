"""The first users, and the catalogue: made once, while the databases are prepared."""

from typing import Any

import requests
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from server_api.sandbox.openstack.services import (
    GLANCE,
    KEYSTONE,
    NEUTRON,
    NOVA,
    PASSWORD,
    PLACEMENT,
    REGION,
    Ports,
)

ROLES = ("service", "admin", "manager", "member", "reader")


def admin_session(auth_url: str, timeout: float = 30.0) -> Session:
    """Return a session of the administrator of the sandbox, which uses no proxy."""
    transport = requests.Session()
    transport.trust_env = False
    auth = Password(
        auth_url=auth_url,
        username="admin",
        password=PASSWORD,
        project_name="admin",
        user_domain_id="default",
        project_domain_id="default",
    )
    return Session(auth=auth, session=transport, timeout=timeout)


def populate(ports: Ports) -> None:
    """Add to a bootstrapped Keystone the roles, the services' users, the user `demo`, and the catalogue."""
    client = _Client(KEYSTONE.endpoint(ports["keystone"]))
    client.ensure_roles()
    service_project = client.create("project", name="service", domain_id="default")
    for service in (GLANCE, PLACEMENT, NEUTRON, NOVA):
        client.create_user(service.name, service_project, "admin", "service")
        url = service.endpoint(ports[service.name])
        service_id = client.create("service", type=service.type, name=service.name)
        # the services ask for each other's `internal` endpoint
        for interface in ("public", "internal", "admin"):
            client.create("endpoint", interface=interface, region_id=REGION, service_id=service_id, url=url)
    client.create_user("demo", client.create("project", name="demo", domain_id="default"), "member")


class _Client:
    def __init__(self, url: str) -> None:
        self._session = admin_session(url)
        self._url = url
        self._roles: dict[str, str] = {}

    def ensure_roles(self) -> None:
        roles = self._session.get(f"{self._url}/roles").json()["roles"]
        self._roles = {role["name"]: role["id"] for role in roles}
        for name in ROLES:
            if name not in self._roles:
                self._roles[name] = self.create("role", name=name)

    def create(self, kind: str, **members: Any) -> str:
        answer = self._session.post(f"{self._url}/{kind}s", json={kind: members})
        return str(answer.json()[kind]["id"])

    def create_user(self, name: str, project: str, *roles: str) -> None:
        user = self.create("user", name=name, password=PASSWORD, domain_id="default", default_project_id=project)
        for role in roles:
            self._session.put(f"{self._url}/projects/{project}/users/{user}/roles/{self._roles[role]}")
