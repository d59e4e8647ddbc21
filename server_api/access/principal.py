"""Who a request comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from server_api.access.acl import Acl


class Projects(Protocol):
    """Where it is known which projects there are."""

    def check(self, organization_id: str, project_id: str) -> None:
        """Return if the project exists. Raises ``servers.ports.Missing``, or another PortError if nobody can say."""


class UnknownProjects:
    """No list of projects: a grant over an organization is taken to mean every project an object names in it.

    Those are projects in which the region already keeps networks and identities, so the operator's word is enough.
    """

    def check(self, organization_id: str, project_id: str) -> None:
        """Return for any project."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, its rights, and on whose behalf it calls (contract 5.1 and 5.7).

    ``subject`` is who was authenticated: the token's, or the common name of a service's certificate. ``account_type``
    is ``user``, ``service`` or ``system``. ``actor`` empty: the subject itself. ``organization_id`` and ``project_id``
    are what the call is attributed to, if that is known. ``impersonating``: ``acl`` is what both actor and service may.
    ``service`` is the common name of the certificate the request came with, if it came with one.
    """

    subject: str
    account_type: str
    acl: Acl
    actor: str = ""
    organization_id: str | None = None
    project_id: str | None = None
    impersonating: bool = False
    service: str = ""
    projects: Projects = field(default_factory=UnknownProjects, repr=False, compare=False)
