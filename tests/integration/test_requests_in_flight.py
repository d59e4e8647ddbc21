"""A controller killed while a request is under way: OpenStack goes on with it, and its answer goes nowhere.

The request takes effect seconds after another controller has taken over and looked. These controllers wait 12 seconds
for it, not ``cloud_requests.LATE_SECONDS`` (``controllers.LATE_SECONDS``).
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_api.sandbox.waiting import wait_for
from tests.integration.controllers import Controllers, controllers_of_our_own
from tests.integration.crashing_controller import Crash, Moment
from tests.integration.endings import end_of, runs
from tests.integration.harness import Item, Sandbox

FLIGHT = 6.0

NOVA_CREATE = {"service": "nova", "method": "POST", "path": "/v2.1/servers"}
NOVA_REBUILD = {"service": "nova", "method": "POST", "path": "/v2.1/servers/*/action"}
NOVA_DELETE = {"service": "nova", "method": "DELETE", "path": "/v2.1/servers/*"}
PORT_CREATE = {"service": "neutron", "method": "POST", "path": "/v2.0/ports"}
PORT_DELETE = {"service": "neutron", "method": "DELETE", "path": "/v2.0/ports/*"}
ADDRESS_CREATE = {"service": "neutron", "method": "POST", "path": "/v2.0/floatingips"}
ADDRESS_DELETE = {"service": "neutron", "method": "DELETE", "path": "/v2.0/floatingips/*"}


@pytest.fixture
def controllers(region: Sandbox, tmp_path: Path) -> Iterator[Controllers]:
    with controllers_of_our_own(region, tmp_path) as controllers:
        yield controllers


class InFlight:
    """One request, from its delay to its late effect."""

    def __init__(self, region: Sandbox, controllers: Controllers, server_id: str) -> None:
        self._region = region
        self._controllers = controllers
        self._server_id = server_id

    def cut(self, call: str, rule: Item) -> None:
        """Have a controller die with that call under way, let another follow, and wait until the call took effect."""
        late = {"id": f"late-{self._server_id}-{call}", "delay": FLIGHT, "times": 1, **rule}
        with self._region.rules(late):
            crash = Crash(call, Moment.DURING)
            dying = self._controllers.start("dying", only=self._server_id, crash=crash)
            wait_for(f"{call} is sent", lambda: dying.has_begun(call))
            sent = time.monotonic()
            dying.wait_for_crash()
            dying.process.join(10)
            assert call not in dying.done()
            self._controllers.start("following")
            # that it comes late is the point: there is nothing to be seen before
            wait_for("the call is over", lambda: time.monotonic() > sent + FLIGHT + 1, FLIGHT + 5)

    def settled(self) -> Item:
        """Wait until the server runs, and return it as it is stored."""

        def look() -> Item | None:
            stored = self._region.stored(self._server_id)
            return stored if stored and runs(stored) else None

        return wait_for("it runs", look)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ("nova create", NOVA_CREATE),
        ("neutron create_port", PORT_CREATE),
        ("neutron create_floating_ip", ADDRESS_CREATE),
    ],
    ids=["instance", "port", "address"],
)
def test_b10_a_create_that_outlives_the_controller_is_one_instance_one_port_and_one_address(
    region: Sandbox, controllers: Controllers, call: str, rule: Item
) -> None:
    server = region.create(region.body(public=True))
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    flight = InFlight(region, controllers, id_)
    flight.cut(call, rule)
    flight.settled()
    end = end_of(region, id_, name)
    assert end["ports bound to the instance"] == [True]
    assert end["floating IPs"] == 1
    assert [instance["creates"] for instance in end["instances"]] == [1]
    region.remove(id_)
    assert len(region.instances_ever(name)) == 1
    region.assert_no_orphans()


def test_b13_a_rebuild_that_outlives_the_controller_is_one_rebuild(region: Sandbox, controllers: Controllers) -> None:
    server = region.create()
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    flight = InFlight(region, controllers, id_)
    first = controllers.start("first")
    flight.settled()
    first.stop()
    target = region.change_image(id_, "ready-too")
    flight.cut("nova rebuild", NOVA_REBUILD)
    flight.settled()
    (instance,) = end_of(region, id_, name)["instances"]
    assert (instance["image"], instance["creates"], instance["rebuilds"]) == (target, 1, 1)
    region.remove(id_)
    region.assert_no_orphans()


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ("nova delete", NOVA_DELETE),
        ("neutron delete_floating_ip", ADDRESS_DELETE),
        ("neutron delete_port", PORT_DELETE),
    ],
    ids=["instance", "address", "port"],
)
def test_b38_a_delete_that_outlives_the_controller_leaves_nothing(
    region: Sandbox, controllers: Controllers, call: str, rule: Item
) -> None:
    id_ = region.create(region.body(public=True))["metadata"]["id"]
    flight = InFlight(region, controllers, id_)
    first = controllers.start("first")
    flight.settled()
    first.stop()
    assert region.api().delete(id_).status_code == 202
    flight.cut(call, rule)
    region.gone(id_)
    region.assert_no_orphans()


def test_b38_a_deletion_while_a_create_outlives_the_controller_leaves_nothing(
    region: Sandbox, controllers: Controllers
) -> None:
    server = region.create(region.body(public=True))
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    late = {"id": f"late-{id_}", "delay": FLIGHT, "times": 1, **NOVA_CREATE}
    with region.rules(late):
        dying = controllers.start("dying", only=id_, crash=Crash("nova create", Moment.DURING))
        dying.wait_for_crash()
        assert region.api().delete(id_).status_code == 202
        controllers.start("following")
        region.gone(id_)
    assert len(region.instances_ever(name)) == 1
    region.assert_no_orphans()
