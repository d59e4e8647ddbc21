"""The API on a port of 127.0.0.1."""

from __future__ import annotations

import os
import select
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import yaml
from cheroot import wsgi

from .app import PEER_GONE, KubernetesApp

HOST = "127.0.0.1"
# Each watch holds a thread for as long as it lasts; what is left answers everything else.
THREADS = 64


class EmbeddedKubernetes:
    """A server in a thread until `close` or the end of the `with` block.

    database: path of the SQLite file; a temporary one by default, removed at the end.
    port: on 127.0.0.1; 0 takes a free one.
    token: bearer token that clients must send; none by default.
    keep: how many changes a watch may lie behind before it gets 410.
    """

    def __init__(
        self, database: str | Path | None = None, *, port: int = 0, token: str | None = None, keep: int = 10_000
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="embedded-kubernetes-")
        self._token = token
        self.app = KubernetesApp(Path(database or f"{self._temporary.name}/objects.db"), keep=keep, token=token)
        self._server = wsgi.Server((HOST, port), self.app, numthreads=THREADS, request_queue_size=256)
        self._server.gateway = _Gateway
        self._server.shutdown_timeout = 1
        self._server.expiration_interval = 0.1  # also how long `stop` takes to be noticed
        self._server.prepare()
        self.url = f"http://{HOST}:{self._server.bind_addr[1]}"
        self._thread = threading.Thread(target=self._server.serve, name="embedded-kubernetes")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every watch and every thread, and removes a temporary database. May be called again."""
        if self._thread.is_alive():
            self.app.store.interrupt()
            self._server.stop()
            self._thread.join()
            self.app.store.close()
        self._temporary.cleanup()

    def reset(self) -> None:
        """Removes every object but namespaces and custom resource definitions, finalizers or not."""
        self.app.verbs.reset()

    def compact(self) -> None:
        """Forgets the history of changes: every older resourceVersion is answered with 410 from now on."""
        self.app.store.compact()

    def kubeconfig(self, path: str | Path, namespace: str = "default") -> None:
        """Writes a kubeconfig, readable by its owner only, for kubectl and the client libraries."""
        write_kubeconfig(path, self.url, self._token, namespace)


def write_kubeconfig(path: str | Path, url: str, token: str | None = None, namespace: str = "default") -> None:
    """Writes a kubeconfig, readable by its owner only, with one context for the server at `url`."""
    name = "server-api-sandbox"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        yaml.safe_dump(document, file)


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
