"""Who still calls v1: a counter for dashboards, and a log line with the whole of it."""

from __future__ import annotations

import re
from threading import Lock

import structlog
from flask import request
from prometheus_client import Counter

from server_api.http import authentication

OTHER = "other"
ANONYMOUS = "unauthenticated"

CALLS = Counter(
    "server_api_v1_requests_total",
    "Requests to the deprecated v1, by operation and client.",
    ["operation", "subject", "user_agent"],
)

_PRODUCT = re.compile(r"[A-Za-z0-9._-]{1,40}")
_MOST_CHARACTERS = 200

_log = structlog.get_logger(__name__)


class Clients:
    """Which clients the counter tells apart: as many as came first, so that nobody can make it grow without end.

    At most ``subjects``, and of each at most ``agents`` user agents; the rest counts as ``other``. Thread-safe.
    """

    def __init__(self, subjects: int = 100, agents: int = 5) -> None:
        self._subjects = subjects
        self._agents = agents
        self._known: dict[str, set[str]] = {}
        self._lock = Lock()

    def labels(self, subject: str, agent: str) -> tuple[str, str]:
        """Return what to count a client as."""
        with self._lock:
            if subject not in self._known and len(self._known) >= self._subjects:
                return OTHER, OTHER
            agents = self._known.setdefault(subject, set())
            if agent not in agents and len(agents) >= self._agents:
                return subject, OTHER
            agents.add(agent)
            return subject, agent


_clients = Clients()


def record(operation: str, status: int) -> None:
    """Count the request in hand, and log it with the user agent as it was sent."""
    subject = authentication.subject()
    agent = request.headers.get("User-Agent", "")
    CALLS.labels(operation, *_clients.labels(subject or ANONYMOUS, product(agent))).inc()
    _log.info("v1 was called", operation=operation, subject=subject, user_agent=agent[:_MOST_CHARACTERS], status=status)


def product(user_agent: str) -> str:
    """Return the name a user agent begins with, without version and comments: those change and the client does not."""
    match = _PRODUCT.match(user_agent)
    return match[0] if match else "none"
