"""The claim by which only one process migrates at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from server_api.servers.ports import AlreadyExists, StateConflict, Unavailable
from server_api.servers.replica_ports import Lease
from server_api.store.migration_claim import NAME, Claim, ClaimLost


class Leases:
    """Leases in memory, which can be cut off."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.reachable = True
        self.lock = threading.Lock()

    def get(self, name: str) -> Lease | None:
        with self.lock:
            self._check()
            return self.lease

    def create(self, lease: Lease) -> Lease:
        with self.lock:
            self._check()
            if self.lease is not None:
                raise AlreadyExists("kubernetes", lease.name)
            self.lease = replace(lease, resource_version="1")
            return self.lease

    def replace(self, lease: Lease) -> Lease:
        with self.lock:
            self._check()
            if self.lease is None or self.lease.resource_version != lease.resource_version:
                raise StateConflict("kubernetes", lease.name)
            self.lease = replace(lease, resource_version=str(int(lease.resource_version) + 1))
            return self.lease

    def _check(self) -> None:
        if not self.reachable:
            raise Unavailable("kubernetes", "cut off")


def eventually(condition: Callable[[], bool]) -> bool:
    """Say whether the condition came true within a few seconds."""
    pause = threading.Event()
    return any(condition() or pause.wait(0.01) for _ in range(500))


def is_lost(held: Claim) -> bool:
    try:
        held.check()
    except ClaimLost:
        return True
    return False


def claim(leases: Leases, *, waiting: Callable[[str], None] = lambda holder: None) -> Claim:
    return Claim(leases, duration=0.6, margin=0.3, retry=0.01, waiting=waiting)


def test_a_claim_is_held_inside_the_block_and_given_back() -> None:
    leases = Leases()
    with claim(leases) as held:
        held.check()
        assert leases.lease is not None
        assert leases.lease.holder
    assert leases.lease.holder == ""


def test_two_never_hold_it_together() -> None:
    leases, inside, most = Leases(), [], []

    def work() -> None:
        with claim(leases):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most == [1, 1, 1, 1]


def test_who_waits_is_told_for_whom() -> None:
    leases, told = Leases(), threading.Event()
    waiting = []

    def work() -> None:
        def note(holder: str) -> None:
            waiting.append(holder)
            told.set()

        with claim(leases, waiting=note):
            pass

    with claim(leases):
        assert leases.lease is not None
        holder = leases.lease.holder
        thread = threading.Thread(target=work)
        thread.start()
        assert told.wait(5)
    thread.join(5)
    assert waiting[0] == holder


def test_a_crashed_holder_is_replaced_once_it_has_been_silent_long_enough() -> None:
    leases = Leases()
    leases.lease = Lease(NAME, "crashed", 1, None, None, 3, "7")
    with claim(leases):
        assert leases.lease.holder != "crashed"
        assert leases.lease.transitions == 4


def test_a_holder_that_renews_keeps_the_claim() -> None:
    leases = Leases()
    with claim(leases) as held:
        assert leases.lease is not None
        holder, version = leases.lease.holder, int(leases.lease.resource_version)
        # Seven renewals take longer than the claim lasts without any.
        assert eventually(lambda: leases.lease is not None and int(leases.lease.resource_version) >= version + 7)
        held.check()
        assert leases.lease.holder == holder


def test_a_holder_cut_off_stops_before_another_may_take_over() -> None:
    leases = Leases()
    with claim(leases) as held:
        assert not is_lost(held)
        leases.reachable = False
        assert eventually(lambda: is_lost(held))
        leases.reachable = True


def test_a_holder_whose_claim_was_taken_stops_and_leaves_it() -> None:
    leases = Leases()
    with claim(leases) as held:
        leases.lease = Lease(NAME, "thief", 60, None, None, 9, "99")
        assert eventually(lambda: is_lost(held))
    assert leases.lease.holder == "thief"
