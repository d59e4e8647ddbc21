"""The exchange of a bearer token for a passport (RFC 8693, contract 5.2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import structlog

from server_api.access.authentication import ScopeRefused, Unauthenticated
from server_api.access.digests import token_digest
from server_api.access.http_client import Answer, HttpClient
from server_api.access.passport import Passport, read
from server_api.access.single_flight import SingleFlightCache
from server_api.servers.ports import PortError

PATH = "/oauth2/v2/token"
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
PASSPORT = "urn:nscale:params:oauth:token-type:passport"

CACHED = 4_096
MARGIN_SECONDS = 10.0
"""How long before its end a passport is not used from the cache any more."""

Key = tuple[str, str | None, str | None]

_log = structlog.get_logger(__name__)


class TokenExchange:
    """Passports of tokens, each kept until shortly before its end. ``url`` is the identity service's."""

    def __init__(self, http: HttpClient, url: str, now: Callable[[], float] = time.time) -> None:
        self._http = http
        self._url = url + PATH
        self._now = now
        self._passports: SingleFlightCache[Key, Passport] = SingleFlightCache(CACHED, now)

    def passport(self, token: str, organization_id: str | None, project_id: str | None) -> Passport:
        """Return the passport for a token and the organization and project of the path, if it has them.

        Raises Unauthenticated, also when the identity service cannot be reached, ScopeRefused, and UnusablePassport.
        """

        def fetch() -> tuple[Passport, float]:
            passport = self._exchange(token, organization_id, project_id)
            return passport, passport.expires_at - self._now() - MARGIN_SECONDS

        return self._passports.get(_key(token, organization_id, project_id), fetch)

    def forget(self, token: str, organization_id: str | None, project_id: str | None) -> None:
        """Drop a passport whose token turned out to be no longer accepted."""
        self._passports.forget(_key(token, organization_id, project_id))

    def _exchange(self, token: str, organization_id: str | None, project_id: str | None) -> Passport:
        form = {
            "grant_type": GRANT_TYPE,
            "subject_token": token,
            "subject_token_type": ACCESS_TOKEN,
            "requested_token_type": PASSPORT,
        }
        if organization_id is not None:
            form["x_organization_id"] = organization_id
        if project_id is not None:
            form["x_project_id"] = project_id
        try:
            answer = self._http.send("POST", self._url, form=form)
        except PortError as failure:
            _log.error("the token exchange failed", detail=failure.detail)
            raise Unauthenticated("the token could not be verified") from None
        document = _document(answer)
        if answer.status == 200:
            return read(document.get("access_token"), self._now())
        if answer.status == 401:
            raise Unauthenticated("the token is not valid")
        if answer.status == 400 and document.get("error") == "invalid_scope":
            raise ScopeRefused("the organization or project is not in the scope of the token")
        _log.error("the token exchange failed", status=answer.status)
        raise Unauthenticated("the token could not be verified")


def _key(token: str, organization_id: str | None, project_id: str | None) -> Key:
    return token_digest(token), organization_id, project_id


def _document(answer: Answer) -> dict[str, Any]:
    try:
        document = answer.document()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
