"""The events of a watch, out of a stream of bytes that may be cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import urllib3
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from server_api.servers.ports import TimedOut
from server_api.store import failures, tolerant

_READ = 65536


def events(response: urllib3.BaseHTTPResponse, attempt: failures.Attempt) -> Iterator[dict[str, Any]]:
    """Yield the events of an open watch until it ends; a lost connection is an end like any other.

    Raises what an ERROR event stands for (410: Expired), TimedOut when nothing arrives, Unavailable on nonsense.
    """
    for line in _lines(response, attempt):
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise failures.nonsense(attempt) from None
        if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
            raise failures.nonsense(attempt)
        if event.get("type") == "ERROR":
            status = event["object"]
            raise failures.from_status(tolerant.integer(status.get("code")) or 500, status, {}, attempt)
        yield event


def _lines(response: urllib3.BaseHTTPResponse, attempt: failures.Attempt) -> Iterator[bytes]:
    # Split as bytes: a character may be cut in two by the network, a line feed is never part of another character.
    pending = bytearray()
    while True:
        try:
            received = response.read1(_READ)
        except (TimeoutError, HTTPTimeoutError):
            raise TimedOut(failures.KUBERNETES, f"{attempt}: silent for too long") from None
        except (HTTPError, OSError):
            return
        if not received:
            return
        if b"\n" not in received:
            pending += received
            continue
        *lines, rest = (bytes(pending) + received).split(b"\n")
        pending = bytearray(rest)
        yield from filter(bytes.strip, lines)
