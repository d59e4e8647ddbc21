"""What the tests of roles use: a cluster that knows our service accounts, installed as an operator would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server_api.settings import Settings
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source
from server_api.store.migration import NAME as MIGRATIONS
from server_api.store.migration import migrate
from tests.api.secret_bench import store_service_account
from tests.api.wired_cloud import SERVER
from tests.api.world import IDENTITY, NAMESPACE, REGION, World, condition
from tests.doubles.authorizing_kubernetes import AuthorizingKubernetes
from tests.doubles.cloud import CloudDouble

API, CONTROLLER, MIGRATOR = "server-api", "server-api-controller", "server-api-migrations"
ACCOUNT_SECRET = "region-service-account"
DEFINITIONS = [
    f"{kind.plural}.{kind.group}"
    for kind in vars(kinds).values()
    if isinstance(kind, kinds.Kind) and kind.group == kinds.GROUP
]


@contextmanager
def installed(directory: Path) -> Iterator[tuple[AuthorizingKubernetes, KubernetesClient]]:
    """Run a cluster and yield it with its administrator, who has run the migrations as their own account."""
    cluster = AuthorizingKubernetes(NAMESPACE, (API, CONTROLLER, MIGRATOR))
    try:
        admin = KubernetesClient(configuration_source(cluster.kubeconfig(directory / "admin")), namespace=NAMESPACE)
        admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        settings = Settings(kubeconfig=cluster.kubeconfig(directory / "migrations", MIGRATOR), namespace=NAMESPACE)
        migrate(settings)
        # What another version may have left: definitions that differ, and a step that has not been run.
        for name in DEFINITIONS:
            names = {"shortNames": None, "categories": None}
            admin.patch(kinds.CUSTOM_RESOURCE_DEFINITION, "", name, {"spec": {"names": names}})
        recorded = admin.get(kinds.CONFIG_MAP, NAMESPACE, MIGRATIONS)["data"]
        admin.patch(kinds.CONFIG_MAP, NAMESPACE, MIGRATIONS, {"data": dict.fromkeys(recorded)})
        migrate(settings, plan=True)
        migrate(settings)
        yield cluster, admin
    finally:
        cluster.embedded.close()


def furnished(cluster: AuthorizingKubernetes, admin: KubernetesClient) -> World:
    """Return the world in that cluster, with credentials for its cloud and nothing else in it."""
    cluster.embedded.reset()
    world = World(admin, CloudDouble())
    world.seed()
    world.key_pair("-----BEGIN PRIVATE KEY-----\nnot really\n-----END PRIVATE KEY-----\n")
    store_service_account(world)
    secret = admin.get(kinds.SECRET, NAMESPACE, "account")
    admin.create(kinds.SECRET, NAMESPACE, {**secret, "metadata": {"name": ACCOUNT_SECRET, "namespace": NAMESPACE}})
    reference = {"serviceAccountSecret": {"name": ACCOUNT_SECRET}}
    admin.patch(kinds.REGION, NAMESPACE, REGION, {"spec": {"openstack": reference}})
    version = admin.get(kinds.IDENTITY, NAMESPACE, IDENTITY)["metadata"]["resourceVersion"]
    status = {"conditions": [condition("Available", "True", "Provisioned")]}
    admin.patch_status(kinds.IDENTITY, NAMESPACE, IDENTITY, status, version)
    return world


def keep_a_server(world: World) -> None:
    """Store the server that has an instance, with a gate, so that its deletion, once accepted, never ends."""
    world.bare_server(SERVER, name="web-0", providerCreateGates=[{"conditionType": "gate"}])
    world.patch(SERVER, metadata={"finalizers": ["unikorn"]})


def settings_of(cluster: AuthorizingKubernetes, account: str, directory: Path, tokens: Path) -> Settings:
    """Return the settings of a process that runs as an account."""
    return Settings(
        kubeconfig=cluster.kubeconfig(directory / account, account),
        namespace=NAMESPACE,
        tokens_file=tokens,
        strict_authorization=True,
        flavor_cache_seconds=0.0,
        image_cache_seconds=0.0,
        controller_bind="127.0.0.1:0",
        monitor_seconds=0.1,
        retry_seconds=0.1,
    )
