"""An older installation for the rehearsal: a Kubernetes API of its own, filled by an older region service."""

from __future__ import annotations

import copy
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests
import yaml
from flask.testing import FlaskClient

from server_api import app
from server_api.http.application import build_app
from server_api.sandbox import seed, seed_objects, services
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.sandbox.layout import REPOSITORY
from server_api.sandbox.memory import Memory
from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.seed_openstack import OpenStackSeed
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.sandbox.world import EVERYTHING, REFERENCES, SERVERS, Caller, Tenant
from server_api.settings import Settings
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source
from server_api.store.migration import DIRECTORY
from tests.integration.harness import Sandbox
from tests.integration.legacy_store import Legacy, LegacyStore, Place

Item = dict[str, Any]

# What Neutron tells Nova by itself, when a pass of the controller has brought a port up to date, is not ours.
WRITE_OF_NOVA = re.compile(r'"(POST|PUT|PATCH|DELETE) /v2\.1/(?!os-server-external-events)')


class NovaLog:
    """What Nova's API was asked to change, as it says itself in its log."""

    def __init__(self, region: Sandbox) -> None:
        self._path = region.region.layout.openstack / "log" / "nova.log"
        self._from = self._path.stat().st_size

    def writes(self) -> list[str]:
        """Return the lines about requests that write, since this was made or last asked."""
        with self._path.open("rb") as log:
            log.seek(self._from)
            text = log.read().decode(errors="replace")
            self._from = log.tell()
        return [line for line in text.splitlines() if WRITE_OF_NOVA.search(line)]


@dataclass
class Installation:
    """An older installation: its Kubernetes API, its servers, its clients, and its project in OpenStack."""

    kubernetes: EmbeddedKubernetes
    client: KubernetesClient
    environment: dict[str, str]
    tenants: tuple[Tenant, Tenant]
    servers: list[Legacy]
    nova: OpenStackUser
    api: FlaskClient
    tokens: dict[str, str]

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands to its end."""
        command = services.own_command(*words)
        return subprocess.run(
            command, env=self.environment, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=240
        )

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start one of our commands."""
        command = services.own_command(*words)
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=self.environment, cwd=REPOSITORY, stdout=quiet, stderr=quiet)

    def stored(self) -> dict[str, Item]:
        """Return every server as it is stored, by ID."""
        return {item["metadata"]["name"]: item for item in self.client.list(kinds.SERVER, NAMESPACE).items}

    def get(self, tenant: Tenant, path: str) -> Any:
        """Return what a GET of the tenant's administrator answers."""
        response = self.api.get(path, headers=self._headers(tenant))
        assert response.status_code == 200, response.text
        return response.get_json()

    def put(self, tenant: Tenant, path: str, body: Item) -> Item:
        """Return what a PUT of the tenant's administrator answers."""
        response = self.api.put(path, json=body, headers=self._headers(tenant))
        assert response.status_code == 202, response.text
        return dict(response.get_json())

    def seen_by_v1(self) -> dict[str, Item]:
        """Return every server as clients of v1 list it, by ID."""
        seen: dict[str, Item] = {}
        for tenant in self.tenants:
            for item in self.get(tenant, f"/api/v1/organizations/{tenant.organization_id}/servers"):
                seen[item["metadata"]["id"]] = item
        return seen

    def seen_by_v2(self) -> dict[str, Item]:
        """Return every server as clients of v2 see it, by ID."""
        return {item["metadata"]["id"]: item for tenant in self.tenants for item in self.get(tenant, "/api/v2/servers")}

    def instances(self) -> dict[str, Item]:
        """Return what Nova shows of the project's instances, by ID."""
        return {item["id"]: item for item in self.nova.compute.get("/servers/detail").json()["servers"]}

    def _headers(self, tenant: Tenant) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[tenant.name]}"}


def v1_path(tenant: Tenant, server_id: str = "") -> str:
    """Return the path of a tenant's servers in v1, or of one of them."""
    owner = f"/api/v1/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    return f"{owner}/identities/{tenant.identity_id}/servers" + (f"/{server_id}" if server_id else "")


@contextmanager
def older_installation(region: Sandbox, directory: Path) -> Iterator[Installation]:
    """Set one up beside the sandbox's OpenStack, and remove what it has there afterwards. Files go to ``directory``."""
    memory = Memory(directory / "memory.json")
    tenants = tuple(
        Tenant.recalled(memory, name, prefix)
        for name, prefix in (("legacy-a", "192.168.30.0/24"), ("legacy-b", "192.168.40.0/24"))
    )
    openstack = region.region.openstack
    cloud_seed = OpenStackSeed(openstack.auth_url, openstack.admin_password)
    account = cloud_seed.service_account(region.world.service_password)
    with EmbeddedKubernetes() as kubernetes:
        kubeconfig = directory / "kubeconfig"
        kubernetes.kubeconfig(kubeconfig, NAMESPACE)
        client = KubernetesClient(configuration_source(kubeconfig), namespace=NAMESPACE)
        store_older_definitions(client)
        bodies = [region.kubernetes.get(kinds.REGION, NAMESPACE, region.world.region_id)]
        bodies.append(region.kubernetes.get(kinds.SECRET, NAMESPACE, seed_objects.SECRET_NAME))
        for tenant in tenants:
            bodies += seed_objects.tenant_objects(NAMESPACE, region.world, tenant, cloud_seed.tenant(tenant, account))
        for body in bodies:
            create(client, body)
        servers = LegacyStore(region.world, store_places(client, region, memory, *tenants)).servers()
        user = region.user_of(tenants[0])
        make_instances(user, region, [server for server in servers if server.instance])
        for server in servers:
            store(kubernetes, client, server)
        tokens = directory / "tokens.yaml"
        callers = {tenant.name: administrator(tenant) for tenant in tenants}
        seed.write_tokens(tokens, replace(region.world, callers=callers))
        settings = Settings(kubeconfig=kubeconfig, namespace=NAMESPACE, tokens_file=tokens, strict_authorization=True)
        variables = {"KUBECONFIG": str(kubeconfig), "NAMESPACE": NAMESPACE}
        yield Installation(
            kubernetes=kubernetes,
            client=client,
            environment={**os.environ, **{f"SERVER_API_{name}": value for name, value in variables.items()}},
            tenants=(tenants[0], tenants[1]),
            servers=servers,
            nova=user,
            api=build_app(app.services(settings), settings).test_client(),
            tokens={name: caller.token for name, caller in callers.items()},
        )
    for instance_id in (item["id"] for item in user.compute.get("/servers").json()["servers"]):
        user.compute.delete(f"/servers/{instance_id}")


