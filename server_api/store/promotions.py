"""The write that promotes a stored server of v1 to v2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from server_api.servers.model import Server
from server_api.store import kinds, labels
from server_api.store.server_object import from_object, to_object
from server_api.store.servers import KubernetesServerStore
from server_api.store.tolerant import mapping, mappings


class PromotableServerStore(KubernetesServerStore):
    """``promoter.PromotableServers`` over custom resources of one namespace."""

    def promote(self, before: Server, after: Server) -> Server:
        """Write labels, owner and SSH mode in one request, if nobody wrote since ``before`` was read.

        A patch, so that what an older installation stored beside them is not even sent. Raises StateConflict, Missing,
        Refused.
        """
        patch = _patch(before, after)
        return from_object(self._client.patch(kinds.SERVER, self._namespace, before.id, patch))


def _patch(before: Server, after: Server) -> dict[str, Any]:
    wanted = to_object(replace(after, stored=None))
    metadata: dict[str, Any] = {
        "resourceVersion": before.metadata.resource_version,
        "labels": {name: wanted["metadata"]["labels"][name] for name in (labels.API_VERSION, labels.NETWORK_ID)},
    }
    if before.metadata.owner_uid != after.metadata.owner_uid:
        # A merge patch replaces lists as a whole.
        others = mappings(mapping(mapping(before.stored).get("metadata")).get("ownerReferences"))
        metadata["ownerReferences"] = [*others, *wanted["metadata"]["ownerReferences"]]
    return {"metadata": metadata, "spec": {"sshInjection": wanted["spec"]["sshInjection"]}}
