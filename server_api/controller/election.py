"""Which replica may act: a Lease, held the way Kubernetes' own controllers hold theirs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from server_api import deadline
from server_api.controller.backoff import Backoff
from server_api.servers.ports import AlreadyExists, Clock, PortError, StateConflict
from server_api.servers.replica_ports import Lease, Leases

_log = structlog.get_logger(__name__)


class LostLeadership(Exception):
    """This replica may not act any more. No PortError: rules must not take it for a failure of the cloud."""


@dataclass(frozen=True, slots=True)
class Term:
    """The times of a lease in seconds.

    A candidate waits ``lease`` since it last saw the holder's mark change. A leader acts for ``renew`` after
    it began its last successful renewal, which is less, so that it has stopped before anybody else begins, as
    long as the two clocks run at nearly the same rate; what time they show does not matter. ``retry`` lies
    between attempts. Raises ValueError unless retry < renew < lease.
    """

    lease: float
    renew: float
    retry: float

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew < self.lease:
            raise ValueError("the lease's times must be in order: lease_retry < lease_renew < lease_seconds")


class Elector:
    """One candidate for a lease.

    ``identity`` must be unique to this process: a process that takes an older one's lease for its own would
    act beside it. ``on_elected`` and ``on_lost`` are called by the thread that calls ``run``. ``monotonic``
    returns seconds; ``clock`` is only for the times that people read in the lease.
    """

    def __init__(
        self,
        leases: Leases,
        name: str,
        identity: str,
        term: Term,
        clock: Clock,
        *,
        on_elected: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leases = leases
        self._name = name
        self._identity = identity
        self._term = term
        self._clock = clock
        self._on_elected = on_elected
        self._on_lost = on_lost
        self._monotonic = monotonic
        # One attempt after the other, spread a little, so that candidates do not collide each time.
        self._pause = Backoff(term.retry, term.retry)
        self._leading = False
        self._renewed_at = 0.0
        self._mark: Lease | None = None
        self._mark_seen_at = 0.0
        self._mark_is_gone = False

    def is_leading(self) -> bool:
        """Say whether this replica may act now. False by itself when the lease was not renewed in time."""
        return self._leading and self._monotonic() - self._renewed_at < self._term.renew

    def assert_leading(self) -> None:
        """Raise LostLeadership unless this replica may act now."""
        if not self.is_leading():
            raise LostLeadership("this replica does not lead")

    def exclusive_seconds(self) -> float:
        """Return for how long nobody else can lead; not positive when somebody may."""
        return self._renewed_at + self._term.lease - self._monotonic() if self._leading else 0.0

    def run(self, stop: threading.Event) -> None:
        """Stand for election, and renew, until ``stop`` is set."""
        while not stop.is_set():
            self.attempt()
            stop.wait(self._pause.delay(1))

    def attempt(self) -> None:
        """Try once to acquire or renew the lease. A failing store is no error: leading then ends in time."""
        began = self._monotonic()
        try:
            # Half of the term, so that one hanging attempt leaves time for another.
            with deadline.within(self._term.renew / 2):
                held = self._acquire_or_renew(began)
        except (AlreadyExists, StateConflict):
            # Somebody wrote since we read. Whether that cost us the lease, the next attempt's read says.
            held = self.is_leading()
        except PortError as error:
            _log.warning("the lease cannot be reached", lease=self._name, error=str(error))
            held = self.is_leading()
        if held and not self._leading:
            self._leading = True
            _log.info("leading", lease=self._name, identity=self._identity)
            self._on_elected()
        elif self._leading and not (held and self.is_leading()):
            _log.warning("not leading any more", lease=self._name, identity=self._identity)
            self._lose()

    def release(self) -> None:
        """Stop leading, and give the lease back so that the next one need not wait for it to run out.

        To be called when nothing acts any more and ``run`` has returned.
        """
        if not self._leading:
            return
        self._lose()
        try:
            with deadline.within(self._term.renew / 2):
                released = self._give_back()
            if released:
                _log.info("the lease is released", lease=self._name)
        except PortError as error:
            _log.warning("the lease was not released and has to run out", lease=self._name, error=str(error))

    def _give_back(self) -> bool:
        lease = self._leases.get(self._name)
        if lease is None or lease.holder != self._identity:
            return False
        self._leases.replace(replace(lease, holder="", renewed_at=self._clock.now()))
        return True

    def _lose(self) -> None:
        self._leading = False
        self._on_lost()

    def _acquire_or_renew(self, began: float) -> bool:
        """Return whether the lease is ours now. Its time counts from ``began``, before the first request."""
        lease = self._leases.get(self._name)
        self._observe(lease)
        if self._is_anothers(began):
            return False
        if lease is None:
            self._leases.create(self._taken(None))
        else:
            self._leases.replace(self._taken(lease))
        self._renewed_at = began
        self._mark = None
        return True

    def _observe(self, lease: Lease | None) -> None:
        """Remember when the holder's mark changed. Its times are another clock's: only the change counts."""
        mark = self._mark
        if lease is None:
            # Deleting a lease does not end its holder's term, and when it renewed last nobody can say any more.
            if mark is not None and not self._mark_is_gone:
                self._mark_seen_at = self._monotonic()
        elif mark is None or (mark.holder, mark.renewed_at) != (lease.holder, lease.renewed_at):
            # Not when this attempt began: the holder may have renewed while our read was under way.
            self._mark_seen_at = self._monotonic()
        self._mark_is_gone = lease is None
        self._mark = lease or mark

    def _is_anothers(self, now: float) -> bool:
        """Say whether another's term may still run."""
        mark = self._mark
        if mark is None or mark.holder in ("", self._identity):
            return False
        return now - self._mark_seen_at < max(self._term.lease, mark.duration_seconds)

    def _taken(self, lease: Lease | None) -> Lease:
        now = self._clock.now()
        # Rounded up: others must not count on less time than we take.
        duration = math.ceil(self._term.lease)
        if lease is None:
            return Lease(self._name, self._identity, duration, acquired_at=now, renewed_at=now, transitions=0)
        mine = lease.holder == self._identity
        return replace(
            lease,
            holder=self._identity,
            duration_seconds=duration,
            acquired_at=lease.acquired_at if mine else now,
            renewed_at=now,
            transitions=lease.transitions + (0 if mine else 1),
        )
