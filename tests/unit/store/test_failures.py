"""Answers of the Kubernetes API as errors of the ports."""

from __future__ import annotations

import json
from typing import Any

import pytest
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProtocolError, ReadTimeoutError

from server_api.servers import ports
from server_api.store import failures
from server_api.store.failures import Attempt

ATTEMPT = Attempt("update", "servers", "a-server")


def status(reason: str, **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": "hush", "details": details}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", ports.Refused),
        (401, "Unauthorized", ports.Denied),
        (403, "Forbidden", ports.Denied),
        (408, "Timeout", ports.TimedOut),
        (409, "AlreadyExists", ports.AlreadyExists),
        (409, "Conflict", ports.StateConflict),
        (410, "Expired", ports.Expired),
        (412, "PreconditionFailed", ports.StateConflict),
        (413, "RequestEntityTooLarge", ports.Refused),
        (415, "UnsupportedMediaType", ports.Refused),
        (422, "Invalid", ports.Refused),
        (429, "TooManyRequests", ports.Unavailable),
        (302, "Found", ports.Unavailable),
        (500, "InternalError", ports.Unavailable),
        (503, "ServiceUnavailable", ports.Unavailable),
        (504, "Timeout", ports.TimedOut),
    ],
)
def test_every_status_is_one_error(code: int, reason: str, error: type[ports.PortError]) -> None:
    failure = failures.from_response(code, status(reason), {}, ATTEMPT)
    assert type(failure) is error
    assert failure.dependency == "kubernetes"
    assert failure.detail == f"update servers/a-server: {code} {reason}"


def test_only_the_object_asked_for_can_be_missing() -> None:
    found = failures.from_response(404, status("NotFound", name="a-server", kind="servers"), {}, ATTEMPT)
    assert type(found) is ports.Missing


@pytest.mark.parametrize(
    "body",
    [
        b"<html>no such route</html>",
        b"",
        status("NotFound"),
        status("NotFound", name="unikorn-region", kind="namespaces"),
        status("NotFound", name="a-server", kind="namespaces"),
    ],
)
def test_a_missing_definition_namespace_or_route_does_not_mean_the_object_is_missing(body: bytes) -> None:
    assert type(failures.from_response(404, body, {}, ATTEMPT)) is ports.Unavailable


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "x" denied the request: no',
        "exceeded quota: servers",
        "unable to create: namespace is being terminated",
    ],
)
def test_a_refusal_by_admission_is_not_taken_for_missing_rights(message: str) -> None:
    body = json.dumps({"reason": "Forbidden", "message": message}).encode()
    assert type(failures.from_response(403, body, {}, ATTEMPT)) is ports.Refused


def test_the_detail_names_fields_and_never_values() -> None:
    causes = [
        {"field": "spec.userData", "reason": "FieldValueInvalid", "message": 'Invalid value: "c2VjcmV0"'},
        {"field": None, "message": "c2VjcmV0"},
        "c2VjcmV0",
    ]
    failure = failures.from_response(422, status("Invalid", causes=causes), {}, ATTEMPT)
    assert failure.detail == (
        "update servers/a-server: 422 Invalid: spec.userData (FieldValueInvalid), object (invalid)"
    )


@pytest.mark.parametrize("code", [429, 503, 504])
def test_retry_after_is_passed_on_as_it_came(code: int) -> None:
    assert failures.from_response(code, b"", {"Retry-After": "7"}, ATTEMPT).retry_after == "7"


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b'"text"', b"\xff"])
def test_a_body_that_is_no_status_is_survived(body: bytes) -> None:
    assert type(failures.from_response(500, body, {}, ATTEMPT)) is ports.Unavailable


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), ports.TimedOut),
        (ReadTimeoutError(None, "/secret", "x"), ports.TimedOut),  # type: ignore[arg-type]
        (ConnectTimeoutError(), ports.TimedOut),
        (NewConnectionError(None, "/secret"), ports.Unavailable),  # type: ignore[arg-type]
        (ProtocolError("/secret"), ports.Unavailable),
        (ConnectionResetError(), ports.Unavailable),
    ],
)
def test_no_answer_is_a_time_out_or_unavailable(error: Exception, expected: type[ports.PortError]) -> None:
    failure = failures.from_transport(error, ATTEMPT)
    assert type(failure) is expected
    assert "secret" not in str(failure)
