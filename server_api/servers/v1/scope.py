"""What a path of v1 names, and what is found by it: only objects of that organization and project."""

from __future__ import annotations

from dataclasses import dataclass

from server_api.servers.errors import Forbidden, NotFound
from server_api.servers.lookup import PERMISSION
from server_api.servers.model import Server
from server_api.servers.ports import Caller, Directory, Missing, ServerStore
from server_api.servers.surroundings import Identity, Network


@dataclass(frozen=True, slots=True)
class Scope:
    """Organization, project and identity of a path, as UUIDs in canonical form.

    The identity has to exist where an operation needs one. It is not compared with that of a server (contract 1.4):
    what owns a server is organization and project.
    """

    organization_id: str
    project_id: str
    identity_id: str

    def require(self, caller: Caller, operation: str) -> None:
        """Raise Forbidden unless the caller may do that to servers of the project."""
        if not caller.may(PERMISSION, operation, self.organization_id, self.project_id):
            raise Forbidden(f"{operation} on servers is not allowed in the project")

    def server(self, servers: ServerStore, server_id: str) -> Server:
        """Return a server of any API version. Raises NotFound."""
        try:
            server = servers.get(server_id)
        except Missing:
            raise NotFound("the server does not exist") from None
        if not self._owns(server.metadata.organization_id, server.metadata.project_id):
            raise NotFound("the server does not exist")
        return server

    def identity(self, directory: Directory) -> Identity:
        """Return the identity of the path. Raises NotFound."""
        try:
            identity = directory.identity(self.identity_id)
        except Missing:
            raise NotFound("the identity does not exist") from None
        if not self._owns(identity.organization_id, identity.project_id):
            raise NotFound("the identity does not exist")
        return identity

    def network(self, directory: Directory, network_id: str | None) -> Network:
        """Return a network. Raises NotFound, also for None: text that is no ID names nothing."""
        try:
            network = None if network_id is None else directory.network(network_id)
        except Missing:
            network = None
        if network is None or not self._owns(network.organization_id, network.project_id):
            raise NotFound("the network does not exist", "spec.networks[0].id")
        return network

    def _owns(self, organization_id: str | None, project_id: str | None) -> bool:
        return (organization_id, project_id) == (self.organization_id, self.project_id)
