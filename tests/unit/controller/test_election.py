from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server_api.controller.election import Elector, LostLeadership, Term
from server_api.servers.ports import Missing, StateConflict, Unavailable
from server_api.servers.replica_ports import Lease
from tests.unit.controller.doubles import FakeTime, FixedClock, MemoryLeases

TERM = Term(lease=15, renew=10, retry=2)


@dataclass
class Candidate:
    """An elector with a clock of its own."""

    leases: MemoryLeases
    name: str
    time: FakeTime = field(default_factory=FakeTime)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.elector = Elector(
            self.leases,
            "lease",
            self.name,
            TERM,
            TickingClock(),
            on_elected=lambda: self.told.append("elected"),
            on_lost=lambda: self.told.append("lost"),
            monotonic=self.time,
        )

    def attempt(self) -> bool:
        self.elector.attempt()
        return self.elector.is_leading()


class TickingClock(FixedClock):
    """Shows another time at each look, as clocks do, so that every renewal leaves another mark."""

    ticks = 0

    def now(self):  # type: ignore[no-untyped-def]
        TickingClock.ticks += 1
        return super().now().replace(microsecond=TickingClock.ticks % 1_000_000)


@pytest.fixture
def leases() -> MemoryLeases:
    return MemoryLeases()


@pytest.fixture
def a(leases: MemoryLeases) -> Candidate:
    return Candidate(leases, "a")


@pytest.fixture
def b(leases: MemoryLeases) -> Candidate:
    return Candidate(leases, "b")


def pass_time(seconds: float, *candidates: Candidate) -> None:
    for candidate in candidates:
        candidate.time.passes(seconds)


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 10, 10), (15, 10, 0), (10, 15, 2)])
def test_times_that_could_leave_two_leaders_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be in order"):
        Term(*times)


def test_the_first_candidate_leads_and_is_told_once(a: Candidate, leases: MemoryLeases) -> None:
    assert a.attempt()
    pass_time(2, a)
    assert a.attempt()
    assert a.told == ["elected"]
    assert leases.lease is not None
    assert (leases.lease.holder, leases.lease.duration_seconds, leases.lease.transitions) == ("a", 15, 0)


def test_before_its_election_nobody_may_act(a: Candidate) -> None:
    assert not a.elector.is_leading()
    with pytest.raises(LostLeadership):
        a.elector.assert_leading()


def test_the_second_candidate_waits_as_long_as_the_first_renews(a: Candidate, b: Candidate) -> None:
    for _ in range(20):
        assert a.attempt()
        assert not b.attempt()
        pass_time(2, a, b)


def test_a_silent_leader_is_replaced_after_the_lease(a: Candidate, b: Candidate, leases: MemoryLeases) -> None:
    a.attempt()
    b.attempt()
    pass_time(14.9, b)
    assert not b.attempt()
    pass_time(0.1, b)
    assert b.attempt()
    assert leases.lease is not None
    assert leases.lease.transitions == 1


def test_a_leader_that_cannot_renew_stops_by_itself_before_the_lease_ends(a: Candidate) -> None:
    a.attempt()
    pass_time(9.9, a)
    assert a.elector.is_leading()
    pass_time(0.1, a)
    with pytest.raises(LostLeadership):
        a.elector.assert_leading()
    assert a.elector.exclusive_seconds() == pytest.approx(5)


