"""No secret leaves by a door that is not its own (B-74): every endpoint is used, every dependency babbles.

The real adapters of Kubernetes and OpenStack are at work, with the logs of production at their most talkative.
"""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
import yaml

from server_api import logs
from server_api.access.digests import token_digest
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.cloud import OpenStackCloud
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.servers.power import Power
from server_api.settings import Settings
from server_api.store import kinds, labels
from server_api.store.credentials import KubernetesCredentials
from server_api.store.directory import KubernetesDirectory
from tests.api.conftest import checked_client
from tests.api.passes import reconciler
from tests.api.secret_bench import (
    LOG_IN,
    MARKERS,
    NEW_INSTANCE,
    OWN_DOORS,
    PRIVATE_KEY,
    SERVERS,
    USER_DATA,
    Bench,
    babbling,
    found,
    store_service_account,
    telling_secrets,
    with_marked_token,
)
from tests.api.wired_cloud import (
    ACTION,
    CONSOLE,
    FLAVORS,
    IMAGES,
    INSTANCES,
    NEW_IMAGE_READ,
    SERVER,
    playing,
    services_over,
)
from tests.api.world import IDENTITY, NAMESPACE, ORGANIZATION, PEOPLE, PROJECT, REGION, World, create_body
from tests.doubles.clock import FixedClock
from tests.unit.cloud.conftest import Answer


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    logs.configure("debug")
    written = io.StringIO()
    for handler in root.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(written)
    yield written
    root.handlers[:], root.level = before, level
    structlog.reset_defaults()


@pytest.fixture
def bench(
    world: World, services: Services, settings: Settings, clock: FixedClock, tmp_path: Path, log: io.StringIO
) -> Iterator[Bench]:
    secrets = {"userID": "u", "password": MARKERS["identity's password"], "projectID": "p", "sshKeyName": "k"}
    placed = {labels.ORGANIZATION: ORGANIZATION, labels.PROJECT: PROJECT}
    world.add(kinds.OPENSTACK_IDENTITY, IDENTITY, placed, secrets | {"sshPrivateKey": PRIVATE_KEY})
    store_service_account(world)
    tokens = tmp_path / "tokens.yaml"
    people = {MARKERS["bearer token"]: "ADMIN", "reader": "READER"}
    entries = [
        {"sha256": token_digest(token), "subject": who, "accountType": "user", "acl": dict(PEOPLE[who].acl)}
        for token, who in people.items()
    ]
    tokens.write_text(yaml.safe_dump({"tokens": entries}))
    tokens.chmod(0o600)
    settings = replace(settings, flavor_cache_seconds=0.0, image_cache_seconds=0.0)
    cloud = OpenStackCloud(KubernetesCredentials(world.client, NAMESPACE), settings)
    wired = replace(services_over(cloud, services, world, clock), authenticator=CallerAuthenticator(TokenFile(tokens)))
    with playing(world) as wire:
        wire.answers |= {LOG_IN: with_marked_token(wire.answers[LOG_IN], wire)} | telling_secrets(wire)
        yield Bench(world, wire, checked_client(build_app(wired, settings)), reconciler(world, cloud, clock).reconcile)


def test_b74_a_secret_is_in_the_answer_that_is_asked_for_it_and_in_no_other(bench: Bench, log: io.StringIO) -> None:
    bench.keep()
    statuses = bench.use(SERVER)
    assert set(statuses) == bench.operations()
    assert max(statuses.values()) < 300, statuses
    told = {operation: found(response.text) for operation, response in bench.answers}
    assert told == {operation: {OWN_DOORS[operation]} if operation in OWN_DOORS else set() for operation in told}
    assert found(log.getvalue() + bench.let_out()) == set()
    assert log.getvalue().count('"event":"request"') >= len(statuses)


