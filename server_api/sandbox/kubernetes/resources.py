"""What can be stored: a served resource, its names, its schema, and how its stored form becomes the served one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from .metadata import Object
from .schema import StructuralSchema

NAMESPACES = ("", "namespaces")
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Column:
    """A printer column: what `kubectl get` shows. A priority above 0 is shown with `-o wide` only."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


NAME_COLUMN = Column("Name", "string", ".metadata.name", "Name of the object", "name")
AGE_COLUMN = Column("Age", "date", ".metadata.creationTimestamp", "Time since creation")


@dataclass(frozen=True, eq=False)
class Resource:
    """One resource in one version, as served under /api or /apis."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    schema: StructuralSchema
    served: bool = True
    """False for the version of a definition that is only stored; clean-up still needs it."""
    has_status: bool = False
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (NAME_COLUMN, AGE_COLUMN)
    selectable: frozenset[str] = frozenset()
    definition: str | None = None
    """Name of the CustomResourceDefinition behind it; None for a built-in kind."""
    strict_updates: bool = True
    """Whether an update must carry metadata.resourceVersion."""
    counts_generations: bool = False
    stored_as: tuple[str, str] | None = None
    """Group and plural it is stored under, where that differs (events.k8s.io stores core events)."""
    stored_api_version: str = ""
    renames: Mapping[str, str] = field(default_factory=dict)
    """Names of top-level fields as served, to their names as stored."""
    verbs: tuple[str, ...] = VERBS

    @property
    def api_version(self) -> str:
        """As in the `apiVersion` of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """As in messages: `servers.example.dev`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """As in messages: `Server.example.dev`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def storage(self) -> tuple[str, str]:
        """Group and plural its objects are stored under."""
        return self.stored_as or (self.group, self.plural)

    @property
    def collection_kind(self) -> str:
        """The kind of a list."""
        return self.list_kind or f"{self.kind}List"

    @property
    def is_stored_form(self) -> bool:
        """Whether objects are served as they are stored, byte for byte."""
        return self.stored_api_version in ("", self.api_version)

    def serve(self, body: bytes) -> bytes:
        """Stored bytes as this version serves them; the very same bytes where the two forms agree."""
        return body if self.is_stored_form else orjson.dumps(self.load(body))

    def load(self, body: bytes) -> Object:
        """The stored object in the served form."""
        stored: Object = orjson.loads(body)
        if self.is_stored_form:
            return stored
        served_names = {stored_name: name for name, stored_name in self.renames.items()}
        return {served_names.get(key, key): value for key, value in stored.items()} | {"apiVersion": self.api_version}

    def store(self, served: Object) -> Object:
        """The stored form of an object in the served form."""
        if self.is_stored_form:
            return served
        renamed: dict[str, Any] = {self.renames.get(key, key): value for key, value in served.items()}
        return renamed | {"apiVersion": self.stored_api_version}
