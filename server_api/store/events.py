"""Kubernetes Events: where an operator reads what happened to a server (``kubectl describe``)."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from cachetools import LRUCache

from server_api import deadline
from server_api.servers.model import Server
from server_api.servers.ports import EventType, Missing, PortError
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.tolerant import timestamp

_COMPONENT = "server-api"
_REMEMBERED = 1024
_LONGEST_MESSAGE = 1024
_MOST_SECONDS = 3.0

_log = logging.getLogger(__name__)

_Key = tuple[str, str, EventType, str, str]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class KubernetesEvents:
    """``ports.Events``: a repeated event counts up instead of filling the store (known failure B-47)."""

    def __init__(self, client: KubernetesClient, namespace: str, now: Callable[[], datetime] = _utc_now) -> None:
        self._client = client
        self._namespace = namespace
        self._now = now
        self._lock = threading.Lock()
        self._recorded: LRUCache[_Key, tuple[str, int]] = LRUCache(_REMEMBERED)

    def record(self, server: Server, type_: EventType, reason: str, message: str) -> None:
        """Record an event; never raises, and takes a few seconds at most, since what it tells of has happened already.

        Long messages are cut. The caller keeps secrets out of them.
        """
        message = message[:_LONGEST_MESSAGE]
        key = (server.id, server.metadata.uid, type_, reason, message)
        with self._lock:
            name, count = self._recorded.get(key, (f"{server.id}.{secrets.token_hex(8)}", 0))
            self._recorded[key] = (name, count + 1)
        try:
            with deadline.within(deadline.remaining(_MOST_SECONDS)):
                self._write(server, type_, reason, message, name, count)
        except (PortError, TimeoutError) as error:
            with self._lock:
                self._recorded.pop(key, None)
            _log.warning("event %s for server %s was not recorded: %s", reason, server.id, error)

    def _write(self, server: Server, type_: EventType, reason: str, message: str, name: str, count: int) -> None:
        now = timestamp(self._now())
        if count:
            try:
                self._client.patch(kinds.EVENT, self._namespace, name, {"count": count + 1, "lastTimestamp": now})
                return
            except Missing:
                pass  # Events expire after an hour; the next one starts a new count.
        self._client.create(
            kinds.EVENT,
            self._namespace,
            {
                "apiVersion": kinds.EVENT.api_version,
                "kind": kinds.EVENT.name,
                "metadata": {"name": name, "namespace": self._namespace},
                "involvedObject": {
                    "apiVersion": kinds.SERVER.api_version,
                    "kind": kinds.SERVER.name,
                    "namespace": self._namespace,
                    "name": server.id,
                    "uid": server.metadata.uid,
                    "resourceVersion": server.metadata.resource_version,
                },
                "type": str(type_),
                "reason": reason,
                "message": message,
                "count": count + 1,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "source": {"component": _COMPONENT},
                "reportingComponent": _COMPONENT,
                "reportingInstance": socket.gethostname(),
            },
        )
