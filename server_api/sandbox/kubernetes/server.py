"""The API on a port of 127.0.0.1, in a process of its own or in a thread."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cheroot import wsgi

from .app import PEER_GONE

if TYPE_CHECKING:
    from .app import KubernetesApp

HOST = "127.0.0.1"
# Each watch holds a thread for as long as it lasts; what is left answers everything else.
THREADS = 64


class _Gateway(wsgi.Gateway_10):
    def get_environ(self) -> Any:
        """The environment of one request."""
        environ = super().get_environ()  # type: ignore[no-untyped-call]
        environ[PEER_GONE] = _peer_gone(self.req.conn.socket)
        return environ


def _peer_gone(connection: socket.socket) -> Callable[[], bool]:
    """Tells whether the client has closed the connection; a watch on which nothing happens finds out no other way."""

    def check() -> bool:
        try:
            readable, _, _ = select.select([connection], [], [], 0)
            return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    return check


class KubernetesServer:
    """Serves an application on a port; port 0 takes a free one."""

    def __init__(self, app: KubernetesApp, port: int) -> None:
        self._app = app
        self._server = wsgi.Server((HOST, port), app, numthreads=THREADS, request_queue_size=256)
        self._server.gateway = _Gateway
        self._server.shutdown_timeout = 1
        self._server.expiration_interval = 0.1  # also how long `stop` takes to be noticed
        self._server.prepare()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.bind_addr[1])

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://{HOST}:{self.port}"

    def serve(self) -> None:
        """Returns when `stop` is called."""
        self._server.serve()

    def stop(self) -> None:
        """Ends every watch, answers what has been accepted, and closes the database."""
        self._app.store.interrupt()
        self._server.stop()
        self._app.store.close()
