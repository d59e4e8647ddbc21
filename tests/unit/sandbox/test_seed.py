from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.sandbox.memory import Memory
from server_api.sandbox.seed import Seed
from server_api.sandbox.seed_openstack import Account, OpenStackSeed
from server_api.sandbox.world import World
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source
from server_api.store.credentials import KubernetesCredentials
from server_api.store.directory import KubernetesDirectory
from server_api.store.migration import Migrator

NAMESPACE = "seeded"
KINDS = [
    kinds.SECRET,
    kinds.REGION,
    kinds.IDENTITY,
    kinds.OPENSTACK_IDENTITY,
    kinds.NETWORK,
    kinds.SECURITY_GROUP,
    kinds.SSH_CERTIFICATE_AUTHORITY,
]


class NoCloud:
    """Answers as an OpenStack in which everything is there."""

    def service_account(self, password: str) -> Account:
        return Account("service-user", "region-project", password)

    def tenant(self, tenant: Any, service_account: Account) -> Account:
        return Account(f"user-{tenant.name}", f"project-{tenant.name}", tenant.password)

    def flavor(self, flavor: Any) -> None: ...

    def image(self, image: Any) -> None: ...


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesClient]:
    with EmbeddedKubernetes() as embedded:
        path = tmp_path_factory.mktemp("kubernetes") / "config"
        embedded.kubeconfig(path)
        client = KubernetesClient(configuration_source(path), namespace=NAMESPACE)
        Migrator(client, NAMESPACE, say=lambda _: None).run()
        yield client


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.recalled(Memory(tmp_path_factory.mktemp("memory") / "seed.json"))


def seed(world: World, kubernetes: KubernetesClient, auth_url: str = "http://127.0.0.1:1/v3") -> None:
    Seed(world, cast(OpenStackSeed, NoCloud()), kubernetes, NAMESPACE).run(auth_url)


def versions(kubernetes: KubernetesClient) -> dict[str, str]:
    return {
        f"{kind.plural}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for kind in KINDS
        for item in kubernetes.list(kind, NAMESPACE).items
    }


def test_what_is_seeded_is_what_the_store_reads(world: World, kubernetes: KubernetesClient) -> None:
    seed(world, kubernetes)
    directory = KubernetesDirectory(kubernetes, NAMESPACE)
    credentials = KubernetesCredentials(kubernetes, NAMESPACE)
    region = directory.region(world.region_id)
    assert credentials.service_account(region).password == world.service_password
    flavors = {flavor.id: flavor for flavor in region.flavor_metadata}
    assert flavors[world.flavors["baremetal"].id].baremetal
    assert flavors[world.flavors["pinned"].id].pinned_only
    for tenant in world.tenants:
        network = directory.network(tenant.network_id)
        assert network.is_v2
        assert (network.organization_id, network.project_id) == (tenant.organization_id, tenant.project_id)
        assert (network.region_id, network.identity_id) == (world.region_id, tenant.identity_id)
        assert directory.identity(tenant.identity_id).ready
        assert directory.security_group(tenant.security_group_id).network_id == tenant.network_id
        assert directory.ssh_certificate_authority(tenant.authority_id).public_key.startswith("ssh-ed25519 ")
        secrets = credentials.identity_credentials(tenant.identity_id)
        assert secrets.password == tenant.password
        assert secrets.ssh_private_key == tenant.private_key


def test_a_second_run_writes_nothing(world: World, kubernetes: KubernetesClient) -> None:
    seed(world, kubernetes)
    before = versions(kubernetes)
    seed(world, kubernetes)
    assert versions(kubernetes) == before


def test_a_keystone_that_moved_changes_the_region_and_nothing_else(world: World, kubernetes: KubernetesClient) -> None:
    seed(world, kubernetes)
    before = versions(kubernetes)
    seed(world, kubernetes, "http://127.0.0.1:2/v3")
    after = versions(kubernetes)
    assert {name for name in after if after[name] != before[name]} == {f"regions/{world.region_id}"}
    region = KubernetesDirectory(kubernetes, NAMESPACE).region(world.region_id)
    assert region.endpoint == "http://127.0.0.1:2/v3"


def test_a_changed_password_reaches_the_secret(world: World, kubernetes: KubernetesClient) -> None:
    seed(world, kubernetes)
    seed(replace(world, service_password="another"), kubernetes)
    region = KubernetesDirectory(kubernetes, NAMESPACE).region(world.region_id)
    assert KubernetesCredentials(kubernetes, NAMESPACE).service_account(region).password == "another"
