"""An embedded Kubernetes API: small, honest, over SQLite. What it does not implement answers an error.

`docs/embedded-kubernetes.md` lists what it implements. Run it as a process with
`python -m server_api.sandbox.kubernetes`, or inside a test with `EmbeddedKubernetes`.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from .app import KubernetesApp
from .server import KubernetesServer

__all__ = ["EmbeddedKubernetes", "KubernetesApp", "write_kubeconfig"]


class EmbeddedKubernetes:
    """A server in a thread, on a free port of 127.0.0.1, until `close` or the end of the `with` block.

    database: path of the SQLite file; a temporary one by default, removed at the end.
    token: bearer token that clients must send; none by default.
    keep: how many changes a watch may lie behind before it gets 410.
    """

    def __init__(self, database: str | None = None, *, token: str | None = None, keep: int = 10_000) -> None:
        self._temporary = None if database else tempfile.TemporaryDirectory(prefix="embedded-kubernetes-")
        path = Path(database) if database else Path(self._temporary.name if self._temporary else "") / "objects.db"
        self.token = token
        self.app = KubernetesApp(path, keep=keep, token=token, durable=database is not None)
        self._server = KubernetesServer(self.app, 0)
        self.url = self._server.url
        self._thread = threading.Thread(target=self._server.serve, name="embedded-kubernetes")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every watch and every thread, and removes a temporary database. May be called again."""
        if self._thread.is_alive():
            self._server.stop()
            self._thread.join()
        if self._temporary:
            self._temporary.cleanup()

    def reset(self) -> None:
        """Removes every object but namespaces and custom resource definitions, finalizers or not."""
        self.app.verbs.reset()

    def compact(self) -> None:
        """Forgets the history of changes: every older resourceVersion is answered with 410 from now on."""
        self.app.store.compact()

    def kubeconfig(self, path: str | Path, namespace: str = "default") -> None:
        """Writes a kubeconfig for kubectl and the client libraries."""
        write_kubeconfig(path, self.url, self.token, namespace)


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
