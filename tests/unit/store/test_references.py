"""Reference edges on the objects a server uses."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.servers import ports
from server_api.servers.ports import ReferentKind
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.references import KubernetesReferences

EDGE = "servers.region.unikorn-cloud.org/a-server"


@pytest.fixture
def references(client: KubernetesClient, namespace: str) -> KubernetesReferences:
    return KubernetesReferences(client, namespace)


@pytest.fixture
def surroundings(client: KubernetesClient, namespace: str) -> None:
    for kind, name, identity in (
        (kinds.NETWORK, "network-1", "identity-1"),
        (kinds.NETWORK, "network-2", "identity-2"),
        (kinds.SECURITY_GROUP, "group-1", "identity-1"),
        (kinds.SSH_CERTIFICATE_AUTHORITY, "ca-1", "identity-1"),
    ):
        labels = {"regions.unikorn-cloud.org/identity-id": identity}
        metadata = {"name": name, "labels": labels, "finalizers": ["unikorn"]}
        spec = {"publicKey": "ssh-ed25519 AAAA"}
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}
        client.create(kind, namespace, body)


def finalizers(client: KubernetesClient, namespace: str, kind: kinds.Kind, name: str) -> Any:
    return client.get(kind, namespace, name)["metadata"].get("finalizers")


@pytest.mark.usefixtures("surroundings")
def test_candidates_are_the_networks_and_groups_of_the_identity(references: KubernetesReferences) -> None:
    found = references.of_identity("identity-1")
    assert [(referent.kind, referent.id, referent.finalizers) for referent in found] == [
        (ReferentKind.NETWORK, "network-1", ("unikorn",)),
        (ReferentKind.SECURITY_GROUP, "group-1", ("unikorn",)),
    ]
    assert references.of_identity("no label) value") == []


@pytest.mark.usefixtures("surroundings")
def test_an_edge_is_held_and_released(
    client: KubernetesClient, namespace: str, references: KubernetesReferences
) -> None:
    authority = references.ssh_certificate_authority("ca-1")
    references.hold(authority, EDGE)
    kind = kinds.SSH_CERTIFICATE_AUTHORITY
    assert finalizers(client, namespace, kind, "ca-1") == ["unikorn", EDGE]
    references.release(references.ssh_certificate_authority("ca-1"), EDGE)
    assert finalizers(client, namespace, kind, "ca-1") == ["unikorn"]


@pytest.mark.usefixtures("surroundings")
def test_an_edge_that_is_there_or_gone_already_is_not_written(
    client: KubernetesClient, namespace: str, references: KubernetesReferences
) -> None:
    network, _ = references.of_identity("identity-1")
    references.release(network, EDGE)
    references.hold(network, EDGE)
    held, _ = references.of_identity("identity-1")
    references.hold(held, EDGE)
    assert references.of_identity("identity-1")[0].resource_version == held.resource_version


@pytest.mark.usefixtures("surroundings")
def test_a_write_clash_is_a_conflict_and_loses_nobodys_edge(
    client: KubernetesClient, namespace: str, references: KubernetesReferences
) -> None:
    network, _ = references.of_identity("identity-1")
    references.hold(network, EDGE)
    with pytest.raises(ports.StateConflict):
        references.hold(network, "servers.region.unikorn-cloud.org/another")
    assert finalizers(client, namespace, kinds.NETWORK, "network-1") == ["unikorn", EDGE]


@pytest.mark.usefixtures("surroundings")
def test_a_referent_that_vanished_is_missing_to_hold_and_fine_to_release(
    client: KubernetesClient, namespace: str, references: KubernetesReferences
) -> None:
    network, _ = references.of_identity("identity-1")
    references.hold(network, EDGE)
    held, _ = references.of_identity("identity-1")
    client.patch(kinds.NETWORK, namespace, "network-1", {"metadata": {"finalizers": None}})
    client.delete(kinds.NETWORK, namespace, "network-1")
    references.release(held, EDGE)
    with pytest.raises(ports.Missing):
        references.hold(network, EDGE)
