"""What v2 offers besides the main job, against the real Nova, Glance and Neutron."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.seed_openstack import SERVICE_ACCOUNT
from server_api.sandbox.tenancy import Tenancy
from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Item, Sandbox

SERVERS = "/api/v2/servers"
GATE = "example.unikorn-cloud.org/pre-create-ready"


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[str]:
    """One running server for the tests that leave it as it is."""
    user_data = base64.b64encode(b"#cloud-config\n").decode()
    id_ = sandbox.create(sandbox.body(userData=user_data))["metadata"]["id"]
    sandbox.running(id_)
    yield id_
    sandbox.remove(id_)


def as_operator(region: Sandbox) -> Tenancy:
    """Return the first tenant's project with the rights that show hosts and user data."""
    tenant, openstack = region.world.first, region.region.openstack
    return Tenancy(OpenStackUser(openstack.auth_url, SERVICE_ACCOUNT, region.world.service_password, tenant.cloud_name))


def update_of(server: Item, **spec: object) -> Item:
    return {"metadata": server["metadata"], "spec": {**server["spec"], **spec}}


def test_another_image_rebuilds_the_instance_once_and_keeps_everything_else(region: Sandbox) -> None:
    body = region.body(public=True)
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    before = region.running(id_)
    instance = region.cloud.instance(name)
    assert instance
    target = region.world.images["ready-too"].id

    answer = region.api().update(id_, update_of(before, imageId=target))

    assert answer.status_code == 202, answer.text
    wait_for("the rebuild is under way", lambda: (region.stored(id_) or {})["status"].get("rebuild"))
    assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
    after = region.running(id_)
    rebuilt = region.cloud.instance(name)
    assert rebuilt
    assert (rebuilt["id"], rebuilt["image"]["id"]) == (instance["id"], target)
    assert len(region.cloud.actions(instance["id"], "rebuild")) == 1
    assert after["status"] == before["status"]
    region.remove(id_)


def test_b37_reboots_that_overtake_each_other_are_refused_and_no_failure_of_the_cloud(
    region: Sandbox, server: str
) -> None:
    """Nova's own answer to one in ten of them is a 500."""
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(lambda _: region.api().act(server, "hardreboot"), range(80)))

    assert {answer.status_code for answer in answers} == {202, 400}
    region.running(server)


def test_a_failed_rebuild_is_an_error_until_another_image_is_chosen(region: Sandbox) -> None:
    body = region.body()
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    before = region.running(id_)
    first, second = before["spec"]["imageId"], region.world.images["ready-too"].id
    with region.rules({"op": "rebuild", "name": name, "error": "the disk is on fire"}):
        assert region.api().update(id_, update_of(before, imageId=second)).status_code == 202
        wait_for(
            "the failure is shown", lambda: region.read(id_)["metadata"]["provisioningStatus"] == "error", timeout=60
        )
    message = wait_for("the reason is told", lambda: region.condition(id_).get("message"))
    assert "server_rebuild_failed" in message
    instance = region.cloud.instance(name)
    assert instance
    assert len(region.cloud.actions(instance["id"], "rebuild")) == 1

    assert region.api().update(id_, update_of(before, imageId=first)).status_code == 202

    region.running(id_)
    assert len(region.cloud.actions(instance["id"], "rebuild")) == 2
    region.remove(id_)


def test_a_put_of_what_was_read_changes_nothing(region: Sandbox, server: str) -> None:
    stored = region.stored(server)
    assert stored
    assert region.api().update(server, region.read(server)).status_code == 202
    again = region.stored(server)
    assert again
    assert again["metadata"]["generation"] == stored["metadata"]["generation"]
    assert again["spec"] == stored["spec"]


def test_console_output_and_session(region: Sandbox, server: str) -> None:
    output = region.api().request("GET", f"{SERVERS}/{server}/consoleoutput", params={"length": "50"})
    assert output.status_code == 200
    assert "FAKE CONSOLE OUTPUT" in output.json()["contents"]
    session = region.api().request("GET", f"{SERVERS}/{server}/consolesessions")
    assert session.status_code == 200
    assert session.json()["url"].startswith("http")
    assert {answer.headers["Cache-Control"] for answer in (output, session)} == {"no-store"}


def test_the_identitys_private_key(region: Sandbox, server: str) -> None:
    answer = region.api().request("GET", f"{SERVERS}/{server}/sshkey")
    assert answer.status_code == 200
    assert "PRIVATE KEY" in answer.json()["privateKey"]


