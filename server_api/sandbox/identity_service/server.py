"""The stand-in on a port of 127.0.0.1."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml
from cheroot import wsgi

from .app import DROP, IdentityApp
from .records import Records

HOST = "127.0.0.1"
THREADS = 32


class StandInIdentityService:
    """A server in a thread until `close` or the end of the `with` block.

    `known` is the document of `records`, or the file it is in; a file is read again when it changes. `port` 0 takes a
    free one.
    """

    def __init__(self, known: Mapping[str, Any] | Path, *, port: int = 0) -> None:
        self._path = known if isinstance(known, Path) else None
        self._seen: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._records = Records({} if isinstance(known, Path) else known)
        self.app = IdentityApp(self._current)
        self._server = wsgi.Server((HOST, port), self.app, numthreads=THREADS, request_queue_size=128)
        self._server.gateway = _Gateway
        self._server.shutdown_timeout = 1
        self._server.expiration_interval = 0.1  # also how long `stop` takes to be noticed
        self._server.prepare()
        self.url = f"http://{HOST}:{self._server.bind_addr[1]}"
        self._thread = threading.Thread(target=self._server.serve, name="identity-service")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def know(self, document: Mapping[str, Any]) -> None:
        """Go on with another document."""
        self._records = Records(document)

    def close(self) -> None:
        """End every thread. May be called again."""
        if self._thread.is_alive():
            self._server.stop()
            self._thread.join()

    def _current(self) -> Records:
        if self._path is not None:
            with self._lock:
                state = self._path.stat()
                if (state.st_mtime_ns, state.st_ino) != self._seen:
                    self._records = Records(yaml.safe_load(self._path.read_text()))
                    self._seen = state.st_mtime_ns, state.st_ino
        return self._records


class _Gateway(wsgi.Gateway_10):
    def get_environ(self) -> Any:
        """The environment of one request."""
        environ = super().get_environ()  # type: ignore[no-untyped-call]
        environ[DROP] = lambda: self.req.conn.socket.shutdown(socket.SHUT_RDWR)
        return environ
