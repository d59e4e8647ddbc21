"""The audit log: which requests are in it, what it says of them, and what it never says (contract 5.8)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.access.acl import Acl
from server_api.access.authentication import Credentials, InvalidCredentials
from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.access.principal import Principal
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.http.application import build_app
from server_api.http.routes import operation_id
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api import service_caller
from tests.api.conftest import Api, checked_client
from tests.api.test_provider_create_gates import GATE, action, gates
from tests.api.world import (
    IMAGE,
    NOWHERE,
    ORGANIZATION,
    PEOPLE,
    PROJECT,
    SECOND_IMAGE,
    World,
    create_body,
    update_body,
)

SERVERS = "/api/v2/servers"
TENANT = {"organizationId": ORGANIZATION, "projectId": PROJECT}
SECRET_READS = ("getSshKey", "getConsoleSession")
USER_DATA = base64.b64encode(b"#cloud-config\nmarker: of-the-user-data\n").decode()
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Audit:
    """The application's audit file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def events(self) -> list[dict[str, Any]]:
        """Return the events since the last call."""
        text = self.path.read_text()
        self.path.write_text("")
        return [json.loads(line) for line in text.splitlines()]

    def only(self) -> dict[str, Any]:
        """Return the one event since the last call."""
        [event] = self.events()
        return event


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return Audit(tmp_path / "audit.log")


@pytest.fixture
def settings(settings: Settings, audit: Audit) -> Settings:
    return replace(settings, audit_log=str(audit.path))


def operations(app: Flask) -> list[tuple[str, str, str]]:
    """Return method, path and ID of every operation there is."""
    return [
        (method, _filled(rule.rule), operation_id(rule.endpoint.rsplit(".", 1)[-1]))
        for rule in app.url_map.iter_rules()
        for method in sorted(rule.methods - {"OPTIONS", "HEAD"})
        if rule.rule.startswith("/api/")
    ]


def _filled(rule: str) -> str:
    return "/".join(NOWHERE if segment.startswith("<") else segment for segment in rule.split("/"))


def test_every_operation_that_changes_something_or_hands_out_a_secret_is_there_once(
    app: Flask, user: Api, audit: Audit
) -> None:
    for method, path, operation in operations(app):
        status = user.request(method, path).status_code
        found = [(event["operation"]["verb"], event["operation"]["id"]) for event in audit.events()]
        expected = method != "GET" or operation.startswith(SECRET_READS) or status == 403
        assert found == ([(method, operation)] if expected else []), (method, path)


def test_every_request_without_good_credentials_is_there_once(app: Flask, client: FlaskClient, audit: Audit) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        for method, path, operation in operations(app):
            client.open(path, method=method, headers=headers)
            event = audit.only()
            assert event["operation"] == {"verb": method, "id": operation}
            assert event["actor"] is None
            assert event["result"] == {"status": 401, "outcome": "denied"}
            assert "principal" not in event


def test_a_create_says_who_did_what_and_where(user: Api, audit: Audit) -> None:
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    server_id = user.post(SERVERS, create_body(), headers=headers).get_json()["metadata"]["id"]
    event = audit.only()
    assert event.pop("timestamp")
    assert event.pop("component")["name"] == "unikorn-region-server-api"
    assert event == {
        "event": "audit",
        "actor": {"subject": PEOPLE["USER"].subject, "accountType": "user"},
        "principal": {
            "actor": PEOPLE["USER"].subject,
            "organizationId": None,
            "projectId": None,
            "impersonated": False,
        },
        "operation": {"verb": "POST", "id": "createServer"},
        "scope": {},
        "tenant": TENANT,
        "resource": {"type": "servers", "id": server_id},
        "result": {"status": 201, "outcome": "success"},
        "peer": "127.0.0.1",
        "trace_id": TRACE,
    }


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        (lambda api, path: api.post(f"{path}/stop"), "stopServer"),
        (lambda api, path: api.post(f"{path}/hardreboot"), "hardRebootServer"),
        (lambda api, path: api.delete(path), "deleteServer"),
    ],
)
def test_a_verb_without_a_body_names_its_server(
    user: Api, world: World, audit: Audit, call: Callable[[Api, str], Any], operation: str
) -> None:
    server_id = user.create(create_body())
    world.cloud.hold(server_id, "web-0")
    audit.events()
    assert call(user, f"{SERVERS}/{server_id}").status_code == 202
    event = audit.only()
    assert event["operation"]["id"] == operation
    assert event["scope"] == {"serverID": server_id}
    assert event["resource"] == {"type": "servers", "id": server_id}
    assert event["tenant"] == TENANT
    assert event["result"] == {"status": 202, "outcome": "success"}


