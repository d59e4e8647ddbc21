"""The cloud of the lifecycle machine: a proof is worth no more than the world it is made in."""

from __future__ import annotations

import pytest

from server_api.servers.cloud_model import Flavor, Image, ImageState, InstanceOrder, PortOrder
from server_api.servers.ports import StateConflict, Tenancy, TimedOut, Unavailable
from server_api.servers.surroundings import Region
from tests.doubles.clock import FixedClock
from tests.doubles.fault_plan import ANY_EFFECT, Crash, Fault, FaultPlan
from tests.doubles.programmable_cloud import ProgrammableCloud
from tests.doubles.programmable_nova import Ending, Machine

ORDER = PortOrder(name="server-1", network_id="cloud-network-1")
REGION = Region("region", "region", "openstack", "http://127.0.0.1:1", "namespace", "secret")


@pytest.fixture
def cloud() -> ProgrammableCloud:
    images = [Image(name, name, ImageState.READY, 1) for name in ("old", "new")]
    return ProgrammableCloud(FixedClock(), [Flavor("small", "small", 1, 1024, 10)], images)


@pytest.fixture
def plan(cloud: ProgrammableCloud) -> FaultPlan:
    return cloud.plan()


@pytest.fixture
def tenancy(cloud: ProgrammableCloud, plan: FaultPlan) -> Tenancy:
    return cloud.seen_through(plan).tenancy(REGION, "identity")


def order(port_id: str) -> InstanceOrder:
    return InstanceOrder("web-0", "old", "small", port_id, {"serverID": "1"})


def launched(cloud: ProgrammableCloud, tenancy: Tenancy) -> Machine:
    instance = tenancy.compute.create(order(tenancy.networking.create_port(ORDER).id))
    cloud.finish_everything()
    return cloud.nova.machines[instance.id]


def test_an_instance_builds_first_and_is_on_its_port_then(cloud: ProgrammableCloud, tenancy: Tenancy) -> None:
    port = tenancy.networking.create_port(ORDER)
    assert tenancy.compute.create(order(port.id)).status == "BUILD"
    cloud.finish_everything()
    [instance] = tenancy.compute.instances()
    assert (instance.status, instance.image_id) == ("ACTIVE", "old")
    assert instance.launched_at is not None
    assert instance.mac_addresses == {"network-1": "fa:16:3e:00:00:01"}
    assert tenancy.networking.ports_named("server-1")[0].instance_id == instance.id
    with pytest.raises(StateConflict):
        tenancy.compute.create(order(port.id))


@pytest.mark.parametrize(
    ("ending", "image", "status"),
    [(Ending.WELL, "new", "ACTIVE"), (Ending.FAILED, "new", "ERROR"), (Ending.UNDONE, "old", "ACTIVE")],
)
def test_a_rebuild_is_taken_once_and_ends_in_one_of_three_ways(
    cloud: ProgrammableCloud, tenancy: Tenancy, ending: Ending, image: str, status: str
) -> None:
    machine = launched(cloud, tenancy)
    assert tenancy.compute.last_rebuild(machine.id) == ""
    tenancy.compute.rebuild(machine.id, "new")
    assert (machine.image_id, machine.status) == ("new", "REBUILD")
    with pytest.raises(StateConflict):
        tenancy.compute.rebuild(machine.id, "new")
    cloud.nova.finish(machine, ending)
    assert (machine.image_id, machine.status) == (image, status)
    assert tenancy.compute.last_rebuild(machine.id) != ""
    assert [rebuild.image_id for rebuild in cloud.nova.rebuilds] == ["new"]


def test_what_is_soft_deleted_is_in_no_list(cloud: ProgrammableCloud, tenancy: Tenancy) -> None:
    machine = launched(cloud, tenancy)
    tenancy.compute.delete(machine.id)
    cloud.nova.finish(machine, Ending.UNDONE)
    assert tenancy.compute.instances() == []
    shown = tenancy.compute.get(machine.id)
    assert shown is not None
    assert shown.status == "SOFT_DELETED"


def test_a_power_verb_is_refused_in_the_wrong_state(cloud: ProgrammableCloud, tenancy: Tenancy) -> None:
    machine = launched(cloud, tenancy)
    with pytest.raises(StateConflict):
        tenancy.compute.start(machine.id)
    tenancy.compute.stop(machine.id)
    cloud.finish_everything()
    assert machine.status == "SHUTOFF"


def test_a_late_create_appears_at_its_time_and_not_before(
    cloud: ProgrammableCloud, plan: FaultPlan, tenancy: Tenancy
) -> None:
    port = tenancy.networking.create_port(ORDER)
    plan.plan("compute.create", Fault.LATE, 50.0)
    with pytest.raises(TimedOut):
        tenancy.compute.create(order(port.id))
    cloud.pass_time(49)
    assert tenancy.compute.instances() == []
    assert not cloud.is_still
    cloud.pass_time(1)
    [instance] = tenancy.compute.instances()
    assert instance.created_at == cloud.clock.now().replace(microsecond=0)


def test_faults_strike_before_or_after_the_effect(cloud: ProgrammableCloud, plan: FaultPlan, tenancy: Tenancy) -> None:
    plan.plan("networking.create_port", Fault.DOWN)
    plan.plan("networking.create_port", Fault.LOST_ANSWER)
    with pytest.raises(Unavailable):
        tenancy.networking.create_port(ORDER)
    assert cloud.neutron.ports == {}
    with pytest.raises(Unavailable):
        tenancy.networking.create_port(ORDER)
    assert len(cloud.neutron.ports) == 1
    plan.plan(ANY_EFFECT, Fault.CRASH_BEFORE)
    assert len(tenancy.networking.ports_named("server-1")) == 1
    with pytest.raises(Crash):
        tenancy.networking.delete_port("port-1")
    assert len(cloud.neutron.ports) == 1
    assert len(plan.spent) == 3


def test_a_stale_list_lacks_what_is_new(cloud: ProgrammableCloud, plan: FaultPlan, tenancy: Tenancy) -> None:
    launched(cloud, tenancy)
    plan.plan("compute.find", Fault.STALE)
    assert tenancy.compute.find("web-0", "1") is None
    assert tenancy.compute.find("web-0", "1") is not None


def test_a_floating_ip_outlives_its_port(cloud: ProgrammableCloud, tenancy: Tenancy) -> None:
    port = tenancy.networking.create_port(ORDER)
    floating_ip = tenancy.networking.create_floating_ip(port.id)
    with pytest.raises(StateConflict):
        tenancy.networking.create_floating_ip(port.id)
    tenancy.networking.delete_port(port.id)
    assert cloud.neutron.floating[floating_ip.id].port_id is None
