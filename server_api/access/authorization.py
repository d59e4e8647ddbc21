"""A caller whose every permission check is seen, so that a view that forgot to check is found out."""

from __future__ import annotations

from server_api.access.principal import Principal
from server_api.servers.ports import GrantScope


class AuthorizedCaller:
    """The caller of one request, as the use cases see it (``servers.ports.Caller``).

    ``consulted`` becomes True with the first question about rights. HTTP refuses, or reports, an answer without one.
    For the audit log, ``concerned`` are organization and project of the first question about a single right, which are
    those of the object the request names; ``lacking`` is the last right that was asked for and is not granted.
    """

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self.consulted = False
        self.concerned: tuple[str, str | None] | None = None
        self.lacking: tuple[str, str] | None = None

    @property
    def subject(self) -> str:
        """The authenticated subject."""
        return self._principal.subject

    @property
    def account_type(self) -> str:
        """``user``, ``service``, or ``system`` for a service that authenticated with its certificate."""
        return self._principal.account_type

    @property
    def actor(self) -> str:
        """On whose behalf: what a service says, else the subject itself."""
        return self._principal.actor or self._principal.subject

    @property
    def impersonating(self) -> bool:
        """Whether the rights are only those that the actor has too."""
        return self._principal.impersonating

    @property
    def service(self) -> str:
        """The service whose certificate the request came with, empty for one without."""
        return self._principal.service

    @property
    def attribution(self) -> tuple[str | None, str | None]:
        """Organization and project that the call is made for, as far as the request says."""
        return self._principal.organization_id, self._principal.project_id

    @property
    def organization_ids(self) -> frozenset[str]:
        """Organizations the ACL names; empty for a caller whose rights are global (contract 5.6)."""
        # A list restricts itself by these, and asks nothing else when it finds no server.
        self.consulted = True
        return frozenset(self._principal.acl.organizations)

    def may(self, permission: str, operation: str, organization_id: str, project_id: str | None = None) -> bool:
        """Say whether the operation is allowed at that project, or at that organization without a project."""
        allowed = self._principal.acl.allows(permission, operation, organization_id, project_id)
        self._note(permission, operation, organization_id, project_id, allowed)
        return allowed

    def granted_at(
        self, permission: str, operation: str, organization_id: str, project_id: str
    ) -> frozenset[GrantScope]:
        """Return every scope at which the operation is granted that covers the project."""
        scopes = self._principal.acl.granted_at(permission, operation, organization_id, project_id)
        self._note(permission, operation, organization_id, project_id, bool(scopes))
        return scopes

    def check_project(self, organization_id: str, project_id: str) -> None:
        """Return if the project exists, where that is known. Raises Missing, or another PortError."""
        self._principal.projects.check(organization_id, project_id)

    def _note(
        self, permission: str, operation: str, organization_id: str, project_id: str | None, allowed: bool
    ) -> None:
        self.consulted = True
        if self.concerned is None:
            self.concerned = organization_id, project_id
        if not allowed:
            self.lacking = permission, operation
