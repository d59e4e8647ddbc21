"""The identity service as the source of callers and their rights (contract 5.2, 5.3 and 5.5).

A token is exchanged for a passport, which says whose it is; what its owner may do is asked separately, with the token
itself, so that a token that was withdrawn is found out when the answer is asked for anew. Whatever cannot be asked is
not granted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from server_api.access.acl_cache import AclCache, Question
from server_api.access.authentication import Unauthenticated
from server_api.access.client_certificate import ClientCertificate
from server_api.access.delegation import Delegation
from server_api.access.digests import token_digest
from server_api.access.http_client import HttpClient
from server_api.access.identifiers import path_segment
from server_api.access.passport import Passport
from server_api.access.principal import Principal
from server_api.access.source import Place
from server_api.access.token_exchange import TokenExchange
from server_api.servers.ports import Missing, Unavailable

CERTIFICATE_HEADER = "Unikorn-Client-Certificate"

# RFC 6750, b64token. Anything else would not survive a header, and is no token of any identity service.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class IdentityService:
    """``access.source.IdentitySource`` over the service at ``url``; lists of rights are kept for ``acl_seconds``."""

    def __init__(self, http: HttpClient, url: str, acl_seconds: float) -> None:
        self._http = http
        self._url = url
        self._exchange = TokenExchange(http, url)
        self._lists = AclCache(http, url, acl_seconds)

    def owner(
        self, token: str, place: Place, certificate: ClientCertificate | None, delegation: Delegation | None
    ) -> Principal:
        """Return the owner of a token with its rights. Raises as ``access.source.IdentitySource``."""
        if not _TOKEN.fullmatch(token):
            raise Unauthenticated("the token is not valid")
        passport = self._exchange.passport(token, place.organization_id, place.project_id)
        question = Question(
            subject=passport.subject,
            issuer=passport.issuer,
            token=token_digest(token),
            certificate=certificate.fingerprint if certificate else "",
            principal=_impersonated(delegation),
            organization_id=place.organization_id,
        )
        headers = {
            "Authorization": f"Bearer {token}",
            **_relayed(certificate, delegation or _of_bearer(passport, place)),
        }
        try:
            acl = self._lists.acl(question, headers)
        except Unauthenticated:
            self._exchange.forget(token, place.organization_id, place.project_id)
            raise
        return Principal(
            passport.subject, passport.account_type, acl, projects=_ProjectsOf(self._http, self._url, headers)
        )

    def service(self, certificate: ClientCertificate, place: Place, delegation: Delegation) -> Principal:
        """Return a service with its rights. Raises as ``access.source.IdentitySource``."""
        question = Question(
            subject=certificate.common_name,
            certificate=certificate.fingerprint,
            principal=_impersonated(delegation),
            organization_id=place.organization_id,
        )
        headers = _relayed(certificate, delegation)
        acl = self._lists.acl(question, headers)
        return Principal(certificate.common_name, "system", acl, projects=_ProjectsOf(self._http, self._url, headers))


class _ProjectsOf:
    """The projects of the identity service, asked as one caller."""

    def __init__(self, http: HttpClient, url: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self._url = url
        self._headers = headers

    def check(self, organization_id: str, project_id: str) -> None:
        """Return if the project exists. Raises Missing, and Unavailable or TimedOut when that is not known."""
        try:
            path = f"/api/v1/organizations/{path_segment(organization_id)}/projects/{path_segment(project_id)}"
        except ValueError:
            raise Missing("identity", "no project can have that ID") from None
        answer = self._http.send("GET", self._url + path, headers=self._headers)
        if answer.status == 404:
            raise Missing("identity", "the project does not exist")
        if answer.status != 200:
            raise Unavailable("identity", f"the project was answered {answer.status}", answer.retry_after)


def _of_bearer(passport: Passport, place: Place) -> Delegation:
    return Delegation(
        actor=passport.subject,
        type=passport.account_type,
        organization_id=place.organization_id or "",
        organization_ids=passport.organization_ids,
        project_id=place.project_id or "",
    )


def _relayed(certificate: ClientCertificate | None, delegation: Delegation) -> dict[str, str]:
    headers = {"X-Principal": delegation.header()}
    if delegation.impersonate:
        headers["X-Impersonate"] = "true"
    if certificate is not None:
        headers[CERTIFICATE_HEADER] = certificate.header
    return headers


def _impersonated(delegation: Delegation | None) -> str:
    return delegation.header() if delegation is not None and delegation.impersonate else ""
