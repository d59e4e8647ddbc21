"""Creating servers (contract 1.5, 2.4, 2.5 and 9.2)."""

from __future__ import annotations

import base64
import gzip
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.servers.cloud_model import Image, ImageState
from server_api.servers.ports import Missing
from server_api.store import kinds
from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.world import (
    AUTHORITY,
    AUTHORITY_OF_SECOND_PROJECT,
    FLAVOR,
    FOREIGN_IMAGE,
    GROUP_ON_SECOND_NETWORK,
    IMAGE,
    NETWORK,
    NOWHERE,
    ORGANIZATION,
    PEOPLE,
    PROJECT,
    REGION,
    SECOND_IMAGE,
    SECOND_NETWORK,
    SECURITY_GROUP,
    World,
    create_body,
)

SERVERS = "/api/v2/servers"
CLOUD_CONFIG = "I2Nsb3VkLWNvbmZpZwpwYWNrYWdlczogW25naW54XQo="
GZIP = gzip.compress(b"#cloud-config\n")
MULTIPART = (
    b'Content-Type: multipart/mixed; boundary="x"\nMIME-Version: 1.0\n\n'
    b"--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--x--\n"
)


def encoded(payload: bytes) -> str:
    return base64.b64encode(payload).decode()


def test_c01_c09_minimal_create_with_rights_in_the_project_alone(user: Api) -> None:
    response = user.post(SERVERS, create_body())
    assert response.status_code == 201
    body = response.get_json()
    assert body["metadata"]["provisioningStatus"] == "pending"
    assert body["metadata"]["healthStatus"] == "unknown"
    assert body["metadata"]["createdBy"] == PEOPLE["USER"].subject
    assert (body["metadata"]["organizationId"], body["metadata"]["projectId"]) == (ORGANIZATION, PROJECT)
    assert body["spec"] == {"flavorId": FLAVOR, "imageId": IMAGE}
    assert body["status"] == {"regionId": REGION, "networkId": NETWORK, "sshInjection": "identityKeypair"}


def test_everything_sent_is_read_back(user: Api) -> None:
    tags = [{"name": "b", "value": "1"}, {"name": "a", "value": ""}, {"name": "b", "value": "2"}]
    request = create_body(
        userData=CLOUD_CONFIG,
        networking={
            "securityGroups": [SECURITY_GROUP, SECURITY_GROUP.upper()],
            "publicIP": True,
            "allowedSourceAddresses": ["10.0.0.0/24"],
        },
    )
    request["metadata"] |= {"description": "front end", "tags": tags}
    server_id = user.create(request)
    body = user.get(f"{SERVERS}/{server_id}").get_json()
    assert body["metadata"]["tags"] == tags
    assert body["metadata"]["description"] == "front end"
    assert body["spec"]["networking"] == {
        "securityGroups": [SECURITY_GROUP],
        "publicIP": True,
        "allowedSourceAddresses": ["10.0.0.0/24"],
    }
    assert body["spec"]["userData"] == CLOUD_CONFIG


def test_c02_creator_is_the_subject_and_scope_is_the_networks(client: FlaskClient, world: World) -> None:
    """The subject of a token; that of a certificate comes with service callers."""
    metadata = Api(client, "OPERATOR").post(SERVERS, create_body()).get_json()["metadata"]
    assert metadata["createdBy"] == PEOPLE["OPERATOR"].subject
    assert (metadata["organizationId"], metadata["projectId"]) == (ORGANIZATION, PROJECT)


def test_c03_network_absent(user: Api) -> None:
    assert "/spec/networkId" in assert_error(user.post(SERVERS, create_body(networkId=NOWHERE)), 404, "not_found")


def test_c04_network_not_readable(client: Any) -> None:
    assert_error(Api(client, "BLIND").post(SERVERS, create_body()), 403, "forbidden")


@pytest.mark.parametrize("version", [None, "1"])
def test_c05_network_of_another_api_version(user: Api, world: World, version: str | None) -> None:
    world.network(NOWHERE, version=version)
    assert_error(user.post(SERVERS, create_body(networkId=NOWHERE)), 404, "not_found")


def test_c06_right_to_read_only(reader: Api, world: World) -> None:
    assert_error(reader.post(SERVERS, create_body()), 403, "forbidden")
    assert world.cloud.calls == []


def test_network_of_another_organization(other: Api) -> None:
    assert_error(other.post(SERVERS, create_body()), 403, "forbidden")


