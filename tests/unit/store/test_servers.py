"""Servers in an embedded Kubernetes API with the real definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from server_api.servers import ports
from server_api.servers.model import AddressPair, Condition, NetworkAttachment, Server, Tag
from server_api.servers.ports import ServerSelector
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.server_object import from_object
from server_api.store.servers import KubernetesServerStore

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def store(client: KubernetesClient, namespace: str) -> KubernetesServerStore:
    return KubernetesServerStore(client, namespace)


@pytest.fixture
def server(stored_server: dict[str, Any]) -> Server:
    read = from_object(stored_server)
    # No owner: the garbage collector would take a server whose network does not exist.
    return replace(read, metadata=replace(read.metadata, owner_uid=None, resource_version=""), stored=None)


def test_a_server_is_returned_as_stored(store: KubernetesServerStore, server: Server) -> None:
    created = store.create(server)
    assert created.spec == server.spec
    assert created.metadata.uid
    assert created.metadata.created_at is not None
    assert store.get(server.id) == created


def test_the_second_of_a_name_already_exists(store: KubernetesServerStore, server: Server) -> None:
    store.create(server)
    with pytest.raises(ports.AlreadyExists):
        store.create(server)


def test_an_update_of_an_old_version_is_a_conflict(store: KubernetesServerStore, server: Server) -> None:
    created = store.create(server)
    changed = store.update(replace(created, metadata=replace(created.metadata, description="second")))
    assert changed.metadata.description == "second"
    with pytest.raises(ports.StateConflict):
        store.update(replace(created, metadata=replace(created.metadata, description="third")))


def test_an_update_keeps_what_the_model_cannot_express(
    store: KubernetesServerStore, server: Server, client: KubernetesClient, namespace: str
) -> None:
    store.create(server)
    theirs = {"metadata": {"labels": {"example.com/x": "kept"}}, "spec": {"volumes": [{"id": "v", "size": 3}]}}
    client.patch(kinds.SERVER, namespace, server.id, theirs)
    read = store.get(server.id)
    store.update(replace(read, spec=replace(read.spec, tags=(Tag("new", "tag"),))))
    stored = client.get(kinds.SERVER, namespace, server.id)
    assert stored["spec"]["volumes"] == [{"id": "v", "size": 3}]
    assert stored["metadata"]["labels"]["example.com/x"] == "kept"
    assert stored["spec"]["tags"] == [{"name": "new", "value": "tag"}]


@pytest.mark.parametrize(
    ("field", "value"),
    [("infrastructure_ref", "host-2"), ("infrastructure_ref", None), ("provider_create_gates", None)],
)
def test_the_stored_schema_refuses_a_change_of_what_is_immutable(
    store: KubernetesServerStore, server: Server, field: str, value: Any
) -> None:
    spec = replace(server.spec, infrastructure_ref="host-1", provider_create_gates=("example.com/ready",))
    created = store.create(replace(server, spec=spec))
    with pytest.raises(ports.Refused, match="422 Invalid: spec"):
        store.update(replace(created, spec=replace(created.spec, **{field: value})))


def test_the_stored_schema_refuses_to_add_what_is_immutable(store: KubernetesServerStore, server: Server) -> None:
    created = store.create(server)
    with pytest.raises(ports.Refused):
        store.update(replace(created, spec=replace(created.spec, infrastructure_ref="host-1")))


@pytest.mark.parametrize("cidr", ["fe80::/64", "10.0.0.0", "10.0.0.0/33"])
def test_the_stored_schema_takes_ipv4_prefixes_only(store: KubernetesServerStore, server: Server, cidr: str) -> None:
    networks = (NetworkAttachment(server.spec.networks[0].id, (AddressPair(cidr),)),)
    with pytest.raises(ports.Refused, match=r"allowedAddressPairs\[0\].cidr"):
        store.create(replace(server, spec=replace(server.spec, networks=networks)))


def test_b46_long_texts_are_stored_outside_labels(store: KubernetesServerStore, server: Server) -> None:
    name = "n" * 63
    tag = Tag("a/b", "with spaces / and slashes " * 12)
    created = store.create(
        replace(
            server,
            metadata=replace(server.metadata, name=name, description="é" * 4096),
            spec=replace(server.spec, tags=(tag,)),
        )
    )
    assert (created.metadata.name, created.metadata.description) == (name, "é" * 4096)
    assert created.spec.tags == (tag,)


def test_b46_a_name_that_is_no_label_is_refused_with_its_field(store: KubernetesServerStore, server: Server) -> None:
    with pytest.raises(ports.Refused, match=r"metadata\.labels"):
        store.create(replace(server, metadata=replace(server.metadata, name="n" * 64)))


def test_a_status_patch_writes_what_differs_and_no_spec(store: KubernetesServerStore, server: Server) -> None:
    created = store.create(server)
    condition = Condition("Available", "True", "Provisioned", "", MOMENT)
    after = replace(
        created,
        spec=replace(created.spec, tags=()),
        status=replace(created.status, phase="Running", conditions=(condition,)),
    )
    patched = store.patch_status(created, after)
    assert patched.status.phase == "Running"
    assert patched.status.conditions == (condition,)
    assert patched.spec.tags == server.spec.tags
    cleared = store.patch_status(patched, replace(patched, status=replace(patched.status, phase=None)))
    assert cleared.status == replace(patched.status, phase=None)


def test_a_status_patch_of_an_old_version_is_a_conflict(store: KubernetesServerStore, server: Server) -> None:
    created = store.create(server)
    store.update(replace(created, metadata=replace(created.metadata, description="second")))
    with pytest.raises(ports.StateConflict):
        store.patch_status(created, replace(created, status=replace(created.status, phase="Running")))


def test_a_status_that_does_not_differ_is_not_written(
    scripted_api: Any, connect: Callable[..., KubernetesClient], stored_server: dict[str, Any]
) -> None:
    read = from_object(stored_server)
    assert KubernetesServerStore(connect(scripted_api.url), "ns").patch_status(read, read) is read
    assert scripted_api.requests == []


def test_servers_are_listed_by_id_and_by_every_field_of_the_selector(
    store: KubernetesServerStore, server: Server
) -> None:
    for id_, organization, project in (("c", "1", "1"), ("a", "1", "2"), ("b", "2", "3")):
        metadata = replace(server.metadata, organization_id=organization, project_id=project)
        store.create(replace(server, id=id_, metadata=metadata))

    def ids(**fields: Any) -> list[str]:
        return [found.id for found in store.list(ServerSelector(**fields))]

    assert ids() == ["a", "b", "c"]
    assert ids(organization_ids=frozenset({"1"})) == ["a", "c"]
    assert ids(organization_ids=frozenset({"1"}), project_ids=frozenset({"2", "3"})) == ["a"]
    assert ids(organization_ids=frozenset({"1", "2"}), api_version="2") == ["a", "b", "c"]
    assert ids(network_ids=frozenset({server.metadata.network_id}), region_ids=frozenset({"elsewhere"})) == []
    assert ids(organization_ids=frozenset({"no label) value"})) == []


def test_deletion_waits_for_finalizers_and_may_be_asked_for_again(store: KubernetesServerStore, server: Server) -> None:
    store.create(server)
    store.delete(server.id)
    store.delete(server.id)
    deleting = store.get(server.id)
    assert deleting.metadata.deleted_at is not None
    store.update(replace(deleting, metadata=replace(deleting.metadata, finalizers=())))
    with pytest.raises(ports.Missing):
        store.get(server.id)
    with pytest.raises(ports.Missing):
        store.delete(server.id)


def test_a_namespace_that_is_missing_does_not_mean_a_missing_server(client: KubernetesClient, server: Server) -> None:
    with pytest.raises(ports.Unavailable):
        KubernetesServerStore(client, "elsewhere").create(server)
