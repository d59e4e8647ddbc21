"""Callers with given rights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from server_api.servers.ports import GrantScope, PortError

Scope = tuple[str, str | None]
"""An organization and a project in it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question a use case asked."""

    permission: str
    operation: str
    organization_id: str
    project_id: str | None


class StubCaller:
    """``ports.Caller`` that may do everything but what is refused, and remembers what it was asked.

    ``refused`` names ``permission operation`` pairs, such as ``region:servers create``. With ``scopes``, everything
    outside of these organization and project pairs is refused too. What is allowed is granted at the scopes
    ``granted_at``, and ``project_failure`` is raised for any project that is checked. ``attribution`` is what the call
    is made for.
    """

    def __init__(
        self,
        subject: str = "alice",
        actor: str | None = None,
        *,
        refused: Iterable[str] = (),
        scopes: Iterable[Scope] | None = None,
        organization_ids: Iterable[str] = (),
        granted_at: Iterable[GrantScope] = (GrantScope.PROJECT,),
        project_failure: PortError | None = None,
        attribution: tuple[str | None, str | None] = (None, None),
    ) -> None:
        self._subject = subject
        self._actor = actor or subject
        self._refused = frozenset(refused)
        self._scopes = None if scopes is None else frozenset(scopes)
        self._organization_ids = frozenset(organization_ids)
        self._granted_at = frozenset(granted_at)
        self._project_failure = project_failure
        self.attribution = attribution
        self.checks: list[Check] = []
        self.checked_projects: list[tuple[str, str]] = []

    @property
    def subject(self) -> str:
        return self._subject

    @property
    def actor(self) -> str:
        return self._actor

    @property
    def organization_ids(self) -> frozenset[str]:
        return self._organization_ids

    def may(self, permission: str, operation: str, organization_id: str, project_id: str | None = None) -> bool:
        self.checks.append(Check(permission, operation, organization_id, project_id))
        if f"{permission} {operation}" in self._refused:
            return False
        return self._scopes is None or (organization_id, project_id) in self._scopes

    def granted_at(
        self, permission: str, operation: str, organization_id: str, project_id: str
    ) -> frozenset[GrantScope]:
        return self._granted_at

    def check_project(self, organization_id: str, project_id: str) -> None:
        self.checked_projects.append((organization_id, project_id))
        if self._project_failure is not None:
            raise self._project_failure
