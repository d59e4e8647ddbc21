"""Cloud credentials read from the store."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from server_api.servers import ports
from server_api.servers.surroundings import IdentityCredentials, Region, ServiceAccount
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.credentials import KubernetesCredentials

SPEC = {"userID": "u", "password": "hush", "projectID": "p", "sshKeyName": "k", "sshPrivateKey": "-----BEGIN X"}
SECRET = {"domain-id": "d", "user-id": "u", "password": "hush", "project-id": "p"}


def region(namespace: str, name: str = "service-account") -> Region:
    return Region("r", "r", "openstack", "http://x", namespace, name)


@pytest.fixture
def credentials(client: KubernetesClient, namespace: str) -> KubernetesCredentials:
    return KubernetesCredentials(client, namespace)


def put_identity(client: KubernetesClient, namespace: str, spec: dict[str, Any]) -> None:
    kind = kinds.OPENSTACK_IDENTITY
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "identity-1"}, "spec": spec}
    client.create(kind, namespace, body)


def put_secret(client: KubernetesClient, namespace: str, values: dict[str, str]) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "service-account"}, "data": data}
    client.create(kinds.SECRET, namespace, body)


def test_an_identitys_credentials(client: KubernetesClient, namespace: str, credentials: KubernetesCredentials) -> None:
    put_identity(client, namespace, SPEC)
    found = credentials.identity_credentials("identity-1")
    assert found == IdentityCredentials("u", "hush", "p", "k", "-----BEGIN X")
    assert "hush" not in repr(found)
    assert "BEGIN" not in repr(found)


def test_a_key_in_base64_is_decoded(
    client: KubernetesClient, namespace: str, credentials: KubernetesCredentials
) -> None:
    put_identity(client, namespace, SPEC | {"sshPrivateKey": base64.b64encode(b"-----BEGIN X").decode()})
    assert credentials.identity_credentials("identity-1").ssh_private_key == "-----BEGIN X"


@pytest.mark.parametrize("key", ["userID", "password", "projectID"])
def test_an_identity_without_one_of_them_has_none(
    client: KubernetesClient, namespace: str, credentials: KubernetesCredentials, key: str
) -> None:
    put_identity(client, namespace, {name: value for name, value in SPEC.items() if name != key})
    with pytest.raises(ports.Missing, match=f"openstackidentities/identity-1 has no {key}") as raised:
        credentials.identity_credentials("identity-1")
    assert "hush" not in str(raised.value)


def test_an_absent_identity_has_no_credentials(credentials: KubernetesCredentials) -> None:
    with pytest.raises(ports.Missing):
        credentials.identity_credentials("absent")


def test_a_regions_service_account(
    client: KubernetesClient, namespace: str, credentials: KubernetesCredentials
) -> None:
    put_secret(client, namespace, SECRET | {"password": "hush\n"})
    found = credentials.service_account(region(namespace))
    assert found == ServiceAccount("d", "u", "hush", "p")
    assert "hush" not in repr(found)


@pytest.mark.parametrize("key", SECRET)
def test_a_secret_without_a_key_is_no_service_account(
    client: KubernetesClient, namespace: str, credentials: KubernetesCredentials, key: str
) -> None:
    put_secret(client, namespace, {name: value for name, value in SECRET.items() if name != key})
    with pytest.raises(ports.Missing, match=f"secrets/service-account has no {key}"):
        credentials.service_account(region(namespace))


def test_a_region_that_names_no_secret_has_no_service_account(
    credentials: KubernetesCredentials, namespace: str
) -> None:
    with pytest.raises(ports.Missing):
        credentials.service_account(region(namespace, name=""))
