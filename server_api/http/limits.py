"""How many requests one caller may make: a token bucket for each subject, service and unauthenticated address.

All workers of one gunicorn share the buckets; replicas do not, so that several of them allow their number of times as
much. Off unless configured.

Requests that nobody is authenticated for, refused tokens among them, count for the address they come from. Once its
bucket is empty they are turned away before anybody is asked about their credentials. Credentials that were good a
moment ago are let through all the same: behind one address there may be many callers, and one with a bad token must not
lock out the others.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
from ipaddress import IPv6Address, ip_address, ip_network

from cachetools import TTLCache
from flask import Flask, Response, g, request
from prometheus_client import Counter

from server_api.access.authorization import AuthorizedCaller
from server_api.http import token_buckets
from server_api.http.client_address import client_address
from server_api.http.errors import envelope
from server_api.http.routes import PROBES, route_template
from server_api.http.token_buckets import Level, Limit
from server_api.settings import Settings

LIMITED = Counter("server_api_limited_requests_total", "Requests answered 429, by the limit that they met.", ["limit"])

HEADERS = {
    "Retry-After": {"description": "Seconds until a request can be accepted.", "schema": {"type": "integer"}},
    "RateLimit-Policy": {
        "description": "The limit: `q` requests at once, and as many again in `w` seconds.",
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": "`r` requests can be made now; in `t` seconds all of them can again.",
        "schema": {"type": "string"},
    },
}
"""What the OpenAPI document says of the headers."""

_REMEMBERED_SECONDS = 60
_REMEMBERED = 4096


def install_for_peers(app: Flask, settings: Settings) -> None:
    """Limit requests that nobody is authenticated for. Install it before ``binding``. Raises ValueError."""
    limit = _limit(settings, "limit_peer")
    if limit is None:
        return
    buckets, accepted = token_buckets.table(), _AcceptedCredentials()

    def refuse() -> Response | None:
        if route_template() in PROBES or request.method == "OPTIONS":
            return None
        level = buckets.look(_peer(), limit)
        return None if level.retry_after == 0 or accepted.has_these() else _refusal("peer", limit, level)

    def count(response: Response) -> Response:
        if route_template() in PROBES or request.method == "OPTIONS" or g.get("is_limited", False):
            return response
        if "caller" in g:
            accepted.add_these()
            return response
        accepted.discard_these()
        return _told(response, "peer", limit, buckets.take(_peer(), limit))

    app.before_request(refuse)
    app.after_request(count)


def install_for_callers(app: Flask, settings: Settings) -> None:
    """Limit authenticated requests. Install it after authentication. Raises ValueError."""
    limits = {"subject": _limit(settings, "limit_subject"), "service": _limit(settings, "limit_service")}
    if not any(limits.values()):
        return
    buckets = token_buckets.table()

    def take() -> Response | None:
        caller: AuthorizedCaller | None = g.get("caller")
        if caller is None:
            return None
        name = "service" if caller.account_type == "system" else "subject"
        limit = limits[name]
        if limit is None:
            return None
        level = buckets.take(f"{caller.account_type} {caller.subject}", limit)
        if level.retry_after > 0:
            return _refusal(name, limit, level)
        g.rate_limit = name, limit, level
        return None

    def tell(response: Response) -> Response:
        return _told(response, *g.rate_limit) if "rate_limit" in g else response

    app.before_request(take)
    app.after_request(tell)


class _AcceptedCredentials:
    """Credentials that were good in the last minute, as digests that only this process can make."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._known: TTLCache[bytes, None] = TTLCache(_REMEMBERED, _REMEMBERED_SECONDS)
        self._lock = threading.Lock()

    def has_these(self) -> bool:
        with self._lock:
            return self._these() in self._known

    def add_these(self) -> None:
        with self._lock:
            self._known[self._these()] = None

    def discard_these(self) -> None:
        with self._lock:
            self._known.pop(self._these(), None)

    def _these(self) -> bytes:
        """Return what the request in hand says of its caller."""
        digest = hashlib.blake2b(key=self._key, digest_size=16)
        for name in ("Authorization", "Ssl-Client-Cert", "Ssl-Client-Verify"):
            value = request.headers.get(name, "").encode("utf-8", "surrogatepass")
            digest.update(b"%d %s" % (len(value), value))
        return digest.digest()


def _limit(settings: Settings, name: str) -> Limit | None:
    try:
        return Limit.parse(getattr(settings, name))
    except ValueError as error:
        raise ValueError(f"SERVER_API_{name.upper()}: {error}") from None


def _peer() -> str:
    """Return whose bucket an unauthenticated request takes from; whoever has an IPv6 address has a /64 of them."""
    text = client_address()
    try:
        address = ip_address(text)
    except ValueError:
        return f"peer {text}"
    if isinstance(address, IPv6Address):
        return f"peer {ip_network((int(address), 64), strict=False)}"
    return f"peer {address}"


def _refusal(name: str, limit: Limit, level: Level) -> Response:
    g.is_limited = True
    LIMITED.labels(name).inc()
    response = envelope(429, "too many requests", {"Retry-After": str(math.ceil(level.retry_after))})
    return _told(response, name, limit, level)


def _told(response: Response, name: str, limit: Limit, level: Level) -> Response:
    """Say in headers what the limit is, and what is left (draft-ietf-httpapi-ratelimit-headers)."""
    response.headers["RateLimit-Policy"] = f'"{name}";q={limit.burst};w={math.ceil(limit.window)}'
    response.headers["RateLimit"] = f'"{name}";r={level.remaining};t={math.ceil(level.full_in)}'
    return response
