"""Leases in an embedded Kubernetes API."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from server_api.servers import ports
from server_api.servers.replica_ports import Lease
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.leases import KubernetesLeases

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LEASE = Lease("leader", "one", 15, MOMENT, MOMENT, 0)


@pytest.fixture
def leases(client: KubernetesClient, namespace: str) -> KubernetesLeases:
    return KubernetesLeases(client, namespace)


def test_a_lease_is_created_once(leases: KubernetesLeases) -> None:
    assert leases.get("leader") is None
    created = leases.create(LEASE)
    assert replace(created, resource_version="") == LEASE
    assert leases.get("leader") == created
    with pytest.raises(ports.AlreadyExists):
        leases.create(LEASE)


def test_times_are_stored_with_six_decimals(leases: KubernetesLeases, client: KubernetesClient, namespace: str) -> None:
    leases.create(replace(LEASE, renewed_at=MOMENT.replace(microsecond=0)))
    spec = client.get(kinds.LEASE, namespace, "leader")["spec"]
    assert (spec["acquireTime"], spec["renewTime"]) == ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.000000Z")


def test_only_the_first_of_two_writers_wins(leases: KubernetesLeases) -> None:
    created = leases.create(LEASE)
    taken = leases.replace(replace(created, holder="two", transitions=1))
    assert (taken.holder, taken.transitions) == ("two", 1)
    with pytest.raises(ports.StateConflict):
        leases.replace(replace(created, holder="three", transitions=1))


def test_a_lease_that_went_away_is_missing(leases: KubernetesLeases) -> None:
    with pytest.raises(ports.Missing):
        leases.replace(LEASE)


def test_a_released_lease_has_no_holder(leases: KubernetesLeases) -> None:
    created = leases.create(LEASE)
    leases.replace(replace(created, holder="", duration_seconds=1))
    released = leases.get("leader")
    assert released is not None
    assert released.holder == ""