def test_b74_no_refusal_tells_a_secret(bench: Bench, log: io.StringIO) -> None:
    bench.keep()
    assert set(bench.use(SERVER, token="wrong token").values()) == {401}
    refused = bench.use(SERVER, token="reader")
    assert {operation for operation, status in refused.items() if status < 400} >= {"getVersion", "listServers"}
    bodies = [
        create_body("third", userData=MARKERS["user data"]),
        create_body("third", userData=[MARKERS["user data"]]),
        create_body("third", userData=base64.b64encode(MARKERS["user data"].encode()).decode()),
        create_body("third", imageId=MARKERS["user data"]),
        json.dumps(create_body("third", userData=USER_DATA))[:-1],
    ]
    for body in bodies:
        assert bench.call("createServer", "POST", SERVERS, body).status_code in {400, 422}
    assert len(bench.answers) > 2 * len(refused)
    assert found(log.getvalue() + bench.let_out()) == set()


@pytest.mark.parametrize("status", [400, 403, 409, 413, 500])
def test_b74_no_failure_of_the_cloud_tells_a_secret(bench: Bench, log: io.StringIO, status: int) -> None:
    bench.keep()
    for step in (ACTION, CONSOLE, NEW_IMAGE_READ):
        bench.wire.answers[step] = babbling(status)
    failed = bench.use(SERVER)
    assert {failed[verb] for verb in ("startServer", "getConsoleOutput", "createSnapshot")} <= {400, 502}
    for step in (INSTANCES, IMAGES, FLAVORS):
        bench.wire.answers[step] = babbling(status)
    failed = bench.use(SERVER)
    assert {failed[verb] for verb in ("startServer", "createServer", "createSnapshot")} == {502}
    assert found(log.getvalue() + bench.let_out()) == set()
    assert "nonsense from" in log.getvalue()


def test_b74_no_failure_to_log_in_tells_a_password(bench: Bench, log: io.StringIO) -> None:
    bench.keep()
    bench.wire.answers[LOG_IN] = babbling(400)
    assert bench.use(SERVER)["createServer"] == 502
    assert MARKERS["region's password"] in bench.wire.requests[-1].text + bench.wire.requests[0].text
    assert found(log.getvalue() + bench.let_out()) == set()


def test_b74_no_crash_tells_a_secret(bench: Bench, log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.keep()

    def crash(*_arguments: object) -> None:
        raise RuntimeError(f"Authorization: Bearer {MARKERS['bearer token']} password={PRIVATE_KEY}")

    monkeypatch.setattr(Power, "start", crash)
    assert bench.use(SERVER)["startServer"] == 500
    assert "RuntimeError" in log.getvalue()
    assert found(log.getvalue() + bench.let_out()) == set()


@pytest.mark.parametrize("status", [202, 400, 409, 413, 500])
def test_b74_no_pass_of_the_controller_tells_a_secret(bench: Bench, log: io.StringIO, status: int) -> None:
    bench.wire.answers[INSTANCES] = bench.wire.answers["GET /compute/v2.1/servers"] = Answer(body={"servers": []})
    if status != 202:
        bench.wire.answers[NEW_INSTANCE] = babbling(status)
    response = bench.call("createServer", "POST", SERVERS, create_body("another", userData=USER_DATA))
    server_id = response.get_json()["metadata"]["id"]
    for _ in range(2):
        bench.reconcile(server_id)
    [order, *_] = bench.wire.seen("POST", NEW_INSTANCE.removeprefix("POST "))
    assert found(order.text) == {"user data"}
    bench.call("deleteServer", "DELETE", f"{SERVERS}/{server_id}")
    bench.wire.answers[INSTANCES] = babbling(500)
    bench.reconcile(server_id)
    assert found(log.getvalue() + bench.let_out()) == set()
    assert "Available" in bench.let_out()


def test_no_secret_shows_in_the_representation_of_what_holds_it(bench: Bench) -> None:
    credentials = KubernetesCredentials(bench.world.client, NAMESPACE)
    region = KubernetesDirectory(bench.world.client, NAMESPACE).region(REGION)
    bench.keep()
    held = [credentials.identity_credentials(IDENTITY), credentials.service_account(region), bench.world.stored(SERVER)]
    assert found(repr(held)) == set()
