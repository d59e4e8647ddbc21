"""The application over the embedded Kubernetes API in this process and a programmable cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server_api.access.digests import token_digest
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.http.application import build_app
from server_api.http.services import Ports, Services
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers.console import Console
from server_api.servers.lifecycle import Lifecycle
from server_api.servers.power import Power
from server_api.servers.provider_create_gates import ProviderCreateGates
from server_api.servers.snapshots import Snapshots
from server_api.servers.ssh_key import SSHKeys
from server_api.settings import Settings
from server_api.store import kinds, migration
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source
from server_api.store.credentials import KubernetesCredentials
from server_api.store.directory import KubernetesDirectory
from server_api.store.servers import KubernetesServerStore
from tests.api.identity import document as identity_document
from tests.api.openapi import Document
from tests.api.world import NAMESPACE, PEOPLE, World
from tests.doubles.clock import FixedClock
from tests.doubles.cloud import CloudDouble


class CheckedClient(FlaskClient):
    """A client that checks every answer under /api against the OpenAPI document."""

    document: Document

    def open(self, *arguments: Any, **options: Any) -> TestResponse:
        response = super().open(*arguments, **options)
        path = response.request.path
        if path.startswith("/api/") and response.request.method not in {"HEAD", "OPTIONS"}:
            body = response.get_json() if response.data else None
            self.document.check(response.request.method, path, response.status_code, response.mimetype or None, body)
        return response


class Api:
    """The API as a person in ``PEOPLE`` sees it."""

    def __init__(self, client: FlaskClient, who: str) -> None:
        self._client = client
        self._headers = PEOPLE[who].headers

    def request(self, method: str, path: str, **options: Any) -> TestResponse:
        headers = self._headers | options.pop("headers", {})
        return self._client.open(path, method=method, headers=headers, **options)

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.request("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> TestResponse:
        return self.request("POST", path, json=json, **options)

    def put(self, path: str, json: Any = None, **options: Any) -> TestResponse:
        return self.request("PUT", path, json=json, **options)

    def delete(self, path: str) -> TestResponse:
        return self.request("DELETE", path)

    def create(self, body: dict[str, Any]) -> str:
        """Create a server that must be accepted and return its ID."""
        response = self.post("/api/v2/servers", body)
        assert response.status_code == 201, response.text
        return str(response.get_json()["metadata"]["id"])


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedKubernetes, KubernetesClient]]:
    with EmbeddedKubernetes() as server:
        path = tmp_path_factory.mktemp("kubernetes") / "kubeconfig"
        server.kubeconfig(path, NAMESPACE)
        client = KubernetesClient(configuration_source(path), namespace=NAMESPACE)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        client.create(kinds.NAMESPACE, "", namespace)
        for step in migration.steps().values():
            step.apply(migration.Kubernetes(client, NAMESPACE))
        yield server, client


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [
        {"sha256": token_digest(who.token), "subject": who.subject, "accountType": "user", "acl": dict(who.acl)}
        for who in PEOPLE.values()
    ]
    path = tmp_path_factory.mktemp("access") / "tokens.yaml"
    path.write_text(yaml.safe_dump({"tokens": entries}))
    path.chmod(0o600)
    return path


@pytest.fixture
def settings(tokens: Path) -> Settings:
    return Settings(namespace=NAMESPACE, tokens_file=tokens, strict_authorization=True, max_body_bytes=200_000)


@pytest.fixture
def world(kubernetes: tuple[EmbeddedKubernetes, KubernetesClient]) -> World:
    server, client = kubernetes
    server.reset()
    made = World(client, CloudDouble())
    made.seed()
    return made


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def services(world: World, settings: Settings, clock: FixedClock) -> Services:
    servers = KubernetesServerStore(world.client, NAMESPACE)
    directory = KubernetesDirectory(world.client, NAMESPACE)
    assert settings.tokens_file is not None
    return Services(
        lifecycle=Lifecycle(servers, directory, world.cloud, clock),
        power=Power(servers, directory, world.cloud),
        console=Console(servers, directory, world.cloud),
        ssh_keys=SSHKeys(servers, directory, KubernetesCredentials(world.client, NAMESPACE)),
        snapshots=Snapshots(servers, directory, world.cloud),
        provider_create_gates=ProviderCreateGates(servers, clock),
        ports=Ports(servers, directory, world.cloud, clock),
        authenticator=CallerAuthenticator(TokenFile(settings.tokens_file)),
        readiness=world.client.ping,
    )


@pytest.fixture(scope="session")
def identity_service() -> Iterator[StandInIdentityService]:
    with StandInIdentityService(identity_document()) as server:
        yield server


@pytest.fixture
def identity(identity_service: StandInIdentityService) -> StandInIdentityService:
    """The stand-in identity service, which knows what it knew at first and has been asked nothing yet."""
    identity_service.know(identity_document())
    identity_service.app.calls.clear()
    identity_service.app.seen.clear()
    return identity_service


@pytest.fixture
def app(services: Services, settings: Settings) -> Flask:
    return build_app(services, settings)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return checked_client(app)


def checked_client(app: Flask) -> FlaskClient:
    """Return a client of the application that checks what it gets."""
    app.test_client_class = CheckedClient
    client = app.test_client()
    assert isinstance(client, CheckedClient)
    document = app.test_client_class(app, app.response_class).get("/openapi.json").get_json()
    client.document = Document(document)
    return client


@pytest.fixture
def admin(client: FlaskClient) -> Api:
    return Api(client, "ADMIN")


@pytest.fixture
def user(client: FlaskClient) -> Api:
    return Api(client, "USER")


@pytest.fixture
def reader(client: FlaskClient) -> Api:
    return Api(client, "READER")


@pytest.fixture
def other(client: FlaskClient) -> Api:
    return Api(client, "OTHER")