def test_a_snapshot_names_the_image(admin: Api, world: World, audit: Audit) -> None:
    server_id = admin.create(create_body())
    world.cloud.hold(server_id, "web-0")
    audit.events()
    answer = admin.post(f"{SERVERS}/{server_id}/snapshot", {"metadata": {"name": "s"}, "spec": {}})
    event = audit.only()
    assert event["resource"] == {"type": "snapshot", "id": answer.get_json()["metadata"]["id"]}
    assert event["scope"] == {"serverID": server_id}


def test_what_is_forbidden_says_which_right_is_lacking(user: Api, reader: Api, other: Api, audit: Audit) -> None:
    server_id = user.create(create_body())
    audit.events()
    assert reader.delete(f"{SERVERS}/{server_id}").status_code == 403
    event = audit.only()
    assert event["actor"]["subject"] == PEOPLE["READER"].subject
    assert event["result"] == {"status": 403, "outcome": "denied"}
    assert event["lacking"] == {"permission": "region:servers", "operation": "delete"}
    assert event["tenant"] == TENANT
    assert other.get(f"{SERVERS}/{server_id}").status_code == 403
    event = audit.only()
    assert event["operation"]["id"] == "getServer"
    assert event["lacking"] == {"permission": "region:servers", "operation": "read"}
    assert event["tenant"] == TENANT


def test_what_is_forbidden_to_create_names_no_server(reader: Api, audit: Audit) -> None:
    assert reader.post(SERVERS, create_body()).status_code == 403
    event = audit.only()
    assert event["resource"] == {"type": "servers"}
    assert event["tenant"] == TENANT
    assert event["lacking"] == {"permission": "region:servers", "operation": "create"}


def test_b20_the_audit_log_tells_a_rebuild_from_any_other_update(user: Api, world: World, audit: Audit) -> None:
    world.image(SECOND_IMAGE)
    path = f"{SERVERS}/{user.create(create_body())}"
    audit.events()
    assert user.put(path, update_body(metadata={"description": "d"})).status_code == 202
    assert "rebuild" not in audit.only()
    assert user.put(path, update_body(imageId=SECOND_IMAGE)).status_code == 202
    assert audit.only()["rebuild"] == {"from": IMAGE, "to": SECOND_IMAGE}
    assert user.put(path, update_body(imageId=NOWHERE)).status_code == 404
    assert "rebuild" not in audit.only()


def test_a_gate_is_named_and_its_message_is_not(client: FlaskClient, user: Api, audit: Audit) -> None:
    server_id = user.create(create_body(providerCreateGates=gates(GATE)))
    audit.events()
    body = action(message="marker-of-the-message")
    assert Api(client, "SERVICE").post(f"{SERVERS}/{server_id}/provider-create-gates", body).status_code == 202
    assert "marker" not in audit.path.read_text()
    event = audit.only()
    assert event["gate"] == GATE
    assert event["actor"]["subject"] == PEOPLE["SERVICE"].subject
    assert event["resource"] == {"type": "servers", "id": server_id}


