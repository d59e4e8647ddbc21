"""Processes of its own for one measurement: the embedded Kubernetes API, the OpenStack double and the controller."""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from benchmarks.fleet import EPOCH, PASSWORD, Fleet, Member, cloud_project
from benchmarks.stored import server_object
from server_api.sandbox import seed_objects, services
from server_api.sandbox.layout import REPOSITORY, Layout
from server_api.sandbox.processes import LOOPBACK, Processes, free_port
from server_api.sandbox.seed_openstack import Account
from server_api.sandbox.services import CONTROLLER, KUBERNETES, NAMESPACE
from server_api.servers import naming
from server_api.servers.finalizers import FINALIZER, reference_edge
from server_api.servers.ports import StateConflict
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source

DOUBLE = "openstack"

PROVISIONED = "the server is provisioned"
"""What a pass writes, so that there is nothing for it to write."""


class Stage:
    """The processes and what is in them. ``openstack`` and ``controller`` are URLs without a trailing slash."""

    def __init__(self, fleet: Fleet, layout: Layout) -> None:
        self.fleet = fleet
        self._layout = layout
        self._processes = Processes(layout.directory)
        self._choices = services.choose(layout, self._processes, None, None)
        self.controller = self._choices.url(CONTROLLER)
        port = free_port()
        self.openstack = f"http://{LOOPBACK}:{port}"
        self._double = [sys.executable, "-m", "benchmarks.openstack_double", "--port", str(port)]
        self._double += ["--projects", str(fleet.projects), "--servers", str(fleet.servers)]
        services.write_kubeconfig(layout, self._choices)
        self.kubernetes = KubernetesClient(configuration_source(layout.kubeconfig), namespace=NAMESPACE)
        self._environment = services.environment(layout, self._choices)

    @property
    def database(self) -> Path:
        """The file of the embedded Kubernetes API."""
        return self._layout.kubernetes_database

    def start(self) -> None:
        """Start Kubernetes and the double. Raises StepFailed."""
        kubernetes = services.command(KUBERNETES, self._layout, self._choices)
        self._processes.start(KUBERNETES, kubernetes, self._environment, cwd=REPOSITORY)
        self._processes.start(DOUBLE, self._double, self._environment, cwd=REPOSITORY)
        urls = {KUBERNETES: self._choices.ready_url(KUBERNETES), DOUBLE: f"{self.openstack}/double/calls"}
        self._processes.wait_until_answering(urls)
        migrate = services.own_command("migrate")
        subprocess.run(migrate, env=self._environment, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)

    def start_controller(self) -> int:
        """Start the controller at the shipped settings, return its pid once it is synced. Raises StepFailed."""
        command = services.own_command("controller")
        process = self._processes.start(CONTROLLER, command, self._environment, cwd=REPOSITORY)
        self._processes.wait_until_answering({CONTROLLER: self._choices.ready_url(CONTROLLER)})
        return process.pid

    def stop(self) -> None:
        """Stop everything, the controller first."""
        for name in (CONTROLLER, DOUBLE, KUBERNETES):
            self._processes.stop([name])

    def tell(self, what: str) -> None:
        """Have the double do something: ``build`` or ``settle``."""
        requests.post(f"{self.openstack}/double/{what}", timeout=60).raise_for_status()

    def calls(self) -> Counter[str]:
        """Return how often the double was called, by service and operation."""
        answer = requests.get(f"{self.openstack}/double/calls", timeout=60)
        return Counter(answer.json())

    def seed(self) -> None:
        """Store the region, its account, and what the servers stand on, held by them as their passes would."""
        world = self.fleet.world
        self._create(seed_objects.secret(NAMESPACE, Account("service", "region", PASSWORD)))
        self._create(seed_objects.region(NAMESPACE, world, f"{self.openstack}/identity"))
        for tenant in self.fleet.tenants:
            account = Account(f"user-{tenant.name}", cloud_project(tenant), PASSWORD)
            edges = [reference_edge(member.id) for member in self.fleet.members if member.tenant is tenant]
            for body in seed_objects.tenant_objects(NAMESPACE, world, tenant, account):
                if body["kind"] in (kinds.NETWORK.name, kinds.SECURITY_GROUP.name):
                    body["metadata"]["finalizers"] = edges
                stored = self._create(body)
                if body["kind"] == kinds.IDENTITY.name:
                    self._patch_status(kinds.IDENTITY, stored, seed_objects.provisioned({}))

    def store(self) -> None:
        """Store every server of the fleet as settled: no pass and no sweep has anything to change."""
        for member in self.fleet.members:
            body = server_object(self.fleet.world, member.tenant, member.id, member.name)
            body["metadata"]["finalizers"] = [FINALIZER]
            self._patch_status(kinds.SERVER, self._create(body), settled_status(member))

    def create_server(self, name: str) -> str:
        """Store a server that nothing was done about yet, as the API does, and return its ID."""
        tenant = self.fleet.world.first
        id_ = naming.server_id(tenant.network_id, name)
        self._create(server_object(self.fleet.world, tenant, id_, name))
        return id_

    def patch_server(self, server_id: str, patch: Mapping[str, Any]) -> None:
        """Patch metadata or spec of a server, whatever its version."""
        self.kubernetes.patch(kinds.SERVER, NAMESPACE, server_id, patch)

    def patch_server_status(self, server_id: str, status: Mapping[str, Any]) -> None:
        """Patch the status of a server, whatever its version."""
        written = False
        while not written:
            # A sweep that writes between the two wins, and then has nothing more to write.
            with suppress(StateConflict):
                self._patch_status(kinds.SERVER, self.kubernetes.get(kinds.SERVER, NAMESPACE, server_id), status)
                written = True

    def _create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        kind = next(kind for kind in _KINDS if kind.name == body["kind"])
        return self.kubernetes.create(kind, NAMESPACE, body)

    def _patch_status(self, kind: kinds.Kind, stored: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        metadata = stored["metadata"]
        self.kubernetes.patch_status(kind, NAMESPACE, metadata["name"], status, metadata["resourceVersion"])


_KINDS = (
    kinds.SECRET,
    kinds.REGION,
    kinds.IDENTITY,
    kinds.OPENSTACK_IDENTITY,
    kinds.NETWORK,
    kinds.SECURITY_GROUP,
    kinds.SSH_CERTIFICATE_AUTHORITY,
    kinds.SERVER,
)


def settled_status(member: Member) -> dict[str, Any]:
    """Return the status of a server that runs."""
    return {
        "phase": "Running",
        "privateIP": member.private_ip,
        "publicIP": member.public_ip,
        "macAddress": member.mac_address,
        "scheduledAt": EPOCH,
        "launchedAt": EPOCH,
        "provisionedAt": EPOCH,
        "conditions": [
            _condition("Available", "True", "Provisioned", PROVISIONED),
            _condition("Healthy", "True", "Healthy", "the instance is ACTIVE"),
        ],
    }


def building_status() -> dict[str, Any]:
    """Return what to merge into a settled status to make it that of a server whose first launch is under way."""
    return {
        "phase": "Building",
        "macAddress": None,
        "launchedAt": None,
        "provisionedAt": None,
        "conditions": [
            _condition("Available", "True", "Provisioned", PROVISIONED),
            _condition("Healthy", "False", "Degraded", "the instance is BUILD"),
        ],
    }


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": EPOCH}


@contextmanager
def stage(projects: int, servers: int) -> Iterator[Stage]:
    """Yield a stage with that many settled servers and no controller; everything is stopped and removed after."""
    with tempfile.TemporaryDirectory(prefix="server-api-benchmark-") as directory:
        it = Stage(Fleet(projects, servers), Layout.at(Path(directory)))
        try:
            it.start()
            it.seed()
            it.store()
            yield it
        finally:
            it.stop()
