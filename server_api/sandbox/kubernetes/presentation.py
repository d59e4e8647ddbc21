"""How objects become answers: JSON spliced from stored bytes, or the tables `kubectl get` asks for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import jsonpath
import orjson

from .metadata import Object
from .resources import Column, Resource

MEDIA_TYPE = "application/json"
INCLUDE_OBJECT = ("", "None", "Metadata", "Object")

_TYPES: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "boolean": bool}


class Json:
    """Objects as they are stored: nothing is parsed to be answered."""

    def one(self, resource: Resource, body: bytes) -> bytes:
        """The object itself."""
        return body

    def many(self, resource: Resource, metadata: dict[str, Any], bodies: Iterable[bytes]) -> bytes:
        """The list, joined from the bytes of its items."""
        kind = resource.list_kind or f"{resource.kind}List"
        head = {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata}
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}"


class Table(Json):
    """Rows of a meta.k8s.io/v1 Table. `include` says what of the object accompanies each row."""

    def __init__(self, include: str) -> None:
        self._include = include or "Metadata"
        self._columns_told = False

    def one(self, resource: Resource, body: bytes) -> bytes:
        """A table of one row."""
        version = orjson.loads(body)["metadata"]["resourceVersion"]
        return self.many(resource, {"resourceVersion": version}, [body])

    def many(self, resource: Resource, metadata: dict[str, Any], bodies: Iterable[bytes]) -> bytes:
        """A table of a row for each object.

        The columns are told once: `kubectl get --watch` prints a heading whenever it gets them.
        """
        columns = [] if self._columns_told else [_definition(column) for column in resource.columns]
        self._columns_told = True
        now = datetime.datetime.now(datetime.UTC)
        rows = []
        for obj in map(orjson.loads, bodies):
            cells = [_cell(column, obj, now) for column in resource.columns]
            rows.append({"cells": cells, "object": self._accompany(obj)})
        table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return orjson.dumps({**table, "columnDefinitions": columns, "rows": rows})

    def _accompany(self, obj: Object) -> Object | None:
        if self._include == "Metadata":
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
        return obj if self._include == "Object" else None


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": "string" if column.type == "date" else column.type,
        "format": "name" if column.json_path == ".metadata.name" else "",
        "description": f"JSON path {column.json_path}",
        "priority": column.priority,
    }


def _cell(column: Column, obj: Object, now: datetime.datetime) -> Any:
    """The first value at the column's path, in the column's type; None, which prints as nothing, without one."""
    value = _finder(column.json_path)(obj)
    if value is None:
        return None
    if column.type == "date":
        return age(value, now)
    if column.type == "string":
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    is_boolean = isinstance(value, bool)
    return value if isinstance(value, _TYPES[column.type]) and is_boolean == (column.type == "boolean") else None


@lru_cache(maxsize=1024)
def _finder(path: str) -> Callable[[Object], Any]:
    compiled = jsonpath.compile(f"${path}")

    def find(obj: Object) -> Any:
        match = compiled.match(obj)
        return match.obj if match else None

    return find


def age(timestamp: object, now: datetime.datetime) -> str:
    """The time since an RFC 3339 timestamp in its largest fitting unit, about as kubectl writes it: `119s`, `5m`."""
    try:
        seconds = int((now - datetime.datetime.fromisoformat(str(timestamp))).total_seconds())
    except (ValueError, TypeError):
        return "<invalid>"
    if seconds < -1:
        return "<invalid>"
    for unit, size, until in (("s", 1, 120), ("m", 60, 10_800), ("h", 3600, 172_800)):
        if seconds < until:
            return f"{max(seconds, 0) // size}{unit}"
    return f"{seconds // 86_400}d"
