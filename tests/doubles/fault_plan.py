"""What goes wrong, and at which call: faults are planned ahead for calls of any port, and spent one by one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Any, TypeVar

from server_api.servers.ports import Denied, PortError, Refused, StateConflict, TimedOut, Unavailable

Result = TypeVar("Result")

ANY_EFFECT = "any effect"
"""In place of a call's name: whichever call comes next that changes something."""


class Crash(BaseException):
    """The process ends here: nothing of what it had in memory is left, and no ``except`` of the rules runs."""


class Fault(StrEnum):
    """What becomes of a call."""

    DOWN = "down"
    """It never arrives."""

    LOST_ANSWER = "answer lost"
    """It takes effect, and nobody reads the answer."""

    LATE = "late"
    """It times out, and takes effect some time afterwards."""

    STALE = "stale"
    """A read is answered as it would have been some time ago."""

    CONFLICT = "conflict"
    REFUSED = "refused"
    DENIED = "denied"

    CRASH_BEFORE = "crash before"
    """The caller dies before it takes effect."""

    CRASH_AFTER = "crash after"
    """The caller dies after it took effect."""


_CLEAN: dict[Fault, tuple[type[PortError], str]] = {
    Fault.DOWN: (Unavailable, "503"),
    Fault.CONFLICT: (StateConflict, "409"),
    Fault.REFUSED: (Refused, "400"),
    Fault.DENIED: (Denied, "403"),
}
_OF_EFFECTS = frozenset({Fault.LOST_ANSWER, Fault.LATE})


class FaultPlan:
    """The faults of one process's calls. ``later`` does what a late call was about, after that many seconds.

    ``spent`` has the faults that were met, as ``CALL: FAULT``, and ``calls`` the names of all calls, in order.
    """

    def __init__(self, later: Callable[[float, Callable[[], object]], None]) -> None:
        self._later = later
        self._planned: defaultdict[str, deque[tuple[Fault, float]]] = defaultdict(deque)
        self._meanwhile: defaultdict[str, deque[Callable[[], object]]] = defaultdict(deque)
        self.spent: list[str] = []
        self.calls: list[str] = []

    def plan(self, call: str, fault: Fault, delay: float = 0.0) -> None:
        """Let the next call of that name meet the fault; planned twice, the next two. ``delay`` is of LATE."""
        self._planned[call].append((fault, delay))

    def meanwhile(self, call: str, action: Callable[[], object]) -> None:
        """Let ``action`` happen right before the next call of that name arrives."""
        self._meanwhile[call].append(action)

    def clear(self) -> None:
        """Plan nothing any more."""
        self._planned.clear()
        self._meanwhile.clear()

    def run(
        self,
        dependency: str,
        call: str,
        work: Callable[[], Result],
        *,
        effect: bool,
        send: Callable[[], Callable[[], object]] | None = None,
        past: Callable[[], Result] | None = None,
    ) -> Result:
        """Return what ``work`` returns, or what is planned.

        ``effect``: whether the call changes something. ``send``: does now what a dependency does with a late call when
        it arrives, and returns the rest; without it all is late. ``past`` is ``work`` as of some time ago.
        """
        self.calls.append(call)
        while self._meanwhile[call]:
            self._meanwhile[call].popleft()()
        planned = self._next(call, effect)
        if planned is None:
            return work()
        fault, delay = planned
        self.spent.append(f"{call}: {fault}")
        if fault is Fault.STALE:
            return past() if past is not None else work()
        if fault is Fault.CRASH_BEFORE or (fault is Fault.CRASH_AFTER and not effect):
            raise Crash(call)
        if fault in _CLEAN:
            error, detail = _CLEAN[fault]
            raise error(dependency, detail)
        if fault is Fault.LATE:
            with suppress(PortError):
                self._later(delay, send() if send is not None else work)
            raise TimedOut(dependency, "read timed out")
        with suppress(PortError):
            work()
        if fault is Fault.CRASH_AFTER:
            raise Crash(call)
        raise Unavailable(dependency, "connection lost")

    def _next(self, call: str, effect: bool) -> tuple[Fault, float] | None:
        for name in (call, ANY_EFFECT) if effect else (call,):
            if self._planned[name]:
                fault, delay = self._planned[name].popleft()
                # A read that is late or whose answer is lost is a read that failed.
                return (fault if effect or fault not in _OF_EFFECTS else Fault.DOWN), delay
        return None


class Planned:
    """A port whose calls go through a plan. ``effects`` names the methods that change something.

    What a method does with a late call when it arrives is the port's method of that name with ``send_`` before it, what
    it would have answered some time ago that with ``past_``.

    It has no types of its own: whoever makes one casts it to the port.
    """

    def __init__(self, port: Any, plan: FaultPlan, name: str, dependency: str, effects: frozenset[str]) -> None:
        self._port = port
        self._plan = plan
        self._name = name
        self._dependency = dependency
        self._effects = effects

    def __getattr__(self, method: str) -> Callable[..., Any]:
        target = getattr(self._port, method)
        sending, past = (getattr(self._port, f"{kind}_{method}", None) for kind in ("send", "past"))

        def call(*arguments: Any) -> Any:
            return self._plan.run(
                self._dependency,
                f"{self._name}.{method}",
                lambda: target(*arguments),
                effect=method in self._effects,
                send=None if sending is None else lambda: sending(*arguments),
                past=None if past is None else lambda: past(*arguments),
            )

        return call
