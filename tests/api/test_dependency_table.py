"""Every way that Nova and Glance fail, on the wire, against every call of every verb (B-37, design section 4).

The real OpenStack adapter talks to a local server that plays the cloud. ``test_dependency_failures`` does the same
with the port's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from werkzeug.test import TestResponse

from server_api.cloud import OpenStackCloud
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.servers.surroundings import IdentityCredentials
from server_api.settings import Settings
from tests.api.conftest import Api, checked_client
from tests.api.errors import assert_error
from tests.api.wired_cloud import (
    ACTION,
    CONSOLE,
    DELETE_NEW_IMAGE,
    FLAVORS,
    IMAGES,
    INSTANCES,
    NEW_IMAGE,
    NEW_IMAGE_CHANGE,
    NEW_IMAGE_READ,
    SERVER,
    playing,
    services_over,
)
from tests.api.world import IDENTITY, SECOND_IMAGE, World, create_body, update_body
from tests.doubles.clock import FixedClock
from tests.unit.cloud.conftest import Answer, Request, StoredCredentials, Wire

SERVERS = "/api/v2/servers"
SECRET = "10.0.0.1-said-no"

NOVA_FAULTS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    409: "conflictingRequest",
    413: "overLimit",
    429: "overLimit",
    500: "computeFault",
    503: "serviceUnavailable",
}
TIME_OUT = "time-out"
BROKEN = "broken JSON"
FAILURES: list[int | str] = [*NOVA_FAULTS, TIME_OUT, BROKEN]

LIST = dict.fromkeys(FAILURES, 502) | {TIME_OUT: 504}
"""A list has no 404 or 409 of its own: whatever comes instead of it is a failure of the service."""
ONE = LIST | {404: 404, 409: 400}
"""One instance or image may be gone, or in a state that does not allow what is asked for."""
# What Nova answers to a power verb has no body, so there is nothing in it to be broken.
POWER = ONE | {BROKEN: 202}

STEPS = {
    "create": {FLAVORS: LIST, IMAGES: LIST},
    "update": {FLAVORS: LIST, IMAGES: LIST},
    "start": {INSTANCES: LIST, ACTION: POWER},
    "stop": {INSTANCES: LIST, ACTION: POWER},
    "softreboot": {INSTANCES: LIST, ACTION: POWER},
    "hardreboot": {INSTANCES: LIST, ACTION: POWER},
    "consoleoutput": {INSTANCES: LIST, ACTION: ONE},
    "consolesessions": {INSTANCES: LIST, CONSOLE: ONE},
    "snapshot": {
        IMAGES: LIST,
        INSTANCES: LIST,
        ACTION: ONE,
        NEW_IMAGE_READ: ONE,
        NEW_IMAGE_CHANGE: ONE,
    },
}
"""What each verb asks of Nova and Glance, and what we answer to each failure of that."""

SUCCESS = {"create": 201, "consoleoutput": 200, "consolesessions": 200, "snapshot": 201}
"""The verbs that do not answer 202 when all goes well."""


@dataclass
class Region:
    """The API over the real adapter, one server that exists, and the cloud's side of the wire.

    ``hasty`` is the same API as ``patient`` and gives the cloud little time: only what must time out goes through it.
    """

    patient: Api
    hasty: Api
    wire: Wire

    @contextmanager
    def failing(self, step: str, failure: int | str) -> Iterator[None]:
        """Let one call fail inside of the block."""
        before = self.wire.answers[step]
        self.wire.answers[step] = failed(self.wire, step, failure)
        yield
        self.wire.answers[step] = before

    def do(self, verb: str, *, hastily: bool = False) -> TestResponse:
        """Use the API."""
        api = self.hasty if hastily else self.patient
        one = f"{SERVERS}/{SERVER}"
        match verb:
            case "create":
                return api.post(SERVERS, create_body("another"))
            case "update":
                return api.put(one, update_body(imageId=SECOND_IMAGE))
            case "snapshot":
                return api.post(f"{one}/snapshot", {"metadata": {"name": "copy"}, "spec": {}})
            case "consoleoutput" | "consolesessions":
                return api.get(f"{one}/{verb}")
        return api.post(f"{one}/{verb}")


@pytest.fixture
def region(world: World, services: Services, settings: Settings, clock: FixedClock) -> Iterator[Region]:
    world.bare_server(SERVER, "web-0")
    credentials = StoredCredentials()
    credentials.identities[IDENTITY] = IdentityCredentials("user", "hush", "project")

    def api(read_timeout: float) -> Api:
        own = replace(settings, read_timeout=read_timeout, flavor_cache_seconds=0.0, image_cache_seconds=0.0)
        wired = services_over(OpenStackCloud(credentials, own), services, world, clock)
        return Api(checked_client(build_app(wired, own)), "ADMIN")

    with playing(world) as wire:
        yield Region(api(5.0), api(0.1), wire)


def failed(wire: Wire, step: str, failure: int | str) -> Answer | Callable[[Request], Answer]:
    """Return an answer as Nova or Glance gives it when it fails."""
    if failure == TIME_OUT:
        return wire.hang
    headers = {"Retry-After": "7"}
    if isinstance(failure, str):
        return Answer(200, '{"servers": [', headers | {"Content-Type": "application/json"})
    if "/image/" in step:
        text = f"No image found with ID {NEW_IMAGE}" if failure == 404 else SECRET
        return Answer(failure, f"<html><head><title>{failure}</title></head><body>{text}</body></html>", headers)
    return Answer(failure, {NOVA_FAULTS[failure]: {"code": failure, "message": SECRET}}, headers)


@pytest.mark.parametrize("verb", STEPS)
def test_b37_every_failure_of_every_call_of_a_verb_has_its_answer(region: Region, verb: str) -> None:
    answers: dict[str, dict[int | str, int]] = {step: {} for step in STEPS[verb]}
    for step in STEPS[verb]:
        for failure in FAILURES:
            with region.failing(step, failure):
                response = region.do(verb, hastily=failure == TIME_OUT)
            answers[step][failure] = response.status_code
            assert SECRET not in response.text
            if response.status_code == 502 and failure != BROKEN:
                assert response.headers["Retry-After"] == "7", (step, failure)
    assert answers == STEPS[verb]


@pytest.mark.parametrize("verb", STEPS)
def test_every_verb_succeeds_when_nothing_fails_and_asks_just_what_the_table_says(region: Region, verb: str) -> None:
    assert region.do(verb).status_code == SUCCESS.get(verb, 202)
    asked = {f"{request.method} {request.path}" for request in region.wire.requests}
    # glanceclient asks for the schema of its answers, once.
    assert asked - {"POST /identity/v3/auth/tokens", "GET /image/v2/schemas/image"} == set(STEPS[verb])


def test_b37_a_404_of_a_proxy_is_no_missing_instance(region: Region) -> None:
    region.wire.answers[ACTION] = region.wire.answers[CONSOLE] = Answer(404, "<html>no such page</html>")
    for verb in ("start", "consoleoutput", "consolesessions", "snapshot"):
        assert_error(region.do(verb), 502, "server_error")


def test_b37_an_image_that_glance_would_not_publish_is_deleted_again(region: Region) -> None:
    for failure in (429, 503, TIME_OUT):
        with region.failing(NEW_IMAGE_CHANGE, failure):
            region.do("snapshot", hastily=failure == TIME_OUT)
        assert region.wire.seen("DELETE", DELETE_NEW_IMAGE.removeprefix("DELETE ")), failure
        region.wire.requests.clear()