def test_c10_name_taken_on_the_network(user: Api) -> None:
    user.create(create_body("test-server"))
    assert "/metadata/name" in assert_error(user.post(SERVERS, create_body("test-server")), 409, "conflict")


def test_c11_name_and_network_make_the_id(user: Api) -> None:
    first = user.create(create_body("test-server"))
    user.delete(f"{SERVERS}/{first}")
    assert user.create(create_body("test-server")) == first


def test_c12_another_name_or_network_is_another_server(user: Api) -> None:
    ids = {
        user.create(create_body("test-server")),
        user.create(create_body("other-server")),
        user.create(create_body("test-server", networkId=SECOND_NETWORK)),
    }
    assert len(ids) == 3
    assert all(server_id[0] in "abcdef" for server_id in ids)


def test_c13_unknown_certificate_authority(user: Api) -> None:
    response = user.post(SERVERS, create_body(sshCertificateAuthorityId=NOWHERE))
    assert "/spec/sshCertificateAuthorityId" in assert_error(response, 404, "not_found")


def test_c14_certificate_authority_of_another_project(admin: Api) -> None:
    response = admin.post(SERVERS, create_body(sshCertificateAuthorityId=AUTHORITY_OF_SECOND_PROJECT))
    assert_error(response, 422, "unprocessable_content")


def test_c15_certificate_authority_is_echoed(user: Api) -> None:
    server_id = user.create(create_body(sshCertificateAuthorityId=AUTHORITY, userData=CLOUD_CONFIG))
    status = user.get(f"{SERVERS}/{server_id}").get_json()["status"]
    assert (status["sshCertificateAuthorityId"], status["sshInjection"]) == (AUTHORITY, "ca")


def test_c16_certificate_authority_and_multipart(user: Api) -> None:
    body = user.post(SERVERS, create_body(sshCertificateAuthorityId=AUTHORITY, userData=encoded(MULTIPART))).get_json()
    assert body["spec"]["userData"] == encoded(MULTIPART)
    assert body["status"]["sshInjection"] == "ca"


def test_c17_certificate_authority_and_unknown_text(user: Api) -> None:
    response = user.post(SERVERS, create_body(sshCertificateAuthorityId=AUTHORITY, userData=encoded(b"echo hello")))
    assert "recognized cloud-init format" in assert_error(response, 422, "unprocessable_content")


def test_c18_certificate_authority_and_gzip(user: Api) -> None:
    response = user.post(SERVERS, create_body(sshCertificateAuthorityId=AUTHORITY, userData=encoded(GZIP)))
    assert "gzip" in assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(GZIP, id="c19"),
        pytest.param(b"#!/bin/sh\necho hello\n", id="c20-script"),
        pytest.param(b"#cloud-config\r\npackages: [nginx]\r\n", id="c20-cloud-config"),
        pytest.param(MULTIPART, id="c20-multipart"),
    ],
)
def test_c19_c20_user_data_is_stored_byte_by_byte(user: Api, world: World, payload: bytes) -> None:
    server_id = user.create(create_body(userData=encoded(payload)))
    assert world.stored(server_id).spec.user_data == payload
    assert user.get(f"{SERVERS}/{server_id}").get_json()["spec"]["userData"] == encoded(payload)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(b"echo hello", "unsupported userData format", id="c21"),
        pytest.param(b"Content-Type: multipart/mixed\n\n--x\n\n--x--\n", "boundary missing", id="no-boundary"),
        pytest.param(MULTIPART.removesuffix(b"--\n"), "unable to parse multipart userData", id="not-closed"),
    ],
)
def test_c21_user_data_that_cloud_init_would_not_know(user: Api, payload: bytes, reason: str) -> None:
    description = assert_error(user.post(SERVERS, create_body(userData=encoded(payload))), 422, "unprocessable_content")
    assert description.startswith("/spec/userData: ")
    assert "cloud-init" in description
    assert reason in description
    assert "hello" not in description


def test_user_data_that_the_cloud_would_not_take(user: Api) -> None:
    largest = b"#!" + b"x" * 49_147
    user.create(create_body(userData=encoded(largest)))
    response = user.post(SERVERS, create_body("web-1", userData=encoded(largest + b"xxx")))
    assert "65535" in assert_error(response, 422, "unprocessable_content")
    response = user.post(SERVERS, create_body("web-2", userData=encoded(largest), sshCertificateAuthorityId=AUTHORITY))
    assert_error(response, 422, "unprocessable_content")