def test_the_term_counts_from_before_the_request_and_not_from_its_late_answer(
    a: Candidate, leases: MemoryLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    a.attempt()
    write = leases.replace

    def answer_late(lease: Lease) -> Lease:
        written = write(lease)
        pass_time(4, a)
        return written

    monkeypatch.setattr(leases, "replace", answer_late)
    assert a.attempt()
    pass_time(5.9, a)
    assert a.elector.is_leading()
    pass_time(0.1, a)
    assert not a.elector.is_leading()


def test_an_unreachable_store_costs_the_lead_only_when_its_time_is_up(a: Candidate, leases: MemoryLeases) -> None:
    a.attempt()
    leases.down = Unavailable("kubernetes", "down")
    pass_time(9, a)
    assert a.attempt()
    pass_time(1, a)
    assert not a.attempt()
    assert a.told == ["elected", "lost"]
    leases.down = None
    assert a.attempt()
    assert a.told == ["elected", "lost", "elected"]


def test_a_stolen_lease_is_noticed_at_the_next_attempt(a: Candidate, leases: MemoryLeases) -> None:
    a.attempt()
    assert leases.lease is not None
    leases.lease = replace(leases.lease, holder="thief", resource_version="stolen")
    assert not a.attempt()
    assert a.told == ["elected", "lost"]


def test_a_renewal_that_loses_a_race_is_settled_by_the_next_read(a: Candidate, leases: MemoryLeases) -> None:
    a.attempt()
    leases.down = StateConflict("kubernetes", "somebody wrote")
    pass_time(2, a)
    assert a.attempt()
    leases.down = None
    assert a.attempt()
    assert a.told == ["elected"]


def test_a_lease_deleted_under_its_holder_does_not_end_its_term(
    a: Candidate, b: Candidate, leases: MemoryLeases
) -> None:
    a.attempt()
    b.attempt()
    pass_time(9, a, b)
    a.attempt()
    leases.lease = None
    pass_time(6, a, b)
    assert not b.attempt()
    assert a.elector.is_leading()
    pass_time(14, a, b)
    assert not b.attempt()
    pass_time(1, a, b)
    assert b.attempt()
    assert not a.elector.is_leading()


def test_a_holder_that_took_a_longer_lease_is_waited_for(b: Candidate, leases: MemoryLeases) -> None:
    leases.create(Lease("lease", "other version", 60, None, None, 0))
    b.attempt()
    pass_time(59, b)
    assert not b.attempt()
    pass_time(1, b)
    assert b.attempt()


def test_a_released_lease_is_taken_at_once(a: Candidate, b: Candidate, leases: MemoryLeases) -> None:
    a.attempt()
    b.attempt()
    a.elector.release()
    assert not a.elector.is_leading()
    assert a.told == ["elected", "lost"]
    assert b.attempt()


def test_releasing_does_not_touch_a_lease_that_is_anothers(a: Candidate, leases: MemoryLeases) -> None:
    a.attempt()
    assert leases.lease is not None
    stolen = leases.lease = replace(leases.lease, holder="thief")
    a.elector.release()
    assert leases.lease == stolen
    assert a.told == ["elected", "lost"]


@pytest.mark.parametrize("error", [Unavailable("kubernetes", "down"), Missing("kubernetes", "gone")])
def test_releasing_ends_the_lead_even_if_the_store_fails(
    a: Candidate, leases: MemoryLeases, error: Unavailable | Missing
) -> None:
    a.attempt()
    leases.down = error
    a.elector.release()
    assert not a.elector.is_leading()


def test_running_stands_for_election_until_stopped(leases: MemoryLeases) -> None:
    stop = threading.Event()
    elector = Elector(leases, "lease", "a", TERM, FixedClock(), on_elected=stop.set)
    elector.run(stop)
    assert elector.is_leading()


Step = tuple[str, float]
STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a slow", "b slow", "down", "up", "delete", "wait"]), st.floats(0, 12)),
    max_size=60,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(steps=STEPS, rate=st.floats(0.9, 1.1))
def test_two_candidates_never_both_may_act_whatever_happens_to_the_store(steps: list[Step], rate: float) -> None:
    leases = MemoryLeases()
    a, b = Candidate(leases, "a"), Candidate(leases, "b")
    b.time.seconds = 7_000.0  # what the clocks show does not matter, only that they run at nearly the same rate

    def let_time_pass(seconds: float) -> None:
        a.time.passes(seconds)
        b.time.passes(seconds * rate)
        assert not (a.elector.is_leading() and b.elector.is_leading())

    def slowly(candidate: Candidate, other: Candidate, seconds: float) -> None:
        """Let time pass before the write arrives and before its answer does; the other one looks in between."""
        write: Callable[[Lease], Lease] = leases.replace

        def slow_write(lease: Lease) -> Lease:
            leases.replace = write  # type: ignore[method-assign, assignment]
            let_time_pass(seconds)
            written = write(lease)
            other.attempt()
            let_time_pass(seconds)
            return written

        leases.replace = slow_write  # type: ignore[method-assign]
        candidate.attempt()
        leases.replace = write  # type: ignore[method-assign, assignment]

    # Nobody can know of a lease that was made and deleted while they did not look, so one deletion, of a seen lease.
    deletions = 1
    a.attempt()
    b.attempt()
    for what, seconds in steps:
        if what.endswith("slow"):
            slowly(*((a, b) if what[0] == "a" else (b, a)), seconds)
        elif what in ("a", "b"):
            (a if what == "a" else b).attempt()
        elif what == "delete" and deletions:
            leases.lease = None
            deletions -= 1
        elif what in ("down", "up"):
            leases.down = Unavailable("kubernetes", "down") if what == "down" else None
        let_time_pass(seconds)
