"""The resources that are served at the moment: the built-in ones and those of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator

from .builtin_kinds import builtin_resources
from .definitions import resources_of
from .metadata import Object
from .resources import Resource


class Registry:
    """Look-ups by path and by kind. Replaced as a whole on a change, so that readers need no lock."""

    def __init__(self) -> None:
        self._resources = {_place(resource): resource for resource in builtin_resources()}

    def __iter__(self) -> Iterator[Resource]:
        return (resource for resource in self._resources.values() if resource.served)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The served resource at a path, None where nothing is served."""
        resource = self._resources.get((group, version, plural))
        return resource if resource and resource.served else None

    def stored(self, storage: tuple[str, str]) -> Resource | None:
        """The resource in the version its objects are stored in."""
        candidates = (item for item in self._resources.values() if item.storage == storage and item.is_stored_form)
        return next(candidates, None)

    def serves_kind(self, api_version: str, kind: str) -> bool:
        """Whether objects of this kind can exist here."""
        return any(item.api_version == api_version and item.kind == kind for item in self._resources.values())

    def define(self, definition: Object) -> None:
        """Serves what a CustomResourceDefinition describes, instead of what it described before."""
        kept = self._without(definition["metadata"]["name"])
        self._resources = kept | {_place(resource): resource for resource in resources_of(definition)}

    def undefine(self, name: str) -> None:
        """Serves the resources of a definition no longer."""
        self._resources = self._without(name)

    def _without(self, definition: str) -> dict[tuple[str, str, str], Resource]:
        return {place: item for place, item in self._resources.items() if item.definition != definition}


def _place(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
