"""Promotion of stored servers: once, beside others who write, and in one write each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from server_api.servers.model import Server, ServerStatus
from server_api.servers.ports import Denied, PortError, Refused, TimedOut, Unavailable
from server_api.servers.promoter import ATTEMPTS, Promoter, Result, Verdict
from server_api.servers.promotion import RefusalReason, is_done
from server_api.servers.surroundings import Network, SecurityGroup
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import (
    GROUP,
    IMAGE,
    NAME,
    NETWORK,
    NOW,
    OTHER_ID,
    SERVER,
    group,
    instance,
    network,
    region,
    server,
    spec,
)


class Killed(BaseException):
    """The process ends here."""


class Store(InMemoryServerStore):
    """The in-memory store with the write that promotes. ``kill_after``: how many of these writes before the end."""

    kill_after: int | None = None

    def promote(self, before: Server, after: Server) -> Server:
        self._called("promote")
        if self.kill_after is not None and self.writes.count("promote") >= self.kill_after:
            raise Killed
        self._unchanged(before)
        self.writes.append("promote")
        return self.put(after)


def legacy(number: int = 0, name: str | None = None, of_spec: Any = None, **changes: Any) -> Server:
    return server(
        of_spec or spec(ssh_injection=None),
        server_id=f"abcdef01-0000-4000-8000-{number:012d}",
        **{"name": name or f"old-{number}", "network_id": None, "api_version": None} | changes,
    )


@pytest.fixture
def directory() -> InMemoryDirectory:
    return InMemoryDirectory(region(), network(), group())


@pytest.fixture
def cloud() -> OneProjectCloud:
    return OneProjectCloud()


def run(store: Store, directory: InMemoryDirectory, cloud: OneProjectCloud, **options: Any) -> list[Result]:
    promoter = Promoter(store, directory, cloud, **options)
    return [promoter.promote(server_id) for server_id in promoter.survey()]


def verdicts(results: Sequence[Result]) -> list[Verdict]:
    return [result.verdict for result in results]


def test_every_server_is_promoted_with_one_write_and_a_second_run_writes_nothing(
    directory: InMemoryDirectory, cloud: OneProjectCloud
) -> None:
    store = Store(legacy(1), legacy(2), server())
    results = run(store, directory, cloud)
    assert sorted(verdicts(results)) == [Verdict.ALREADY, Verdict.PROMOTED, Verdict.PROMOTED]
    assert store.writes == ["promote", "promote"]
    assert all(is_done(store.stored(legacy(number).id)) for number in (1, 2))
    assert set(verdicts(run(store, directory, cloud))) == {Verdict.ALREADY}
    assert store.writes == ["promote", "promote"]


def test_a_plan_says_the_same_and_writes_nothing(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy(1), legacy(2, owner_uid="uid-of-another"))
    planned = run(store, directory, cloud, write=False)
    assert verdicts(planned) == [Verdict.PROMOTABLE, Verdict.REFUSED]
    assert store.writes == []
    done = run(store, directory, cloud)
    assert [result.changes for result in done] == [result.changes for result in planned]
    assert [result.reason for result in done] == [result.reason for result in planned]


def test_a_run_that_was_killed_leaves_every_server_whole_and_the_next_one_goes_on(
    directory: InMemoryDirectory, cloud: OneProjectCloud
) -> None:
    store = Store(*(legacy(number) for number in range(5)))
    before = [store.stored(legacy(number).id) for number in range(5)]
    store.kill_after = 2
    with pytest.raises(Killed):
        run(store, directory, cloud)
    after = [store.stored(legacy(number).id) for number in range(5)]
    assert [is_done(server) for server in after] == [True, True, False, False, False]
    assert after[2:] == before[2:]
    store.kill_after = None
    assert verdicts(run(store, directory, cloud)) == [Verdict.ALREADY] * 2 + [Verdict.PROMOTED] * 3


def test_what_somebody_wrote_meanwhile_is_kept(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy())
    store.lose_race(lambda server: replace(server, metadata=replace(server.metadata, description="new")))
    (result,) = run(store, directory, cloud)
    stored = store.stored(legacy().id)
    assert result.verdict is Verdict.PROMOTED
    assert stored.metadata.description == "new"
    assert is_done(stored)


def test_what_somebody_wrote_meanwhile_is_judged_anew(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy())
    store.lose_race(lambda server: replace(server, metadata=replace(server.metadata, deleted_at=NOW)))
    (result,) = run(store, directory, cloud)
    assert (result.verdict, result.reason) == (Verdict.REFUSED, RefusalReason.BEING_DELETED)
    assert store.writes == []


def test_another_run_beside_it_promotes_once(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy())
    promoter = Promoter(store, directory, cloud)
    (server_id,) = promoter.survey()
    assert verdicts(run(store, directory, cloud)) == [Verdict.PROMOTED]
    assert promoter.promote(server_id).verdict is Verdict.ALREADY
    assert store.writes == ["promote"]


def test_a_server_that_others_keep_writing_is_given_up(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy())
    for _ in range(ATTEMPTS):
        store.lose_race()
    (result,) = run(store, directory, cloud)
    assert result.verdict is Verdict.FAILED
    assert store.calls.count("promote") == ATTEMPTS
    assert verdicts(run(store, directory, cloud)) == [Verdict.PROMOTED]


def test_a_server_that_was_deleted_meanwhile_is_gone(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy(finalizers=()))
    promoter = Promoter(store, directory, cloud)
    (server_id,) = promoter.survey()
    store.delete(server_id)
    assert promoter.promote(server_id).verdict is Verdict.GONE


def test_what_the_stored_schema_refuses_is_refused(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy(1), legacy(2))
    store.fail("promote", Refused("kubernetes", "spec.userData (FieldValueInvalid)"))
    results = run(store, directory, cloud)
    assert verdicts(results) == [Verdict.REFUSED, Verdict.PROMOTED]
    assert (results[0].reason, results[0].detail) == (RefusalReason.STORED_SCHEMA, "spec.userData (FieldValueInvalid)")


@pytest.mark.parametrize("error", [Unavailable("kubernetes", "down"), TimedOut("kubernetes", "slow")])
def test_a_store_that_fails_ends_the_run(
    directory: InMemoryDirectory, cloud: OneProjectCloud, error: PortError
) -> None:
    store = Store(legacy())
    store.fail("promote", error)
    with pytest.raises(type(error)):
        run(store, directory, cloud)
    assert store.writes == []


def test_neither_of_two_servers_of_one_name_on_one_network_is_promoted(
    directory: InMemoryDirectory, cloud: OneProjectCloud
) -> None:
    store = Store(legacy(1, "web"), legacy(2, "web"), legacy(3, "db"))
    results = run(store, directory, cloud)
    assert [result.reason for result in results] == [RefusalReason.NAME_TAKEN, RefusalReason.NAME_TAKEN, None]
    assert legacy(2).id in results[0].detail
    assert legacy(1).id in results[1].detail


def test_a_server_of_v2_has_the_name_already(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    store = Store(legacy(1, NAME), server())
    results = {result.server_id: result for result in run(store, directory, cloud)}
    assert results[SERVER].verdict is Verdict.ALREADY
    assert results[legacy(1).id].reason is RefusalReason.NAME_TAKEN


def test_the_same_name_on_another_network_is_no_obstacle(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    elsewhere = replace(legacy(2, "web"), spec=replace(spec(), networks=(replace(spec().networks[0], id=OTHER_ID),)))
    directory.put(network(id=OTHER_ID))
    assert verdicts(run(Store(legacy(1, "web"), elsewhere), directory, cloud)) == [Verdict.PROMOTED] * 2


def test_what_servers_share_is_looked_up_once(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    with_group = spec(ssh_injection=None, security_group_ids=(GROUP,))
    servers = [legacy(number, of_spec=with_group) for number in range(4)]
    cloud.compute.held = [instance(id=server.id, server_id=server.id, name=server.metadata.name) for server in servers]
    assert set(verdicts(run(Store(*servers), directory, cloud))) == {Verdict.PROMOTED}
    for kind, id_ in ((Network, NETWORK), (SecurityGroup, GROUP)):
        assert directory.calls.count(f"{kind.__name__} {id_}") == 1
    assert cloud.journal == ["instances"]


def test_a_server_that_is_refused_costs_the_cloud_nothing(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    run(Store(legacy(1, owner_uid="uid-of-another"), server()), directory, cloud)
    assert cloud.asked_for == []


def test_a_server_whose_instance_runs_another_image_is_refused(
    directory: InMemoryDirectory, cloud: OneProjectCloud
) -> None:
    store = Store(legacy(1), legacy(2))
    cloud.compute.held = [
        instance(id="a", server_id=legacy(1).id, image_id=OTHER_ID),
        instance(id="b", server_id=legacy(2).id, image_id=IMAGE),
    ]
    results = run(store, directory, cloud)
    assert verdicts(results) == [Verdict.REFUSED, Verdict.PROMOTED]
    assert results[0].reason is RefusalReason.IMAGE_DIFFERS


def test_an_instance_that_the_list_left_out_is_looked_for(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    """A list says nothing of a cell that is down; to take its instances for absent would let them be rebuilt."""
    store = Store(legacy(1))
    cloud.compute.fail("find", Unavailable("nova", "a cell does not answer"))
    (result,) = run(store, directory, cloud)
    assert result.verdict is Verdict.FAILED
    assert "a cell does not answer" in result.detail
    assert store.writes == []


def test_a_cloud_that_cannot_be_asked_fails_its_servers_and_is_asked_once(
    directory: InMemoryDirectory, cloud: OneProjectCloud
) -> None:
    store = Store(legacy(1), legacy(2), legacy(3, owner_uid="uid-of-another"))
    cloud.compute.fail("instances", Denied("keystone", "401"))
    assert verdicts(run(store, directory, cloud)) == [Verdict.FAILED, Verdict.FAILED, Verdict.REFUSED]
    assert cloud.journal == ["instances"]
    assert store.writes == []


def test_an_identity_without_a_project_has_no_instances(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    cloud.without_credentials = True
    assert verdicts(run(Store(legacy()), directory, cloud)) == [Verdict.PROMOTED]


def test_the_cloud_is_only_read(directory: InMemoryDirectory, cloud: OneProjectCloud) -> None:
    run(Store(legacy(1), replace(legacy(2), status=ServerStatus(launched_at=NOW))), directory, cloud)
    assert {line.split()[0] for line in cloud.journal} <= {"instances", "find", "ports_named", "get"}
