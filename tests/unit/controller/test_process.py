from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from server_api.controller import process
from server_api.controller.election import LostLeadership
from server_api.controller.process import Controller, Dependencies
from server_api.controller.threads import ThreadDied
from server_api.servers.conditions import available
from server_api.servers.model import Reason, Server
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import Clock, TimedOut
from server_api.settings import Settings
from tests.unit.controller.doubles import (
    NOW,
    FixedClock,
    MemoryCloud,
    MemoryCompute,
    MemoryDirectory,
    MemoryLeases,
    MemoryServers,
    RecordedEvents,
    ScriptedPass,
    a_server,
    an_instance,
)

SETTINGS = Settings(
    controller_bind="127.0.0.1:0",
    controller_workers=2,
    retry_seconds=0.01,
    monitor_seconds=0.02,
    lease_retry_seconds=0.02,
)


def succeed(reason: Reason) -> Callable[[Server], PassResult]:
    return lambda server: PassResult(Outcome.SUCCESS, available(server.status, reason, "done", NOW))


class Replica:
    """A controller over in-memory ports, in a thread of its own."""

    def __init__(
        self,
        servers: MemoryServers,
        leases: MemoryLeases,
        identity: str = "replica-1",
        settings: Settings = SETTINGS,
    ) -> None:
        self.servers, self.leases = servers, leases
        self.stop = threading.Event()
        self.provisioner = ScriptedPass(succeed(Reason.PROVISIONED))
        self.deprovisioner = ScriptedPass(succeed(Reason.DEPROVISIONED))
        self.cloud = MemoryCloud()
        self.events = RecordedEvents()
        self.died: ThreadDied | None = None
        ports: dict[str, Any] = {
            "servers": servers,
            "feed": servers,
            "directory": MemoryDirectory(),
            "references": None,
            "cloud": self.cloud,
            "events": self.events,
            "leases": leases,
        }
        self.controller = Controller(
            Dependencies(clock=FixedClock(), identity=identity, **ports),
            settings,
            provisioner=lambda *_: self.provisioner,
            deprovisioner=lambda *_: self.deprovisioner,
        )
        self.thread = threading.Thread(target=self._run)

    def start(self) -> Replica:
        self.thread.start()
        return self

    def metric(self, name: str) -> float | None:
        return self.controller.metrics.registry.get_sample_value(f"server_api_controller_{name}")

    def end(self) -> None:
        self.stop.set()
        self.join()

    def join(self) -> None:
        self.thread.join(10)
        assert not self.thread.is_alive()

    def _run(self) -> None:
        try:
            self.controller.run(self.stop)
        except ThreadDied as error:
            self.died = error


@pytest.fixture
def servers() -> Iterator[MemoryServers]:
    servers = MemoryServers(a_server("s1"))
    yield servers
    servers.close()


@pytest.fixture
def leases() -> MemoryLeases:
    return MemoryLeases()


@pytest.fixture
def replica(servers: MemoryServers, leases: MemoryLeases) -> Iterator[Replica]:
    replica = Replica(servers, leases)
    yield replica
    replica.stop.set()
    if replica.thread.ident is not None:
        replica.join()


