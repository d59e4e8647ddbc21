"""A thousand stored servers, without the time that a thousand real ones would take."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from server_api.sandbox.region import Region
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.world import Tenant, World
from server_api.servers.model import API_VERSION_2
from server_api.servers.ports import Missing
from server_api.store import kinds, labels

STATUS = {
    "phase": "Running",
    "privateIP": "192.168.10.10",
    "publicIP": "203.0.113.10",
    "macAddress": "fa:16:3e:00:00:01",
    "conditions": [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": "stored by the benchmark",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for type_, reason in (("Available", "Provisioned"), ("Healthy", "Healthy"))
    ],
}


@contextmanager
def stored(region: Region, count: int) -> Iterator[list[str]]:
    """Store that many paused servers, which the controller leaves alone, and yield their IDs; remove them after."""
    kubernetes, world = region.kubernetes(), region.world
    ids: list[str] = []
    try:
        for number in range(count):
            body = server_object(world, world.first, str(uuid4()), f"stored-{number}")
            body["spec"]["pause"] = True
            created = kubernetes.create(kinds.SERVER, NAMESPACE, body)
            ids.append(created["metadata"]["name"])
            version = created["metadata"]["resourceVersion"]
            kubernetes.patch_status(kinds.SERVER, NAMESPACE, ids[-1], STATUS, version)
        yield ids
    finally:
        for id_ in ids:
            with suppress(Missing):
                kubernetes.delete(kinds.SERVER, NAMESPACE, id_)


def server_object(world: World, tenant: Tenant, id_: str, name: str) -> dict[str, Any]:
    """Return a server with a floating IP on the tenant's network, as a create through the API stores it."""
    first_image = next(iter(world.images.values()))
    return {
        "apiVersion": kinds.SERVER.api_version,
        "kind": kinds.SERVER.name,
        "metadata": {
            "name": id_,
            "labels": {
                labels.NAME: name,
                labels.ORGANIZATION: tenant.organization_id,
                labels.PROJECT: tenant.project_id,
                labels.REGION_ID: world.region_id,
                labels.IDENTITY_ID: tenant.identity_id,
                labels.NETWORK_ID: tenant.network_id,
                labels.API_VERSION: API_VERSION_2,
            },
            "annotations": {labels.CREATOR: "benchmark", labels.DESCRIPTION: "one of many"},
        },
        "spec": {
            "tags": [{"name": "name", "value": name}],
            "flavorID": world.flavors["virtual"].id,
            "image": {"id": first_image.id},
            "networks": [{"id": tenant.network_id}],
            "securityGroups": [{"id": tenant.security_group_id}],
            "publicIPAllocation": {"enabled": True},
            "sshInjection": "identityKeypair",
        },
    }
