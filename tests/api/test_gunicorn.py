"""The API under gunicorn as it is shipped: what never reaches Flask, and how it stops."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.store.client import KubernetesClient
from tests.api.world import NAMESPACE, PEOPLE

REPOSITORY = Path(__file__).parents[2]
USER = PEOPLE["USER"].headers
DRAIN_SECONDS = 2.0


@dataclass
class Served:
    """A running gunicorn."""

    process: subprocess.Popen[bytes]
    port: int
    directory: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text()

    def send(self, data: bytes) -> tuple[int, bytes, bytes]:
        """Send bytes on a connection of their own; return status, head and body of all that came back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(data)
            answer = b""
            while chunk := connection.recv(65_536):
                answer += chunk
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), head, body


def await_true(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Return when the condition holds. Fails when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=2).status_code == 200
    except requests.RequestException:
        return False


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve(
    kubernetes: tuple[EmbeddedKubernetes, KubernetesClient], tokens: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serve]:
    running: list[Served] = []

    def start(**settings: object) -> Served:
        directory = tmp_path_factory.mktemp("gunicorn")
        kubernetes[0].kubeconfig(directory / "kubeconfig", NAMESPACE)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = os.environ | {
            "PYTHONPATH": str(REPOSITORY),
            "SERVER_API_KUBECONFIG": str(directory / "kubeconfig"),
            "SERVER_API_NAMESPACE": NAMESPACE,
            "SERVER_API_TOKENS_FILE": str(tokens),
            "SERVER_API_BIND": f"127.0.0.1:{port}",
            **{f"SERVER_API_{name.upper()}": str(value) for name, value in settings.items()},
        }
        environment.pop("PROMETHEUS_MULTIPROC_DIR", None)
        with (directory / "log").open("wb") as log:
            command = [sys.executable, "-m", "gunicorn", "-c", str(REPOSITORY / "deploy/gunicorn.conf.py"), "wsgi:app"]
            process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log)
        served = Served(process, port, directory)
        running.append(served)
        await_true(lambda: process.poll() is not None or is_ready(served.url))
        assert process.poll() is None, served.log
        return served

    yield start
    for served in running:
        served.process.send_signal(signal.SIGINT)
        served.process.wait(20)


@pytest.fixture(scope="module")
def shared(serve: Serve) -> Served:
    return serve(workers=2)


@pytest.mark.parametrize(
    "lines",
    [
        [b"Content-Length: 5", b"Transfer-Encoding: chunked"],
        [b"Transfer-Encoding: \x0bchunked"],
        [b"Transfer-Encoding: ,chunked"],
        [b"Transfer-Encoding: chunked, identity"],
        [b"Transfer-Encoding : chunked"],
        [b"Content-Length: 5", b"Content-Length: 6"],
        [b"Content-Length: +5"],
        [b"X-Name\xa0: x"],
        [b"X-Name: a", b" folded"],
    ],
    ids=lambda lines: b",".join(lines).decode("latin1"),
)
def test_b63_smuggled_requests_are_refused_and_the_connection_closed(shared: Served, lines: list[bytes]) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    head = b"\r\n".join([b"POST /api/v2/servers HTTP/1.1", b"Host: x", b"Content-Type: application/json", *lines])
    status, answer, body = shared.send(head + b"\r\n\r\n0\r\n\r\n" + smuggled)
    assert status == 400
    assert b"Connection: close" in answer
    assert b'"error":"invalid_request"' in body
    assert b"HTTP/1.1" not in body


def test_b64_large_token_is_accepted(shared: Served) -> None:
    response = requests.get(f"{shared.url}/api/v2/servers", headers={"Authorization": "Bearer " + "x" * 12_288})
    assert response.status_code == 401
    assert response.json()["error_description"] == "the token is not valid"


def test_b64_header_over_the_limit_is_told_in_the_envelope_and_logged(shared: Served) -> None:
    response = requests.get(f"{shared.url}/healthz", headers={"Authorization": "Bearer " + "secret" * 4_000})
    assert response.status_code == 431
    assert response.json()["error"] == "invalid_request"
    assert re.fullmatch("[0-9a-f]{32}", response.json()["trace_id"])
    assert response.headers["Cache-Control"] == "no-cache"
    await_true(lambda: response.json()["trace_id"] in shared.log)
    assert "secretsecret" not in shared.log


def test_too_long_url_is_told_in_the_envelope(shared: Served) -> None:
    response = requests.get(f"{shared.url}/api/v2/servers?tag=" + "x" * 9_000)
    assert response.status_code == 414
    assert response.json()["error"] == "invalid_request"


def test_oversized_chunked_body(shared: Served) -> None:
    chunks = (b" " * 65_536 for _ in range(20))
    headers = USER | {"Content-Type": "application/json"}
    response = requests.post(f"{shared.url}/api/v2/servers", data=chunks, headers=headers)
    assert response.status_code == 413
    assert response.json()["error"] == "request_entity_too_large"


def test_encoded_slashes_and_control_characters_in_paths(shared: Served) -> None:
    for path, status in (("%00", 400), ("a%2Fb", 404), ("%0d%0a", 400)):
        assert (
            shared.send(b"GET /api/v2/servers/" + path.encode() + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[
                0
            ]
            == status
        )


def test_metrics_are_of_all_workers(shared: Served) -> None:
    def counted() -> float:
        text = requests.get(f"{shared.url}/metrics").text
        name = 'server_api_http_requests_total{method="GET",route="/api/version",status="200"} '
        return sum(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))

    before = counted()
    for _ in range(20):
        assert requests.get(f"{shared.url}/api/version", headers=USER).status_code == 200
    assert [counted() for _ in range(8)] == [before + 20] * 8


