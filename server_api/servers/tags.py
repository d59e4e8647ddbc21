"""Tags: what a list selects by them, and which of them the instance's metadata gets (contract 2.15 and 6.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from server_api.servers.model import Server, Tag

NOVA_LIMIT = 255
"""Characters that Nova takes for a key and for a value of metadata."""

_METADATA_TAG = re.compile(r"([a-z0-9][a-z0-9-]*)\.[^/]+/([a-z0-9][a-z0-9-]*)")


def match(selectors: Iterable[Tag], tags: Iterable[Tag]) -> bool:
    """Say whether every selector equals some tag. No selector matches everything."""
    present = set(tags)
    return all(selector in present for selector in selectors)


def instance_metadata(server: Server) -> dict[str, str]:
    """Return the metadata that a new instance gets: derived from tags, and ours.

    Ours is written last, so that no tag can pass for it. A tag that Nova would not take is left out like any other
    that has no place in metadata: it must not keep the server from being built.
    """
    metadata: dict[str, str] = {}
    for tag in server.spec.tags:
        name = _METADATA_TAG.fullmatch(tag.name)
        if name is not None and len(tag.name) <= NOVA_LIMIT and len(tag.value) <= NOVA_LIMIT:
            metadata[f"{name[1]}:{name[2].replace('-', '_')}"] = tag.value
    region_id = server.metadata.region_id or ""
    return metadata | {
        "serverID": server.id,
        "organizationID": server.metadata.organization_id,
        "projectID": server.metadata.project_id,
        "regionID": region_id,
        "region:server_id": server.id,
        "identity:organization_id": server.metadata.organization_id,
        "identity:project_id": server.metadata.project_id,
        "region:region_id": region_id,
    }
