from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from server_api.controller.backoff import Backoff
from server_api.controller.informer import Informer
from server_api.servers.model import Phase, Server
from server_api.servers.ports import Expired, PortError, TimedOut, Unavailable
from server_api.servers.replica_ports import Change, ServerFeed
from tests.unit.controller.doubles import NOW, FakeTime, a_server

EXPIRED = Expired("kubernetes", "410")
SILENT = TimedOut("kubernetes", "silent")
DOWN = Unavailable("kubernetes", "connection refused")


class Pauses(threading.Event):
    """The informer's stop: notes how long it would have waited, lets that time pass, and never waits."""

    def __init__(self, time: FakeTime) -> None:
        super().__init__()
        self.taken: list[float] = []
        self._time = time

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.taken.append(timeout)
        self._time.passes(timeout)
        return self.is_set()


class ScriptedFeed:
    """Plays its script step by step: a list of servers, a list of changes, or an error. At its end it stops the run."""

    def __init__(self, script: Sequence[list[Server] | list[Change] | PortError | Callable[[], None]]) -> None:
        self._script = list(script)
        self.asked: list[str] = []
        self.stop: threading.Event

    def snapshot(self) -> tuple[Sequence[Server], str]:
        self.asked.append("list")
        step = self._next()
        return [item for item in step if isinstance(item, Server)], f"list-{self.asked.count('list')}"

    def changes(self, version: str) -> Iterator[Change]:
        self.asked.append(version)
        for item in self._next():
            assert isinstance(item, Change)
            yield item

    def _next(self) -> Sequence[Server | Change]:
        if not self._script:
            self.stop.set()
            return []
        step = self._script.pop(0)
        if callable(step):
            step()
            return self._next()
        if isinstance(step, PortError):
            raise step
        return step


class Followed:
    """An informer that has followed a script to its end."""

    def __init__(self, *script: list[Server] | list[Change] | PortError | Callable[[], None]) -> None:
        self.time = FakeTime()
        self.stop = Pauses(self.time)
        self.woken: list[str] = []
        self.feed = ScriptedFeed(script)
        self.feed.stop = self.stop
        feed: ServerFeed = self.feed
        self.informer = Informer(feed, self.woken.append, Backoff(1, 30, spread=0), self.time)

    def run(self) -> Followed:
        self.informer.run(self.stop)
        return self


def change(server: Server, version: str = "7", *, deleted: bool = False) -> list[Change]:
    return [Change(version, server, deleted)]


def test_everything_in_the_snapshot_is_woken_and_known() -> None:
    followed = Followed([a_server("a"), a_server("b")]).run()
    assert followed.woken == ["a", "b"]
    assert [server.id for server in followed.informer.servers()] == ["a", "b"]
    assert followed.informer.synced.is_set()


def test_a_watch_begins_where_the_list_ended_and_resumes_where_it_was() -> None:
    followed = Followed([], change(a_server("a"), "7"), [Change("9", None)]).run()
    assert followed.feed.asked == ["list", "list-1", "7", "9"]


def test_a_spec_change_wakes_and_a_status_write_does_not() -> None:
    followed = Followed(
        [a_server("a")], change(a_server("a", phase=Phase.RUNNING)), change(a_server("a", generation=2))
    ).run()
    assert followed.woken == ["a", "a"]
    assert followed.informer.servers()[0].metadata.generation == 2


def test_a_status_write_is_known_though_it_does_not_wake() -> None:
    followed = Followed([a_server("a")], change(a_server("a", phase=Phase.RUNNING))).run()
    assert followed.informer.servers()[0].status.phase == Phase.RUNNING


def test_a_deleted_server_wakes_and_is_forgotten() -> None:
    gone = a_server("a", deleted_at=NOW)
    followed = Followed([a_server("a")], change(gone, deleted=True)).run()
    assert followed.woken == ["a", "a"]
    assert followed.informer.servers() == ()


