"""Token buckets in memory that gunicorn's master shares with all of its workers.

A bucket is one number: the time at which it will be full again (the generic cell rate algorithm). The memory is a table
of fixed size, so that no flood of names makes it grow; a name that is pushed out of it starts with a full bucket.
The master imports this module before it knows where metrics are written, so nothing here may bring them along.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SLOT = struct.Struct("<Qd")  # a fingerprint of the name, and when the bucket is full
_WAYS = 8
_SET_BYTES = _WAYS * _SLOT.size
_NOTHING = 1e-6  # of a token


@dataclass(frozen=True, slots=True)
class Limit:
    """``rate`` tokens a second flow into a bucket that holds ``burst``; a request takes one."""

    rate: float
    burst: int

    @property
    def window(self) -> float:
        """Seconds until an empty bucket is full."""
        return self.burst / self.rate

    @classmethod
    def parse(cls, text: str) -> Limit | None:
        """Read ``RATE:BURST``; None for the empty text. Raises ValueError."""
        if not text:
            return None
        rate, _, burst = text.partition(":")
        try:
            limit = cls(float(rate), int(burst))
        except ValueError:
            limit = cls(0, 0)
        if not (1e-3 <= limit.rate <= 1e6 and 1 <= limit.burst <= 1e6):
            raise ValueError("a limit is RATE:BURST, such as 10:50 for ten requests a second and fifty at once")
        return limit


@dataclass(frozen=True, slots=True)
class Level:
    """How full a bucket is. ``retry_after`` is 0 when there was, or is, a token."""

    remaining: int
    full_in: float
    retry_after: float


class Buckets:
    """A table of buckets. Made before a fork, it is one table for all of the processes. Thread-safe.

    ``clock`` tells seconds, the same in every process: the monotonic clock of the machine does.
    """

    def __init__(self, sets: int = 8192, clock: Callable[[], float] = time.monotonic) -> None:
        self._sets = sets
        self._clock = clock
        # Names cannot be chosen to push a certain other one out.
        self._key = secrets.token_bytes(16)
        self._descriptor = os.memfd_create("server-api-limits", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, sets * _SET_BYTES)
        self._table = mmap.mmap(self._descriptor, sets * _SET_BYTES)
        self._threads = threading.Lock()

    def take(self, name: str, limit: Limit) -> Level:
        """Take a token from the bucket of that name, if there is one."""
        return self._visit(name, limit, 1)

    def look(self, name: str, limit: Limit) -> Level:
        """Say how full the bucket of that name is."""
        return self._visit(name, limit, 0)

    def _visit(self, name: str, limit: Limit, tokens: int) -> Level:
        fingerprint, start = self._place(name)
        with self._alone(start):
            now = self._clock()
            offset, full_at = self._find(fingerprint, start)
            # Never further than an empty bucket: what another setting has left there ends as soon as it can.
            until_full = min(max(full_at - now, 0.0), limit.window)
            missing = until_full * limit.rate
            lacking = missing + 1 - limit.burst
            # Less than that is rounding.
            retry_after = lacking / limit.rate if lacking > _NOTHING else 0.0
            if retry_after == 0 and tokens:
                missing += tokens
                _SLOT.pack_into(self._table, offset, fingerprint, now + missing / limit.rate)
        return Level(int(max(limit.burst - missing, 0)), missing / limit.rate, retry_after)

    def _place(self, name: str) -> tuple[int, int]:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), key=self._key, digest_size=16).digest()
        # 0 is the fingerprint of an empty slot.
        fingerprint = int.from_bytes(digest[:8], "little") or 1
        return fingerprint, int.from_bytes(digest[8:], "little") % self._sets * _SET_BYTES

    def _find(self, fingerprint: int, start: int) -> tuple[int, float]:
        """Return place and number of a bucket; of the fullest other one in its set, as a full one, if it has none."""
        slots = [
            (start + way * _SLOT.size, *_SLOT.unpack_from(self._table, start + way * _SLOT.size))
            for way in range(_WAYS)
        ]
        for offset, known, full_at in slots:
            if known == fingerprint:
                return offset, full_at
        return min(slots, key=lambda slot: slot[2])[0], 0.0

    @contextmanager
    def _alone(self, start: int) -> Iterator[None]:
        # POSIX locks are a process's, not a thread's, and end with it: a worker that is killed leaves none behind.
        with self._threads:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, _SET_BYTES, start)
            try:
                yield
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _SET_BYTES, start)


_shared: Buckets | None = None


def share() -> None:
    """Let the processes that are forked from here on have one table. To be called in gunicorn's master."""
    global _shared
    _shared = Buckets()


def table() -> Buckets:
    """Return the table of this process: the one it shares, else a new one."""
    return _shared or Buckets()
