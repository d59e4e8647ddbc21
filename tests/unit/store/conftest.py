"""An embedded Kubernetes API with the migrations run, a scripted one for what a real one seldom does, and objects."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import Configuration

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.store.client import KubernetesClient
from server_api.store.migration import Migrator

NAMESPACE = "unikorn-region"
ID = "ed626a98-a0d7-5b9c-be46-a1083505313a"
NETWORK_ID = "aaaabbbb-1234-5678-9abc-def012345678"
FLAVOR_ID = "11111111-1234-4678-9abc-def012345678"
IMAGE_ID = "22222222-1234-4678-9abc-def012345678"


def client_of(url: str, token: str | None = None, **options: Any) -> KubernetesClient:
    def read() -> Configuration:
        credentials = {"BearerToken": f"Bearer {token}"} if token else {}
        return Configuration(host=url, api_key=credentials)

    return KubernetesClient(read, namespace=NAMESPACE, **options)


@pytest.fixture(scope="session")
def migrated() -> Iterator[EmbeddedKubernetes]:
    with EmbeddedKubernetes() as kubernetes:
        Migrator(client_of(kubernetes.url), NAMESPACE, say=lambda line: None).run()
        yield kubernetes


@pytest.fixture
def kubernetes(migrated: EmbeddedKubernetes) -> EmbeddedKubernetes:
    migrated.reset()
    return migrated


@pytest.fixture
def client(kubernetes: EmbeddedKubernetes) -> KubernetesClient:
    return client_of(kubernetes.url)


@pytest.fixture
def namespace() -> str:
    return NAMESPACE


@pytest.fixture
def stored_server() -> dict[str, Any]:
    """A v2 server in full, with what this version of the model cannot express."""
    return {
        "apiVersion": "region.unikorn-cloud.org/v1alpha1",
        "kind": "Server",
        "metadata": {
            "name": ID,
            "namespace": NAMESPACE,
            "uid": "5f3c8f0e-0000-4000-8000-000000000001",
            "resourceVersion": "41",
            "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["unikorn"],
            "labels": {
                "unikorn-cloud.org/name": "web-0",
                "unikorn-cloud.org/organization": "organization-1",
                "unikorn-cloud.org/project": "project-1",
                "regions.unikorn-cloud.org/region-id": "region-1",
                "regions.unikorn-cloud.org/identity-id": "identity-1",
                "regions.unikorn-cloud.org/network-id": NETWORK_ID,
                "resource.unikorn-cloud.org/api-version": "2",
                "example.com/of-others": "kept",
            },
            "annotations": {
                "unikorn-cloud.org/description": "the first",
                "unikorn-cloud.org/creator": "alice",
                "principal.unikorn-cloud.org/creator": "bob",
                "example.com/of-others": "kept",
            },
            "ownerReferences": [
                {
                    "apiVersion": "region.unikorn-cloud.org/v1alpha1",
                    "kind": "Network",
                    "name": NETWORK_ID,
                    "uid": "5f3c8f0e-0000-4000-8000-000000000002",
                    "controller": False,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "provider": "openstack",
            "flavorID": FLAVOR_ID,
            "image": {"id": IMAGE_ID, "ofOthers": "kept"},
            "tags": [{"name": "tier", "value": "front"}],
            "networks": [
                {"id": NETWORK_ID, "ofOthers": "kept", "allowedAddressPairs": [{"cidr": "10.0.0.0/24"}]},
            ],
            "securityGroups": [{"id": NETWORK_ID, "ofOthers": "kept"}],
            "publicIPAllocation": {"enabled": True},
            "userData": "I2Nsb3VkLWNvbmZpZwo=",
            "volumes": [{"id": "volume-1"}],
        },
        "status": {
            "phase": "Running",
            "privateIP": "10.0.0.5",
            "conditions": [
                {
                    "type": "Available",
                    "status": "True",
                    "reason": "Provisioned",
                    "message": "",
                    "lastTransitionTime": "2026-01-02T03:05:00Z",
                    "observedGeneration": 3,
                },
                {
                    "type": "OfOthers",
                    "status": "True",
                    "reason": "Kept",
                    "message": "",
                    "lastTransitionTime": "2026-01-02T03:05:00Z",
                },
            ],
            "volumes": [{"id": "volume-1", "provisioningStatus": "Provisioned", "message": ""}],
        },
    }


@dataclass
class Request:
    """One request as it was on the wire; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = bytes | Callable[[socket.socket], None]
"""Raw bytes, after which the connection closes, or whatever a function does with the connection."""


@dataclass
class ScriptedApi:
    """A server that gives prepared answers in order, the last one again and again, and remembers the requests."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    finished: threading.Event = field(default_factory=threading.Event)

    def will_answer(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = _read(connection)
            if request is None:
                return
            self.requests.append(request)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)


def _read(connection: socket.socket) -> Request | None:
    with connection.makefile("rb") as stream:
        start = stream.readline().decode()
        if not start:
            return None
        headers = {}
        while (line := stream.readline().decode().strip()) != "":
            key, _, value = line.partition(":")
            headers[key.lower()] = value.strip()
        method, target, _ = start.split(" ")
        return Request(method, target, headers, stream.read(int(headers.get("content-length", 0))))


@pytest.fixture
def scripted_api() -> Iterator[ScriptedApi]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api = ScriptedApi(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=api.serve, args=(listener,), daemon=True).start()
        yield api
        api.finished.set()
        listener.shutdown(socket.SHUT_RDWR)


def _http(status: int, content: Any, **headers: str) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    fields |= {key.replace("_", "-"): value for key, value in headers.items()}
    head = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
    return f"HTTP/1.1 {status} Scripted\r\n{head}\r\n".encode() + body


@pytest.fixture
def http() -> Callable[..., bytes]:
    """Builds a raw answer from status, JSON document or bytes, and headers."""
    return _http


@pytest.fixture
def connect() -> Callable[..., KubernetesClient]:
    """Builds a client from an address, a token and options of KubernetesClient."""
    return client_of


@pytest.fixture
def migrations_directory() -> Path:
    return Path(__file__).parents[3] / "migrations"
