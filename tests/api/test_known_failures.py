"""Known failures of systems like this one that no other test of the API has: ``docs/known-failures.md`` lists all."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask

from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.passes import reconciler
from tests.api.world import IMAGE, NETWORK, NOWHERE, SECOND_IMAGE, SECOND_NETWORK, World, create_body, update_body
from tests.doubles.clock import FixedClock

SERVERS = "/api/v2/servers"
VERBS = {"start": "start", "stop": "stop", "softreboot": "soft_reboot", "hardreboot": "hard_reboot"}
SNAPSHOT = {"metadata": {"name": "copy"}, "spec": {}}
NO_OBJECTS = ["", "null", "[]", '"x"', "0"]


def test_b03_servers_whose_names_begin_alike_become_instances_of_their_own(
    app: Flask, user: Api, world: World, clock: FixedClock
) -> None:
    names = [f"n-{number}" for number in range(1, 13)]
    controller = reconciler(world, world.cloud, clock)
    clients = [Api(checked_client(app), "USER") for _ in names]
    with ThreadPoolExecutor(len(names)) as pool:
        made = list(pool.map(lambda api, name: api.create(create_body(name)), clients, names))
        for _ in names:
            # All of them hold on to the same network, so some lose a race and come again.
            list(pool.map(controller.reconcile, made))
    instances = world.cloud.held.values()
    assert sorted((instance.name, instance.server_id) for instance in instances) == sorted(
        zip(names, made, strict=True)
    )
    for server_id in made:
        assert user.post(f"{SERVERS}/{server_id}/stop").status_code == 202
    stopped = [call.split(" ")[1] for call in world.cloud.calls if call.startswith("stop")]
    assert [world.cloud.held[instance_id].server_id for instance_id in stopped] == made


def test_b05_no_verb_reaches_an_instance_whose_name_contains_the_servers(admin: Api, world: World) -> None:
    server_id = admin.create(create_body("web-1"))
    for name in ("foo-web-1", "web-10", "web-1-old"):
        world.cloud.hold(admin.create(create_body(name)), name)
    own = world.cloud.hold(server_id, "web-1")
    world.cloud.calls.clear()
    for verb in VERBS:
        assert admin.post(f"{SERVERS}/{server_id}/{verb}").status_code == 202
    for what in ("consoleoutput", "consolesessions"):
        assert admin.get(f"{SERVERS}/{server_id}/{what}").status_code == 200
    assert admin.post(f"{SERVERS}/{server_id}/snapshot", SNAPSHOT).status_code == 201
    actions = [*VERBS.values(), "console_output", "console_url", "create_image"]
    assert [call for call in world.cloud.calls if call.split(" ")[0] in actions] == [f"{a} {own.id}" for a in actions]


def test_b08_one_name_on_two_networks_is_two_servers(user: Api, world: World) -> None:
    ids = {network: user.create(create_body(networkId=network)) for network in (NETWORK, SECOND_NETWORK)}
    held = {network: world.cloud.hold(server_id, "web-0") for network, server_id in ids.items()}
    for network, server_id in ids.items():
        assert user.post(f"{SERVERS}/{server_id}/stop").status_code == 202
        assert world.cloud.calls[-1] == f"stop {held[network].id}"
    assert user.delete(f"{SERVERS}/{ids[NETWORK]}").status_code == 202
    [left] = user.get(SERVERS).get_json()
    assert left["metadata"]["id"] == ids[SECOND_NETWORK]


def test_b10_a_create_sent_again_makes_nothing_and_tells_nothing_of_the_first(user: Api, world: World) -> None:
    body = create_body(userData=base64.b64encode(b"#!/bin/sh\n").decode())
    first = user.create(body)
    before = world.stored(first)
    for again in (body, create_body(description="other")):
        assert first not in assert_error(user.post(SERVERS, again), 409, "conflict")
    assert world.stored(first) == before
    # Who lost the answer finds the server, and with it that the first attempt was carried out.
    [listed] = user.get(SERVERS).get_json()
    assert (listed["metadata"]["id"], listed["metadata"]["name"]) == (first, "web-0")


def test_b10_two_creates_at_once_are_one_server_and_one_conflict(app: Flask, user: Api) -> None:
    clients = [Api(checked_client(app), "USER") for _ in range(6)]
    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = sorted(pool.map(lambda api: api.post(SERVERS, create_body()).status_code, clients))
    assert statuses == [201, 409, 409, 409, 409, 409]
    assert len(user.get(SERVERS).get_json()) == 1


def test_b19_user_data_changed_together_with_the_image_is_kept(user: Api, world: World) -> None:
    old, new = (base64.b64encode(script).decode() for script in (b"#!/bin/sh\n", b"#cloud-config\n"))
    server_id = user.create(create_body(userData=old))
    world.image(SECOND_IMAGE)
    answer = user.put(f"{SERVERS}/{server_id}", update_body(userData=new, imageId=SECOND_IMAGE))
    assert answer.status_code == 202
    for spec in (answer.get_json()["spec"], user.get(f"{SERVERS}/{server_id}").get_json()["spec"]):
        assert (spec["userData"], spec["imageId"]) == (new, SECOND_IMAGE)
    description = user.get("/openapi.json").get_json()["paths"][f"{SERVERS}/{{serverID}}"]["put"]["description"]
    assert "User data is never applied to the running guest, nor by a rebuild" in description


def test_b23_a_server_whose_image_was_deleted_is_as_usable_as_any(admin: Api, world: World) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    world.cloud.offered_images.clear()
    for verb in VERBS:
        assert admin.post(f"{SERVERS}/{server_id}/{verb}").status_code == 202
    for what in ("consoleoutput", "consolesessions"):
        assert admin.get(f"{SERVERS}/{server_id}/{what}").status_code == 200
    changed = admin.put(f"{SERVERS}/{server_id}", update_body(metadata={"description": "after"}))
    assert (changed.status_code, changed.get_json()["spec"]["imageId"]) == (202, IMAGE)
    assert admin.delete(f"{SERVERS}/{server_id}").status_code == 202


@pytest.mark.parametrize("body", NO_OBJECTS)
def test_b50_a_body_that_is_no_object_is_refused_wherever_one_is_read(admin: Api, world: World, body: str) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    world.cloud.calls.clear()
    one = f"{SERVERS}/{server_id}"
    places = [("POST", SERVERS), ("PUT", one), ("POST", f"{one}/snapshot"), ("POST", f"{one}/provider-create-gates")]
    for method, path in places:
        response = admin.request(method, path, data=body, content_type="application/json")
        assert_error(response, 400, "invalid_request")
    assert world.cloud.calls == []


@pytest.mark.parametrize("body", [*NO_OBJECTS, "{}", "{"])
def test_b50_a_body_is_not_read_where_none_is_expected(admin: Api, world: World, body: str) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    for content_type in ("application/json", None):
        for verb in VERBS:
            response = admin.request("POST", f"{SERVERS}/{server_id}/{verb}", data=body, content_type=content_type)
            assert response.status_code == 202, (verb, content_type)
    response = admin.request("DELETE", f"{SERVERS}/{server_id}", data=body, content_type="application/json")
    assert response.status_code == 202


CONDITIONS = [{"If-Match": '"x"'}, {"If-Match": 'W/"x"'}, {"If-None-Match": "*"}, {"If-None-Match": 'W/"x"'}]


@pytest.mark.parametrize("headers", CONDITIONS, ids=lambda headers: " ".join(f"{k} {v}" for k, v in headers.items()))
def test_b56_without_entity_tags_no_answer_depends_on_one(user: Api, headers: dict[str, str]) -> None:
    server_id = user.create(create_body())
    one = f"{SERVERS}/{server_id}"
    answers = [
        user.get(one, headers=headers),
        user.get(SERVERS, headers=headers),
        user.put(one, update_body(), headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 202]
    assert not any("ETag" in answer.headers for answer in answers)


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=1000000000", "page=0", "cursor=abc", "marker=abc"])
def test_b59_a_list_is_whole_and_knows_no_pages(user: Api, query: str) -> None:
    made = {user.create(create_body(f"n-{number}")) for number in range(3)}
    name = query.split("=")[0]
    assert name in assert_error(user.get(f"{SERVERS}?{query}"), 400, "invalid_request")
    assert {server["metadata"]["id"] for server in user.get(SERVERS).get_json()} == made


@pytest.mark.parametrize("text", ["日本 %2F ✓", "a&b", "a+b", "%41", "😀"])
def test_b76_a_tag_is_stored_returned_and_found_as_it_was_written(user: Api, text: str) -> None:
    tags = [{"name": "text", "value": text}]
    body: dict[str, Any] = create_body()
    body["metadata"]["tags"] = tags
    server_id = user.create(body)
    user.create(create_body("other"))
    [found] = user.get(SERVERS, query_string={"tag": f"text={text}"}).get_json()
    assert (found["metadata"]["id"], found["metadata"]["tags"]) == (server_id, tags)


def test_b76_a_name_that_would_have_to_be_quoted_is_refused(admin: Api, world: World) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    body = {"metadata": {"name": "日本 %2F ✓"}, "spec": {}}
    assert "name" in assert_error(admin.post(f"{SERVERS}/{server_id}/snapshot", body), 400, "invalid_request")
    assert "name" in assert_error(admin.post(SERVERS, create_body("日本 %2F ✓")), 400, "invalid_request")


@pytest.mark.parametrize("text", ["1", "%00", "x" * 300, "a" * 9000, NOWHERE[:-1], f"{{{NOWHERE}}}"])
def test_b60_an_odd_id_is_refused_briefly_by_every_operation(user: Api, text: str) -> None:
    paths = [f"{SERVERS}/{text}", *(f"{SERVERS}/{text}/{what}" for what in ("sshkey", "consoleoutput"))]
    for path in paths:
        response = user.get(path)
        assert response.status_code in {400, 404}
        assert len(response.data) < 2048
        assert text not in response.text or len(text) < 3