def test_c22_unknown_security_group(user: Api) -> None:
    response = user.post(SERVERS, create_body(networking={"securityGroups": [SECURITY_GROUP, NOWHERE]}))
    assert "/spec/networking/securityGroups/1" in assert_error(response, 404, "not_found")


def test_c23_security_group_of_another_network(user: Api) -> None:
    response = user.post(SERVERS, create_body(networking={"securityGroups": [GROUP_ON_SECOND_NETWORK]}))
    assert_error(response, 422, "unprocessable_content")


def test_c24_security_group_of_the_network(user: Api) -> None:
    user.create(create_body(networking={"securityGroups": [SECURITY_GROUP]}))


@pytest.mark.parametrize(
    "spec",
    [
        {"sshInjection": "ca"},
        {"sshInjection": "identityKeypair", "sshCertificateAuthorityId": AUTHORITY},
        {"sshInjection": "none", "sshCertificateAuthorityId": AUTHORITY},
    ],
)
def test_c25_c26_c27_ssh_mode_against_certificate_authority(user: Api, spec: dict[str, Any]) -> None:
    assert_error(user.post(SERVERS, create_body(**spec)), 422, "unprocessable_content")


@pytest.mark.parametrize("spec", [{}, {"sshInjection": "identityKeypair"}])
def test_c28_a_pinned_server_cannot_have_the_identitys_key_pair(user: Api, spec: dict[str, Any]) -> None:
    response = user.post(SERVERS, create_body(infrastructureRef="host-1", **spec))
    assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize(
    ("spec", "mode"),
    [({"sshInjection": "none"}, "none"), ({"sshCertificateAuthorityId": AUTHORITY}, "ca")],
    ids=["c29", "c30"],
)
def test_c29_c30_the_host_of_a_pinned_server_is_stored_and_shown(
    user: Api, world: World, spec: dict[str, Any], mode: str
) -> None:
    response = user.post(SERVERS, create_body(infrastructureRef="host-1", **spec))
    assert response.status_code == 201
    body = response.get_json()
    assert (body["status"]["infrastructureRef"], body["status"]["sshInjection"]) == ("host-1", mode)
    assert world.stored(body["metadata"]["id"]).spec.infrastructure_ref == "host-1"


def test_c32_flavor_that_only_pinned_servers_may_have_with_a_host(user: Api, world: World) -> None:
    world.flavor(NOWHERE, pinned_only=True)
    user.create(create_body(flavorId=NOWHERE, infrastructureRef="host-1", sshInjection="none"))


def test_c31_flavor_that_only_pinned_servers_may_have(user: Api, world: World) -> None:
    world.flavor(NOWHERE, pinned_only=True)
    response = user.post(SERVERS, create_body(flavorId=NOWHERE))
    assert "requires infrastructureRef" in assert_error(response, 422, "unprocessable_content")


def test_c33_flavor_not_offered(user: Api) -> None:
    response = user.post(SERVERS, create_body(flavorId=NOWHERE))
    assert "no longer offered" in assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize("state", [ImageState.PENDING, ImageState.CREATING, ImageState.FAILED])
def test_c34_image_that_is_not_ready(user: Api, world: World, state: ImageState) -> None:
    world.image(SECOND_IMAGE, state=state)
    response = user.post(SERVERS, create_body(imageId=SECOND_IMAGE))
    assert "image is not ready" in assert_error(response, 422, "unprocessable_content")


@pytest.mark.parametrize("image", [NOWHERE, FOREIGN_IMAGE])
def test_c35_image_unknown_or_of_another_organization(user: Api, image: str) -> None:
    assert_error(user.post(SERVERS, create_body(imageId=image)), 404, "not_found")


@pytest.mark.parametrize(
    ("image", "flavor", "reason"),
    [
        pytest.param({"architecture": "aarch64"}, {}, "architecture is not compatible", id="c36"),
        pytest.param({"architecture": "weird"}, {}, "architecture is not compatible", id="b15"),
        pytest.param({"size_gib": 80}, {"disk_gb": 40}, "disk is too small", id="c38"),
        pytest.param({"virtualization": "baremetal"}, {}, "virtualization is not compatible", id="c39"),
        pytest.param({}, {"baremetal": True}, "virtualization is not compatible", id="c39-reverse"),
        pytest.param({"virtualization": "paravirtualized"}, {}, "virtualization type is not recognized", id="c41"),
    ],
)
def test_c36_c38_c39_c41_b12_image_that_does_not_fit_the_flavor(
    user: Api, world: World, image: dict[str, Any], flavor: dict[str, Any], reason: str
) -> None:
    world.image(SECOND_IMAGE, **image)
    world.flavor(NOWHERE, **flavor)
    response = user.post(SERVERS, create_body(imageId=SECOND_IMAGE, flavorId=NOWHERE))
    assert reason in assert_error(response, 422, "unprocessable_content")
    assert "tenancy" not in world.cloud.calls


