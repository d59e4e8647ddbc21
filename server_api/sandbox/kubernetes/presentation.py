"""How objects become answers. JSON is spliced from stored bytes; tables are in `tables`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import orjson

from .resources import Resource


class Presenter(Protocol):
    """Renders the answers to one request."""

    media_type: str

    def one(self, resource: Resource, body: bytes) -> bytes:
        """A single object."""
        ...

    def many(self, resource: Resource, metadata: dict[str, Any], bodies: Iterable[bytes]) -> bytes:
        """A list of objects with the list's own metadata."""
        ...

    def event(self, resource: Resource, type_: str, body: bytes) -> bytes:
        """One line of a watch about an object; `body` is its bytes as served."""
        ...


class Json:
    """Objects as they are stored: nothing is parsed to be answered."""

    media_type = "application/json"

    def one(self, resource: Resource, body: bytes) -> bytes:
        """The object itself."""
        return body

    def many(self, resource: Resource, metadata: dict[str, Any], bodies: Iterable[bytes]) -> bytes:
        """The list, joined from the bytes of its items."""
        head = {"apiVersion": resource.api_version, "kind": resource.collection_kind, "metadata": metadata}
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}"

    def event(self, resource: Resource, type_: str, body: bytes) -> bytes:
        """The event, around the bytes of its object."""
        return event(type_, body)


def event(type_: str, body: bytes) -> bytes:
    """A line of a watch. Clients split at newlines, of which JSON by orjson has none."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), body)
