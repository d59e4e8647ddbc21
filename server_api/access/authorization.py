"""A caller whose every permission check is seen, so that a view that forgot to check is found out."""

from __future__ import annotations

from server_api.access.principal import Principal


class AuthorizedCaller:
    """The caller of one request, as the use cases see it (``servers.ports.Caller``).

    ``consulted`` becomes True with the first question about rights. HTTP refuses, or reports, an answer without one.
    """

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self.consulted = False

    @property
    def subject(self) -> str:
        """The authenticated subject."""
        return self._principal.subject

    @property
    def actor(self) -> str:
        """On whose behalf: with a bearer token, the subject's own."""
        return self._principal.subject

    @property
    def organization_ids(self) -> frozenset[str]:
        """Organizations the ACL names; empty for a caller whose rights are global (contract 5.6)."""
        # A list restricts itself by these, and asks nothing else when it finds no server.
        self.consulted = True
        return frozenset(self._principal.acl.organizations)

    def may(self, permission: str, operation: str, organization_id: str, project_id: str | None = None) -> bool:
        """Say whether the operation is allowed at that project, or at that organization without a project."""
        self.consulted = True
        return self._principal.acl.allows(permission, operation, organization_id, project_id)
