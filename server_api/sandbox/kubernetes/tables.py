"""Server-side printing: objects as the rows of a meta.k8s.io/v1 Table, as `kubectl get` asks for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import jsonpath
import orjson

from .metadata import Object
from .presentation import event
from .resources import Column, Resource

INCLUDE_OBJECT = ("", "None", "Metadata", "Object")


class Table:
    """Renders one answer, or one watch, as tables. `include` says what of the object accompanies each row."""

    media_type = "application/json"

    def __init__(self, include: str) -> None:
        self._include = include or "Metadata"
        self._columns_told = False

    def one(self, resource: Resource, body: bytes) -> bytes:
        """A table of one row."""
        obj = orjson.loads(body)
        return self._table(resource, {"resourceVersion": obj["metadata"]["resourceVersion"]}, [obj])

    def many(self, resource: Resource, metadata: dict[str, Any], bodies: Iterable[bytes]) -> bytes:
        """A table of a row for each object."""
        return self._table(resource, metadata, [orjson.loads(body) for body in bodies])

    def event(self, resource: Resource, type_: str, body: bytes) -> bytes:
        """An event whose object is a table of one row."""
        obj = orjson.loads(body)
        return event(type_, self._table(resource, {"resourceVersion": obj["metadata"]["resourceVersion"]}, [obj]))

    def _table(self, resource: Resource, metadata: dict[str, Any], objects: list[Object]) -> bytes:
        """The columns are told once: `kubectl get --watch` prints a heading whenever it gets them."""
        columns = [] if self._columns_told else [_definition(column) for column in resource.columns]
        self._columns_told = True
        now = datetime.datetime.now(datetime.UTC)
        rows = [
            {"cells": [_cell(column, obj, now) for column in resource.columns], **self._accompany(obj)}
            for obj in objects
        ]
        document = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        }
        return orjson.dumps(document)

    def _accompany(self, obj: Object) -> dict[str, Any]:
        if self._include == "None":
            return {}
        if self._include == "Object":
            return {"object": obj}
        metadata = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
        return {"object": metadata}


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": "string" if column.type == "date" and not column.format else column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _cell(column: Column, obj: Object, now: datetime.datetime) -> Any:
    """The first value at the column's path, in the column's type; None, which prints as nothing, without one."""
    value = _finder(column.json_path)(obj)
    if value is None:
        return None
    if column.type == "date":
        return age(value, now) if isinstance(value, str) else "<invalid>"
    if column.type == "string":
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    wanted: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "boolean": bool}
    is_boolean = isinstance(value, bool)
    return value if isinstance(value, wanted[column.type]) and is_boolean == (column.type == "boolean") else None


@lru_cache(maxsize=1024)
def _finder(path: str) -> Callable[[Object], Any]:
    compiled = jsonpath.compile(f"${path}")

    def find(obj: Object) -> Any:
        match = compiled.match(obj)
        return match.obj if match else None

    return find


def age(timestamp: str, now: datetime.datetime) -> str:
    """The time since an RFC 3339 timestamp the way kubectl writes it: `42s`, `5m3s`, `3h`, `2d4h`, `1y30d`."""
    try:
        then = datetime.datetime.fromisoformat(timestamp)
        seconds = int((now - then).total_seconds())
    except (ValueError, TypeError):
        return "<invalid>"
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    for unit, size, fine, fine_size, fine_until, until in (
        ("m", 60, "s", 1, 600, 10_800),
        ("h", 3600, "m", 60, 28_800, 172_800),
        ("d", 86_400, "h", 3600, 691_200, 63_072_000),
        ("y", 31_536_000, "d", 86_400, 252_288_000, None),
    ):
        if until is None or seconds < until:
            count, rest = divmod(seconds, size)
            parts = rest // fine_size
            return f"{count}{unit}{parts}{fine}" if parts and seconds < fine_until else f"{count}{unit}"
    raise AssertionError("the last unit takes any age")
