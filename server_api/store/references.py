"""Reference edges: finalizers that keep what a server uses from being deleted (contract 4.10)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from server_api.servers.ports import Missing, Referent, ReferentKind
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient, RawObject
from server_api.store.tolerant import mapping, text, texts

_KINDS = {
    ReferentKind.NETWORK: kinds.NETWORK,
    ReferentKind.SECURITY_GROUP: kinds.SECURITY_GROUP,
    ReferentKind.SSH_CERTIFICATE_AUTHORITY: kinds.SSH_CERTIFICATE_AUTHORITY,
}


class KubernetesReferences:
    """``ports.References`` over the objects of one namespace; every write has the read version as its precondition."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def of_identity(self, identity_id: str) -> Sequence[Referent]:
        """Return every network and security group labelled with the identity."""
        selector = labels.selector({labels.IDENTITY_ID: (identity_id,)})
        if selector is None:
            return []
        return [
            _referent(kind, stored)
            for kind in (ReferentKind.NETWORK, ReferentKind.SECURITY_GROUP)
            for stored in self._client.list(_KINDS[kind], self._namespace, selector).items
        ]

    def ssh_certificate_authority(self, authority_id: str) -> Referent:
        """Return the certificate authority as a referent. Raises Missing."""
        stored = self._client.get(kinds.SSH_CERTIFICATE_AUTHORITY, self._namespace, authority_id)
        return _referent(ReferentKind.SSH_CERTIFICATE_AUTHORITY, stored)

    def hold(self, referent: Referent, edge: str) -> None:
        """Add the edge; nothing is written if it is there. Raises StateConflict, Missing.

        Raises Refused when the object is being deleted already: Kubernetes takes no new finalizers then.
        """
        if edge not in referent.finalizers:
            self._write(referent, [*referent.finalizers, edge])

    def release(self, referent: Referent, edge: str) -> None:
        """Remove the edge. Raises StateConflict when the object changed; a vanished object is no error."""
        if edge in referent.finalizers:
            with suppress(Missing):
                self._write(referent, [finalizer for finalizer in referent.finalizers if finalizer != edge])

    def _write(self, referent: Referent, finalizers: list[str]) -> None:
        metadata = {"resourceVersion": referent.resource_version, "finalizers": finalizers}
        self._client.patch(_KINDS[referent.kind], self._namespace, referent.id, {"metadata": metadata})


def _referent(kind: ReferentKind, stored: RawObject) -> Referent:
    metadata = mapping(stored.get("metadata"))
    return Referent(
        kind=kind,
        id=text(metadata.get("name")) or "",
        finalizers=texts(metadata.get("finalizers")),
        resource_version=text(metadata.get("resourceVersion")) or "",
    )
