"""What ``test_secrets`` uses: secrets that can be recognised, a cloud that babbles, and who listens to all of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server_api.store import kinds
from tests.api.wired_cloud import ACTION, CONSOLE, INSTANCE, SERVER
from tests.api.world import NAMESPACE, REGION, SECOND_IMAGE, World, create_body, update_body
from tests.unit.cloud.conftest import Answer, Request, Wire

SERVERS = "/api/v2/servers"
NEW_INSTANCE = "POST /compute/v2.1/servers"
LOG_IN = "POST /identity/v3/auth/tokens"

MARKERS = {
    "user data": "marker-of-the-user-data",
    "bearer token": "marker-of-the-bearer-token",
    "wrong token": "marker-of-the-wrong-token",
    "private key": "marker-of-the-private-key",
    "console output": "marker-of-the-console-output",
    "console URL": "marker-of-the-console-url",
    "identity's password": "marker-of-the-identitys-password",
    "region's password": "marker-of-the-regions-password",
    "keystone token": "gAAAAAmarker-of-the-keystone-token",
}
OWN_DOORS = {
    "listServers": "user data",
    "createServer": "user data",
    "getServer": "user data",
    "updateServer": "user data",
    "getSshKey": "private key",
    "getConsoleOutput": "console output",
    "getConsoleSession": "console URL",
}
"""The operations whose answer holds a secret when all goes well, and which."""

VERBS = ("start", "stop", "softReboot", "hardReboot")

SCRIPT = f"#!/bin/sh\n# {MARKERS['user data']}\n".encode()
USER_DATA = base64.b64encode(SCRIPT).decode()
CHANGED_USER_DATA = base64.b64encode(SCRIPT + b"exit\n").decode()
PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{MARKERS['private key']}\n-----END PRIVATE KEY-----\n"


def forms(marker: str) -> list[str]:
    """Return the marker as it is, and what of it shows in base64, at whatever offset it stands."""
    encoded = (base64.b64encode(b"-" * offset + marker.encode()).decode()[4:-4] for offset in range(3))
    return [marker, *encoded]


def found(text: str) -> set[str]:
    return {what for what, marker in MARKERS.items() if any(form in text for form in forms(marker))}


@dataclass
class Bench:
    """Everything that handles secrets, and what it let out: its answers by operation."""

    world: World
    wire: Wire
    client: FlaskClient
    reconcile: Callable[[str], object]
    answers: list[tuple[str, TestResponse]] = field(default_factory=list)

    def call(
        self, operation: str, method: str, path: str, body: Any = None, token: str = "bearer token"
    ) -> TestResponse:
        headers = {"Authorization": f"Bearer {MARKERS.get(token, token)}"}
        data = {"data": body, "content_type": "application/json"} if isinstance(body, str) else {"json": body}
        response = self.client.open(path, method=method, headers=headers, **data)
        self.answers.append((operation, response))
        return response

    def use(self, server_id: str, token: str = "bearer token") -> dict[str, int]:
        """Call every operation there is on one server, and return the statuses of the answers."""
        one = f"{SERVERS}/{server_id}"
        snapshot = {"metadata": {"name": "s"}, "spec": {}}
        action = {"conditionType": "gate", "reason": "Ready", "message": "fine"}
        calls: list[tuple[str, str, str, Any]] = [
            ("getVersion", "GET", "/api/version", None),
            ("createServer", "POST", SERVERS, create_body("second", userData=USER_DATA)),
            ("listServers", "GET", SERVERS, None),
            ("getServer", "GET", one, None),
            ("updateServer", "PUT", one, update_body(userData=CHANGED_USER_DATA, imageId=SECOND_IMAGE)),
            *((f"{verb}Server", "POST", f"{one}/{verb.lower()}", None) for verb in VERBS),
            ("getSshKey", "GET", f"{one}/sshkey", None),
            ("getConsoleOutput", "GET", f"{one}/consoleoutput", None),
            ("getConsoleSession", "GET", f"{one}/consolesessions", None),
            ("createSnapshot", "POST", f"{one}/snapshot", snapshot),
            ("satisfyProviderCreateGate", "POST", f"{one}/provider-create-gates", action),
            ("deleteServer", "DELETE", one, None),
        ]
        return {call[0]: self.call(*call, token=token).status_code for call in calls}

    def let_out(self) -> str:
        """Return everything that nobody should find a secret in: errors, events, and what the statuses say."""
        refused = [response.text + str(response.headers) for _, response in self.answers if response.status_code >= 400]
        events = self.world.client.list(kinds.EVENT, NAMESPACE).items
        statuses = [item.get("status") for item in self.world.client.list(kinds.SERVER, NAMESPACE).items]
        return "\n".join([*refused, json.dumps([events, statuses]), self.client.get("/metrics").text])

    def keep(self) -> None:
        """Store the server that has an instance, with user data and a gate, so that its deletion never ends."""
        self.world.bare_server(
            SERVER, userData=USER_DATA, providerCreateGates=[{"conditionType": "gate"}], name="web-0"
        )
        self.world.patch(SERVER, metadata={"finalizers": ["unikorn"]})

    def operations(self) -> set[str]:
        """Return all operations of the document that need credentials; those of v1 have a test of their own."""
        paths = self.client.get("/openapi.json").get_json()["paths"].values()
        items = [item for path in paths for item in path.values() if isinstance(item, dict)]
        return {item["operationId"] for item in items if item.get("security") != [] and not item.get("deprecated")}


def store_service_account(world: World) -> None:
    values = {
        "domain-id": "default",
        "user-id": "service",
        "password": MARKERS["region's password"],
        "project-id": "region-project",
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "account", "namespace": NAMESPACE},
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items()},
    }
    world.client.create(kinds.SECRET, NAMESPACE, secret)
    reference = {"serviceAccountSecret": {"namespace": NAMESPACE, "name": "account"}}
    world.client.patch(kinds.REGION, NAMESPACE, REGION, {"spec": {"openstack": reference}})


def with_marked_token(log_in: Any, wire: Wire) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        given: Answer = log_in(request)
        wire.valid_token = given.headers["X-Subject-Token"] = MARKERS["keystone token"]
        return given

    return answer


def telling_secrets(wire: Wire) -> dict[str, Answer | Callable[[Request], Answer]]:
    """Return Nova's answers that hold secrets because they are asked for."""
    url = f"http://console.invalid/vnc_lite.html?path=%3Ftoken%3D{MARKERS['console URL']}"
    as_before: Any = wire.answers[ACTION]

    def act(request: Request) -> Answer:
        if "os-getConsoleOutput" in request.body:
            return Answer(body={"output": f"login: {MARKERS['console output']}"})
        given: Answer = as_before(request)
        return given

    return {
        ACTION: act,
        CONSOLE: Answer(body={"remote_console": {"protocol": "vnc", "type": "novnc", "url": url}}),
        NEW_INSTANCE: Answer(202, {"server": {"id": INSTANCE, "links": [], "adminPass": "hush"}}),
    }


def babbling(status: int) -> Callable[[Request], Answer]:
    """Return a failure whose message repeats what is secret in the request, as OpenStack's messages do."""

    def answer(request: Request) -> Answer:
        order = json.loads(request.text or "{}")
        if "server" in order or "auth" in order:
            value = order.get("server", {}).get("user_data") or request.text
            message = f"nonsense in the request. Value: {value}. It is not what was expected."
        else:
            place = f"http://console.invalid/vnc_lite.html?token={MARKERS['console URL']}"
            message = f"nonsense from {request.headers.get('X-Auth-Token')} at {place}"
        return Answer(status, {"computeFault": {"code": status, "message": message}})

    return answer
