"""The stand-in over HTTP, as a WSGI application."""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson
from cryptography import x509
from joserfc import jwt
from joserfc.jwk import ECKey
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from server_api.access.digests import token_digest

from .records import Person, Records

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

DROP = "server_api.drop"
"""Key of the WSGI environment under which the server puts a function that closes the connection."""

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_PASSPORT = "urn:nscale:params:oauth:token-type:passport"

_ROUTES = Map(
    [
        Rule("/oauth2/v2/token", endpoint="exchange", methods=["POST"]),
        Rule("/api/v1/acl", endpoint="acl", methods=["GET"]),
        Rule("/api/v1/organizations/<organization_id>/acl", endpoint="acl", methods=["GET"]),
        Rule("/api/v1/organizations/<organization_id>/projects/<project_id>", endpoint="project", methods=["GET"]),
        Rule("/readyz", endpoint="ready", methods=["GET"]),
    ]
)


class _Refused(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status
        self.error = error


class IdentityApp:
    """The endpoints over what `records` returns.

    `calls` counts the requests of each endpoint; `seen` has path and headers of the last of them.
    """

    def __init__(self, records: Callable[[], Records]) -> None:
        self._records = records
        self._key = ECKey.generate_key("P-521")
        self._lock = Lock()
        self.calls: Counter[str] = Counter()
        self.seen: list[tuple[str, Mapping[str, str]]] = []

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        try:
            endpoint, arguments = _ROUTES.bind_to_environ(environ).match()
            response = self._answer(request, endpoint, arguments)
        except _Refused as refusal:
            response = _json(refusal.status, {"error": refusal.error, "error_description": "refused by the stand-in"})
        except HTTPException as error:
            response = _json(error.code or 500, {"error": "not_found"})
        return response(environ, start_response)

    def _answer(self, request: Request, endpoint: str, arguments: Mapping[str, str]) -> Response:
        if endpoint == "ready":
            return _json(200, {})
        with self._lock:
            self.calls[endpoint] += 1
            self.seen.append((request.path, dict(request.headers)))
            del self.seen[:-1000]
        records = self._records()
        rule = records.rule(endpoint)
        time.sleep(rule.delay)
        if rule.drop:
            request.environ[DROP]()
        if rule.status is not None:
            return Response(rule.body, rule.status, content_type="application/json")
        if endpoint == "exchange":
            return self._exchange(request, records, rule.claims)
        return (
            self._acl(request, records, **arguments)
            if endpoint == "acl"
            else self._project(request, records, **arguments)
        )

    def _exchange(self, request: Request, records: Records, changes: Mapping[str, Any]) -> Response:
        form = request.form
        if form.get("grant_type") != _EXCHANGE:
            raise _Refused(400, "unsupported_grant_type")
        if (form.get("subject_token_type"), form.get("requested_token_type")) != (_ACCESS_TOKEN, _PASSPORT):
            raise _Refused(400, "invalid_request")
        person = records.owner(token_digest(form.get("subject_token", "")))
        if person is None:
            raise _Refused(401, "access_denied")
        organization_id = form.get("x_organization_id")
        if organization_id and not person.may_enter(organization_id):
            raise _Refused(400, "invalid_scope")
        passport = self._passport(person, records.passport_seconds, changes)
        return _json(200, {"access_token": passport, "issued_token_type": _PASSPORT, "token_type": "N_A"})

    def _passport(self, person: Person, seconds: float, changes: Mapping[str, Any]) -> str:
        now = time.time()
        claims = {
            "typ": "passport",
            "sub": person.subject,
            "acctype": person.account_type,
            "source": "stand-in",
            "src_iss": "https://stand-in.example.com",
            "email": person.subject,
            "org_ids": person.organization_ids,
            "iat": int(now),
            "exp": now + seconds,
            **changes,
        }
        known = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode({"alg": "ES512"}, known, self._key, algorithms=["ES512"])

    def _acl(self, request: Request, records: Records, organization_id: str | None = None) -> Response:
        if organization_id is not None and not records.knows(organization_id):
            raise NotFound
        return _json(200, _rights(request, records))

    def _project(self, request: Request, records: Records, organization_id: str, project_id: str) -> Response:
        _rights(request, records)
        if not records.has_project(organization_id, project_id):
            raise NotFound
        return _json(200, {"metadata": {"id": project_id}})


def _rights(request: Request, records: Records) -> Mapping[str, Any]:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme:
        person = records.owner(token_digest(token))
        if person is None:
            raise _Refused(401, "access_denied")
        return person.acl
    common_name = _common_name(request.headers.get("Unikorn-Client-Certificate"))
    principal = _principal(request.headers.get("X-Principal"))
    if request.headers.get("X-Impersonate") == "true":
        return records.rights_as(common_name, principal.get("actor", ""), principal.get("type", ""))
    return records.rights_of_service(common_name)


def _common_name(header: str | None) -> str:
    try:
        certificate = x509.load_pem_x509_certificate(unquote(header or "").encode())
        return str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
    except (ValueError, IndexError):
        raise _Refused(401, "access_denied") from None


def _principal(header: str | None) -> Mapping[str, str]:
    try:
        text = header or ""
        return dict(orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except ValueError:
        raise _Refused(400, "invalid_request") from None


def _json(status: int, document: Mapping[str, Any]) -> Response:
    return Response(orjson.dumps(document), status, content_type="application/json")
