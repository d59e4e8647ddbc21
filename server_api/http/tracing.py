"""Each request gets a trace ID, the caller's or a new one, and a budget of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from server_api import deadline, trace

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class RequestScope:
    """WSGI middleware that opens trace and deadline around the application.

    It is outside of Flask so that whatever Flask answers, its own failures included, belongs to a trace. Responses
    are complete when the application returns, so nothing of a request happens after the scope has closed.
    """

    def __init__(self, application: WSGIApplication, seconds: float) -> None:
        self._application = application
        self._seconds = seconds

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        token = trace.begin(environ.get("HTTP_TRACEPARENT"))
        try:
            with deadline.within(self._seconds):
                return self._application(environ, start_response)
        finally:
            trace.end(token)
