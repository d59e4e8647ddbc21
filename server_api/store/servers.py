"""The stored servers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from server_api.servers.model import Server
from server_api.servers.ports import ServerSelector
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient
from server_api.store.server_object import from_object, to_object
from server_api.store.server_status import status_patch
from server_api.store.tolerant import mapping


class KubernetesServerStore:
    """``ports.ServerStore`` over custom resources of one namespace."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def get(self, server_id: str) -> Server:
        """Return one server. Raises Missing."""
        return from_object(self._client.get(kinds.SERVER, self._namespace, server_id))

    def list(self, selector: ServerSelector) -> Sequence[Server]:
        """Return the selected servers by ascending ID."""
        label_selector = labels.selector(_requirements(selector))
        if label_selector is None:
            return []
        listing = self._client.list(kinds.SERVER, self._namespace, label_selector)
        return sorted(map(from_object, listing.items), key=lambda server: server.id)

    def create(self, server: Server) -> Server:
        """Store a new server and return it as stored; its status is not. Raises AlreadyExists, Refused."""
        return from_object(self._client.create(kinds.SERVER, self._namespace, to_object(server)))

    def update(self, server: Server) -> Server:
        """Write metadata and spec if nobody wrote since the server was read. Raises StateConflict, Missing, Refused."""
        return from_object(self._client.update(kinds.SERVER, self._namespace, to_object(server)))

    def patch_status(self, before: Server, after: Server) -> Server:
        """Write what differs in status if nobody wrote since ``before`` was read; nothing when nothing differs."""
        stored = mapping(mapping(before.stored).get("status"))
        patch = status_patch(stored, before.status, after.status)
        if not patch:
            return before
        version = before.metadata.resource_version
        return from_object(self._client.patch_status(kinds.SERVER, self._namespace, before.id, patch, version))

    def delete(self, server_id: str) -> None:
        """Ask for deletion; accepted again while it is under way. Raises Missing."""
        self._client.delete(kinds.SERVER, self._namespace, server_id)


def _requirements(selector: ServerSelector) -> dict[str, Collection[str]]:
    requirements: dict[str, Collection[str]] = {
        labels.ORGANIZATION: selector.organization_ids,
        labels.PROJECT: selector.project_ids,
        labels.REGION_ID: selector.region_ids,
        labels.NETWORK_ID: selector.network_ids,
        labels.API_VERSION: () if selector.api_version is None else (selector.api_version,),
    }
    return {label: values for label, values in requirements.items() if values}
