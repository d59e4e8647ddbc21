"""Every error as the JSON envelope of contract 3.1: for our own refusals and for all that Flask can raise."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import marshmallow
import orjson
import structlog
from flask import Flask, Response, request
from flask_smorest.error_handler import ErrorHandlerMixin
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from server_api import trace
from server_api.access.authentication import InvalidCredentials, Refusal, ScopeRefused, Unauthenticated
from server_api.http.schemas.error import ErrorSchema
from server_api.servers import errors, ports

UNEXPECTED = "The request could not be completed because of an unexpected failure."
"""The one description of every unexpected failure: what happened is in the logs, under the trace ID."""

MAX_CHARACTERS = 1000
MAX_BYTES = 1500
"""How long a description may get, as text and in JSON."""

_CODES = {
    400: "invalid_request",
    401: "access_denied",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    410: "not_found",
    413: "request_entity_too_large",
    415: "unsupported_media_type",
    422: "unprocessable_content",
    429: "too_many_requests",
}

_REJECTIONS: dict[type[errors.Rejection], int] = {
    errors.InvalidRequest: 400,
    errors.Unverified: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Unprocessable: 422,
}

_REFUSALS: dict[type[Refusal], int] = {InvalidCredentials: 400, ScopeRefused: 403}

_DESCRIPTIONS = {
    404: "the path does not exist",
    405: "the method is not supported on this path",
    413: "the request body is too large",
    415: "the request body must have the content type application/json",
}

_RETRY_AFTER = re.compile(r"[\w ,:+-]{1,64}", re.ASCII)
_DEPENDENCIES = {
    "kubernetes": "the object store",
    "identity": "the identity service",
    "oidc": "the issuer of tokens",
    "keystone": "the cloud's identity service",
    "nova": "the cloud's compute service",
    "glance": "the cloud's image service",
    "neutron": "the cloud's network service",
}

_log = structlog.get_logger(__name__)


class BadParameter(HTTPException):
    """A path or query parameter, or a body, cannot be understood (400).

    ``where`` names the place: a parameter's name, or a JSON pointer into the body.
    """

    code = 400

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)


def code_of(status: int) -> str:
    """Return the ``error`` member that goes with a status (contract 3.2)."""
    return _CODES.get(status, "server_error" if status >= 500 else "invalid_request")


def document(status: int, description: str, trace_id: str | None) -> bytes:
    """Return the body of an error, below 2 KiB whatever the description."""
    body = {"error": code_of(status), "error_description": _shortened(description)}
    if trace_id is not None:
        body["trace_id"] = trace_id
    return orjson.dumps(body)


def _shortened(description: str) -> str:
    if len(description) > MAX_CHARACTERS:
        description = f"{description[:MAX_CHARACTERS]}…"
    if len(orjson.dumps(description)) > MAX_BYTES:
        # A character takes up to six bytes in JSON.
        description = f"{description[: MAX_BYTES // 6]}…"
    return description


def envelope(status: int, description: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error response with the body and headers of contract 3.1."""
    response = Response(document(status, description, trace.current()), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-cache"
    response.headers.update(headers or {})
    return response


class ErrorHandlers(ErrorHandlerMixin):  # type: ignore[misc]  # flask-smorest ships no types
    """The part of flask-smorest's ``Api`` that turns exceptions into responses."""

    ERROR_SCHEMA: type[marshmallow.Schema] = ErrorSchema

    _app: Flask

    def _register_error_handlers(self) -> None:
        super()._register_error_handlers()
        self._app.register_error_handler(errors.Rejection, _handle_rejection)
        self._app.register_error_handler(Unauthenticated, _handle_unauthenticated)
        self._app.register_error_handler(Refusal, _handle_refusal)
        self._app.register_error_handler(ports.PortError, _handle_port_error)
        self._app.register_error_handler(TimeoutError, _handle_timeout)
        self._app.register_error_handler(Exception, _handle_unexpected)

    def handle_http_exception(self, error: HTTPException) -> Any:
        """Return the envelope for an error that Flask, werkzeug, webargs or a view raised as HTTP exception."""
        status = error.code or 500
        if error.response is not None and status < 400:
            return error.response
        headers: dict[str, str] = {}
        if isinstance(error, MethodNotAllowed) and error.valid_methods:
            headers["Allow"] = ", ".join(sorted(error.valid_methods))
        if isinstance(error, BadParameter):
            return envelope(status, error.description or "", headers)
        # werkzeug's own texts may quote the request, so they are not passed on.
        description = UNEXPECTED if status >= 500 else _DESCRIPTIONS.get(status, HTTPStatus(status).phrase.lower())
        return envelope(status, description, headers)


def _handle_rejection(error: errors.Rejection) -> Response:
    status = next((_REJECTIONS[kind] for kind in type(error).__mro__ if kind in _REJECTIONS), 400)
    description = f"{_pointer(error.field)}: {error.reason}" if error.field else error.reason
    return envelope(status, description)


def _pointer(field: str) -> str:
    """Return ``spec.networking.securityGroups[0]`` as a JSON pointer."""
    return "/" + field.replace("[", ".").replace("]", "").replace(".", "/")


def _handle_unauthenticated(error: Unauthenticated) -> Response:
    resource = f"https://{request.host}/.well-known/openid-protected-resource"
    challenge = {"error": "access_denied", "error_description": error.reason, "resource_metadata": resource}
    parameters = ",".join(f'{name}="{_quoted(value)}"' for name, value in challenge.items())
    return envelope(401, error.reason, {"WWW-Authenticate": f"Bearer {parameters}"})


def _handle_refusal(error: Refusal) -> Response:
    return envelope(_REFUSALS[type(error)], error.reason)


def _quoted(value: str) -> str:
    return re.sub(r"[^ !#-\[\]-~]", "", value)


def _handle_port_error(error: ports.PortError) -> Response:
    _log.error("a dependency failed", dependency=error.dependency, kind=type(error).__name__, detail=error.detail)
    name = _DEPENDENCIES.get(error.dependency, "a dependency")
    headers = {}
    if error.retry_after is not None and _RETRY_AFTER.fullmatch(error.retry_after):
        headers["Retry-After"] = error.retry_after
    if isinstance(error, ports.TimedOut):
        return envelope(504, f"{name} did not answer in time", headers)
    return envelope(502, f"{name} failed", headers)


def _handle_timeout(error: TimeoutError) -> Response:
    _log.error("the request ran out of time", detail=str(error))
    return envelope(504, "the request could not be completed in time")


def _handle_unexpected(error: Exception) -> Response:
    _log.error("unexpected failure", exc_info=error)
    return envelope(500, UNEXPECTED)
