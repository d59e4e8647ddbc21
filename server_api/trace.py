"""The W3C trace of the work in hand, so that logs, errors and calls to the cloud carry the same ID."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar, Token

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_trace_id: ContextVar[str | None] = ContextVar("trace_id", default=None)


def begin(traceparent: str | None = None) -> Token[str | None]:
    """Take the trace ID from a ``traceparent`` header, or make one; hand the result to ``end``."""
    return _trace_id.set(_parse(traceparent) or secrets.token_hex(16))


def end(token: Token[str | None]) -> None:
    """Restore what was there before ``begin``."""
    _trace_id.reset(token)


def current() -> str | None:
    """Return the trace ID, 32 lower-case hexadecimal digits, or None outside of any traced work."""
    return _trace_id.get()


def traceparent() -> str | None:
    """Return a ``traceparent`` header for an outgoing call, or None outside of any traced work."""
    trace_id = current()
    return f"00-{trace_id}-{secrets.token_hex(8)}-01" if trace_id else None


def openstack_request_id() -> str | None:
    """Return the trace ID in the form OpenStack accepts as ``X-OpenStack-Request-ID``."""
    trace_id = current()
    if trace_id is None:
        return None
    return f"req-{trace_id[:8]}-{trace_id[8:12]}-{trace_id[12:16]}-{trace_id[16:20]}-{trace_id[20:]}"


def _parse(header: str | None) -> str | None:
    match = _TRACEPARENT.fullmatch((header or "").strip())
    if match is None:
        return None
    version, trace_id, parent_id, more = match.groups()
    # W3C: version ff is forbidden, version 00 has no further fields, and identifiers of nothing but zeroes are none.
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return trace_id