def test_no_event_holds_a_secret(user: Api, world: World, audit: Audit) -> None:
    world.key_pair("-----BEGIN OPENSSH PRIVATE KEY-----\nmarker-of-the-key\n-----END OPENSSH PRIVATE KEY-----\n")
    server_id = user.create(create_body(userData=USER_DATA, sshInjection="none"))
    keyed = user.create(create_body("web-1"))
    world.cloud.hold(server_id, "web-0")
    assert user.get(f"{SERVERS}/{keyed}/sshkey").status_code == 200
    assert user.get(f"{SERVERS}/{server_id}/consolesessions").status_code == 200
    user.post(f"{SERVERS}/{server_id}/stop?token=marker-of-the-query")
    user.post(SERVERS, headers={"Authorization": "Bearer marker-of-the-token"})
    text = audit.path.read_text()
    assert len(audit.events()) == 6
    for secret in ("marker", USER_DATA, "console.invalid", "http", "Bearer"):
        assert secret not in text


def test_what_nobody_was_asked_for_is_not_there(user: Api, client: FlaskClient, audit: Audit) -> None:
    for method, path in (("DELETE", f"{SERVERS}/none"), ("POST", "/api/v3"), ("PATCH", SERVERS), ("OPTIONS", SERVERS)):
        client.open(path, method=method)
    client.get("/healthz")
    user.get(SERVERS)
    assert audit.events() == []


@dataclass
class Somebody:
    """Authenticates everybody as one principal, or refuses."""

    principal: Principal | None

    def authenticate(self, _credentials: Credentials) -> Principal:
        if self.principal is None:
            raise InvalidCredentials("headers about client certificates are not accepted from this address")
        return self.principal


def called_by(principal: Principal | None, services: Services, settings: Settings) -> Api:
    client = checked_client(build_app(replace(services, authenticator=Somebody(principal)), settings))
    return Api(client, "USER")


def test_a_service_is_named_with_whom_it_calls_for(services: Services, settings: Settings, audit: Audit) -> None:
    acl = Acl.from_document(PEOPLE["OPERATOR"].acl)
    principal = Principal(
        subject="unikorn-compute",
        account_type="system",
        acl=acl,
        actor="alice@example.com",
        organization_id=ORGANIZATION,
        project_id=PROJECT,
        impersonating=True,
        service="unikorn-compute",
    )
    called_by(principal, services, settings).create(create_body())
    event = audit.only()
    assert event["actor"] == {"subject": "unikorn-compute", "accountType": "system", "service": "unikorn-compute"}
    assert event["principal"] == {
        "actor": "alice@example.com",
        "organizationId": ORGANIZATION,
        "projectId": PROJECT,
        "impersonated": True,
    }


def test_a_service_that_sends_a_users_token_is_named_beside_the_user(
    services: Services, settings: Settings, audit: Audit
) -> None:
    assert settings.tokens_file is not None
    certificates = ClientCertificates(trusted_networks("127.0.0.1"))
    authenticator = CallerAuthenticator(TokenFile(settings.tokens_file), certificates)
    client = checked_client(build_app(replace(services, authenticator=authenticator), settings))
    headers = service_caller.headers({"actor": "carol@example.com", "organizationId": ORGANIZATION})
    client.delete(f"{SERVERS}/{NOWHERE}", headers=PEOPLE["USER"].headers | headers)
    event = audit.only()
    assert event["actor"] == {
        "subject": PEOPLE["USER"].subject,
        "accountType": "user",
        "service": service_caller.COMPUTE,
    }
    assert event["principal"]["actor"] == "carol@example.com"
    assert event["principal"]["organizationId"] == ORGANIZATION


def test_whoever_pretends_to_be_a_service_is_there(services: Services, settings: Settings, audit: Audit) -> None:
    assert called_by(None, services, settings).get(SERVERS).status_code == 400
    assert audit.only()["result"] == {"status": 400, "outcome": "denied"}


def test_what_a_limit_turns_away_is_not_there(services: Services, settings: Settings, audit: Audit) -> None:
    limited = replace(settings, limit_subject="0.01:1", limit_peer="0.01:1")
    client = checked_client(build_app(services, limited))
    client.environ_base["REMOTE_ADDR"] = "192.0.2.1"
    user = Api(client, "USER")
    assert [user.post(SERVERS, {}).status_code for _ in range(3)] == [400, 429, 429]
    assert [client.post(SERVERS).status_code for _ in range(3)] == [401, 429, 429]
    assert [event["result"]["status"] for event in audit.events()] == [400, 401]
