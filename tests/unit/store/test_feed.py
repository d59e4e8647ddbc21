"""All servers, and what happens to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers import ports
from server_api.servers.model import Server
from server_api.store.client import KubernetesClient
from server_api.store.feed import KubernetesServerFeed
from server_api.store.server_object import from_object
from server_api.store.servers import KubernetesServerStore


@pytest.fixture
def server(stored_server: dict[str, Any]) -> Server:
    read = from_object(stored_server)
    metadata = replace(read.metadata, owner_uid=None, finalizers=(), resource_version="")
    return replace(read, metadata=metadata, stored=None)


def test_changes_follow_the_snapshot_without_a_gap(client: KubernetesClient, namespace: str, server: Server) -> None:
    store, feed = KubernetesServerStore(client, namespace), KubernetesServerFeed(client, namespace)
    first = store.create(server)
    servers, version = feed.snapshot()
    assert list(servers) == [first]
    second = store.update(replace(first, metadata=replace(first.metadata, description="second")))
    store.delete(server.id)
    seen = []
    for change in feed.changes(version):
        if change.server is None:
            continue
        seen.append((change.deleted, change.server.metadata.description))
        assert change.version == change.server.metadata.resource_version
        if change.deleted:
            break
    assert seen == [(False, second.metadata.description), (True, second.metadata.description)]


def test_a_watch_of_a_few_seconds_ends_without_an_error(
    kubernetes: EmbeddedKubernetes, connect: Any, namespace: str
) -> None:
    feed = KubernetesServerFeed(connect(kubernetes.url, watch_seconds=1.0), namespace)
    _, version = feed.snapshot()
    assert all(change.server is None for change in feed.changes(version))


def test_b40_a_version_that_is_no_longer_kept_is_expired(
    kubernetes: EmbeddedKubernetes, client: KubernetesClient, namespace: str, server: Server
) -> None:
    feed = KubernetesServerFeed(client, namespace)
    _, version = feed.snapshot()
    KubernetesServerStore(client, namespace).create(server)
    kubernetes.compact()
    with pytest.raises(ports.Expired):
        next(iter(feed.changes(version)))
    assert [found.id for found in feed.snapshot()[0]] == [server.id]