@pytest.mark.parametrize(
    ("image", "flavor"),
    [
        pytest.param({"architecture": None}, {}, id="c37-image"),
        pytest.param({"architecture": "aarch64"}, {"architecture": None}, id="c37-flavor"),
        pytest.param({"virtualization": None}, {}, id="c40"),
        pytest.param({"virtualization": "any"}, {"baremetal": True}, id="any"),
        pytest.param({"size_gib": 80}, {"disk_gb": None}, id="no-disk-data"),
    ],
)
def test_c37_c40_absent_metadata_is_no_obstacle(
    user: Api, world: World, image: dict[str, Any], flavor: dict[str, Any]
) -> None:
    world.image(SECOND_IMAGE, **image)
    world.flavor(NOWHERE, **flavor)
    user.create(create_body(imageId=SECOND_IMAGE, flavorId=NOWHERE))


def test_image_of_the_own_organization(user: Api, world: World) -> None:
    world.cloud.offered_images.append(Image(NOWHERE, "own", ImageState.READY, 5, organization_id=ORGANIZATION))
    user.create(create_body(imageId=NOWHERE))


@pytest.mark.parametrize(
    "address",
    [
        "definitely-not-a-cidr",
        "10.0.0.1",
        "10.0.0.0/255.255.255.0",
        "010.0.0.0/8",
        "10.0.0.0/33",
        " 10.0.0.0/8",
        "::/0",
    ],
)
def test_c42_b83_source_address_that_is_no_ipv4_prefix(user: Api, address: str) -> None:
    response = user.post(SERVERS, create_body(networking={"allowedSourceAddresses": ["10.0.0.0/8", address]}))
    description = assert_error(response, 422, "unprocessable_content")
    assert "/spec/networking/allowedSourceAddresses/1" in description


def test_c43_b82_host_bits_are_masked(user: Api) -> None:
    server_id = user.create(create_body(networking={"allowedSourceAddresses": ["10.0.0.5/24"]}))
    networking = user.get(f"{SERVERS}/{server_id}").get_json()["spec"]["networking"]
    assert networking == {"allowedSourceAddresses": ["10.0.0.0/24"]}


@pytest.mark.parametrize("networking", [{"publicIP": False}, {}, {"securityGroups": []}])
def test_c44_nothing_is_not_echoed(user: Api, networking: dict[str, Any]) -> None:
    server_id = user.create(create_body(networking=networking))
    assert "networking" not in user.get(f"{SERVERS}/{server_id}").get_json()["spec"]


def test_c45_simultaneous_creates_of_one_name(app: Flask, world: World) -> None:
    api = Api(checked_client(app), "USER")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.post(SERVERS, create_body()).status_code, range(8)))
    assert sorted(answers) == [201] + [409] * 7


def test_identity_of_the_region_is_not_asked_for_a_create(user: Api, world: World) -> None:
    world.remove(kinds.IDENTITY, "40000000-0000-4000-8000-000000000001")
    user.create(create_body())
    assert "tenancy" not in world.cloud.calls


def test_region_of_the_network_absent(user: Api, world: World) -> None:
    world.remove(kinds.REGION, REGION)
    assert_error(user.post(SERVERS, create_body()), 404, "not_found")


def test_definite_absence_in_the_cloud_is_no_crash(user: Api, world: World) -> None:
    world.cloud.fail("images", Missing("glance", "no such endpoint"))
    assert_error(user.post(SERVERS, create_body()), 502, "server_error")


@pytest.mark.parametrize("reference", [".", "..", "../networks/x", "a/b"])
def test_c13_a_certificate_authority_that_cannot_exist_does_not_exist(user: Api, reference: str) -> None:
    response = user.post(SERVERS, create_body(sshCertificateAuthorityId=reference))
    assert_error(response, 404, "not_found")
