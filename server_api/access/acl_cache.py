"""Access control lists as the identity service gives them, kept for a while (contract 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from server_api.access.acl import Acl, InvalidAcl, OrganizationGrants
from server_api.access.authentication import ScopeRefused, Unauthenticated
from server_api.access.http_client import Answer, HttpClient
from server_api.access.identifiers import path_segment
from server_api.access.single_flight import SingleFlightCache
from server_api.servers.ports import Unavailable

CACHED = 65_536
PATH = "/api/v1/acl"


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that the answer to "what may this caller do" depends on: the key of the cache.

    ``token`` and ``certificate`` are digests, empty without one. ``principal`` is the header of an impersonated one,
    empty otherwise: what a service says of whom it works for changes nothing of its own rights. ``organization_id`` is
    the path's.
    """

    subject: str
    issuer: str = ""
    token: str = ""
    certificate: str = ""
    principal: str = ""
    organization_id: str | None = None


class AclCache:
    """Lists by question, kept for ``seconds``; 0: not at all."""

    def __init__(self, http: HttpClient, url: str, seconds: float) -> None:
        self._http = http
        self._url = url
        self._seconds = seconds
        self._lists: SingleFlightCache[Question, Acl] = SingleFlightCache(CACHED)

    def acl(self, question: Question, headers: Mapping[str, str]) -> Acl:
        """Return the answer; ``headers`` are what the identity service knows the caller by.

        Raises Unauthenticated, ScopeRefused, and Unavailable or TimedOut when there is no answer to go by.
        """
        return self._lists.get(question, lambda: (self._fetch(question.organization_id, headers), self._seconds))

    def _fetch(self, organization_id: str | None, headers: Mapping[str, str]) -> Acl:
        path = PATH if organization_id is None else f"/api/v1/organizations/{path_segment(organization_id)}/acl"
        answer = self._http.send("GET", self._url + path, headers=headers)
        if answer.status == 200:
            return _acl(answer)
        if answer.status == 401:
            raise Unauthenticated("the credentials are no longer accepted")
        if answer.status in (403, 404):
            return _none_in(organization_id)
        raise Unavailable("identity", f"the access control list was answered {answer.status}", answer.retry_after)


def _none_in(organization_id: str | None) -> Acl:
    """Return no rights in an organization that does not exist or is not the caller's.

    A refusal of its own would be another one than that of the check which follows, for an organization that exists
    and grants nothing: by the difference anybody could find out which organizations there are. The organization stays
    named, because a list that names none is not restricted (contract 5.6).
    """
    if organization_id is None:
        raise ScopeRefused("the caller has no rights")
    return Acl(organizations={organization_id: OrganizationGrants()})


def _acl(answer: Answer) -> Acl:
    try:
        return Acl.from_document(answer.document())
    except InvalidAcl as error:
        raise Unavailable("identity", f"the access control list is of another shape: {error}") from None
    except ValueError:
        raise Unavailable("identity", "the access control list is no JSON") from None
