"""The right to create servers in a project, in both generations of the API (contract 5.5).

A right over a whole organization says nothing of a project that was deleted, or never was: who grants such rights is
asked whether the project exists. A right to exactly that project, or to everything, needs no such question.
"""

from __future__ import annotations

from server_api.servers.errors import Forbidden, NotFound, Unverified
from server_api.servers.lookup import PERMISSION
from server_api.servers.ports import Caller, GrantScope, Missing, PortError


def require(caller: Caller, organization_id: str, project_id: str) -> None:
    """Return if the caller may create servers in the project.

    Raises Forbidden, NotFound for a project that does not exist, Unverified when nobody can say whether it does.
    """
    if not caller.may(PERMISSION, "create", organization_id, project_id):
        raise Forbidden("creating servers is not allowed in the project")
    if caller.granted_at(PERMISSION, "create", organization_id, project_id) != {GrantScope.ORGANIZATION}:
        return
    try:
        caller.check_project(organization_id, project_id)
    except Missing:
        raise NotFound("the project does not exist") from None
    except PortError as failure:
        raise Unverified("the project could not be verified") from failure


def attribution(caller: Caller, organization_id: str, project_id: str) -> tuple[str, str | None]:
    """Return organization and project that a new server is attributed to (contract 4.2 and 5.7).

    A principal that names no organization acts in the server's own; one that names one is left alone.
    """
    named, its_project = caller.attribution
    return (named, its_project) if named else (organization_id, project_id)
