"""Connections and credentials for the Kubernetes API, one pool a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject

from server_api import trace
from server_api.servers.ports import Unavailable
from server_api.store.failures import KUBERNETES

_USER_AGENT = "server-api"

ConfigurationSource = Callable[[], Configuration]
"""Reads host, certificates and credentials afresh; raises ConfigException or OSError."""


def configuration_source(kubeconfig: Path | None) -> ConfigurationSource:
    """Return the reader of a kubeconfig file, of the files in ``$KUBECONFIG``, or of the pod's service account."""

    def read() -> Configuration:
        configuration = Configuration()
        files = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG")
        if files:
            read_files: Callable[..., None] = config.load_kube_config
            read_files(files, client_configuration=configuration, persist_config=False)
        else:
            read_service_account: Callable[..., None] = config.load_incluster_config
            read_service_account(client_configuration=configuration)
        return configuration

    return read


@dataclass(frozen=True, slots=True)
class Session:
    """A pool of connections and the credentials they are used with."""

    configuration: Configuration
    pool: urllib3.PoolManager
    process: int

    def headers(self) -> dict[str, str]:
        """Return the headers of every call: credentials, trace, and what we speak."""
        headers = {"Accept": "application/json", "User-Agent": _USER_AGENT}
        settings: Iterable[Any] = self.configuration.auth_settings().values()
        for setting in settings:
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"]
        if traceparent := trace.traceparent():
            headers["traceparent"] = traceparent
        return headers


class Connection:
    """Hands out the session of this process. It opens nothing until it is first asked: gunicorn forks before that."""

    def __init__(self, source: ConfigurationSource, connections: int) -> None:
        self._source = source
        self._connections = connections
        self._lock = threading.Lock()
        self._session: Session | None = None

    def session(self) -> Session:
        """Return the session in use. Raises Unavailable when the configuration cannot be read."""
        session = self._session
        # A pool taken along by a fork would share its sockets with the parent, and answers would be mixed up.
        if session is None or session.process != os.getpid():
            return self.renewed(session)
        return session

    def renewed(self, refused: Session | None) -> Session:
        """Read the configuration again, unless another thread has replaced ``refused`` already.

        A service account's token is rotated under a running process, and so may client certificates be: the pool,
        which is bound to them, is replaced too.
        """
        with self._lock:
            if self._session is refused or self._session is None:
                self._session = self._open()
            return self._session

    def _open(self) -> Session:
        try:
            configuration = self._source()
        except (config.ConfigException, OSError) as error:
            raise Unavailable(KUBERNETES, f"no usable client configuration: {error}") from None
        configuration.connection_pool_maxsize = self._connections
        configuration.retries = False  # A repeated write is the caller's decision.
        return Session(configuration, RESTClientObject(configuration).pool_manager, os.getpid())
