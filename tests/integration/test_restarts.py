"""Processes that die or are replaced in the middle of the work."""

import http.client
import json
import os
import signal
from urllib.parse import urlsplit

import requests

from server_api.sandbox.api_client import SERVERS
from server_api.sandbox.services import API, CONTROLLER
from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Sandbox


def test_a_controller_killed_between_create_and_provisioned_leaves_exactly_one_instance(region: Sandbox) -> None:
    with region.rules({"op": "spawn", "delay": 4}):
        server = region.create()
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        wait_for("Nova has begun", lambda: region.cloud.instance(name))
        region.kill(CONTROLLER)
        region.region.up()
    region.running(id_)
    assert len(region.cloud.instances(name)) == 1
    region.remove(id_)
    wait_for("the instance is gone", lambda: not region.cloud.instances(name))


def test_a_controller_killed_before_the_cloud_answered_creates_exactly_one_instance(region: Sandbox) -> None:
    with region.rules({"service": "nova", "method": "POST", "path": "/v2.1/servers", "delay": 3, "times": 1}):
        server = region.create()
        id_, name = server["metadata"]["id"], server["metadata"]["name"]
        # the port is made right before the instance: the call to Nova is under way or about to be
        wait_for("the port is made", lambda: region.cloud.port(id_))
        region.kill(CONTROLLER)
        region.region.up()
        region.running(id_)
    assert len(region.cloud.instances(name)) == 1
    region.remove(id_)


def test_an_api_that_is_told_to_stop_fails_readiness_first_and_answers_what_it_has_accepted(region: Sandbox) -> None:
    process = region.region.processes.find(API)
    assert process
    content = json.dumps(region.body()).encode()
    url = urlsplit(region.environment["SERVER_API_URL"])
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=30)
    # slow enough that the listener is closed before the request is done
    with region.rules({"service": "nova", "method": "GET", "path": "*/flavors*", "delay": 3, "times": 1}):
        connection.putrequest("POST", SERVERS)
        connection.putheader("Authorization", f"Bearer {region.world.callers['USER'].token}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content[:10])
        os.kill(process.pid, signal.SIGTERM)
        wait_for("readiness fails while others are still served", lambda: _status(url.geturl()) == 503)
        connection.send(content[10:])
        answer = connection.getresponse()
        body = json.loads(answer.read())
    wait_for("the API has ended", lambda: not process.alive())
    region.region.up()
    assert answer.status == 201, body
    region.running(body["metadata"]["id"])
    region.remove(body["metadata"]["id"])


def _status(url: str) -> int:
    return requests.get(f"{url}/readyz", timeout=5).status_code
