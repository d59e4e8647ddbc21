"""Where audit events are written: among the logs on standard output, or to a file that is rotated.

A file is shared by all of gunicorn's workers, and any of them may find that it has grown too large. The standard
library's rotating handler loses lines then, because each process renames on its own; so every write and every rotation
happens under a lock of the file system, which ends with the process that holds it. A file that somebody else has moved
away, logrotate for example, is opened anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import structlog
from prometheus_client import Counter

from server_api import logs
from server_api.settings import Settings

STDOUT = "stdout"
OFF = "off"

LOGGER = logs.AUDIT_LOGGER

FAILURES = Counter("server_api_audit_failures_total", "Audit events that could not be written to the audit file.")

Event = Mapping[str, Any]

_log = structlog.get_logger(__name__)


class AuditLog(Protocol):
    """What keeps audit events."""

    def write(self, event: Event) -> None:
        """Keep one event. Never raises: the request it tells of has been answered already."""


class NoAudit:
    """Keeps nothing."""

    def write(self, event: Event) -> None:
        """Forget it."""


class StandardOutput:
    """A line among the logs, whatever the log level."""

    def write(self, event: Event) -> None:
        """Log it."""
        structlog.get_logger(LOGGER).info("audit", **event)


class AuditFile:
    """Lines of JSON in a file, readable by its owner and group only.

    It is rotated to ``.1``, ``.2`` and so on, of which ``kept`` are kept, before it would exceed ``max_bytes``; 0:
    never. To be made in the process that writes. Thread-safe, and safe among processes. Raises OSError when the file
    cannot be opened.
    """

    def __init__(self, path: Path, max_bytes: int, kept: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._threads = threading.Lock()
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._file = self._open()

    def write(self, event: Event) -> None:
        """Append it. One that cannot be written is logged instead, so that it is somewhere."""
        line = _line(event)
        try:
            with self._alone():
                self._follow()
                if self._max_bytes and self._size() > 0 and self._size() + len(line) > self._max_bytes:
                    self._rotate()
                _write_all(self._file, line)
        except OSError as failure:
            FAILURES.inc()
            _log.error("the audit file cannot be written", kind=type(failure).__name__, errno=failure.errno)
            StandardOutput().write(event)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # flock is of the descriptor, which this process's threads share.
        with self._threads:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _size(self) -> int:
        return os.fstat(self._file).st_size

    def _follow(self) -> None:
        """Open the file anew if another process has moved it away."""
        try:
            if os.path.samestat(self._path.stat(), os.fstat(self._file)):
                return
        except FileNotFoundError:
            pass
        self._reopen()

    def _rotate(self) -> None:
        for number in range(self._kept - 1, 0, -1):
            if self._numbered(number).exists():
                self._numbered(number).replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))
        self._reopen()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _reopen(self) -> None:
        opened = self._open()
        os.close(self._file)
        self._file = opened


def from_settings(settings: Settings) -> AuditLog:
    """Return what the settings ask for. Raises ValueError when the file cannot be opened."""
    if settings.audit_log == OFF:
        return NoAudit()
    if settings.audit_log == STDOUT:
        return StandardOutput()
    try:
        return AuditFile(Path(settings.audit_log), settings.audit_log_bytes, settings.audit_log_files)
    except OSError as failure:
        raise ValueError(f"SERVER_API_AUDIT_LOG cannot be written: {failure.strerror}") from None


def _line(event: Event) -> bytes:
    whole = {"event": "audit", "timestamp": datetime.now(UTC).isoformat(), **event}
    # ASCII: a name from a token may hold what is no text at all, and must not make the event fail.
    return json.dumps(logs.redact(None, "", whole)).encode() + b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
