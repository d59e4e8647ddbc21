"""Updates from a read: what somebody else wrote meanwhile is never overwritten (design section 4)."""

from __future__ import annotations

from collections.abc import Callable

from server_api.servers.errors import Conflict, NotFound, Unprocessable
from server_api.servers.model import Server
from server_api.servers.ports import Missing, Refused, ServerStore, StateConflict


class LostRace(Exception):
    """Somebody wrote between our read and our write. A conflict that the cloud reports is something else."""


def with_one_retry(attempt: Callable[[], Server]) -> Server:
    """Return what the attempt returns, trying once more when it lost a race.

    The attempt reads afresh and checks afresh: what the other one wrote may have changed what is allowed. Raises
    Conflict when that race is lost too.
    """
    try:
        return attempt()
    except LostRace:
        pass
    try:
        return attempt()
    except LostRace:
        raise Conflict("the server was changed by somebody else meanwhile") from None


def write(servers: ServerStore, server: Server) -> Server:
    """Write metadata and spec of a server that was read, and return it as stored.

    Raises LostRace, NotFound, and Unprocessable when the stored schema refuses it.
    """
    try:
        return servers.update(server)
    except StateConflict:
        raise LostRace from None
    except Missing:
        raise NotFound("the server does not exist") from None
    except Refused as refusal:
        raise Unprocessable(refusal.detail) from None
