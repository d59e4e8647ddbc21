"""Finalizers: our own, Kubernetes' foreground one, and the edges that other objects left (contract 4.10, 7.7)."""

from __future__ import annotations

from server_api.servers.model import Server

FINALIZER = "unikorn"
"""Added before the first pass, removed when the cloud side is gone."""


def reference_edge(server_id: str) -> str:
    """Return the finalizer that a server leaves on each object it uses."""
    return f"servers.region.unikorn-cloud.org/{server_id}"


def blocks_deletion(server: Server) -> bool:
    """Say whether something else still holds on to the server, so that its cloud side must stay.

    Kubernetes' own ``foregroundDeletion`` is among them: the server's dependents go first.
    """
    return any(finalizer != FINALIZER for finalizer in server.metadata.finalizers)
