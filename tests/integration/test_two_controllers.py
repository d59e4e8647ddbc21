"""Two controllers that both believe they lead: what one of them began, the other must not do again.

These controllers wait a few seconds for a request whose answer was lost, not ``cloud_requests.LATE_SECONDS``: a leader
that stands still must be outwaited by its follower, which takes two minutes otherwise.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.store import kinds
from tests.integration.controllers import Controllers, Running, controllers_of_our_own
from tests.integration.crashing_controller import Crash, Entry, Moment
from tests.integration.endings import end_of, runs
from tests.integration.harness import Item, Sandbox

LATE_SECONDS = 6.0
SERVERS = 5


@pytest.fixture
def controllers(region: Sandbox, tmp_path: Path) -> Iterator[Controllers]:
    with controllers_of_our_own(region, tmp_path) as controllers:
        yield controllers


def leader(region: Sandbox) -> str:
    lease = region.kubernetes.get(kinds.LEASE, NAMESPACE, "tests")
    return str(lease["spec"].get("holderIdentity"))


def steal_lease(region: Sandbox, identity: str) -> None:
    region.kubernetes.patch(kinds.LEASE, NAMESPACE, "tests", {"spec": {"holderIdentity": identity}})


def settled(region: Sandbox, *ids: str) -> bool:
    stored = [region.stored(id_) for id_ in ids]
    return all(item is not None and runs(item) for item in stored)


def start_frozen(controllers: Controllers, region: Sandbox, call: str) -> Running:
    """Start a leader that stands still right before it sends ``call``, and wait until it does."""
    crash = Crash(call, Moment.BEFORE, signal.SIGSTOP)
    frozen = controllers.start("frozen", crash=crash, identity="frozen", late_seconds=LATE_SECONDS)
    frozen.wait_for_crash()
    assert leader(region) == "frozen"
    return frozen


def thaw(frozen: Running, call: str) -> None:
    """Let it go on, and wait until it has found out that it may not send ``call`` any more."""
    frozen.signal(signal.SIGCONT)
    wait_for("it gives up", lambda: frozen.entries()[-1].call == call and "failed" in frozen.entries()[-1].what)


def test_a_leader_that_stood_still_past_its_lease_creates_no_second_instance(
    region: Sandbox, controllers: Controllers
) -> None:
    server = region.create(region.body(public=True))
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    frozen = start_frozen(controllers, region, "nova create")
    controllers.start("second", identity="second", late_seconds=LATE_SECONDS)
    wait_for("the second has created it", lambda: settled(region, id_))
    thaw(frozen, "nova create")
    assert Entry("nova create", "done") not in frozen.entries()
    assert leader(region) == "second"
    end = end_of(region, id_, name)
    assert [instance["creates"] for instance in end["instances"]] == [1]
    assert end["ports bound to the instance"] == [True]
    region.remove(id_)
    assert len(region.instances_ever(name)) == 1
    region.assert_no_orphans()


def test_a_leader_that_stood_still_past_its_lease_submits_no_second_rebuild(
    region: Sandbox, controllers: Controllers
) -> None:
    server = region.create()
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    first = controllers.start("first")
    wait_for("it runs", lambda: settled(region, id_))
    first.stop()
    target = region.change_image(id_, "ready-too")
    frozen = start_frozen(controllers, region, "nova rebuild")
    controllers.start("second", identity="second", late_seconds=LATE_SECONDS)
    wait_for("the second has rebuilt it", lambda: settled(region, id_))
    thaw(frozen, "nova rebuild")
    (instance,) = end_of(region, id_, name)["instances"]
    assert (instance["image"], instance["rebuilds"]) == (target, 1)
    region.remove(id_)
    region.assert_no_orphans()


def test_a_stolen_lease_leads_to_one_instance_and_one_rebuild_of_each_server(
    region: Sandbox, controllers: Controllers
) -> None:
    controllers.start("first", identity="first", late_seconds=LATE_SECONDS)
    wait_for("the first leads", lambda: leader(region) == "first")
    controllers.start("second", identity="second", late_seconds=LATE_SECONDS)
    bodies = [region.body(public=True) for _ in range(SERVERS)]
    names = [body["metadata"]["name"] for body in bodies]
    with ThreadPoolExecutor(SERVERS) as pool:
        ids = [server["metadata"]["id"] for server in pool.map(region.create, bodies)]
    # the first is at work, and believes for a while yet that it may be
    steal_lease(region, "second")
    wait_for("all of them run", lambda: settled(region, *ids), 90)
    assert leader(region) == "second"
    ends: list[Item] = [end_of(region, id_, name) for id_, name in zip(ids, names, strict=True)]
    assert [len(end["instances"]) for end in ends] == [1] * SERVERS
    assert [end["ports bound to the instance"] for end in ends] == [[True]] * SERVERS
    assert [end["floating IPs"] for end in ends] == [1] * SERVERS

    for id_ in ids:
        region.change_image(id_, "ready-too")
    steal_lease(region, "first")
    wait_for("all of them run again", lambda: settled(region, *ids), 90)
    ends = [end_of(region, id_, name) for id_, name in zip(ids, names, strict=True)]
    assert [instance["rebuilds"] for end in ends for instance in end["instances"]] == [1] * SERVERS

    for id_ in ids:
        assert region.api().delete(id_).status_code == 202
    steal_lease(region, "second")
    for id_ in ids:
        region.gone(id_)
    assert [len(region.instances_ever(name)) for name in names] == [1] * SERVERS
    region.assert_no_orphans()
