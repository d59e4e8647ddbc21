"""One whole sandbox for the tests, and what they ask of it."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from server_api.sandbox.api_client import ApiClient
from server_api.sandbox.openstack import write_rules
from server_api.sandbox.region import Region
from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.tenancy import Tenancy
from server_api.sandbox.waiting import wait_for
from server_api.sandbox.world import Tenant
from server_api.servers.ports import Missing
from server_api.store import kinds

Item = dict[str, Any]


class Sandbox:
    """A running region, its callers, and its cloud."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.names = region.running()
        self.world = region.world
        self.environment = region.environment()
        self.kubernetes = region.kubernetes()
        self.cloud = self.cloud_of(self.world.first)
        self._apis = {
            caller.role: ApiClient(self.environment["SERVER_API_URL"], caller.token)
            for caller in self.world.callers.values()
        }

    def api(self, role: str = "USER") -> ApiClient:
        """Return the API as seen by ADMIN, USER, READER or OTHER."""
        return self._apis[role]

    def user_of(self, tenant: Tenant) -> OpenStackUser:
        """Return a tenant's own user of OpenStack."""
        return OpenStackUser(self.region.openstack.auth_url, tenant.cloud_name, tenant.password, tenant.cloud_name)

    def cloud_of(self, tenant: Tenant) -> Tenancy:
        """Return what a tenant's project holds in Nova and Neutron."""
        return Tenancy(self.user_of(tenant))

    @contextmanager
    def rules(self, *rules: Item) -> Iterator[None]:
        """Let OpenStack be slow or failing, as the rules say, inside of the block."""
        write_rules(self.region.openstack.rules, rules)
        try:
            yield
        finally:
            write_rules(self.region.openstack.rules, [])

    def body(self, name: str | None = None, *, public: bool = False, tenant: Tenant | None = None, **spec: Any) -> Item:
        """Return a request for a server, with a name of its own unless told one."""
        tenant = tenant or self.world.first
        networking: Item = {"securityGroups": [tenant.security_group_id]}
        if public:
            networking["publicIP"] = True
        return {
            "metadata": {"name": name or f"test-{secrets.token_hex(4)}"},
            "spec": {
                "networkId": tenant.network_id,
                "flavorId": self.world.flavors["virtual"].id,
                "imageId": self.world.images["ready"].id,
                "networking": networking,
                **spec,
            },
        }

    def create(self, body: Item | None = None) -> Item:
        """Create a server as USER and return the answer's body."""
        answer = self.api().create(body or self.body())
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def read(self, server_id: str) -> Item:
        """Read a server as USER."""
        answer = self.api().get(server_id)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def running(self, server_id: str, timeout: float = 60.0) -> Item:
        """Wait until the server is provisioned and Running, and return it."""

        def look() -> Item | None:
            server = self.read(server_id)
            settled = server["metadata"]["provisioningStatus"] == "provisioned"
            return server if settled and server["status"].get("powerState") == "Running" else None

        return wait_for(f"{server_id} is provisioned and Running", look, timeout)

    def in_power_state(self, server_id: str, state: str, timeout: float = 60.0) -> Item:
        """Wait until the API shows the power state, and return the server."""

        def look() -> Item | None:
            server = self.read(server_id)
            return server if server["status"].get("powerState") == state else None

        return wait_for(f"{server_id} is {state}", look, timeout)

    def gone(self, server_id: str, timeout: float = 60.0) -> None:
        """Wait until the API does not know the server any more."""
        wait_for(f"{server_id} is gone", lambda: self.api().get(server_id).status_code == 404, timeout)

    def remove(self, server_id: str) -> None:
        """Delete the server and wait until the API does not know it any more."""
        self.api().delete(server_id)
        self.gone(server_id)

    def stored(self, server_id: str) -> Item | None:
        """Return the server as Kubernetes stores it, None if it does not."""
        try:
            return self.kubernetes.get(kinds.SERVER, NAMESPACE, server_id)
        except Missing:
            return None

    def condition(self, server_id: str, type_: str = "Available") -> Item:
        """Return a stored condition, an empty one if it was never written."""
        conditions = ((self.stored(server_id) or {}).get("status") or {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == type_), {})

    def kill(self, name: str) -> None:
        """Kill one of our processes without a chance to clean up."""
        process = self.region.processes.find(name)
        assert process
        os.kill(process.pid, signal.SIGKILL)
        wait_for(f"{name} is dead", lambda: not self.region.processes.alive(name))
