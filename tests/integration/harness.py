"""One whole sandbox for the tests, and what they ask of it."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from server_api.sandbox import services
from server_api.sandbox.api_client import ApiClient
from server_api.sandbox.layout import REPOSITORY
from server_api.sandbox.openstack import write_rules
from server_api.sandbox.processes import Process, Processes
from server_api.sandbox.region import Region
from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.services import CONTROLLER, NAMESPACE
from server_api.sandbox.tenancy import Tenancy
from server_api.sandbox.waiting import wait_for
from server_api.sandbox.world import Tenant
from server_api.servers.ports import Missing
from server_api.store import kinds
from tests.integration.orphans import orphans

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
        self._known_orphans: list[str] = []
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

    def change_image(self, server_id: str, image: str) -> str:
        """Ask for another of the world's images, by its key there, and return its ID."""
        target, server = self.world.images[image].id, self.read(server_id)
        spec = {**server["spec"], "imageId": target}
        answer = self.api().update(server_id, {"metadata": server["metadata"], "spec": spec})
        assert answer.status_code == 202, answer.text
        return target

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

    def admin(self) -> OpenStackUser:
        """Return OpenStack's administrator."""
        openstack = self.region.openstack
        return OpenStackUser(openstack.auth_url, "admin", openstack.admin_password, "admin")

    def instance_action(self, name: str, action: Item) -> None:
        """Do something to an instance behind our API's back, as its tenant: a body of Nova's action API."""
        instance = self.cloud.instance(name)
        assert instance
        self.user_of(self.world.first).compute.post(f"/servers/{instance['id']}/action", json=action)

    def instances_ever(self, name: str) -> list[Item]:
        """Return every instance there is or ever was of exactly that name, as the administrator sees them."""
        compute = self.admin().compute
        return [
            dict(item)
            for deleted in ("false", "true")
            for item in compute.get(
                "/servers/detail", params={"all_tenants": "1", "deleted": deleted, "name": f"^{name}$"}
            ).json()["servers"]
            if item["name"] == name
        ]

    def assert_no_orphans(self) -> None:
        """Assert that nothing is left, in the cloud or in Kubernetes, of servers that are gone, and nothing is double.

        To be called once every deletion has ended. Each orphan is told once: it is not the next test's failure too.
        """
        found = [orphan for orphan in orphans(self) if orphan not in self._known_orphans]
        self._known_orphans += found
        assert not found, "\n".join(found)

    def kill(self, name: str) -> None:
        """Kill one of our processes without a chance to clean up."""
        self.signal(name, signal.SIGKILL)
        wait_for(f"{name} is dead", lambda: not self.region.processes.alive(name))

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to one of our processes, or to one of OpenStack's, whose names begin with "openstack/"."""
        os.kill(self.process(name).pid, number)

    def process(self, name: str) -> Process:
        """Return a running process by the name it has in ``names``."""
        group, _, service = name.rpartition("/")
        process = self._processes_of(group).find(service)
        assert process, f"{name} does not run"
        return process

    @contextmanager
    def standing_still(self, name: str) -> Iterator[None]:
        """Let a process accept connections and answer nothing, inside of the block."""
        self.signal(name, signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(name, signal.SIGCONT)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Have one of our processes, or one of OpenStack's, stopped inside of the block."""
        group, _, service = name.rpartition("/")
        self._processes_of(group).stop([service])
        try:
            yield
        finally:
            if group:
                self.region.openstack.start()
            else:
                self._start(name)

    def without_controller(self) -> AbstractContextManager[None]:
        """Have the sandbox's own controller stopped inside of the block."""
        return self.without(CONTROLLER)

    def _processes_of(self, group: str) -> Processes:
        return Processes(self.region.layout.openstack) if group else self.region.processes

    def _start(self, name: str) -> None:
        layout, choices = self.region.layout, self.region.choices
        command = services.command(name, layout, choices)
        self.region.processes.start(name, command, env=services.environment(layout, choices), cwd=REPOSITORY)
        self.region.processes.wait_until_answering({name: choices.ready_url(name)})
