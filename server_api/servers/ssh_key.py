"""The private key of the pair that an instance was created with (contract 1.9, row 19)."""

from __future__ import annotations

from server_api.servers import ssh_access
from server_api.servers.errors import NotFound
from server_api.servers.lookup import readable_server
from server_api.servers.model import Server, SSHInjection
from server_api.servers.ports import Caller, Credentials, Directory, Missing, ServerStore


class SSHKeys:
    """The key pairs of servers' identities. Reading the server is right enough."""

    def __init__(self, servers: ServerStore, directory: Directory, credentials: Credentials) -> None:
        self._servers = servers
        self._directory = directory
        self._credentials = credentials

    def private_key(self, caller: Caller, server_id: str) -> str:
        """Return the PEM text as stored.

        Raises NotFound for a server without a key: one that trusts an authority, or nobody, or whose identity has
        none. Raises Forbidden.
        """
        server = readable_server(self._servers, caller, server_id)
        if ssh_access.resolved_mode(server.spec) is not SSHInjection.IDENTITY_KEYPAIR:
            raise NotFound("the server was created without the identity's key pair")
        key = self._key_of_identity(server)
        if not key:
            raise NotFound("the server's identity has no private key")
        return key

    def _key_of_identity(self, server: Server) -> str | None:
        identity_id = server.metadata.identity_id or ""
        scope = (server.metadata.organization_id, server.metadata.project_id)
        try:
            identity = self._directory.identity(identity_id)
            if (identity.organization_id, identity.project_id) != scope:
                return None
            return self._credentials.identity_credentials(identity_id).ssh_private_key
        except Missing:
            return None
