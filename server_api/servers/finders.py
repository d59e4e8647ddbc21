"""How an operation finds the server it is about: each generation of the API addresses servers in its own way."""

from __future__ import annotations

from typing import Protocol

from server_api.servers.model import Server
from server_api.servers.ports import Caller, ServerStore


class Finder(Protocol):
    """A way to find a server, such as ``lookup.permitted_server``."""

    def __call__(self, servers: ServerStore, caller: Caller, server_id: str, operation: str, /) -> Server:
        """Return the server if the caller may do that operation to it. Raises NotFound, Forbidden."""
