"""The stored objects of the seed, as plain Kubernetes objects (contract 4).

None carries the finalizer `unikorn`: that is the promise of a controller to clean up behind the object, and for the
kinds here the sandbox runs none; one that carried it could never be deleted.
"""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from server_api.sandbox.openstack.configuration import HOST_TRAIT
from server_api.sandbox.seed_openstack import Account
from server_api.sandbox.world import Tenant, World
from server_api.servers.model import API_VERSION_2
from server_api.servers.naming import SSH_KEY_NAME
from server_api.store import kinds, labels
from server_api.store.kinds import Kind

REGION_NAME = "sandbox"
SECRET_NAME = "region-service-account"

_V2 = {labels.API_VERSION: API_VERSION_2}

Object = dict[str, Any]


def secret(namespace: str, account: Account) -> Object:
    """Return the Secret of the region's service account."""
    values = {
        "domain-id": "default",
        "user-id": account.user_id,
        "password": account.password,
        "project-id": account.project_id,
    }
    return {
        "apiVersion": kinds.SECRET.api_version,
        "kind": kinds.SECRET.name,
        "metadata": {"name": SECRET_NAME, "namespace": namespace},
        "type": "Opaque",
        "data": {key: _base64(value) for key, value in values.items()},
    }


def region(namespace: str, world: World, auth_url: str) -> Object:
    """Return the Region, with what it says of flavors beyond Nova's knowledge."""
    metadata = [{"id": flavor.id, **flavor.metadata} for flavor in world.flavors.values() if flavor.metadata]
    spec = {
        "provider": "openstack",
        "openstack": {
            "endpoint": auth_url,
            "serviceAccountSecret": {"namespace": namespace, "name": SECRET_NAME},
            # no selector: every public flavor is exported, also one that somebody makes to try it
            "compute": {
                "flavors": {"metadata": metadata},
                "placementPreflight": {"enabled": True, "requiredTraits": [HOST_TRAIT]},
            },
        },
    }
    return _object(kinds.REGION, world.region_id, namespace, {labels.NAME: REGION_NAME}, spec)


def tenant_objects(namespace: str, world: World, tenant: Tenant, account: Account) -> list[Object]:
    """Return the identity, its OpenStack side, the network, the security group and the certificate authority."""
    owner = {
        labels.NAME: tenant.name,
        labels.ORGANIZATION: tenant.organization_id,
        labels.PROJECT: tenant.project_id,
    }
    placed = owner | {labels.REGION_ID: world.region_id}
    of_network = {labels.IDENTITY_ID: tenant.identity_id, labels.NETWORK_ID: tenant.network_id}
    credentials = {
        "userID": account.user_id,
        "password": account.password,
        "projectID": account.project_id,
        "sshKeyName": SSH_KEY_NAME,
        "sshPrivateKey": _base64(tenant.private_key),
    }
    provider = {"provider": "openstack"}
    return [
        _object(kinds.IDENTITY, tenant.identity_id, namespace, placed, provider),
        _object(kinds.OPENSTACK_IDENTITY, tenant.identity_id, namespace, placed, credentials),
        network(namespace, world, tenant, tenant.network_id, tenant.prefix),
        _object(kinds.SECURITY_GROUP, tenant.security_group_id, namespace, placed | of_network | _V2, provider),
        _object(
            kinds.SSH_CERTIFICATE_AUTHORITY,
            tenant.authority_id,
            namespace,
            owner | _V2,
            {"publicKey": tenant.authority_key},
        ),
    ]


def network(namespace: str, world: World, tenant: Tenant, network_id: str, prefix: str) -> Object:
    """Return a v2 network of the tenant."""
    its_labels = {
        labels.NAME: tenant.name,
        labels.ORGANIZATION: tenant.organization_id,
        labels.PROJECT: tenant.project_id,
        labels.REGION_ID: world.region_id,
        labels.IDENTITY_ID: tenant.identity_id,
    }
    spec = {"provider": "openstack", "prefix": prefix}
    return _object(kinds.NETWORK, network_id, namespace, its_labels | _V2, spec)


def provisioned(status: Mapping[str, Any]) -> Object:
    """Return `status` with the condition Available for the reason Provisioned, the transition time kept if it had."""
    others = [condition for condition in status.get("conditions", []) if condition["type"] != "Available"]
    known = [condition for condition in status.get("conditions", []) if condition["type"] == "Available"]
    if known and known[0]["reason"] == "Provisioned":
        return dict(status)
    available = {
        "type": "Available",
        "status": "True",
        "reason": "Provisioned",
        "message": "seeded by the sandbox",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**status, "conditions": [*others, available]}


def _object(kind: Kind, name: str, namespace: str, its_labels: Mapping[str, str], spec: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": namespace, "labels": dict(its_labels)},
        "spec": dict(spec),
    }


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
