"""Requests to the cloud that must not be repeated: what their write-ahead record says to whoever comes after."""

from __future__ import annotations

from datetime import datetime

from server_api.servers.model import CloudRequest, CloudRequestKind

LATE_SECONDS = 120.0
"""How long a request whose answer was lost may still take effect: twice what services and proxies usually allow one."""


def may_come_late(request: CloudRequest | None, kind: CloudRequestKind, now: datetime) -> bool:
    """Say whether such a request was recorded so recently that the cloud may still be at it, answered or not."""
    if request is None or request.kind is not kind:
        return False
    return (now - request.sent_at).total_seconds() < LATE_SECONDS
