"""The v1 API for tests: its paths, its bodies, and servers as an older installation left them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from server_api.store import kinds, labels
from tests.api.conftest import Api
from tests.api.world import (
    FLAVOR,
    IDENTITY,
    IMAGE,
    NAMESPACE,
    NETWORK,
    ORGANIZATION,
    PROJECT,
    REGION,
    World,
)

LIST = f"/api/v1/organizations/{ORGANIZATION}/servers"
LEGACY = "abcdef01-2345-4678-9abc-def012345678"
"""ID of a server that an older installation left."""


def servers(organization: str = ORGANIZATION, project: str = PROJECT, identity: str = IDENTITY) -> str:
    """Return the path of a project's servers."""
    return f"/api/v1/organizations/{organization}/projects/{project}/identities/{identity}/servers"


SERVERS = servers()


def body(name: str = "web-0", metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a minimal request; members of the spec as arguments, None leaves one out."""
    whole = {"flavorId": FLAVOR, "imageId": IMAGE, "networks": [{"id": NETWORK}]} | spec
    return {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def created(api: Api, request: dict[str, Any] | None = None) -> str:
    """Create a server that must be accepted and return its path."""
    response = api.post(SERVERS, request or body())
    assert response.status_code == 201, response.text
    return f"{SERVERS}/{response.get_json()['metadata']['id']}"


def id_of(path: str) -> str:
    """Return the ID that a server's path ends with."""
    return path.rsplit("/", 1)[1]


def leave(world: World, id_: str = LEGACY, *, without: tuple[str, ...] = (), **spec: Any) -> str:
    """Store a server as an older installation left it, return its path. ``without``: labels that it lacks."""
    its_labels = {
        labels.NAME: "old",
        labels.ORGANIZATION: ORGANIZATION,
        labels.PROJECT: PROJECT,
        labels.REGION_ID: REGION,
        labels.IDENTITY_ID: IDENTITY,
    }
    stored = {
        "apiVersion": kinds.SERVER.api_version,
        "kind": kinds.SERVER.name,
        "metadata": {
            "name": id_,
            "namespace": NAMESPACE,
            "labels": {name: value for name, value in its_labels.items() if name not in without},
        },
        "spec": {"flavorID": FLAVOR, "image": {"id": IMAGE}, "networks": [{"id": NETWORK}]} | spec,
    }
    world.client.create(kinds.SERVER, NAMESPACE, stored)
    return f"{SERVERS}/{id_}"