def test_a_server_boots_from_the_snapshot_of_another(region: Sandbox, server: str) -> None:
    body = {"metadata": {"name": "golden", "tags": [{"name": "team/tier", "value": "gold"}]}, "spec": {}}
    assert region.api("USER").request("POST", f"{SERVERS}/{server}/snapshot", json=body).status_code == 403

    answer = region.api("ADMIN").request("POST", f"{SERVERS}/{server}/snapshot", json=body)

    assert answer.status_code == 201, answer.text
    image = answer.json()
    tags = {tag["name"]: tag["value"] for tag in image["metadata"]["tags"]}
    assert tags == {
        "images.unikorn-cloud.org:organization-id": region.read(server)["metadata"]["organizationId"],
        "images.unikorn-cloud.org:source": "snapshot",
        "team/tier": "gold",
    }
    from_snapshot = region.body(imageId=image["metadata"]["id"])
    created = wait_for(
        "the snapshot is ready",
        lambda: answer if (answer := region.api().create(from_snapshot)).status_code != 422 else None,
    )
    assert created.status_code == 201, created.text
    id_ = created.json()["metadata"]["id"]
    region.running(id_)
    region.remove(id_)


def test_a_gate_holds_everything_back_until_it_is_satisfied(region: Sandbox) -> None:
    body = region.body(providerCreateGates=[{"conditionType": GATE}])
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    wait_for("the pass waits", lambda: "gates" in region.condition(id_).get("message", ""))
    assert region.read(id_)["status"]["remainingProviderCreateGates"] == [GATE]
    assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
    assert (region.cloud.port(id_), region.cloud.instance(name)) == (None, None)

    action = {"conditionType": GATE, "reason": "Ready", "message": "go"}
    path = f"{SERVERS}/{id_}/provider-create-gates"
    assert region.api("USER").request("POST", path, json=action).status_code == 403
    assert region.api("ADMIN").request("POST", path, json=action).status_code == 202

    assert region.running(id_)["status"]["remainingProviderCreateGates"] == []
    region.remove(id_)


def test_a_guest_that_trusts_an_authority_gets_both_configurations(region: Sandbox) -> None:
    user_data = base64.b64encode(b"#!/bin/sh\necho " + secrets.token_hex(4).encode()).decode()
    body = region.body(sshCertificateAuthorityId=region.world.first.authority_id, userData=user_data)
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    region.running(id_)
    assert region.read(id_)["spec"]["userData"] == user_data
    instance = as_operator(region).instance(name)
    assert instance
    sent = base64.b64decode(instance["OS-EXT-SRV-ATTR:user_data"])
    assert base64.b64decode(user_data) in sent
    assert b"TrustedUserCAKeys" in sent
    assert instance["key_name"] is None
    region.remove(id_)


@pytest.mark.parametrize(
    ("image", "flavor", "status", "reason"),
    [
        ("foreign", "virtual", 404, "does not exist"),
        ("not-ready", "virtual", 422, "image is not ready"),
        ("aarch64", "virtual", 422, "architecture is not compatible"),
        ("too-large", "virtual", 422, "disk is too small"),
        ("baremetal", "virtual", 422, "virtualization is not compatible"),
        ("ready", "baremetal", 422, "virtualization is not compatible"),
        ("ready", "pinned", 422, "requires infrastructureRef"),
    ],
)
def test_the_image_contract_over_real_images_and_flavors(
    region: Sandbox, image: str, flavor: str, status: int, reason: str
) -> None:
    body = region.body(imageId=region.world.images[image].id, flavorId=region.world.flavors[flavor].id)
    answer = region.api().create(body)
    assert answer.status_code == status, answer.text
    assert reason in answer.json()["error_description"]


def test_a_flavor_that_nova_does_not_have_is_not_offered(region: Sandbox) -> None:
    answer = region.api().create(region.body(flavorId="00000000-0000-4000-8000-000000000000"))
    assert answer.status_code == 422
    assert "no longer offered" in answer.json()["error_description"]


def test_b72_the_largest_user_data_reaches_nova_byte_for_byte(region: Sandbox) -> None:
    largest = b"#!/bin/sh\n" + secrets.token_bytes(65_535 // 4 * 3 - 10)
    user_data = base64.b64encode(largest).decode()
    body = region.body(userData=user_data)
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]
    region.running(id_)
    assert region.read(id_)["spec"]["userData"] == user_data
    instance = as_operator(region).instance(name)
    assert instance
    assert base64.b64decode(instance["OS-EXT-SRV-ATTR:user_data"]) == largest
    region.remove(id_)
    too_large = base64.b64encode(largest + b"xxx").decode()
    assert region.api().create(region.body(userData=too_large)).status_code == 422