def is_provisioned(servers: MemoryServers, server_id: str) -> Callable[[], bool]:
    def check() -> bool:
        condition = servers.get(server_id).status.condition("Available")
        return condition is not None and condition.reason == Reason.PROVISIONED

    return check


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for something that no write announces."""
    pause = threading.Event()
    for _ in range(1000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never happened")


def test_servers_that_are_there_and_servers_that_come_are_provisioned(replica: Replica, servers: MemoryServers) -> None:
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))
    servers.create(a_server("s2"))
    servers.wait_until(is_provisioned(servers, "s2"))


def test_a_provisioned_server_is_left_in_peace_until_its_spec_changes(replica: Replica, servers: MemoryServers) -> None:
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))
    servers.create(a_server("s2"))
    servers.wait_until(is_provisioned(servers, "s2"))
    assert [server.id for server in replica.provisioner.seen] == ["s1", "s2"]
    stored = servers.get("s1")
    servers.update(replace(stored, spec=replace(stored.spec, flavor_id="new")))
    wait_for(lambda: len(replica.provisioner.seen) == 3)
    assert replica.provisioner.seen[2].spec.flavor_id == "new"


def pause(servers: MemoryServers, server_id: str, *, on: bool) -> None:
    stored = servers.get(server_id)
    servers.update(replace(stored, spec=replace(stored.spec, pause=on)))


def test_a_paused_server_is_left_alone_until_it_is_no_longer_paused(replica: Replica, servers: MemoryServers) -> None:
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))
    pause(servers, "s1", on=True)
    stored = servers.get("s1")
    servers.update(replace(stored, spec=replace(stored.spec, flavor_id="new")))
    # What is woken later is worked on later: when this is done, the paused server's turn is over.
    servers.create(a_server("s2"))
    servers.wait_until(is_provisioned(servers, "s2"))
    # A new leader may look at a server twice before it is paused, so passes are told apart by what they saw.
    assert [server.id for server in replica.provisioner.seen if server.spec.flavor_id == "new"] == []
    assert replica.metric("paused_servers") == 1
    pause(servers, "s1", on=False)
    wait_for(lambda: replica.provisioner.seen[-1].id == "s1" and replica.provisioner.seen[-1].spec.flavor_id == "new")


def test_the_deletion_of_a_paused_server_waits_until_it_is_no_longer_paused(
    replica: Replica, servers: MemoryServers
) -> None:
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))
    pause(servers, "s1", on=True)
    servers.delete("s1")
    servers.create(a_server("s2"))
    servers.wait_until(is_provisioned(servers, "s2"))
    assert replica.deprovisioner.seen == []
    pause(servers, "s1", on=False)
    servers.wait_until(lambda: not servers.has("s1"))


def test_a_pass_that_yields_is_tried_again_until_it_succeeds(replica: Replica, servers: MemoryServers) -> None:
    outcomes = iter([Outcome.YIELD, Outcome.ERROR, Outcome.SUCCESS])
    replica.provisioner.act = lambda server: PassResult(
        outcome := next(outcomes),
        available(
            server.status,
            Reason.PROVISIONED if outcome is Outcome.SUCCESS else Reason.PROVISIONING,
            outcome,
            NOW,
        ),
    )
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))
    assert len(replica.provisioner.seen) == 3


def test_b38_a_deletion_while_the_controller_was_down_completes_after_its_start(leases: MemoryLeases) -> None:
    servers = MemoryServers(a_server("s1", finalizers=("unikorn",)))
    servers.delete("s1")
    replica = Replica(servers, leases).start()
    servers.wait_until(lambda: not servers.has("s1"))
    replica.end()
    servers.close()
    assert (len(replica.deprovisioner.seen), replica.provisioner.seen) == (1, [])


def test_the_monitor_mirrors_the_cloud(replica: Replica, servers: MemoryServers) -> None:
    server = servers.get("s1")
    replica.cloud.projects["region", "identity"] = MemoryCompute([an_instance(server)])
    replica.start()
    servers.wait_until(lambda: servers.get("s1").status.phase == "Running")


def test_the_lease_is_given_back_on_a_stop_and_the_next_replica_takes_over_at_once(
    servers: MemoryServers, leases: MemoryLeases
) -> None:
    first = Replica(servers, leases, "first").start()
    servers.wait_until(is_provisioned(servers, "s1"))
    second = Replica(servers, leases, "second").start()
    wait_for(lambda: second.controller.unready() == [])
    first.end()
    assert first.died is None
    servers.create(a_server("s2"))
    servers.wait_until(is_provisioned(servers, "s2"))
    assert "s2" in [server.id for server in second.provisioner.seen]
    second.end()


def test_a_standby_is_ready_and_does_nothing(servers: MemoryServers, leases: MemoryLeases) -> None:
    leader = Replica(servers, leases, "leader").start()
    servers.wait_until(is_provisioned(servers, "s1"))
    standby = Replica(servers, leases, "standby").start()
    wait_for(lambda: standby.controller.unready() == [])
    servers.create(a_server("s2"))
    servers.wait_until(is_provisioned(servers, "s2"))
    assert standby.provisioner.seen == []
    read = standby.controller.metrics.registry.get_sample_value
    assert read("server_api_controller_leading") == 0
    assert leader.controller.metrics.registry.get_sample_value("server_api_controller_leading") == 1
    standby.end()
    leader.end()


def test_a_running_pass_finishes_after_the_stop_and_no_other_begins(
    replica: Replica, servers: MemoryServers, leases: MemoryLeases
) -> None:
    running, finish = threading.Event(), threading.Event()

    def act(server: Server) -> PassResult:
        running.set()
        finish.wait(10)
        return succeed(Reason.PROVISIONED)(server)

    replica.provisioner.act = act
    replica.start()
    assert running.wait(10)
    replica.stop.set()
    servers.create(a_server("s2"))
    finish.set()
    replica.join()
    assert is_provisioned(servers, "s1")()
    assert [server.id for server in replica.provisioner.seen] == ["s1"]
    assert leases.lease is not None
    assert leases.lease.holder == ""


def test_a_pass_that_does_not_finish_leaves_the_lease_to_run_out(
    replica: Replica, leases: MemoryLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_SECONDS", 0.05)
    running, finish = threading.Event(), threading.Event()

    def act(server: Server) -> PassResult:
        running.set()
        finish.wait(10)
        return succeed(Reason.PROVISIONED)(server)

    replica.provisioner.act = act
    replica.start()
    assert running.wait(10)
    replica.end()
    finish.set()
    assert leases.lease is not None
    assert leases.lease.holder == "replica-1"


def test_a_thread_that_dies_ends_the_process_and_frees_the_lease(
    replica: Replica, servers: MemoryServers, leases: MemoryLeases
) -> None:
    def defect(version: str) -> Any:
        raise KeyError("defect")

    servers.changes = defect  # type: ignore[method-assign]
    replica.start().join()
    assert replica.stop.is_set()
    assert "informer" in str(replica.died)
    assert replica.controller.unhealthy() == ["the thread informer died"]
    assert leases.lease is None or leases.lease.holder == ""


def test_readiness_waits_for_the_first_list_and_so_does_the_election(
    replica: Replica, servers: MemoryServers, leases: MemoryLeases
) -> None:
    def silent() -> Any:
        raise TimedOut("kubernetes", "silent")

    snapshot, servers.snapshot = servers.snapshot, silent  # type: ignore[method-assign]
    replica.start()
    assert replica.controller.unready() == ["the servers are not listed yet"]
    assert replica.controller.unhealthy() == []
    assert leases.lease is None
    servers.snapshot = snapshot  # type: ignore[method-assign]
    servers.wait_until(is_provisioned(servers, "s1"))
    assert replica.controller.unready() == []


def test_b39_readiness_degrades_when_the_feed_falls_silent(replica: Replica, servers: MemoryServers) -> None:
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))

    def silent() -> Any:
        raise TimedOut("kubernetes", "silent")

    servers.snapshot = silent  # type: ignore[method-assign]
    servers.close()
    wait_for(lambda: replica.controller.unready() == ["following the servers fails"])


def broken_and_whole(count: int) -> list[Server]:
    """Servers of a broken project, and after them one of another."""
    return [
        *(a_server(f"a{number}", identity_id="broken") for number in range(count)),
        a_server("b", identity_id="whole"),
    ]


def of_broken(server: Server) -> bool:
    return server.metadata.identity_id == "broken"


def unreachable(server: Server) -> PassResult:
    return PassResult(
        Outcome.YIELD, available(server.status, Reason.PROVISIONING, "keystone: down", NOW), unreachable=True
    )


def test_a_project_whose_calls_hang_leaves_workers_to_the_others(leases: MemoryLeases) -> None:
    servers = MemoryServers(*broken_and_whole(100))
    replica = Replica(servers, leases, settings=replace(SETTINGS, controller_workers=4))
    hanging, let_go = threading.Semaphore(0), threading.Event()

    def act(server: Server) -> PassResult:
        if of_broken(server):
            hanging.release()
            let_go.wait(10)
            return unreachable(server)
        return succeed(Reason.PROVISIONED)(server)

    replica.provisioner.act = act
    replica.start()
    servers.wait_until(is_provisioned(servers, "b"))
    assert all(hanging.acquire(timeout=10) for _ in range(2))
    assert len([server for server in replica.provisioner.seen if of_broken(server)]) == 2
    wait_for(lambda: replica.metric("in_work") == 2)
    # Also what comes while all of the project's places are taken.
    servers.create(a_server("b2", identity_id="whole"))
    servers.wait_until(is_provisioned(servers, "b2"))
    replica.stop.set()
    let_go.set()
    replica.join()
    servers.close()


def test_a_project_that_cannot_be_reached_is_probed_and_the_others_are_not_held_up(leases: MemoryLeases) -> None:
    servers = MemoryServers(*broken_and_whole(100))
    replica = Replica(servers, leases)
    mended = threading.Event()

    def act(server: Server) -> PassResult:
        if of_broken(server) and not mended.is_set():
            return unreachable(server)
        return succeed(Reason.PROVISIONED)(server)

    replica.provisioner.act = act
    replica.start()
    servers.wait_until(is_provisioned(servers, "b"))
    wait_for(lambda: replica.metric("projects_backing_off") == 1)
    assert len([server for server in replica.provisioner.seen if of_broken(server)]) < 5
    # Nothing is forgotten: not what waited all the time, and not what was asked for meanwhile.
    servers.delete("a0")
    mended.set()
    servers.wait_until(lambda: not servers.has("a0"))
    servers.wait_until(lambda: all(is_provisioned(servers, f"a{number}")() for number in range(1, 100)))
    assert replica.metric("projects_backing_off") == 0
    replica.end()
    servers.close()


def test_events_that_wait_are_written_before_the_process_ends(replica: Replica, servers: MemoryServers) -> None:
    replica.start()
    servers.wait_until(is_provisioned(servers, "s1"))
    replica.end()
    assert [reason for _, reason, _ in replica.events.recorded] == ["Provisioning", "Provisioned"]
    assert "events" not in [thread.name for thread in threading.enumerate()], "its thread ended when all was written"


def test_a_store_that_hangs_on_events_holds_up_no_pass(replica: Replica, servers: MemoryServers) -> None:
    let_go = threading.Event()
    replica.events.record = lambda *_: let_go.wait(10)  # type: ignore[method-assign, assignment]
    replica.start()
    for number in range(20):
        servers.create(a_server(f"n{number}"))
    servers.wait_until(lambda: all(is_provisioned(servers, f"n{number}")() for number in range(20)))
    let_go.set()


def test_the_default_rules_get_the_fenced_store_and_the_number_of_create_attempts(
    servers: MemoryServers, leases: MemoryLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []

    def provisioner(*ports: Any, create_attempts: int, clock: Clock) -> ScriptedPass:
        made.append((*ports, create_attempts))
        return ScriptedPass()

    monkeypatch.setattr(process, "Provisioner", provisioner)
    ports: Any = {"references": None, "cloud": None, "events": None, "directory": "directory"}
    Controller(
        Dependencies(servers=servers, feed=servers, leases=leases, clock=FixedClock(), identity="me", **ports),
        replace(SETTINGS, create_attempts=5),
    )
    store, directory, _, _, attempts = made[0]
    assert (directory, attempts) == ("directory", 5)
    with pytest.raises(LostLeadership):
        store.update(servers.get("s1"))


def test_settings_that_could_leave_two_leaders_are_refused(servers: MemoryServers, leases: MemoryLeases) -> None:
    ports: Any = Dependencies(*[None] * 7, clock=FixedClock(), identity="me")  # type: ignore[misc, arg-type]
    with pytest.raises(ValueError, match="must be in order"):
        Controller(ports, replace(SETTINGS, lease_renew_seconds=20))
