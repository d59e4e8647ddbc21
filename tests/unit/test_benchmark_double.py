"""The OpenStack double of the benchmarks answers as Nova and Neutron do, as far as our own adapters can tell."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from cheroot import wsgi

from benchmarks import instances
from benchmarks.fleet import PASSWORD, Fleet, cloud_project
from benchmarks.openstack_double import OpenStackDouble
from benchmarks.stage import building_status, settled_status
from server_api.cloud.neutron import NeutronNetworking
from server_api.cloud.nova import NovaCompute
from server_api.cloud.sessions import CloudClients, CloudCredential, SessionPool
from server_api.servers.cloud_model import InstanceOrder, PortOrder
from server_api.servers.naming import cloud_network, cloud_port
from server_api.servers.observed_state import observe
from server_api.servers.ports import StateConflict
from server_api.settings import Settings
from server_api.store.server_status import status_from

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class Cloud:
    """The double and our adapters on the first of its projects."""

    fleet: Fleet
    double: OpenStackDouble
    compute: NovaCompute
    networking: NeutronNetworking

    def member_ids(self) -> list[str]:
        return sorted(member.id for member in self.fleet.members if member.tenant is self.fleet.world.first)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(instances, "PAGE", 3)
    fleet = Fleet(projects=2, servers=14)
    server = wsgi.Server(("127.0.0.1", 0), None, numthreads=1)
    server.expiration_interval = 0.02
    server.shutdown_timeout = 1
    server.prepare()
    url = f"http://127.0.0.1:{server.bind_addr[1]}"
    double = OpenStackDouble(fleet, url)
    server.wsgi_app = double.app
    thread = threading.Thread(target=server.serve)
    thread.start()
    credential = CloudCredential(f"{url}/identity", "user", PASSWORD, cloud_project(fleet.world.first))
    clients = SessionPool(Settings(connect_timeout=2, read_timeout=5)).clients(credential)

    def as_region() -> CloudClients:
        return clients

    yield Cloud(fleet, double, NovaCompute(clients, as_region), NeutronNetworking(clients, lambda: ["external"]))
    server.stop()
    thread.join()


def test_a_bulk_list_holds_every_instance_of_the_project_and_takes_a_call_a_page(cloud: Cloud) -> None:
    listed = cloud.compute.instances()
    assert sorted(str(instance.server_id) for instance in listed) == cloud.member_ids()
    # Seven instances on three pages, and the empty one that says that there are no more.
    assert cloud.double.calls["compute GET /servers/detail"] == 4


def test_an_instance_is_found_by_its_name_in_its_own_project_only(cloud: Cloud) -> None:
    ours, theirs = cloud.fleet.members[0], cloud.fleet.members[1]
    found = cloud.compute.find(ours.name, ours.id)
    assert found is not None
    assert found.id == ours.instance_id
    assert cloud.compute.find(theirs.name, theirs.id) is None


def test_neither_a_sweep_nor_a_pass_learns_anything_new_of_a_stored_server(cloud: Cloud) -> None:
    member = cloud.fleet.members[0]
    status = status_from(settled_status(member))
    instance = cloud.compute.find(member.name, member.id)
    assert instance is not None
    assert observe(status, instance, NOW, cloud_network(member.tenant.network_id)) == status
    (port,) = cloud.networking.ports_named(cloud_port(member.id))
    assert (port.instance_id, port.private_ip) == (instance.id, status.private_ip)
    assert [ip.address for ip in cloud.networking.floating_ips(port.id)] == [status.public_ip]


def test_what_is_built_runs_once_everything_has_settled(cloud: Cloud) -> None:
    member = cloud.fleet.members[0]
    network = cloud_network(member.tenant.network_id)
    status = status_from(settled_status(member) | building_status())
    cloud.double.build()
    building = cloud.compute.get(member.instance_id)
    assert building is not None
    assert observe(status, building, NOW, network) == status
    cloud.double.settle()
    assert {instance.status for instance in cloud.compute.instances()} == {"ACTIVE"}
    running = cloud.compute.get(member.instance_id)
    assert running is not None
    assert observe(status, running, NOW, network).phase == "Running"


def test_a_rebuild_shows_its_image_at_once_and_is_recorded_as_an_action(cloud: Cloud) -> None:
    member, image_id = cloud.fleet.members[0], cloud.fleet.world.images["second"].id
    assert cloud.compute.last_rebuild(member.instance_id) == ""
    cloud.compute.rebuild(member.instance_id, image_id)
    assert cloud.compute.last_rebuild(member.instance_id) != ""
    instance = cloud.compute.get(member.instance_id)
    assert instance is not None
    assert (instance.status, instance.image_id) == ("REBUILD", image_id)
    with pytest.raises(StateConflict):
        cloud.compute.rebuild(member.instance_id, image_id)


def test_an_instance_is_created_on_a_port_of_its_own(cloud: Cloud) -> None:
    tenant, world = cloud.fleet.world.first, cloud.fleet.world
    network_id = cloud.networking.network_id(cloud_network(tenant.network_id))
    port = cloud.networking.create_port(PortOrder(cloud_port("new"), network_id, (), ()))
    order = InstanceOrder(
        name="new",
        image_id=world.images["first"].id,
        flavor_id=world.flavors["virtual"].id,
        port_id=port.id,
        metadata={"serverID": "new"},
    )
    created = cloud.compute.create(order)
    found = cloud.compute.find("new", "new")
    assert found is not None
    assert (found.id, found.status) == (created.id, "BUILD")
    assert cloud.networking.ports_named(cloud_port("new"))[0].instance_id == created.id