def test_what_vanished_between_two_lists_wakes_and_is_forgotten() -> None:
    followed = Followed([a_server("a"), a_server("b")], EXPIRED, [a_server("b")]).run()
    assert followed.woken == ["a", "b", "b", "a"]
    assert [server.id for server in followed.informer.servers()] == ["b"]


def test_b40_watch_410_leads_to_a_fresh_list_at_once_and_loses_no_server() -> None:
    followed = Followed([a_server("a")], EXPIRED, [a_server("a"), a_server("b")]).run()
    assert followed.feed.asked[:4] == ["list", "list-1", "list", "list-2"]
    assert followed.woken == ["a", "a", "b"]
    assert followed.stop.taken == []


def test_b40_repeated_410_is_no_hot_loop() -> None:
    followed = Followed([], EXPIRED, [], EXPIRED, [], EXPIRED, []).run()
    assert followed.stop.taken == [2, 4]


def test_a_watch_that_works_forgives_the_failures_before_it() -> None:
    bookmark = [Change("8", None)]
    followed = Followed([], EXPIRED, [], bookmark, EXPIRED, []).run()
    assert followed.stop.taken == []


def test_b39_a_silent_watch_leads_to_a_fresh_list_after_a_pause() -> None:
    followed = Followed([a_server("a")], SILENT, [a_server("a"), a_server("b")]).run()
    assert followed.feed.asked[:4] == ["list", "list-1", "list", "list-2"]
    assert followed.stop.taken[0] == 1
    assert followed.woken == ["a", "a", "b"]


def test_b39_a_feed_that_fails_shows_until_a_list_works_again() -> None:
    seen: list[tuple[bool, bool]] = []
    followed: Followed

    def look() -> None:
        seen.append((followed.informer.failing, followed.informer.silent_seconds() > 0))

    followed = Followed([], SILENT, look, DOWN, look, DOWN, look, [])
    followed.feed.stop = followed.stop
    followed.run()
    assert seen == [(True, True), (True, True), (True, True)]
    assert not followed.informer.failing
    assert followed.informer.silent_seconds() == 0


def test_b39_silence_is_measured_even_while_the_watch_hangs() -> None:
    followed = Followed([])
    assert followed.informer.silent_seconds() == float("inf")
    followed.run()
    followed.time.passes(400)
    assert followed.informer.silent_seconds() == 400


def test_a_store_that_stays_down_is_asked_less_and_less_often() -> None:
    followed = Followed(DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, []).run()
    assert followed.stop.taken[:7] == [1, 2, 4, 8, 16, 30, 30]


def test_watches_that_end_as_soon_as_they_begin_are_no_hot_loop() -> None:
    followed = Followed([], [], [], [], [], []).run()
    assert followed.stop.taken[:2] == [1, 2]


def test_a_quiet_watch_that_lasted_is_renewed_without_a_list() -> None:
    followed: Followed

    def quiet() -> None:
        followed.time.passes(300)

    followed = Followed([], quiet, [], quiet, [])
    followed.run()
    assert followed.feed.asked[:3] == ["list", "list-1", "list-1"]
    assert followed.stop.taken == []


def test_waking_all_wakes_every_known_server() -> None:
    followed = Followed([a_server("a"), a_server("b")]).run()
    followed.woken.clear()
    followed.informer.wake_all()
    assert followed.woken == ["a", "b"]


def test_an_error_that_is_not_the_feeds_is_not_hidden() -> None:
    def defect() -> None:
        raise KeyError("defect")

    with pytest.raises(KeyError):
        Followed(defect).run()


def test_the_project_of_a_server_is_its_region_and_identity() -> None:
    homeless = a_server("homeless", identity_id=None)
    informer = Followed([a_server("s1"), homeless]).run().informer
    assert [informer.project_of(key) for key in ("s1", "homeless", "unknown")] == [("region", "identity"), None, None]


def test_paused_servers_are_counted() -> None:
    assert Followed([a_server("s1"), a_server("s2", pause=True)]).run().informer.paused() == 1