def store_older_definitions(client: KubernetesClient) -> None:
    """Define the kinds as an older installation has them: of servers hardly anything is described."""
    client.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for path in (DIRECTORY / "crds").glob("*.yaml"):
        definition = yaml.safe_load(path.read_text())
        (version,) = definition["spec"]["versions"]
        version.pop("additionalPrinterColumns", None)
        if path.name == "servers.yaml":
            open_ended: Item = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            properties = {"flavorID": {"type": "string"}, "provider": {"type": "string"}}
            version["schema"]["openAPIV3Schema"] = {
                "type": "object",
                "properties": {
                    "spec": open_ended | {"properties": properties},
                    "status": open_ended | {"properties": {"phase": {"type": "string"}}},
                },
            }
        client.create(kinds.CUSTOM_RESOURCE_DEFINITION, "", definition)


def store_places(
    client: KubernetesClient, region: Sandbox, memory: Memory, tenant: Tenant, other: Tenant
) -> dict[str, Place]:
    """Store what the tenants have besides what the seed gave them, and return all networks."""
    places = {
        "first": Place(tenant, tenant.network_id, tenant.security_group_id),
        "second": Place(tenant, memory.id("second.network"), memory.id("second.group")),
        "v1": Place(tenant, memory.id("v1.network"), memory.id("v1.group")),
        "other": Place(other, other.network_id, other.security_group_id),
    }
    for name, place in places.items():
        if name in ("second", "v1"):
            network = seed_objects.network(NAMESPACE, region.world, tenant, place.network_id, tenant.prefix)
            group = copy.deepcopy(network) | {"kind": kinds.SECURITY_GROUP.name}
            group["metadata"] |= {"name": place.group_id}
            group["metadata"]["labels"] |= {labels.NETWORK_ID: place.network_id}
            for body in (network, group):
                if name == "v1":
                    del body["metadata"]["labels"][labels.API_VERSION]
                create(client, body)
        place.uid = client.get(kinds.NETWORK, NAMESPACE, place.network_id)["metadata"]["uid"]
    return places


def create(client: KubernetesClient, body: Item) -> None:
    """Create an object, or one like that of another Kubernetes API."""
    kind = next(kind for kind in vars(kinds).values() if isinstance(kind, kinds.Kind) and kind.name == body["kind"])
    metadata = {key: body["metadata"][key] for key in ("name", "labels") if key in body["metadata"]}
    client.create(kind, NAMESPACE, body | {"metadata": metadata})


def store(kubernetes: EmbeddedKubernetes, client: KubernetesClient, server: Legacy) -> None:
    """Store a server as the older installation did, its status with every null that it had."""
    stored = client.create(kinds.SERVER, NAMESPACE, server.body)
    if server.status is not None:
        url = kubernetes.url + kinds.SERVER.path(NAMESPACE, server.id, "status")
        answer = requests.put(url, json=stored | {"status": server.status}, timeout=10)
        assert answer.status_code == 200, answer.text
    if server.deleted:
        client.delete(kinds.SERVER, NAMESPACE, server.id)


def make_instances(user: OpenStackUser, region: Sandbox, servers: list[Legacy]) -> None:
    """Have Nova run an instance for each: all with one request, since how they came about does not matter here."""
    body = {
        "name": "legacy",
        "imageRef": region.world.images["ready"].id,
        "flavorRef": region.world.flavors["virtual"].id,
        "networks": "none",
        "min_count": len(servers),
        "max_count": len(servers),
    }
    user.compute.post("/servers", json={"server": body})

    def running() -> list[Item] | None:
        found = user.compute.get("/servers/detail").json()["servers"]
        return found if all(item["status"] == "ACTIVE" for item in found) else None

    for item, server in zip(wait_for("all run", running, 240), servers, strict=True):
        user.compute.put(f"/servers/{item['id']}", json={"server": {"name": server.name}})
        user.compute.post(f"/servers/{item['id']}/metadata", json={"metadata": {"serverID": server.id}})


def administrator(tenant: Tenant) -> Caller:
    """Return somebody who may do everything with a tenant's servers."""
    grants = {SERVERS: EVERYTHING, **dict.fromkeys(REFERENCES, ("read",))}
    return Caller(tenant.name, f"token-of-{tenant.name}", tenant, grants, whole_organization=True)
