"""Networks, groups, authorities, identities and regions read from the store."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.servers import ports
from server_api.servers.surroundings import (
    FlavorMetadata,
    Identity,
    Network,
    PlacementPreflight,
    Region,
    SecurityGroup,
    SSHCertificateAuthority,
)
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.directory import KubernetesDirectory
from server_api.store.other_objects import region_from

LABELS = {
    "unikorn-cloud.org/name": "a-name",
    "unikorn-cloud.org/organization": "organization-1",
    "unikorn-cloud.org/project": "project-1",
    "regions.unikorn-cloud.org/region-id": "region-1",
    "regions.unikorn-cloud.org/identity-id": "identity-1",
    "regions.unikorn-cloud.org/network-id": "network-1",
    "resource.unikorn-cloud.org/api-version": "2",
}


def put(client: KubernetesClient, namespace: str, kind: kinds.Kind, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": LABELS}
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": {}, **parts}
    created = client.create(kind, namespace, body)
    if "status" in parts:
        version = created["metadata"]["resourceVersion"]
        created = client.patch_status(kind, namespace, name, parts["status"], version)
    return created


@pytest.fixture
def directory(client: KubernetesClient, namespace: str) -> KubernetesDirectory:
    return KubernetesDirectory(client, namespace)


def test_a_network_is_read(client: KubernetesClient, namespace: str, directory: KubernetesDirectory) -> None:
    stored = put(client, namespace, kinds.NETWORK, "network-1", spec={"prefix": "192.168.0.0/24"})
    assert stored["spec"] == {"prefix": "192.168.0.0/24"}, "fields of the owning service are kept"
    assert directory.network("network-1") == Network(
        id="network-1",
        uid=stored["metadata"]["uid"],
        name="a-name",
        organization_id="organization-1",
        project_id="project-1",
        region_id="region-1",
        identity_id="identity-1",
        api_version="2",
    )


def test_a_security_group_is_read(client: KubernetesClient, namespace: str, directory: KubernetesDirectory) -> None:
    put(client, namespace, kinds.SECURITY_GROUP, "group-1")
    expected = SecurityGroup("group-1", "organization-1", "project-1", "network-1", "2")
    assert directory.security_group("group-1") == expected


def test_a_certificate_authority_is_read(
    client: KubernetesClient, namespace: str, directory: KubernetesDirectory
) -> None:
    put(client, namespace, kinds.SSH_CERTIFICATE_AUTHORITY, "ca-1", spec={"publicKey": "ssh-ed25519 AAAA"})
    expected = SSHCertificateAuthority("ca-1", "organization-1", "project-1", "2", "ssh-ed25519 AAAA")
    assert directory.ssh_certificate_authority("ca-1") == expected


@pytest.mark.parametrize(("reason", "ready"), [("Provisioned", True), ("Provisioning", False)])
def test_an_identity_is_ready_once_it_is_provisioned(
    client: KubernetesClient, namespace: str, directory: KubernetesDirectory, reason: str, ready: bool
) -> None:
    status = {"conditions": [{"type": "Healthy", "reason": "Provisioned"}, {"type": "Available", "reason": reason}]}
    put(client, namespace, kinds.IDENTITY, "identity-1", spec={"provider": "openstack"}, status=status)
    expected = Identity("identity-1", "organization-1", "project-1", "region-1", ready)
    assert directory.identity("identity-1") == expected


def test_a_region_is_read_with_its_configuration(
    client: KubernetesClient, namespace: str, directory: KubernetesDirectory
) -> None:
    flavor = {"id": "f-1", "baremetal": True, "cpu": {"count": 4, "family": "zen"}, "memory": "2Gi", "gpu": {"x": 1}}
    openstack = {
        "endpoint": "http://127.0.0.1:5000",
        "serviceAccountSecret": {"name": "credentials"},
        "compute": {
            "flavors": {"selector": {"ids": ["f-1"]}, "metadata": [flavor, {"id": "f-2", "pinnedOnly": True}]},
            "placementPreflight": {"enabled": True, "requiredTraits": ["CUSTOM_A", "CUSTOM_B"]},
        },
        "image": {"selector": {"signingKey": "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0="}},
        "network": {"externalNetworks": {"selector": {"ids": ["n-1"], "tags": ["t-1"]}}},
    }
    put(client, namespace, kinds.REGION, "region-1", spec={"provider": "openstack", "openstack": openstack})
    assert directory.region("region-1") == Region(
        id="region-1",
        name="a-name",
        provider="openstack",
        endpoint="http://127.0.0.1:5000",
        secret_namespace=namespace,
        secret_name="credentials",
        flavor_ids=frozenset({"f-1"}),
        flavor_metadata=(
            FlavorMetadata("f-1", baremetal=True, cpu_count=4, cpu_family="zen", memory_bytes=2 * 1024**3),
            FlavorMetadata("f-2", pinned_only=True),
        ),
        image_signing_key="-----BEGIN PUBLIC KEY-----",
        external_network_ids=frozenset({"n-1"}),
        external_network_tags=frozenset({"t-1"}),
        placement_preflight=PlacementPreflight(("CUSTOM_A", "CUSTOM_B")),
    )


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (None, None),
        ({}, None),
        ("yes", None),
        ({"enabled": False, "requiredTraits": ["CUSTOM_A"]}, None),
        ({"enabled": "perhaps"}, None),
        ({"requiredTraits": ["CUSTOM_A"]}, None),
        ({"enabled": True}, PlacementPreflight(())),
        ({"enabled": True, "requiredTraits": None}, PlacementPreflight(())),
    ],
)
def test_placement_is_asked_only_where_the_region_enables_it(stored: Any, expected: PlacementPreflight | None) -> None:
    spec = {"openstack": {"compute": {"placementPreflight": stored}}}
    assert region_from({"spec": spec}).placement_preflight == expected


@pytest.mark.parametrize("spec", [None, {}, {"openstack": None}, {"openstack": {"compute": {"flavors": None}}}])
def test_b41_a_region_with_nothing_configured_exports_everything(spec: Any) -> None:
    region = region_from({"metadata": {"name": "region-1", "labels": None}, "spec": spec})
    assert (region.id, region.flavor_ids, region.flavor_metadata) == ("region-1", None, ())


def test_an_empty_selection_of_flavors_is_no_selection() -> None:
    flavors = {"selector": {"ids": []}}
    assert region_from({"spec": {"openstack": {"compute": {"flavors": flavors}}}}).flavor_ids is None


def test_what_is_absent_is_missing(directory: KubernetesDirectory) -> None:
    for look_up in (
        directory.network,
        directory.security_group,
        directory.ssh_certificate_authority,
        directory.identity,
        directory.region,
    ):
        with pytest.raises(ports.Missing):
            look_up("absent")
