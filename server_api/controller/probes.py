"""The controller's own HTTP endpoint: /healthz, /readyz and /metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

Probe = Callable[[], Sequence[str]]
"""Returns what is wrong, in words fit for an operator; nothing when all is well."""


class ProbeServer:
    """Answers probes and metrics on ``bind``, ``host:port``; port 0 lets the system choose one.

    Binds at once: raises OSError when the address is taken, ValueError when ``bind`` is no address.
    """

    def __init__(self, bind: str, health: Probe, readiness: Probe, registry: CollectorRegistry) -> None:
        routes: dict[str, Callable[[], _Answer]] = {
            "/healthz": lambda: _verdict(health()),
            "/readyz": lambda: _verdict(readiness()),
            "/metrics": lambda: _Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry)),
        }

        def handler(request: Any, client: Any, server: BaseServer) -> _Handler:
            return _Handler(routes, request, client, server)

        self._server = ThreadingHTTPServer(_address(bind), handler)
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def run(self) -> None:
        """Answer until ``close``."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop answering, and free the port. To be called only while ``run`` runs, from another thread."""
        self._server.shutdown()
        self._server.server_close()


class _Answer:
    def __init__(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.status = status
        self.content_type = content_type
        self.body = body


class _Handler(BaseHTTPRequestHandler):
    server_version = "server-api-controller"
    sys_version = ""
    timeout = 5.0  # seconds; a client that connects and says nothing must not keep a thread

    def __init__(self, routes: dict[str, Callable[[], _Answer]], request: Any, client: Any, server: BaseServer) -> None:
        self._routes = routes
        super().__init__(request, client, server)

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing: probes come every few seconds, and their answers are metrics."""

    def _send(self, *, with_body: bool) -> None:
        answer = self._answer()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)

    def _answer(self) -> _Answer:
        route = self._routes.get(self.path.partition("?")[0])
        return route() if route else _json(HTTPStatus.NOT_FOUND, {"error": "not_found"})


def _verdict(problems: Sequence[str]) -> _Answer:
    if problems:
        return _json(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "failing", "problems": list(problems)})
    return _json(HTTPStatus.OK, {"status": "ok"})


def _json(status: HTTPStatus, document: Any) -> _Answer:
    return _Answer(status, "application/json", json.dumps(document).encode())


def _address(bind: str) -> tuple[str, int]:
    host, separator, port = bind.rpartition(":")
    if not separator or not port.isdecimal():
        raise ValueError(f"not an address to listen on, host:port: {bind!r}")
    return host, int(port)
