"""Deleting servers whose instances are in any state but a good one: it ends, soon, and leaves nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from server_api.sandbox.openstack.services import NOVA
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.store import kinds
from tests.integration.controllers import controllers_of_our_own
from tests.integration.harness import Item, Sandbox

SOON = 20.0
REFUSED = 50
FAILED = 3

NOVA_CREATE = {"service": "nova", "method": "POST", "path": "/v2.1/servers"}
BROKEN_HOST = {"op": "spawn", "error": "the host is on fire", "abort": True}


@pytest.fixture(autouse=True)
def nothing_left(region: Sandbox) -> Iterator[None]:
    yield
    region.assert_no_orphans()


def events_of(region: Sandbox, server_id: str) -> list[str]:
    stored = region.kubernetes.list(kinds.EVENT, NAMESPACE).items
    return [f"{item['reason']}: {item['message']}" for item in stored if item["involvedObject"]["name"] == server_id]


def is_parked(region: Sandbox, server_id: str) -> bool:
    return "provider_create_failed" in region.condition(server_id).get("message", "")


def test_b25_b26_b31_a_server_that_fails_to_build_says_why_and_is_deleted_at_once(region: Sandbox) -> None:
    with region.rules(BROKEN_HOST):
        server = region.create(region.body(public=True))
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        wait_for("every attempt has failed", partial(is_parked, region, id_))
        assert region.read(id_)["metadata"]["provisioningStatus"] == "error"
        assert "the host is on fire" in region.condition(id_)["message"]
        assert len(region.instances_ever(name)) == 3
        told = wait_for("the last event is written", lambda: [e for e in events_of(region, id_) if "Failed" in e])
        assert any("the host is on fire" in event for event in told)
        assert region.cloud.instances(name)[0]["status"] == "ERROR"
        assert region.api().delete(id_).status_code == 202
        region.gone(id_, SOON)


def test_b25_a_server_is_deleted_while_it_is_being_built(region: Sandbox) -> None:
    with region.rules({"op": "spawn", "delay": 5}):
        server = region.create(region.body(public=True))
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        wait_for("Nova has begun", lambda: region.cloud.instance(name))
        assert region.cloud.instances(name)[0]["status"] == "BUILD"
        assert region.api().delete(id_).status_code == 202
        region.gone(id_, SOON)
    assert len(region.instances_ever(name)) == 1


def test_a_server_is_deleted_before_the_controller_ever_saw_it(region: Sandbox) -> None:
    with region.without_controller():
        server = region.create(region.body(public=True))
        assert region.api().delete(server["metadata"]["id"]).status_code == 202
    region.gone(server["metadata"]["id"], SOON)
    assert region.instances_ever(server["metadata"]["name"]) == []


def test_b07_b30_an_instance_deleted_behind_our_back_is_told_is_not_made_anew_and_its_server_can_be_deleted(
    region: Sandbox, tmp_path: Path
) -> None:
    server = region.create(region.body(public=True))
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    with controllers_of_our_own(region, tmp_path) as controllers:
        # an instance that was asked for a moment ago, and is not found, may still come
        controllers.start(late_seconds=1)
        region.running(id_)
        region.instance_action(name, {"forceDelete": None})
        wait_for("it is told", lambda: "no longer found" in region.condition(id_).get("message", ""))
        assert region.read(id_)["metadata"]["provisioningStatus"] == "error"
        assert region.api().delete(id_).status_code == 202
        region.gone(id_, SOON)
    assert len(region.instances_ever(name)) == 1


@pytest.fixture
def soft_delete(region: Sandbox) -> Iterator[None]:
    """Have Nova keep what is deleted for an hour."""
    file = NOVA.config_file(region.region.layout.openstack)
    before = file.read_text()
    with region.without("openstack/nova"):
        file.write_text(before.replace("[DEFAULT]\n", "[DEFAULT]\nreclaim_instance_interval = 3600\n", 1))
    yield
    with region.without("openstack/nova"):
        file.write_text(before)


@pytest.mark.usefixtures("soft_delete")
def test_b29_a_server_whose_instance_is_deleted_softly_is_gone_and_so_are_its_port_and_address(region: Sandbox) -> None:
    server = region.create(region.body(public=True))
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    region.running(id_)
    instance = region.cloud.instance(name)
    assert instance
    region.remove(id_)
    kept = region.admin().compute.get(f"/servers/{instance['id']}").json()["server"]
    assert kept["status"] == "SOFT_DELETED"
    region.admin().compute.post(f"/servers/{instance['id']}/action", json={"forceDelete": None})


@pytest.mark.parametrize(
    "rules",
    [
        [{"service": "nova", "path": "*/os-interface*", "status": 409}],
        [{"service": "neutron", "method": "PUT", "path": "/v2.0/ports/*", "status": 409, "times": 1, "id": "b27-port"}],
        [{"op": "destroy", "error": "it does not let go", "times": 1, "id": "b27-destroy"}],
    ],
    ids=["interface", "port binding", "machine"],
)
def test_b27_what_cannot_be_detached_does_not_stop_the_delete(region: Sandbox, rules: list[Item]) -> None:
    id_ = region.create(region.body(public=True))["metadata"]["id"]
    region.running(id_)
    with region.rules(*rules):
        assert region.api().delete(id_).status_code == 202
        region.gone(id_, 2 * SOON)


def test_b28_answers_lost_on_the_way_leave_nothing_behind(region: Sandbox) -> None:
    lost = {"after": True, "disconnect": True, "times": 1}
    creates = [{"service": "neutron", "method": "POST", "path": f"/v2.0/{what}"} for what in ("ports", "floatingips")]
    deletes = [
        {"service": "nova", "method": "DELETE", "path": "/v2.1/servers/*"},
        {"service": "neutron", "method": "DELETE", "path": "/v2.0/floatingips/*"},
        {"service": "neutron", "method": "DELETE", "path": "/v2.0/ports/*"},
    ]
    with region.rules(*({"id": f"b28-{rule}", **rule, **lost} for rule in creates + deletes)):
        server = region.create(region.body(public=True))
        id_ = server["metadata"]["id"]
        region.running(id_)
        assert len([port for port in region.cloud.ports() if port["name"].endswith(id_)]) == 1
        assert region.api().delete(id_).status_code == 202
        region.gone(id_, 2 * SOON)
    assert len(region.instances_ever(server["metadata"]["name"])) == 1


def test_b28_b36_fifty_failed_creates_that_are_deleted_leave_no_port_and_no_floating_ip(
    region: Sandbox, tmp_path: Path
) -> None:
    quota = {"status": 403, "body": '{"forbidden": {"code": 403, "message": "Quota exceeded for instances"}}'}
    bodies = [region.body(f"b28-{number}", public=True) for number in range(REFUSED)]
    with (
        controllers_of_our_own(region, tmp_path) as controllers,
        region.rules({**NOVA_CREATE, **quota}),
        ThreadPoolExecutor(4) as pool,
    ):
        # fifty servers that are tried again every second would leave Nova no time for their deletion
        controllers.start(retry_seconds=15, controller_workers=3, monitor_seconds=60)
        ids = [server["metadata"]["id"] for server in pool.map(region.create, bodies)]
        wait_for("all are refused", lambda: all_tell(region, ids, "Quota exceeded"), 300)
        # what failed after its port and its address were made
        assert len(region.cloud.ports()) >= REFUSED
        assert len(region.cloud.floating_ips()) >= REFUSED
        assert {answer.status_code for answer in pool.map(region.api().delete, ids)} == {202}
        wait_for("all are gone", lambda: not stored_of(region, ids), 300)
    assert region.cloud.instances() == []


def test_b28_b36_creates_that_fail_on_the_host_and_are_deleted_leave_nothing(region: Sandbox) -> None:
    bodies = [region.body(public=True) for _ in range(FAILED)]
    with region.rules(BROKEN_HOST), ThreadPoolExecutor(FAILED) as pool:
        ids = [server["metadata"]["id"] for server in pool.map(region.create, bodies)]
        wait_for("all are parked", lambda: all_tell(region, ids, "provider_create_failed"), 240)
        assert {answer.status_code for answer in pool.map(region.api().delete, ids)} == {202}
        wait_for("all are gone", lambda: not stored_of(region, ids))


def stored_of(region: Sandbox, ids: list[str]) -> list[Item]:
    return [item for item in region.kubernetes.list(kinds.SERVER, NAMESPACE).items if item["metadata"]["name"] in ids]


def all_tell(region: Sandbox, ids: list[str], words: str) -> bool:
    conditions = [item.get("status", {}).get("conditions", ()) for item in stored_of(region, ids)]
    return len(conditions) == len(ids) and all(
        any(words in condition["message"] for condition in each if condition["type"] == "Available")
        for each in conditions
    )
