"""Start, stop and reboot (contract 6.8)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from server_api.servers.errors import InvalidRequest, NotFound
from server_api.servers.finders import Finder
from server_api.servers.lookup import instance_of, permitted_server, tenancy_of
from server_api.servers.model import Phase, Server
from server_api.servers.ports import (
    Caller,
    Cloud,
    Compute,
    Directory,
    Missing,
    PortError,
    ServerStore,
    StateConflict,
)

Verb = Callable[[Compute, str], None]


class Power:
    """The power verbs. Each needs the rights to read and to update the server, unless ``find`` asks for others.

    Each raises NotFound when there is no such server, or no instance of it; Forbidden; InvalidRequest when the
    instance's state does not allow the verb; PortError when the cloud fails.
    """

    def __init__(
        self, servers: ServerStore, directory: Directory, cloud: Cloud, find: Finder = permitted_server
    ) -> None:
        self._servers = servers
        self._directory = directory
        self._cloud = cloud
        self._find = find

    def start(self, caller: Caller, server_id: str) -> None:
        """Start the instance; the stored phase becomes Pending until the monitor sees it running."""
        server = self._do(caller, server_id, "started", lambda compute, instance: compute.start(instance))
        self._note_phase(server, Phase.PENDING)

    def stop(self, caller: Caller, server_id: str) -> None:
        """Stop the instance; the stored phase becomes Stopping until the monitor sees it stopped."""
        server = self._do(caller, server_id, "stopped", lambda compute, instance: compute.stop(instance))
        self._note_phase(server, Phase.STOPPING)

    def soft_reboot(self, caller: Caller, server_id: str) -> None:
        """Ask the guest to reboot."""
        self._do(caller, server_id, "rebooted", lambda compute, instance: compute.soft_reboot(instance))

    def hard_reboot(self, caller: Caller, server_id: str) -> None:
        """Power-cycle the instance."""
        self._do(caller, server_id, "rebooted", lambda compute, instance: compute.hard_reboot(instance))

    def _do(self, caller: Caller, server_id: str, participle: str, verb: Verb) -> Server:
        server = self._find(self._servers, caller, server_id, "update")
        tenancy = tenancy_of(self._directory, self._cloud, server)
        instance = instance_of(tenancy, server)
        try:
            verb(tenancy.compute, instance.id)
        except Missing:
            raise NotFound("the server has no instance in the cloud") from None
        except StateConflict:
            raise InvalidRequest(f"the server cannot be {participle} in its present state") from None
        return server

    def _note_phase(self, server: Server, phase: Phase) -> None:
        # The verb has taken effect already, so nothing here is a failure of it: a caller told so would try again and
        # be refused. The monitor will show what came of it.
        with suppress(PortError):
            self._servers.patch_status(server, replace(server, status=replace(server.status, phase=phase)))
