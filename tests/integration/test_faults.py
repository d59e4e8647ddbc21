"""A cloud that is slow or down: what callers get, what is recorded, and how it heals."""

import re
import time

import pytest
import requests

from server_api.sandbox.waiting import wait_for
from server_api.servers.naming import server_id
from tests.integration.harness import Item, Sandbox

# far longer than the deadline of a request (conftest.PACE), so that who waits for it has been found
SLOW = 25.0


def assert_envelope(answer: requests.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["error"] == "server_error"
    assert re.fullmatch("[0-9a-f]{32}", body["trace_id"])


def test_a_create_against_a_slow_nova_is_504_within_the_deadline_and_nothing_is_stored(region: Sandbox) -> None:
    body = region.body()
    id_ = server_id(region.world.first.network_id, body["metadata"]["name"])
    with region.rules({"service": "nova", "method": "GET", "path": "*/flavors*", "delay": SLOW}):
        began = time.monotonic()
        answer = region.api().create(body)
        elapsed = time.monotonic() - began
    assert_envelope(answer, 504)
    assert elapsed < SLOW
    assert region.stored(id_) is None
    assert region.cloud.port(id_) is None
    assert region.create(body)["metadata"]["id"] == id_
    region.running(id_)
    region.remove(id_)


def test_while_nova_is_down_a_power_verb_is_502_and_works_again_afterwards(region: Sandbox) -> None:
    id_ = region.create()["metadata"]["id"]
    region.running(id_)
    with region.rules({"service": "nova", "path": "/v2.1/servers*", "status": 503}):
        assert_envelope(region.api().act(id_, "stop"), 502)
        assert region.api().get(id_).status_code == 200
    assert region.api().act(id_, "stop").status_code == 202
    region.in_power_state(id_, "Stopped")
    region.remove(id_)


def test_while_nova_is_down_the_condition_says_why_and_the_server_recovers_by_itself(region: Sandbox) -> None:
    with region.rules({"service": "nova", "path": "/v2.1/servers*", "status": 503}):
        server = region.create()
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        message = wait_for("a condition is written", lambda: region.condition(id_).get("message"))
        # Nova's own words
        assert message == "nova: a rule of the sandbox says so"
        assert region.read(id_)["metadata"]["provisioningStatus"] != "provisioned"
    region.running(id_)
    assert len(region.cloud.instances(name)) == 1
    region.remove(id_)


LOST = pytest.mark.parametrize(
    "fault",
    [{"after": True, "disconnect": True}, {"truncate": True}, {"after": True, "status": 500}],
    ids=["lost", "broken", "error"],
)


@LOST
def test_a_lost_answer_to_the_create_call_does_not_lead_to_a_second_instance(region: Sandbox, fault: Item) -> None:
    rule = {"service": "nova", "method": "POST", "path": "/v2.1/servers", "times": 1, **fault}
    with region.rules(rule):
        server = region.create()
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        region.running(id_)
    assert len(region.cloud.instances(name)) == 1
    region.remove(id_)


def test_b10_a_create_that_nova_answers_late_is_one_instance(region: Sandbox) -> None:
    body = region.body()
    late = {"id": "late-create", "service": "nova", "method": "POST", "path": "/v2.1/servers", "delay": 9, "times": 1}
    with region.rules(late):
        id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
        wait_for("the lost answer is told", lambda: "waiting to see" in region.condition(id_).get("message", ""))
        assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
        region.running(id_)
    assert len(region.cloud.instances(name)) == 1
    region.remove(id_)


@LOST
def test_b13_a_lost_answer_to_the_rebuild_call_does_not_lead_to_a_second_rebuild(region: Sandbox, fault: Item) -> None:
    server = region.create()
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    region.running(id_)
    rule = {"id": f"b13-{fault}", "service": "nova", "method": "POST", "path": "*/action", "times": 1, **fault}
    with region.rules(rule):
        target = region.change_image(id_, "ready-too")
        rebuilt(region, id_, name, target)
    region.remove(id_)


def test_b13_a_rebuild_that_nova_answers_late_is_one_rebuild(region: Sandbox) -> None:
    body = region.body()
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    region.running(id_)
    late = {"id": "late-rebuild", "service": "nova", "method": "POST", "path": "*/action", "delay": 9, "times": 1}
    with region.rules(late):
        target = region.change_image(id_, "ready-too")
        wait_for("the lost answer is told", lambda: "took the rebuild" in region.condition(id_).get("message", ""))
        assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
        rebuilt(region, id_, name, target)
    region.remove(id_)


def test_b14_a_rebuild_that_ends_in_error_says_why_and_another_image_mends_it(region: Sandbox) -> None:
    server = region.create()
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    region.running(id_)
    with region.rules({"op": "rebuild", "error": "the image is of no use", "times": 1, "id": f"b14-{id_}"}):
        region.change_image(id_, "ready-too")
        wait_for("it is parked", lambda: "server_rebuild_failed" in region.condition(id_).get("message", ""))
    assert "the image is of no use" in region.condition(id_)["message"]
    assert region.read(id_)["metadata"]["provisioningStatus"] == "error"
    target = region.change_image(id_, "ready")
    rebuilt(region, id_, name, target, times=2)
    region.remove(id_)
    region.assert_no_orphans()


def test_b22_an_image_changed_before_the_first_boot_is_one_rebuild_after_it(region: Sandbox) -> None:
    with region.rules({"op": "spawn", "delay": 4}):
        server = region.create()
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        wait_for("Nova has begun", lambda: region.cloud.instance(name))
        target = region.change_image(id_, "ready-too")
        assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
        rebuilt(region, id_, name, target)
    region.remove(id_)


def test_b13_twenty_changes_of_the_image_are_never_two_rebuilds_at_once(region: Sandbox) -> None:
    server = region.create()
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    region.running(id_)
    with region.rules({"op": "rebuild", "delay": 1}):
        for number in range(20):
            target = region.change_image(id_, ("ready-too", "ready")[number % 2])
        region.running(id_)
    instance = region.cloud.instance(name)
    assert instance
    assert instance["image"]["id"] == target
    rebuilds = sorted(region.cloud.actions(instance["id"], "rebuild"), key=lambda action: action["start_time"])
    assert len(rebuilds) <= 20
    # Nova takes no second one before it is done with the first, and we have never asked it to
    assert [action["message"] for action in rebuilds] == [None] * len(rebuilds)
    region.remove(id_)
    region.assert_no_orphans()


def rebuilt(region: Sandbox, server_id: str, name: str, target: str, times: int = 1) -> None:
    """Wait until the server runs, and assert that its instance has the image, after so many rebuilds."""
    region.running(server_id)
    instance = region.cloud.instance(name)
    assert instance
    assert instance["image"]["id"] == target
    assert len(region.cloud.actions(instance["id"], "rebuild")) == times
