"""Power verbs and consoles of v1: those of every generation, for a server that is found by its path."""

from __future__ import annotations

from server_api.servers.console import Console
from server_api.servers.finders import Finder
from server_api.servers.model import Server
from server_api.servers.ports import Caller, Cloud, Directory, ServerStore
from server_api.servers.power import Power
from server_api.servers.v1.scope import Scope


class OperationsV1:
    """What callers of v1 do to the instances of servers."""

    def __init__(self, servers: ServerStore, directory: Directory, cloud: Cloud) -> None:
        self._servers = servers
        self._directory = directory
        self._cloud = cloud

    def power(self, scope: Scope) -> Power:
        """Return the power verbs for servers of the scope. Each needs the right to update, and no other."""
        return Power(self._servers, self._directory, self._cloud, self._finder(scope))

    def console(self, scope: Scope) -> Console:
        """Return the consoles of the scope's servers. Each needs the right to read."""
        return Console(self._servers, self._directory, self._cloud, self._finder(scope))

    def _finder(self, scope: Scope) -> Finder:
        def find(servers: ServerStore, caller: Caller, server_id: str, operation: str, /) -> Server:
            scope.require(caller, operation)
            server = scope.server(servers, server_id)
            scope.identity(self._directory)
            return server

        return find
