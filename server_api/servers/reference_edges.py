"""Holding on to what a server uses, so that it cannot be deleted beneath it (contract 4.10)."""

from __future__ import annotations

from contextlib import suppress

from server_api.servers.finalizers import reference_edge
from server_api.servers.model import Server
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.ports import Missing, References, Referent, ReferentKind


def hold(references: References, server: Server) -> None:
    """Add the server's edge to every network, security group and certificate authority its spec names.

    Raises Stop when one of them does not exist under the server's identity, StateConflict when another writer was
    faster.
    """
    edge = reference_edge(server.id)
    for referent in _used(references, server):
        if edge not in referent.finalizers:
            references.hold(referent, edge)


def release_unused(references: References, server: Server) -> None:
    """Remove the server's edge from networks and groups that its spec no longer names.

    The certificate authority is not among them: it cannot change, so it stays held for the server's whole life.
    Raises StateConflict when another writer was faster.
    """
    edge = reference_edge(server.id)
    wanted = _wanted(server)
    for referent in references.of_identity(server.metadata.identity_id or ""):
        if edge in referent.finalizers and (referent.kind, referent.id) not in wanted:
            references.release(referent, edge)


def release_all(references: References, server: Server) -> None:
    """Remove the server's edge everywhere. Raises StateConflict when another writer was faster."""
    edge = reference_edge(server.id)
    referents = list(references.of_identity(server.metadata.identity_id or ""))
    authority_id = server.spec.ssh_certificate_authority_id
    if authority_id:
        with suppress(Missing):
            referents.append(references.ssh_certificate_authority(authority_id))
    for referent in referents:
        if edge in referent.finalizers:
            references.release(referent, edge)


def _wanted(server: Server) -> set[tuple[ReferentKind, str]]:
    networks = {(ReferentKind.NETWORK, network.id) for network in server.spec.networks}
    groups = {(ReferentKind.SECURITY_GROUP, group_id) for group_id in server.spec.security_group_ids or ()}
    return networks | groups


def _used(references: References, server: Server) -> list[Referent]:
    candidates = {
        (referent.kind, referent.id): referent for referent in references.of_identity(server.metadata.identity_id or "")
    }
    used = []
    for kind, id_ in sorted(_wanted(server)):
        if (kind, id_) not in candidates:
            raise Stop(Outcome.ERROR, f"{kind} {id_} does not exist under the server's identity")
        used.append(candidates[kind, id_])
    authority_id = server.spec.ssh_certificate_authority_id
    if authority_id:
        used.append(references.ssh_certificate_authority(authority_id))
    return used
