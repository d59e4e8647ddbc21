"""The write that promotes, in an embedded Kubernetes API with the real definitions."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from server_api.servers import ports
from server_api.servers.model import Server
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient
from server_api.store.promotions import PromotableServerStore

OTHER_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "of-others"}


@pytest.fixture
def store(client: KubernetesClient, namespace: str) -> PromotableServerStore:
    return PromotableServerStore(client, namespace)


@pytest.fixture
def network_uid(client: KubernetesClient, namespace: str, stored_server: dict[str, Any]) -> str:
    network_id = stored_server["metadata"]["labels"][labels.NETWORK_ID]
    body = {
        "apiVersion": kinds.NETWORK.api_version,
        "kind": kinds.NETWORK.name,
        "metadata": {"name": network_id},
        "spec": {},
    }
    return str(client.create(kinds.NETWORK, namespace, body)["metadata"]["uid"])


@pytest.fixture
def legacy(client: KubernetesClient, namespace: str, stored_server: dict[str, Any]) -> dict[str, Any]:
    """The server as v1 would have stored it, owned by something of others."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": OTHER_OWNER["name"]}}
    uid = client.create(kinds.CONFIG_MAP, namespace, config_map)["metadata"]["uid"]
    body = copy.deepcopy(stored_server)
    for field in ("uid", "resourceVersion", "generation", "creationTimestamp"):
        del body["metadata"][field]
    for label in (labels.NETWORK_ID, labels.API_VERSION):
        del body["metadata"]["labels"][label]
    body["metadata"]["ownerReferences"] = [OTHER_OWNER | {"uid": uid}]
    version = client.create(kinds.SERVER, namespace, body)["metadata"]["resourceVersion"]
    status = body["status"]
    return client.patch_status(kinds.SERVER, namespace, body["metadata"]["name"], status, version)


def promoted(before: Server, network_uid: str, stored_server: dict[str, Any]) -> Server:
    network_id = stored_server["metadata"]["labels"][labels.NETWORK_ID]
    metadata = replace(before.metadata, api_version="2", network_id=network_id, owner_uid=network_uid)
    return replace(before, metadata=metadata, spec=replace(before.spec, ssh_injection="identityKeypair"))


def test_one_request_adds_labels_owner_and_mode_and_changes_nothing_else(
    store: PromotableServerStore,
    client: KubernetesClient,
    namespace: str,
    legacy: dict[str, Any],
    network_uid: str,
    stored_server: dict[str, Any],
) -> None:
    id_ = legacy["metadata"]["name"]
    before = store.get(id_)
    after = store.promote(before, promoted(before, network_uid, stored_server))
    stored = client.get(kinds.SERVER, namespace, id_)
    assert after.metadata.api_version == "2"
    owners = stored["metadata"].pop("ownerReferences")
    assert owners[:-1] == legacy["metadata"]["ownerReferences"]
    assert owners[-1] == {
        "apiVersion": kinds.NETWORK.api_version,
        "kind": "Network",
        "name": stored_server["metadata"]["labels"][labels.NETWORK_ID],
        "uid": network_uid,
        "controller": False,
        "blockOwnerDeletion": True,
    }
    expected = copy.deepcopy(legacy)
    del expected["metadata"]["ownerReferences"]
    expected["metadata"]["labels"] = stored_server["metadata"]["labels"]
    expected["spec"]["sshInjection"] = "identityKeypair"
    for changed in ("resourceVersion", "generation"):
        expected["metadata"][changed] = stored["metadata"][changed]
    assert stored == expected


def test_an_owner_that_is_there_is_left_as_it_is(
    store: PromotableServerStore,
    client: KubernetesClient,
    namespace: str,
    legacy: dict[str, Any],
    network_uid: str,
    stored_server: dict[str, Any],
) -> None:
    id_ = legacy["metadata"]["name"]
    owner = {"apiVersion": kinds.NETWORK.api_version, "kind": "Network", "name": "n", "uid": network_uid}
    client.patch(kinds.SERVER, namespace, id_, {"metadata": {"ownerReferences": [owner]}})
    before = store.get(id_)
    store.promote(before, promoted(before, network_uid, stored_server))
    assert client.get(kinds.SERVER, namespace, id_)["metadata"]["ownerReferences"] == [owner]


def test_a_write_in_between_is_not_overwritten(
    store: PromotableServerStore,
    client: KubernetesClient,
    namespace: str,
    legacy: dict[str, Any],
    network_uid: str,
    stored_server: dict[str, Any],
) -> None:
    id_ = legacy["metadata"]["name"]
    before = store.get(id_)
    changed = client.patch(kinds.SERVER, namespace, id_, {"spec": {"pause": True}})
    with pytest.raises(ports.StateConflict):
        store.promote(before, promoted(before, network_uid, stored_server))
    assert client.get(kinds.SERVER, namespace, id_) == changed
