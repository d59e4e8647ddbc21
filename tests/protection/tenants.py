"""What the two tenants have, and what a refusal must not tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from werkzeug.test import TestResponse

from server_api.access.digests import token_digest
from server_api.store import kinds, labels
from tests.api import world as names
from tests.api.errors import assert_error
from tests.api.world import IMAGE, NETWORK, REGION, World
from tests.doubles.identity import known, person
from tests.protection.matrix import (
    EXPIRED,
    FOREIGN_SERVER,
    GATE,
    HOME_NAME,
    HOME_SERVER,
    PLACES,
    SERVICES,
    SIBLING_SERVER,
    Rights,
    everybody,
    subject,
    token,
)

NAMES = {HOME_SERVER: HOME_NAME, SIBLING_SERVER: "sibling-name", FOREIGN_SERVER: "foreign-name"}
NETWORKS = {
    HOME_SERVER: NETWORK,
    SIBLING_SERVER: "aaaabbbb-1234-4678-9abc-def01234567e",
    FOREIGN_SERVER: names.OTHER_NETWORK,
}

FOREIGN_GROUP = "50000000-0000-4000-8000-00000000000f"
FOREIGN_AUTHORITY = "60000000-0000-4000-8000-00000000000f"
FOREIGN_IDENTITY = "40000000-0000-4000-8000-00000000000f"
NOBODYS = "f0000000-0000-4000-8000-00000000000f"
"""An ID that nothing has."""

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nnot really\n-----END OPENSSH PRIVATE KEY-----\n"

TELLING = (
    *PLACES,
    *NAMES.values(),
    *(part for place in PLACES.values() for part in place),
    *NETWORKS.values(),
    names.IDENTITY,
    FOREIGN_GROUP,
    FOREIGN_AUTHORITY,
    FOREIGN_IDENTITY,
    names.FOREIGN_IMAGE,
    "secret",
    "foreign-",
)
"""What no refusal may say unless the request said it."""

CODES = {400: "invalid_request", 401: "access_denied", 403: "forbidden", 404: "not_found", 422: "unprocessable_content"}


def document(*revoked: str) -> dict[str, Any]:
    """Return what the stand-in identity service knows: everybody of the matrix; digests of tokens withdraw them."""
    return known(
        *(person(token(name), rights.document(), subject(name)) for name, rights in everybody().items()),
        services={name: Rights(everywhere=role).document() for name, role in SERVICES.items()},
        projects={
            names.ORGANIZATION: [names.PROJECT, names.SECOND_PROJECT],
            names.OTHER_ORGANIZATION: [names.OTHER_PROJECT, names.PROJECT],
        },
        revoked=[token_digest(token(EXPIRED)), *revoked],
    )


def store_servers(world: World) -> None:
    """Store the servers of the matrix and whatever they need."""
    for id_ in PLACES:
        store_server(world, id_)
    world.cloud.hold(HOME_SERVER, HOME_NAME)
    world.key_pair(KEY)


def store_server(world: World, id_: str) -> None:
    """Store one of them."""
    organization, project = PLACES[id_]
    its_labels = {
        labels.NAME: NAMES[id_],
        labels.ORGANIZATION: organization,
        labels.PROJECT: project,
        labels.REGION_ID: REGION,
        labels.IDENTITY_ID: names.IDENTITY,
        labels.NETWORK_ID: NETWORKS[id_],
        labels.API_VERSION: "2",
    }
    spec = {
        "networks": [{"id": NETWORKS[id_]}],
        "flavorID": names.FLAVOR,
        "image": {"id": IMAGE},
        "providerCreateGates": [{"conditionType": GATE}],
    }
    world.add(kinds.SERVER, id_, its_labels, spec)


def store_foreign_references(world: World) -> None:
    """Store what a server may refer to, as the other tenant's."""
    place = {labels.ORGANIZATION: names.OTHER_ORGANIZATION, labels.PROJECT: names.OTHER_PROJECT}
    named = place | {labels.NAME: "foreign-reference", labels.REGION_ID: REGION, labels.API_VERSION: "2"}
    provider = {"provider": "openstack"}
    group = named | {labels.NETWORK_ID: names.OTHER_NETWORK}
    world.add(kinds.SECURITY_GROUP, FOREIGN_GROUP, group, provider)
    key = {"publicKey": "ssh-ed25519 AAAA foreign-key"}
    world.add(kinds.SSH_CERTIFICATE_AUTHORITY, FOREIGN_AUTHORITY, named, key)
    world.add(kinds.IDENTITY, FOREIGN_IDENTITY, named, provider)


def state(world: World) -> dict[str, Any]:
    """Return everything stored of servers, by ID."""
    items = world.client.list(kinds.SERVER, names.NAMESPACE).items
    return {item["metadata"]["name"]: item for item in items}


def assert_refused(response: TestResponse, status: int, path: str, body: Mapping[str, Any] | None = None) -> str:
    """Fail unless the response is that refusal and says nothing of anybody's objects; return its description."""
    sent = path + orjson.dumps(body).decode()
    description = assert_error(response, status, CODES[status])
    assert ("WWW-Authenticate" in response.headers) is (status == 401)
    said = f"{response.text}\n{response.headers}"
    assert not [text for text in TELLING if text in said and text not in sent], said
    return description


def without_trace(response: TestResponse) -> dict[str, Any]:
    """Return an error's body but for its trace ID."""
    body = dict(response.get_json())
    del body["trace_id"]
    return body
