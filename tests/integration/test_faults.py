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


@pytest.mark.parametrize("fault", [{"after": True, "disconnect": True}, {"truncate": True}], ids=["lost", "broken"])
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


def test_b13_a_rebuild_that_nova_answers_late_is_one_rebuild(region: Sandbox) -> None:
    body = region.body()
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    server = region.running(id_)
    target = region.world.images["ready-too"].id
    late = {"id": "late-rebuild", "service": "nova", "method": "POST", "path": "*/action", "delay": 9, "times": 1}
    with region.rules(late):
        update = {"metadata": server["metadata"], "spec": {**server["spec"], "imageId": target}}
        assert region.api().update(id_, update).status_code == 202
        wait_for("the lost answer is told", lambda: "took the rebuild" in region.condition(id_).get("message", ""))
        assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
        region.running(id_)
    instance = region.cloud.instance(name)
    assert instance
    assert instance["image"]["id"] == target
    assert len(region.cloud.actions(instance["id"], "rebuild")) == 1
    region.remove(id_)
