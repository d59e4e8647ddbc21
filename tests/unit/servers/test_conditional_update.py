"""Updates from a read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server_api.servers import conditional_update
from server_api.servers.conditional_update import LostRace
from server_api.servers.errors import Conflict, NotFound, Rejection, Unprocessable
from server_api.servers.model import Server
from server_api.servers.ports import Missing, PortError, Refused, StateConflict, Unavailable
from tests.doubles.store import InMemoryServerStore
from tests.unit.servers.builders import server


def losing(times: int, tries: list[int]) -> Callable[[], Server]:
    def attempt() -> Server:
        tries.append(1)
        if len(tries) <= times:
            raise LostRace
        return server()

    return attempt


@pytest.mark.parametrize(("lost", "tried"), [(0, 1), (1, 2)])
def test_one_lost_race_is_made_good(lost: int, tried: int) -> None:
    tries: list[int] = []

    assert conditional_update.with_one_retry(losing(lost, tries)) == server()
    assert len(tries) == tried


def test_a_race_lost_twice_is_a_conflict() -> None:
    tries: list[int] = []

    with pytest.raises(Conflict):
        conditional_update.with_one_retry(losing(5, tries))
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("error", "raised"),
    [(StateConflict, LostRace), (Missing, NotFound), (Refused, Unprocessable), (Unavailable, Unavailable)],
)
def test_what_becomes_of_a_refused_write(error: type[PortError], raised: type[Rejection]) -> None:
    store = InMemoryServerStore(server())
    store.fail("update", error("kubernetes", "no"))

    with pytest.raises(raised):
        conditional_update.write(store, server())
