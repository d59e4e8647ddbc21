"""An OpenStack on the wire: one HTTP server that plays Keystone, Nova, Glance and Neutron as each test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from server_api.cloud import OpenStackCloud
from server_api.cloud.sessions import CloudClients, CloudCredential, SessionPool
from server_api.servers.ports import Missing
from server_api.servers.surroundings import IdentityCredentials, Region, ServiceAccount
from server_api.settings import Settings

PASSWORD = "s3cret-pass-phrase"


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)


@dataclass
class Answer:
    """What to answer; a ``body`` that is no text is sent as JSON."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class Wire:
    """The server: ``answers`` maps "METHOD /path" to an Answer or to a function of the Request.

    ``endpoints`` is Keystone's catalogue: the path of each service by type.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer | Callable[[Request], Answer]] = {
            "POST /identity/v3/auth/tokens": self._log_in,
            "GET /network/": self._network_versions,
            "GET /image/v2/schemas/image": Answer(body={"name": "image", "properties": {}}),
            "GET /compute/v2.1/servers": Answer(body={"servers": []}),
        }
        self.endpoints = {
            "compute": "/compute/v2.1",
            "image": "/image",
            "network": "/network",
            "placement": "/placement",
            "baremetal": "/baremetal",
        }
        self.requests: list[Request] = []
        self.log_ins = 0
        self.connections = 0
        self.valid_token: str | None = None
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def hang(self, _: Request) -> Answer:
        """Answer only when the test is over."""
        self._released.wait(30)
        return Answer()

    def seen(self, method: str, path: str) -> list[Request]:
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def _log_in(self, _: Request) -> Answer:
        with self._lock:
            self.log_ins += 1
            self.valid_token = f"gAAAAAtoken-{self.log_ins}"
        catalogue = [
            {"type": type_, "endpoints": [{"interface": "public", "region": "here", "url": self.url + path}]}
            for type_, path in self.endpoints.items()
        ]
        token = {"expires_at": "2199-01-01T00:00:00Z", "catalog": catalogue, "project": {"id": "project"}}
        token["user"] = {"id": "user"}
        return Answer(201, {"token": token}, {"X-Subject-Token": self.valid_token})

    def _network_versions(self, _: Request) -> Answer:
        version = {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": f"{self.url}/network/v2.0/"}]}
        return Answer(body={"versions": [version]})

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
        if not request.path.startswith("/identity") and request.headers.get("X-Auth-Token", self.valid_token) != (
            self.valid_token
        ):
            return Answer(401, {"error": {"message": "token expired"}})
        answer = self.answers.get(f"{request.method} {request.path}", Answer(404, "<h1>nothing here</h1>"))
        return answer(request) if callable(answer) else answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                wire.connections += 1

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length", 0))
                request = Request(
                    self.command,
                    parts.path,
                    parse_qs(parts.query),
                    self.headers,
                    self.rfile.read(length).decode(),
                )
                answer = wire._answer(request)
                is_text = isinstance(answer.body, str)
                body = (answer.body if is_text else json.dumps(answer.body)).encode()
                if answer.status == 204:
                    body = b""
                self.send_response(answer.status)
                headers = {"Content-Type": "text/html" if is_text else "application/json", **answer.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class StoredCredentials:
    """The port ``Credentials`` over dictionaries."""

    def __init__(self) -> None:
        self.identities = {"identity": IdentityCredentials("user", PASSWORD, "project", ssh_key_name="key")}
        self.account = ServiceAccount("default", "service", PASSWORD, "region-project")
        self.account_reads = 0

    def identity_credentials(self, identity_id: str) -> IdentityCredentials:
        if identity_id not in self.identities:
            raise Missing("kubernetes", "no such identity")
        return self.identities[identity_id]

    def service_account(self, region: Region) -> ServiceAccount:
        self.account_reads += 1
        return self.account


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Talk to the server directly on machines where a proxy is configured."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def wire() -> Iterator[Wire]:
    server = Wire()
    yield server
    server.close()


@pytest.fixture
def settings() -> Settings:
    return Settings(connect_timeout=2, read_timeout=5)


@pytest.fixture
def credential(wire: Wire) -> CloudCredential:
    return CloudCredential(f"{wire.url}/identity/v3", "user", PASSWORD, "project")


@pytest.fixture
def clients(credential: CloudCredential, settings: Settings) -> CloudClients:
    return SessionPool(settings).clients(credential)


@pytest.fixture
def credentials() -> StoredCredentials:
    return StoredCredentials()


@pytest.fixture
def cloud(credentials: StoredCredentials, settings: Settings) -> OpenStackCloud:
    return OpenStackCloud(credentials, settings)


@pytest.fixture
def region(wire: Wire) -> Region:
    return Region("region", "here", "openstack", f"{wire.url}/identity", "namespace", "secret")


@pytest.fixture
def answer() -> type[Answer]:
    return Answer
