"""Every error of the OpenStack clients, translated into the port's few errors. The only place that knows them all.

``CloudSession`` makes each failed answer a keystoneauth ``HttpError``, whichever client asked. The clients' own error
classes are understood too, because a few of them are raised without an answer.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import glanceclient.exc
import keystoneauth1.exceptions as keystone_exceptions
import novaclient.exceptions
import openstack.exceptions
import requests

from server_api.servers.ports import (
    Denied,
    Missing,
    PortError,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)

logger = logging.getLogger(__name__)

DETAIL_LIMIT = 300
"""Longest detail, in characters, that an error carries."""

_STATUS_ERRORS: dict[int, type[PortError]] = {
    401: Denied,
    403: Denied,
    408: Unavailable,
    409: StateConflict,
    412: StateConflict,
    429: Unavailable,
}

_MISSING_OBJECT_FAULTS = {"nova": "itemNotFound", "neutron": "NeutronError"}
"""What a service's own 404 about an object has in its body.

A 404 without it comes from a proxy or from a wrong endpoint. Taken for "does not exist", it would create a second
instance or forget one that is still there.
"""

_MISSING_IMAGE = re.compile(r"No image found with ID|Failed to find image")
"""What Glance's 404 about an image says, in text or markup: the same rule for a service without a JSON fault."""

_NOVA_STATE_CLASH = re.compile(r"nova\.exception\.(UnexpectedTaskStateError|InstanceUpdateConflict)\b")
"""What Nova's 500 names when an instance moved on between Nova's look at it and Nova's write.

Nova checks the state twice: the first check answers 409, the second, which a reboot loses to the one before it, is
caught by nobody. The request was not taken, as with a 409. Taken for a failure of Nova, a client that is told "later"
by one reboot would be told "the cloud failed" by the next.
"""

_KEYSTONE_FAILURES = (
    keystone_exceptions.CatalogException,
    keystone_exceptions.AuthorizationFailure,
    openstack.exceptions.ConfigException,
)

_CLIENT_FAILURES = (
    keystone_exceptions.ClientException,
    novaclient.exceptions.ClientException,
    glanceclient.exc.ClientException,
    glanceclient.exc.BaseException,
    openstack.exceptions.SDKException,
    requests.RequestException,
)

_MISSHAPEN_ANSWER = (LookupError, TypeError, ValueError, AttributeError)
"""What the clients and the conversions raise on an answer that is no JSON, or JSON of another shape."""

_ECHOED_INPUT = re.compile(r"\s*Value: .*", re.DOTALL)
"""Nova's and Neutron's schema errors repeat the value they refuse, which may be user data."""
_URL_QUERY = re.compile(r"(https?://[^\s?\"'<>]*)\?[^\s\"'<>]*")
_TOKEN = re.compile(r"\b(gAAAA[\w-]{8,}=*|[0-9a-f]{64,}|eyJ[\w-]{8,}\.[\w.-]+)")
_MARKUP = re.compile(r"<title>.*?</title>|<[^>]+>", re.DOTALL)


@contextmanager
def translated(dependency: str) -> Iterator[None]:
    """Raise a ``PortError`` of ``dependency`` for every failure of a client inside the block (also a decorator).

    A failure to log in, or to find the service in the catalogue, is one of "keystone".
    """
    try:
        yield
    except PortError:
        raise
    except Exception as error:
        failure = _port_error(dependency, error)
        if failure is None:
            raise
        raise failure from error


def safe_detail(text: str) -> str:
    """Return text of a dependency as one bounded line, without tokens, query strings or echoed input."""
    text = _ECHOED_INPUT.sub("", text)
    text = _URL_QUERY.sub(r"\1", text)
    text = _TOKEN.sub("[redacted]", text)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= DETAIL_LIMIT else text[: DETAIL_LIMIT - 1] + "…"


def _port_error(dependency: str, error: Exception) -> PortError | None:
    if _is_timeout(error):
        return TimedOut(dependency, "no answer in time")
    if isinstance(error, _KEYSTONE_FAILURES):
        kind = Denied if isinstance(error, keystone_exceptions.AuthorizationFailure) else Unavailable
        return kind("keystone", safe_detail(str(error)))
    status = _status(error)
    if status is not None:
        return _answer_error(dependency, status, error)
    if isinstance(error, _MISSHAPEN_ANSWER):
        # A defect of ours would look the same: the traceback is the only way to tell them apart.
        logger.warning("%s gave an answer that was not understood", dependency, exc_info=error)
        return Unavailable(dependency, "the answer was not understood")
    if isinstance(error, _CLIENT_FAILURES):
        return Unavailable(dependency, safe_detail(str(error)))
    return None


def _is_timeout(error: Exception) -> bool:
    timeouts = (TimeoutError, keystone_exceptions.ConnectTimeout, requests.Timeout)
    # glanceclient raises InvalidEndpoint for a time-out and keeps the reason only as the context.
    return isinstance(error, timeouts) or (
        isinstance(error, glanceclient.exc.InvalidEndpoint) and isinstance(error.__context__, timeouts)
    )


def _status(error: Exception) -> int | None:
    """Return the HTTP status a client's error stands for; each client has its own attribute for it."""
    for attribute in ("http_status", "status_code", "code"):
        status = getattr(error, attribute, None)
        if isinstance(status, int) and status:
            return status
    return None


def _answer_error(dependency: str, status: int, error: Exception) -> PortError:
    response = getattr(error, "response", None)
    detail = safe_detail(_message(response) or str(error)) or f"HTTP {status}"
    retry_after = None if response is None else response.headers.get("Retry-After")
    if status == 404:
        kind: type[PortError] = Missing if _says_missing(dependency, response) else Unavailable
    elif status == 500 and dependency == "nova" and _NOVA_STATE_CLASH.search(detail):
        kind = StateConflict
    elif status in _STATUS_ERRORS:
        kind = _STATUS_ERRORS[status]
    else:
        kind = Refused if 400 <= status < 500 else Unavailable
    return kind(dependency, detail, retry_after)


def _says_missing(dependency: str, response: requests.Response | None) -> bool:
    if response is None:
        return True
    if dependency == "glance":
        return _MISSING_IMAGE.search(response.text) is not None
    body = _json(response)
    return isinstance(body, dict) and _MISSING_OBJECT_FAULTS.get(dependency, "") in body


def _message(response: requests.Response | None) -> str:
    """Return what an error answer says: the message of its JSON body, whatever it is wrapped in, or its text."""
    if response is None:
        return ""
    body = _json(response)
    if isinstance(body, dict):
        for candidate in (body, *body.values()):
            if isinstance(candidate, dict) and isinstance(candidate.get("message"), str):
                return str(candidate["message"])
        return ""
    return _MARKUP.sub(" ", response.text)


def _json(response: requests.Response) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        return None
