"""Images made of servers (contract 1.10, 2.9, 6.11 and 9.5)."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from server_api.servers.cloud_model import ImageState
from server_api.servers.ports import Missing, StateConflict, TimedOut, Unavailable
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import IMAGE, NOWHERE, ORGANIZATION, SECOND_IMAGE, World, create_body

SERVERS = "/api/v2/servers"
SOURCE = "images.unikorn-cloud.org:source"
OWNER = "images.unikorn-cloud.org:organization-id"


@pytest.fixture
def path(user: Api, world: World) -> str:
    server_id = user.create(create_body())
    world.cloud.hold(server_id, "web-0")
    world.cloud.calls.clear()
    return f"{SERVERS}/{server_id}/snapshot"


def body(name: str = "foobar", **tags: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if tags:
        metadata["tags"] = [{"name": key, "value": value} for key, value in tags.items()]
    return {"metadata": metadata, "spec": {}}


@pytest.mark.parametrize(
    "who",
    [pytest.param("NOBODY", id="nothing"), pytest.param("READER", id="server"), pytest.param("IMAGER", id="image")],
)
def test_v13_either_right_alone_is_not_enough(client: FlaskClient, world: World, path: str, who: str) -> None:
    assert_error(Api(client, who).post(path, body()), 403, "forbidden")
    assert "create_image" not in str(world.cloud.calls)


def test_v14_image_read_model(admin: Api, path: str) -> None:
    response = admin.post(path, body(b="2", a="1"))
    assert response.status_code == 201
    image = response.get_json()
    assert image["metadata"]["name"] == "foobar"
    assert image["metadata"]["creationTime"].endswith("Z")
    assert image["metadata"]["tags"] == [
        {"name": "a", "value": "1"},
        {"name": "b", "value": "2"},
        {"name": OWNER, "value": ORGANIZATION},
        {"name": SOURCE, "value": "snapshot"},
    ]
    assert image["spec"]["architecture"] == "x86_64"
    assert image["status"] == {"state": "pending"}


def test_what_the_source_says_of_itself_is_kept_but_for_its_tags(admin: Api, world: World) -> None:
    properties = {
        "unikorn:os:kernel": "linux",
        "unikorn:os:family": "debian",
        "unikorn:os:distro": "ubuntu",
        "unikorn:os:version": "24.04",
        "unikorn:virtualization": "virtualized",
        "unikorn:package:kubernetes": "v1.31.2",
        "unikorn:tag:team": "storage",
    }
    world.image(SECOND_IMAGE, properties=properties)
    server_id = admin.create(create_body(imageId=SECOND_IMAGE))
    world.cloud.hold(server_id, "web-0")
    image = admin.post(f"{SERVERS}/{server_id}/snapshot", body()).get_json()
    assert image["spec"] == {
        "architecture": "x86_64",
        "sizeGiB": 0,
        "virtualization": "virtualized",
        "os": {"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04"},
        "softwareVersions": {"kubernetes": "v1.31.2"},
    }
    assert {tag["name"] for tag in image["metadata"]["tags"]} == {OWNER, SOURCE}
    source = next(image for image in world.cloud.offered_images if image.id == SECOND_IMAGE)
    assert source.properties == properties


def test_v15_system_tags_win(admin: Api, path: str) -> None:
    image = admin.post(path, body(**{SOURCE: "import", OWNER: NOWHERE})).get_json()
    assert image["metadata"]["tags"] == [
        {"name": OWNER, "value": ORGANIZATION},
        {"name": SOURCE, "value": "snapshot"},
    ]


@pytest.mark.parametrize(
    ("request_body", "place"),
    [
        ({"metadata": {"name": "foobar"}}, "/spec"),
        ({"metadata": {"name": "foobar"}, "spec": None}, "/spec"),
        ({"metadata": {"name": "foobar"}, "spec": []}, "/spec"),
        ({"spec": {}}, "/metadata"),
        ({"metadata": {}, "spec": {}}, "/metadata/name"),
        (body("foo bar"), "/metadata/name"),
        (body("f" * 64), "/metadata/name"),
        ({"metadata": {"name": "foobar", "tags": [{"name": "a"}]}, "spec": {}}, "/metadata/tags/0/value"),
    ],
)
def test_v16_body_that_lacks_something(
    admin: Api, world: World, path: str, request_body: dict[str, Any], place: str
) -> None:
    assert f"{place}: " in assert_error(admin.post(path, request_body), 400, "invalid_request")
    assert world.cloud.calls == []


def test_unknown_members_are_ignored(admin: Api, path: str) -> None:
    request = {"metadata": {"name": "foobar", "colour": "red"}, "spec": {"colour": "red"}, "colour": "red"}
    assert admin.post(path, request).status_code == 201


def test_v17_image_that_cannot_be_published_is_deleted(admin: Api, world: World, path: str) -> None:
    world.cloud.fail("publish", Unavailable("glance", "500 from 10.0.0.1", retry_after="7"))
    response = admin.post(path, body())
    assert "10.0.0.1" not in assert_error(response, 502, "server_error")
    assert response.headers["Retry-After"] == "7"
    assert world.cloud.calls[-1].startswith("delete_image ")
    assert world.cloud.unpublished == {}


def test_v17_failing_clean_up_does_not_hide_the_failure(admin: Api, world: World, path: str) -> None:
    world.cloud.fail("publish", TimedOut("glance", "read timed out"))
    world.cloud.fail("delete_image", Unavailable("glance", "down"))
    assert_error(admin.post(path, body()), 504, "server_error")


def test_image_that_vanished_before_it_was_published(admin: Api, world: World, path: str) -> None:
    world.cloud.fail("publish", Missing("glance", "gone"))
    assert_error(admin.post(path, body()), 404, "not_found")
    assert "delete_image" not in str(world.cloud.calls)


def test_snapshot_refused_by_the_servers_state(admin: Api, world: World, path: str) -> None:
    world.cloud.fail("create_image", StateConflict("nova", "instance 42 is image_uploading"))
    assert "42" not in assert_error(admin.post(path, body()), 400, "invalid_request")


def test_v05_no_instance(admin: Api, world: World, path: str) -> None:
    world.cloud.held.clear()
    assert_error(admin.post(path, body()), 404, "not_found")


def test_v06_b37_cloud_fails(admin: Api, world: World, path: str) -> None:
    world.cloud.fail("create_image", Unavailable("nova", "down"))
    assert_error(admin.post(path, body()), 502, "server_error")


def test_missing_and_unreadable_servers(admin: Api, other: Api, path: str) -> None:
    assert_error(admin.post(f"{SERVERS}/{NOWHERE}/snapshot", body()), 404, "not_found")
    assert_error(other.post(path, body()), 403, "forbidden")


def test_source_image_that_is_not_offered_any_more(admin: Api, world: World, path: str) -> None:
    world.cloud.offered_images = [image for image in world.cloud.offered_images if image.id != IMAGE]
    assert_error(admin.post(path, body()), 404, "not_found")


def test_server_from_a_snapshot(admin: Api, world: World, path: str) -> None:
    image_id = admin.post(path, body()).get_json()["metadata"]["id"]
    assert "not ready" in assert_error(
        admin.post(SERVERS, create_body("web-1", imageId=image_id)), 422, "unprocessable_content"
    )
    world.cloud.offered_images = [image for image in world.cloud.offered_images if image.id != image_id]
    world.image(image_id, state=ImageState.READY, organization_id=ORGANIZATION)
    admin.create(create_body("web-1", imageId=image_id))
