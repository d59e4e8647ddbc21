"""The OpenStack adapter against a real Keystone, Nova, Neutron and Glance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from server_api import deadline, trace
from server_api.cloud import OpenStackCloud
from server_api.sandbox.waiting import wait_for
from server_api.servers.cloud_model import ImageState, InstanceOrder, PortOrder, PowerState
from server_api.servers.model import AddressPair
from server_api.servers.naming import cloud_network, cloud_port, cloud_security_group
from server_api.servers.ports import Denied, Missing, Refused, StateConflict, Tenancy, TimedOut, Unavailable
from server_api.servers.surroundings import FlavorMetadata, Region
from server_api.settings import Settings
from tests.integration.cloud_project import SeededCredentials, Servers, unique
from tests.integration.harness import Sandbox

IDENTITY_ID = "identity"


@pytest.fixture(scope="module")
def credentials(sandbox: Sandbox) -> SeededCredentials:
    return SeededCredentials(sandbox)


@pytest.fixture
def cloud(region: Sandbox, credentials: SeededCredentials) -> OpenStackCloud:
    return OpenStackCloud(credentials, Settings(read_timeout=30, flavor_cache_seconds=0, image_cache_seconds=0))


@pytest.fixture(scope="module")
def cloud_region(sandbox: Sandbox) -> Region:
    return Region("region", "sandbox", "openstack", sandbox.region.openstack.auth_url, "namespace", "secret")


@pytest.fixture
def tenancy(cloud: OpenStackCloud, cloud_region: Region) -> Tenancy:
    return cloud.tenancy(cloud_region, IDENTITY_ID)


@pytest.fixture
def servers(region: Sandbox, tenancy: Tenancy) -> Iterator[Servers]:
    servers = Servers(region, tenancy)
    yield servers
    servers.remove()


def test_an_instance_lives_through_its_whole_life(servers: Servers, tenancy: Tenancy) -> None:
    name, server_id = unique(), str(uuid4())
    compute = tenancy.compute
    assert compute.find(name, server_id) is None

    created = servers.instance(name, {"serverID": server_id, "region:server_id": server_id})
    instance = servers.active(name, server_id)

    world = servers.sandbox.world
    assert (instance.id, instance.name, instance.server_id) == (created.id, name, server_id)
    assert (instance.image_id, instance.power_state) == (world.images["ready"].id, PowerState.RUNNING)
    assert instance.created_at is not None
    assert instance.launched_at is not None
    assert instance.launched_at >= instance.created_at
    assert list(instance.mac_addresses) == [cloud_network(world.first.network_id)]
    assert instance in compute.instances()
    with pytest.raises(StateConflict):
        compute.start(instance.id)

    compute.stop(instance.id)
    wait_for("SHUTOFF", lambda: compute.find(name, server_id).status == "SHUTOFF")
    with pytest.raises(StateConflict):
        compute.soft_reboot(instance.id)
    compute.start(instance.id)
    servers.active(name, server_id)
    compute.soft_reboot(instance.id)
    servers.active(name, server_id)
    compute.hard_reboot(instance.id)
    servers.active(name, server_id)

    compute.delete(instance.id)
    wait_for("it is gone", lambda: compute.find(name, server_id) is None)
    compute.delete(instance.id)
    with pytest.raises(Missing):
        compute.start(instance.id)


def test_b01_look_alikes_and_strangers_are_never_found(servers: Servers, tenancy: Tenancy) -> None:
    name, server_id = unique(), str(uuid4())
    for look_alike in (f"foo-{name}", f"{name}0", f"{name}-old"):
        servers.instance(look_alike, {"serverID": server_id})
    servers.instance(name, {"serverID": str(uuid4())})
    servers.instance(name, {})

    assert tenancy.compute.find(name, server_id) is None

    ours = servers.instance(name, {"serverID": server_id})
    found = tenancy.compute.find(name, server_id)
    assert found is not None
    assert found.id == ours.id


def test_b24_an_instance_that_nova_refuses_is_refused(servers: Servers, tenancy: Tenancy) -> None:
    flavor_id = servers.sandbox.world.flavors["virtual"].id
    order = InstanceOrder(unique(), "no-uuid", flavor_id, servers.port(), {})

    with pytest.raises(Refused, match="imageRef"):
        tenancy.compute.create(order)


def test_b33_a_port_without_groups_has_none_and_an_update_replaces_them(
    servers: Servers, tenancy: Tenancy, region: Sandbox
) -> None:
    networking, tenant = tenancy.networking, region.world.first
    group_id = networking.security_group_id(cloud_security_group(tenant.security_group_id))
    port_id = servers.port()
    stored = region.user_of(tenant).network

    def show() -> dict[str, object]:
        return dict(stored.get(f"/v2.0/ports/{port_id}").json()["port"])

    port = show()
    assert (port["security_groups"], port["allowed_address_pairs"]) == ([], [])
    (found,) = networking.ports_named(str(port["name"]))
    assert found is not None
    assert found.id == port_id
    assert str(found.private_ip).startswith("192.168.10.")

    order = PortOrder(
        found.name, "", (group_id,), (AddressPair("10.9.0.0/16"), AddressPair("10.8.0.1/32", "fa:16:3e:0:0:1"))
    )
    assert networking.update_port(port_id, order) == found
    port = show()
    assert port["security_groups"] == [group_id]
    assert {pair["ip_address"] for pair in port["allowed_address_pairs"]} == {"10.9.0.0/16", "10.8.0.1/32"}

    networking.update_port(port_id, PortOrder(found.name, ""))
    port = show()
    assert (port["security_groups"], port["allowed_address_pairs"]) == ([], [])


def test_a_floating_ip_is_created_found_and_deleted(servers: Servers, tenancy: Tenancy) -> None:
    networking, port_id = tenancy.networking, servers.port()
    assert networking.floating_ips(port_id) == []

    created = networking.create_floating_ip(port_id)

    assert created.address.startswith("203.0.113.")
    assert networking.floating_ips(port_id) == [created]
    networking.delete_floating_ip(created.id)
    networking.delete_floating_ip(created.id)
    assert networking.floating_ips(port_id) == []


@pytest.mark.parametrize(
    "selector", [{"external_network_ids": frozenset({"other"})}, {"external_network_tags": frozenset({"t"})}]
)
def test_a_region_that_exports_no_external_network_has_no_floating_ips(
    cloud: OpenStackCloud, cloud_region: Region, selector: dict[str, frozenset[str]]
) -> None:
    tenancy = cloud.tenancy(replace(cloud_region, **selector), IDENTITY_ID)

    with pytest.raises(Missing, match="no external network is exported by the region"):
        tenancy.networking.create_floating_ip(str(uuid4()))


def test_names_that_do_not_exist_are_missing_and_gone_ports_are_no_error(tenancy: Tenancy) -> None:
    networking = tenancy.networking

    with pytest.raises(Missing):
        networking.network_id(cloud_network(str(uuid4())))
    with pytest.raises(Missing):
        networking.security_group_id(cloud_security_group(str(uuid4())))
    assert networking.ports_named(cloud_port(str(uuid4()))) == []
    with pytest.raises(Missing):
        networking.update_port(str(uuid4()), PortOrder("server", ""))
    networking.delete_port(str(uuid4()))


def test_the_exported_flavors_are_what_the_seed_made(
    cloud: OpenStackCloud, cloud_region: Region, region: Sandbox
) -> None:
    virtual = region.world.flavors["virtual"]
    metadata = FlavorMetadata(virtual.id, architecture="aarch64", baremetal=True)

    flavors = {flavor.id: flavor for flavor in cloud.catalogue(cloud_region).flavors()}
    overridden = cloud.catalogue(replace(cloud_region, flavor_metadata=(metadata,))).flavors()

    flavor = flavors[virtual.id]
    assert {seeded.id for seeded in region.world.flavors.values()} <= flavors.keys()
    assert (flavor.name, flavor.cpus, flavor.memory_mib, flavor.disk_gb) == (
        virtual.name,
        virtual.vcpus,
        virtual.memory,
        virtual.disk,
    )
    assert [(one.architecture, one.baremetal) for one in overridden if one.id == virtual.id] == [("aarch64", True)]


def test_the_exported_images_are_what_the_seed_made(
    cloud: OpenStackCloud, cloud_region: Region, region: Sandbox
) -> None:
    images = {image.id: image for image in cloud.catalogue(cloud_region).images()}

    for seeded in region.world.images.values():
        image = images[seeded.id]
        assert (image.name, image.architecture, image.virtualization) == (
            seeded.name,
            seeded.architecture,
            seeded.virtualization,
        )
        assert (image.size_gib, image.organization_id) == (seeded.min_disk, seeded.organization_id)
        assert image.state is (ImageState.READY if seeded.content else ImageState.PENDING)


def test_b77_nova_logs_our_trace_as_its_global_request_id(tenancy: Tenancy, region: Sandbox) -> None:
    token = trace.begin()
    try:
        request_id = trace.openstack_request_id()
        tenancy.compute.instances()
    finally:
        trace.end(token)

    logs = region.region.openstack.logs.glob("nova*.log")
    lines = [line for log in logs for line in log.read_text().splitlines() if f"[{request_id} req-" in line]
    assert any("GET /v2.1/servers/detail" in line for line in lines)


def test_b61_a_slow_nova_is_cut_off_by_the_deadline(tenancy: Tenancy, region: Sandbox) -> None:
    tenancy.compute.instances()

    with region.rules({"service": "nova", "delay": 3}), deadline.within(0.5), pytest.raises(TimedOut, match="nova"):
        tenancy.compute.instances()


def test_b37_a_failing_nova_is_unavailable_not_absent(tenancy: Tenancy, region: Sandbox) -> None:
    with region.rules({"service": "nova", "status": 503}), pytest.raises(Unavailable, match="nova"):
        tenancy.compute.find("web-1", str(uuid4()))


def test_b32_a_wrong_password_is_denied_by_keystone(
    region: Sandbox, credentials: SeededCredentials, cloud_region: Region
) -> None:
    class Wrong(SeededCredentials):
        def __init__(self) -> None:
            self.identity = replace(credentials.identity, password="wrong")
            self.account = credentials.account

    tenancy = OpenStackCloud(Wrong(), Settings()).tenancy(cloud_region, IDENTITY_ID)

    with pytest.raises(Denied, match="keystone"):
        tenancy.compute.instances()
