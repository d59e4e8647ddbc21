"""The deprecated v1 end to end: against the real Nova, and beside v2."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Item, Sandbox


@dataclass(frozen=True)
class V1:
    """v1 as the sandbox's callers see it, in the first tenant's project."""

    sandbox: Sandbox

    @property
    def servers(self) -> str:
        tenant = self.sandbox.world.first
        project = f"/api/v1/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
        return f"{project}/identities/{tenant.identity_id}/servers"

    def call(self, method: str, path: str = "", role: str = "USER", **options: Any) -> requests.Response:
        """Call v1; every answer has to say that it is deprecated."""
        answer = self.sandbox.api(role).request(method, f"{self.servers}{path}", **options)
        assert "successor-version" in answer.headers["Link"]
        assert {"Deprecation", "Sunset"} <= answer.headers.keys()
        return answer

    def list(self) -> dict[str, Item]:
        path = f"/api/v1/organizations/{self.sandbox.world.first.organization_id}/servers"
        answer = self.sandbox.api("ADMIN").request("GET", path)
        assert answer.status_code == 200, answer.text
        return {server["metadata"]["id"]: server for server in answer.json()}

    def body(self, name: str | None = None, **spec: Any) -> Item:
        world = self.sandbox.world
        return {
            "metadata": {"name": name or f"v1-{secrets.token_hex(4)}"},
            "spec": {
                "flavorId": world.flavors["virtual"].id,
                "imageId": world.images["ready"].id,
                "networks": [{"id": world.first.network_id}],
                "securityGroups": [{"id": world.first.security_group_id}],
                **spec,
            },
        }

    def create(self, body: Item) -> str:
        answer = self.call("POST", json=body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["status"] == {"phase": "Pending"}
        return str(answer.json()["metadata"]["id"])

    def read(self, server_id: str) -> Item:
        answer = self.call("GET", f"/{server_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def in_phase(self, server_id: str, phase: str) -> Item:
        """Wait until the server is provisioned and in that phase, and return it."""

        def look() -> Item | None:
            server = self.read(server_id)
            provisioned = server["metadata"]["provisioningStatus"] == "provisioned"
            return server if provisioned and server["status"].get("phase") == phase else None

        return wait_for(f"{server_id} is provisioned and {phase}", look, 60.0)

    def remove(self, server_id: str) -> None:
        assert self.call("DELETE", f"/{server_id}").status_code == 202
        wait_for(f"{server_id} is gone", lambda: self.call("GET", f"/{server_id}").status_code == 404, 60.0)


@pytest.fixture
def v1(region: Sandbox) -> V1:
    return V1(region)


def test_the_life_of_a_server_in_v1(region: Sandbox, v1: V1) -> None:
    user_data = base64.b64encode(b"echo what v2 would not take").decode()
    body = v1.body(publicIPAllocation={"enabled": True}, userData=user_data)
    name = body["metadata"]["name"]
    id_ = v1.create(body)
    built = v1.in_phase(id_, "Running")
    assert built["spec"] == body["spec"]
    assert built["metadata"]["healthStatus"] == "healthy"
    assert {"privateIP", "publicIP"} <= built["status"].keys()
    assert v1.list()[id_]["spec"] == body["spec"]
    assert region.api().get(id_).status_code == 404
    instance = region.cloud.instance(name)
    assert instance
    assert instance["metadata"]["serverID"] == id_

    for verb, phase, status in (("stop", "Stopped", "SHUTOFF"), ("start", "Running", "ACTIVE")):
        assert v1.call("POST", f"/{id_}/{verb}").status_code == 202
        wait_for(f"Nova shows {status}", lambda status=status: (region.cloud.instance(name) or {})["status"] == status)
        v1.in_phase(id_, phase)
        assert v1.call("POST", f"/{id_}/{verb}").status_code == 400
    for verb in ("softreboot", "hardreboot"):
        assert v1.call("POST", f"/{id_}/{verb}").status_code == 202
        wait_for("Nova is done", lambda: (region.cloud.instance(name) or {})["OS-EXT-STS:task_state"] is None)
    assert len(region.cloud.actions(instance["id"], "reboot")) == 2

    output = v1.call("GET", f"/{id_}/consoleoutput", params={"length": "50", "unknown": "ignored"})
    assert "FAKE CONSOLE OUTPUT" in output.json()["contents"]
    assert v1.call("GET", f"/{id_}/consolesessions").json()["url"].startswith("http")

    other_image = region.world.images["ready-too"].id
    changed = v1.body(name, imageId=other_image, userData=user_data)
    changed["metadata"]["description"] = "updated"
    answer = v1.call("PUT", f"/{id_}", json=changed)
    assert answer.status_code == 202, answer.text
    updated = wait_for(
        "the public address is gone", lambda: s if "publicIP" not in (s := v1.read(id_))["status"] else None, 60.0
    )
    assert (updated["metadata"]["description"], updated["spec"]["imageId"]) == ("updated", body["spec"]["imageId"])
    assert region.cloud.actions(instance["id"], "rebuild") == []

    assert v1.call("DELETE", f"/{id_}", role="READER").status_code == 403
    v1.remove(id_)
    assert (region.cloud.instance(name), region.cloud.port(id_)) == (None, None)


def test_two_servers_of_one_name_on_one_network_are_two_instances(region: Sandbox, v1: V1) -> None:
    body = v1.body()
    first, second = v1.create(body), v1.create(body)
    for id_ in (first, second):
        v1.in_phase(id_, "Running")
    assert {found["metadata"]["serverID"] for found in region.instances_ever(body["metadata"]["name"])} == {
        first,
        second,
    }
    assert v1.call("POST", f"/{first}/stop").status_code == 202
    v1.in_phase(first, "Stopped")
    v1.remove(first)
    assert v1.read(second)["status"]["phase"] == "Running"
    v1.remove(second)


def test_a_server_of_v2_is_served_by_v1_and_stays_one(region: Sandbox, v1: V1) -> None:
    body = region.body(providerCreateGates=[{"conditionType": "gate"}])
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    before = region.read(id_)
    assert id_ in v1.list()

    same = v1.body(name, imageId=region.world.images["ready-too"].id)
    same["metadata"]["description"] = "by v1"
    assert v1.call("PUT", f"/{id_}", json=same).status_code == 202
    assert v1.call("PUT", f"/{id_}", json=v1.body("renamed")).status_code == 422

    after = region.read(id_)
    assert after["metadata"]["description"] == "by v1"
    assert after["spec"] == before["spec"]
    assert after["status"] == before["status"]
    v1.remove(id_)