def test_b65_no_control_socket(shared: Served) -> None:
    listening = Path("/proc/net/unix").read_text()
    assert "gunicorn" not in listening
    assert "Control socket" not in shared.log


def test_b66_worker_count_is_the_setting(shared: Served) -> None:
    children = Path(f"/proc/{shared.process.pid}/task/{shared.process.pid}/children").read_text().split()
    assert len(children) == 2


def test_every_log_line_is_json(shared: Served) -> None:
    requests.get(f"{shared.url}/api/version", headers=USER)
    assert all(line.startswith("{") and line.endswith("}") for line in shared.log.splitlines())


def test_b62_no_request_fails_while_it_stops(serve: Serve) -> None:
    """Clients behave as behind a load balancer: they leave some time after ``/readyz`` began to fail."""
    served = serve(workers=2, drain_seconds=DRAIN_SECONDS)
    failures: list[str] = []
    answered: list[int] = []
    leave = threading.Event()

    def call(keep_alive: bool) -> None:
        session = requests.Session()
        while not leave.is_set():
            client = session if keep_alive else requests
            try:
                response = client.get(f"{served.url}/api/v2/servers", headers=USER, timeout=10)
                answered.append(response.status_code)
            except requests.RequestException as failure:
                failures.append(repr(failure))
            time.sleep(0.01)

    clients = [threading.Thread(target=call, args=(number % 2 == 0,)) for number in range(4)]
    for client in clients:
        client.start()
    await_true(lambda: len(answered) > 20)
    served.process.send_signal(signal.SIGTERM)
    await_true(lambda: requests.get(f"{served.url}/readyz", timeout=5).status_code == 503, seconds=1.0)
    before = len(answered)
    await_true(lambda: len(answered) > before + 20, seconds=DRAIN_SECONDS)
    leave.set()
    for client in clients:
        client.join()
    assert failures == []
    assert set(answered) == {200}
    assert served.process.wait(20) == 0


def test_b62_accepted_request_is_answered_after_the_listener_closed(serve: Serve) -> None:
    served = serve(workers=1, drain_seconds=0)
    body = b'{"metadata": {}}'
    head = (
        b"POST /api/v2/servers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer user\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(head + body[:5])
        time.sleep(0.5)  # The worker reads the head and then waits for the rest, which nothing outside shows.
        served.process.send_signal(signal.SIGTERM)
        await_true(lambda: "Handling signal: term" in served.log)
        connection.sendall(body[5:])
        answer = connection.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert served.process.wait(20) == 0


def test_second_sigterm_ends_the_draining(serve: Serve) -> None:
    served = serve(workers=1, drain_seconds=60)
    served.process.send_signal(signal.SIGTERM)
    await_true(lambda: not is_ready(served.url))
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(20) == 0


def test_b63_only_a_proxy_on_this_machine_may_say_how_a_request_came(shared: Served) -> None:
    """The configuration as gunicorn understands it: nobody else can make us believe that a request came by TLS."""
    environment = Path(f"/proc/{shared.process.pid}/environ").read_bytes().split(b"\0")
    known = dict(entry.decode().split("=", 1) for entry in environment if b"=" in entry)
    command = [sys.executable, "-m", "gunicorn", "--print-config", "-c", "deploy/gunicorn.conf.py", "wsgi:app"]
    printed = subprocess.run(command, cwd=REPOSITORY, env=known, capture_output=True, text=True, check=True).stdout
    configured = {
        name.strip(): value.strip() for name, _, value in (line.partition("=") for line in printed.split("\n"))
    }
    assert configured["forwarded_allow_ips"] == "['127.0.0.1', '::1']"
    assert configured["proxy_protocol"] in {"False", "off"}
    assert configured["header_map"] == "drop"


def test_b64_too_many_headers_are_told_in_the_envelope(shared: Served) -> None:
    response = requests.get(f"{shared.url}/healthz", headers={f"X-Header-{number}": "x" for number in range(120)})
    assert response.status_code == 431
    assert response.json()["error"] == "invalid_request"


def test_no_answer_says_what_serves_it(shared: Served) -> None:
    refused = shared.send(b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n")[1]
    assert requests.get(f"{shared.url}/api/version", headers=USER).headers["Server"] == "server-api"
    assert b"gunicorn" not in refused
    assert b"X-Content-Type-Options: nosniff" in refused


def test_workers_count_together_and_lose_no_audit_event(serve: Serve, tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    served = serve(workers=2, limit_subject="0.001:30", audit_log=audit, audit_log_bytes=3_000, audit_log_files=99)
    path = f"{served.url}/api/v2/servers/90000000-0000-4000-8000-000000000009/start"
    statuses = [requests.post(path, headers=USER).status_code for _ in range(50)]
    assert statuses == [404] * 30 + [429] * 20
    files = [file for file in tmp_path.iterdir() if file.suffix != ".lock"]
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(files) > 3
    assert [event["operation"]["id"] for event in events] == ["startServer"] * 30
