"""Which changes of a stored server wake the controller (contract 7.1)."""

from __future__ import annotations

from server_api.servers.create_retry import failed, recovered
from server_api.servers.finalizers import FINALIZER
from server_api.servers.model import ConditionType, Server
from server_api.servers.provider_create_gates import remaining
from server_api.servers.rebuild import settled


def wakes(before: Server | None, after: Server | None) -> bool:
    """Say whether a change is worth a pass.

    ``before`` is None for a server not seen so far, ``after`` for one that is gone. A mere status write is
    not worth one: every pass ends with one, and would wake itself for ever. Some are: a rebuild that has settled, a
    create that just failed or turned out well after all, an operator who allows more attempts, a provider-create gate
    that was satisfied, and what somebody took away that a pass puts back.
    """
    if before is None or after is None:
        return True
    old, new = before.metadata, after.metadata
    return (
        old.generation != new.generation
        or old.deleted_at != new.deleted_at
        # Names make IDs (contract 4.6), so a server deleted and created again while nobody watched has the
        # same ID, and most likely the same generation.
        or old.uid != new.uid
        or settled(after)
        or (failed(after.status) and not failed(before.status))
        or recovered(before.status, after.status)
        or (FINALIZER in old.finalizers and FINALIZER not in new.finalizers)
        or (_was_reconciled(before) and not _was_reconciled(after))
        or _gates_left(after) < _gates_left(before)
    )


def _was_reconciled(server: Server) -> bool:
    return server.status.condition(ConditionType.AVAILABLE) is not None


def _gates_left(server: Server) -> int:
    return len(remaining(server.spec, server.status) or ())
