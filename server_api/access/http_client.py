"""HTTP requests to whoever knows callers: within the deadline, with a bound on the answer, and without a memory.

Nothing of one caller's request may reach another's: no cookies are kept, no redirect is followed with a token in hand,
and no credentials come from a ``.netrc``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
import urllib3
from requests.adapters import HTTPAdapter

from server_api import deadline, trace
from server_api.servers.ports import TimedOut, Unavailable

MOST_BYTES = 8_000_000
_CHUNK = 65_536
_CONNECTIONS = 32

Observe = Callable[[str, str, str, float], None]
"""Called with service, method, outcome and seconds of every request (``CloudMetrics.observe``)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an answer."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None

    def document(self) -> Any:
        """Return the body's JSON. Raises ValueError."""
        return orjson.loads(self.body)


class _ConnectionLost(Unavailable):
    """No answer came, or half of one."""


class HttpClient:
    """Sends requests to one service, named ``service`` in errors and metrics. Thread-safe.

    ``certificate`` and ``key`` are what we show the service of ourselves; ``authorities`` is a file of those that may
    have signed its certificate, the system's by default. ``proxies``: use those that the environment names.
    """

    def __init__(
        self,
        service: str,
        *,
        connect_timeout: float,
        read_timeout: float,
        authorities: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        proxies: bool = False,
        observe: Observe | None = None,
    ) -> None:
        self._service = service
        self._timeouts = connect_timeout, read_timeout
        self._observe = observe
        self._session = session = requests.Session()
        session.trust_env = proxies
        session.auth = _leave_as_it_is
        session.verify = str(authorities) if authorities else True
        if certificate is not None:
            session.cert = (str(certificate), str(key)) if key else str(certificate)
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = HTTPAdapter(pool_connections=4, pool_maxsize=_CONNECTIONS)
        session.mount("https://", adapter)
        session.mount("http://", adapter)

    def send(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
    ) -> Answer:
        """Return the answer, whatever its status.

        Raises TimedOut and Unavailable when there is none, and TimeoutError when the deadline has passed already.
        """
        try:
            return self._measured(method, url, headers, form)
        except _ConnectionLost:
            # A connection that was kept may have been closed meanwhile; everything we ask for may be asked for twice.
            return self._measured(method, url, headers, form)

    def _measured(
        self, method: str, url: str, headers: Mapping[str, str] | None, form: Mapping[str, str] | None
    ) -> Answer:
        began, outcome = time.perf_counter(), "failed"
        try:
            answer = self._send(method, url, headers, form)
            outcome = f"{answer.status // 100}xx"
            return answer
        except TimedOut:
            outcome = "timeout"
            raise
        finally:
            if self._observe is not None:
                self._observe(self._service, method, outcome, time.perf_counter() - began)

    def _send(self, method: str, url: str, headers: Mapping[str, str] | None, form: Mapping[str, str] | None) -> Answer:
        connect, read = (deadline.remaining(limit) for limit in self._timeouts)
        traceparent = trace.traceparent()
        own = {"Accept": "application/json"} | ({"traceparent": traceparent} if traceparent else {})
        try:
            with self._session.request(
                method,
                url,
                headers=own | dict(headers or {}),
                data=form,
                timeout=(connect, read),
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._body(response)
        except (requests.Timeout, urllib3.exceptions.ReadTimeoutError, TimeoutError):
            raise TimedOut(self._service, f"{method} was not answered in time") from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as failure:
            # The text may hold the URL and headers.
            raise _ConnectionLost(self._service, f"{method}: {type(failure).__name__}") from None
        return Answer(response.status_code, body, response.headers.get("Retry-After"))

    def _body(self, response: requests.Response) -> bytes:
        """Read the body piece by piece: a time-out of reading alone would let a trickle hold the thread for ever."""
        ends_at = time.monotonic() + self._timeouts[1]
        body = bytearray()
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            body += chunk
            if len(body) > MOST_BYTES:
                raise Unavailable(self._service, "the answer is too large")
            if time.monotonic() > ends_at:
                raise TimedOut(self._service, "the answer took too long")
            deadline.remaining(self._timeouts[1])
        return bytes(body)


def checked_url(url: str, name: str) -> str:
    """Return the URL of a service whose answers are believed, without a slash at its end.

    Raises ValueError, naming ``name``, unless it is one of HTTPS, or of HTTP on this machine.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018  it raises for what is no port
    except ValueError:
        raise ValueError(f"{name} is not a URL") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        raise ValueError(f"{name} must be a URL such as https://identity.example.com")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError(f"{name} must be https: whoever is between could say who anybody is")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _leave_as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    # Without any authentication of its own, requests would look for the host in a .netrc.
    return request
