"""What is served at the moment, built-in and by definition, and how clients find it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .schema import StructuralSchema

NAMESPACES = ("", "namespaces")
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")

# The API level these semantics follow; clients decide by it what they may ask for.
VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.0+server-api-sandbox", "platform": "linux/amd64"}


EVERYWHERE = "*"
"""In the place of a namespace: all of them. No namespace can have this name."""


class Key(NamedTuple):
    """Where an object is stored. The namespace of a cluster-scoped object is empty."""

    group: str
    plural: str
    namespace: str
    name: str

    @property
    def resource(self) -> tuple[str, str]:
        """Group and plural."""
        return self.group, self.plural


@dataclass(frozen=True)
class Column:
    """A printer column: what `kubectl get` shows. A priority above 0 is shown with `-o wide` only."""

    name: str
    type: str
    json_path: str
    priority: int = 0


NAME_COLUMN = Column("Name", "string", ".metadata.name")
AGE_COLUMN = Column("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, eq=False)
class Resource:
    """One resource, as served under /api or /apis."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    schema: StructuralSchema
    has_status: bool = False
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (NAME_COLUMN, AGE_COLUMN)
    selectable: frozenset[str] = frozenset()
    """The fields a field selector may name beside those of metadata."""
    definition: str | None = None
    """Name of the CustomResourceDefinition behind it; None for a built-in kind."""

    @property
    def api_version(self) -> str:
        """As in the `apiVersion` of objects."""
        return f"{self.group}/{self.version}".lstrip("/")

    @property
    def place(self) -> str:
        """The path below which it is served."""
        return f"{'apis' if self.group else 'api'}/{self.api_version}"

    @property
    def storage(self) -> tuple[str, str]:
        """Group and plural its objects are stored under."""
        return self.group, self.plural

    @property
    def counts_generations(self) -> bool:
        """Whether its objects have metadata.generation."""
        return self.definition is not None or self.storage == DEFINITIONS

    def describe(self) -> Iterator[dict[str, Any]]:
        """Its entries in a discovery document."""
        common = {"namespaced": self.namespaced, "kind": self.kind}
        names = {"name": self.plural, "singularName": self.singular or self.kind.lower()}
        lists = {"verbs": VERBS, "shortNames": self.short_names, "categories": self.categories}
        yield names | common | lists
        if self.has_status:
            yield {"name": f"{self.plural}/status", "singularName": "", **common, "verbs": STATUS_VERBS}


class Target(NamedTuple):
    """What a path names: a collection where the name is empty."""

    resource: Resource
    namespace: str
    name: str = ""
    subresource: str | None = None

    def named(self, name: str) -> Key:
        """Where an object of the resource is stored."""
        return Key(*self.resource.storage, self.namespace, name)


class Registry:
    """Look-ups by path and by kind. Replaced as a whole on a change, so that readers need no lock."""

    def __init__(self, builtin: list[Resource]) -> None:
        self._builtin = builtin
        self._resources = builtin

    def serve(self, custom: list[Resource]) -> None:
        """Serves these custom resources, beside the built-in ones and instead of those before."""
        self._resources = [*self._builtin, *custom]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a path, None where nothing is served."""
        place = (group, version, plural)
        return next((item for item in self._resources if (item.group, item.version, item.plural) == place), None)

    def builtin(self, storage: tuple[str, str]) -> Resource:
        """A built-in resource."""
        return next(item for item in self._builtin if item.storage == storage)

    def serves_kind(self, api_version: str, kind: str) -> bool:
        """Whether objects of this kind can exist here."""
        return any(item.api_version == api_version and item.kind == kind for item in self._resources)

    def discover(self, path: list[str]) -> dict[str, Any] | None:
        """The discovery document at a path (its segments), None where there is none."""
        match path:
            case ["version"]:
                return VERSION
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
            case ["apis"]:
                groups = [self._group(name) for name in dict.fromkeys(item.group for item in self._resources) if name]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", name] if any(item.group == name for item in self._resources):
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}
            case ["api", api_version]:
                return self._listing(api_version)
            case ["apis", group, version]:
                return self._listing(f"{group}/{version}")
            case ["openapi", "v3"]:
                places = dict.fromkeys(item.place for item in self._resources)
                return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}
            case ["openapi", "v3", *rest]:
                return self._openapi("/".join(rest))
        return None

    def _group(self, name: str) -> dict[str, Any]:
        served = dict.fromkeys((item.api_version, item.version) for item in self._resources if item.group == name)
        versions = [{"groupVersion": api_version, "version": version} for api_version, version in served]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _openapi(self, place: str) -> dict[str, Any] | None:
        """Only that patches are validated by the server, without which `kubectl edit` does not send them."""
        parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
        paths = {}
        for item in self._resources:
            if item.place == place:
                kind = {"group": item.group, "version": item.version, "kind": item.kind}
                patch = {"x-kubernetes-group-version-kind": kind, "parameters": parameters, "responses": {}}
                paths[f"/{place}/{item.plural}"] = {"patch": patch}
        return {"openapi": "3.0.0", "info": {"title": "", "version": ""}, "paths": paths} if paths else None

    def _listing(self, api_version: str) -> dict[str, Any] | None:
        entries = [entry for item in self._resources if item.api_version == api_version for entry in item.describe()]
        if not entries:
            return None
        about = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version}
        return {**about, "resources": entries}
