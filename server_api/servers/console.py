"""Console output and sessions (contract 6.8)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from server_api.servers.errors import InvalidRequest, NotFound
from server_api.servers.finders import Finder
from server_api.servers.lookup import instance_of, readable_server, tenancy_of
from server_api.servers.model import Server
from server_api.servers.ports import Caller, Cloud, Compute, Directory, Missing, ServerStore, StateConflict

MAX_LINES = 100_000
"""Most lines of console output that may be asked for."""


def _readable(servers: ServerStore, caller: Caller, server_id: str, _operation: str, /) -> Server:
    return readable_server(servers, caller, server_id)


class Console:
    """The console of a server's instance. Reading the server is right enough.

    Both methods raise NotFound when there is no such server, or no instance of it; Forbidden; InvalidRequest when the
    instance's state does not allow it; PortError when the cloud fails.
    """

    def __init__(self, servers: ServerStore, directory: Directory, cloud: Cloud, find: Finder = _readable) -> None:
        self._servers = servers
        self._directory = directory
        self._cloud = cloud
        self._find = find

    def output(self, caller: Caller, server_id: str, lines: int | None) -> str:
        """Return the last ``lines`` lines; None or 0 leave the number to the cloud."""
        with self._instance(caller, server_id) as (compute, instance_id):
            return compute.console_output(instance_id, lines or None)

    def session(self, caller: Caller, server_id: str) -> str:
        """Open a session and return its URL, with which anybody can use the console for a while."""
        with self._instance(caller, server_id) as (compute, instance_id):
            return compute.console_url(instance_id)

    @contextmanager
    def _instance(self, caller: Caller, server_id: str) -> Iterator[tuple[Compute, str]]:
        server = self._find(self._servers, caller, server_id, "read")
        tenancy = tenancy_of(self._directory, self._cloud, server)
        instance = instance_of(tenancy, server)
        try:
            yield tenancy.compute, instance.id
        except Missing:
            raise NotFound("the server has no instance in the cloud") from None
        except StateConflict:
            raise InvalidRequest("the server's console is not available in its present state") from None
