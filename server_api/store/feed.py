"""All servers, and what happens to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from server_api.servers.model import Server
from server_api.servers.replica_ports import Change
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.server_object import from_object
from server_api.store.tolerant import mapping, text


class KubernetesServerFeed:
    """``replica_ports.ServerFeed`` by list and watch over one namespace."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def snapshot(self) -> tuple[Sequence[Server], str]:
        """Return every server and the version of that list."""
        listing = self._client.list(kinds.SERVER, self._namespace)
        return [from_object(item) for item in listing.items], listing.version

    def changes(self, version: str) -> Iterator[Change]:
        """Yield changes after ``version`` until the connection ends. Raises Expired, Unavailable on silence."""
        for event in self._client.watch(kinds.SERVER, self._namespace, version):
            stored, type_ = event["object"], event.get("type")
            changed = text(mapping(stored.get("metadata")).get("resourceVersion")) or version
            server = None if type_ == "BOOKMARK" else from_object(stored)
            yield Change(changed, server, deleted=type_ == "DELETED")
