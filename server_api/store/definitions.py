"""Custom resource definitions: created, or brought up to date without taking anything from another installation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from server_api.servers.ports import AlreadyExists, Missing, Refused, StateConflict, Unavailable
from server_api.store import kinds
from server_api.store.client import KubernetesClient, RawObject
from server_api.store.failures import KUBERNETES
from server_api.store.tolerant import mapping, mappings, text

_KIND = kinds.CUSTOM_RESOURCE_DEFINITION
_ATTEMPTS = 5
_ESTABLISHED_WITHIN = 30.0
_LOOK_AGAIN = 0.2
_MOST_DIFFERENCES = 10

# Lists of one version in which an entry of either side counts, by what tells entries apart.
_UNITED: Mapping[str, Callable[[Any], Any]] = {
    "enum": lambda value: value,
    "x-kubernetes-validations": lambda rule: mapping(rule).get("rule"),
    "additionalPrinterColumns": lambda column: mapping(column).get("name"),
    "shortNames": lambda name: name,
    "categories": lambda name: name,
}
# What an existing version says of these holds: objects are stored in accordance with it.
_THEIRS = frozenset({"required", "storage", "conversion"})
# What a field that is known there does not have of these, it does not get: an object stored without what ours requires,
# or with a value that ours does not allow, could not be written any more, not even to let it be deleted.
_RESTRICTIONS = frozenset(
    {
        "required",
        "enum",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
    }
)


class CustomResourceDefinitions:
    """The definitions of a cluster.

    Beside an existing region service its objects have fields and versions that this version does not know. Dropping
    those from a definition would make the API prune them from stored objects, so an update only ever adds.
    """

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    def plan(self, wanted: Iterable[RawObject]) -> list[str]:
        """Return a line for every definition that ``apply`` would create or update."""
        lines = []
        for definition in wanted:
            name = definition["metadata"]["name"]
            existing = self._find(name)
            if existing is None:
                lines.append(f"create customresourcedefinition {name}")
            elif places := _differences(existing["spec"], _merged_spec(existing, definition)):
                shown = ", ".join(places[:_MOST_DIFFERENCES]) + (" …" if len(places) > _MOST_DIFFERENCES else "")
                lines.append(f"update customresourcedefinition {name}: {shown}")
        return lines

    def apply(self, wanted: Iterable[RawObject]) -> None:
        """Create or update definitions and wait until the API serves them.

        Raises Refused when a definition contradicts the existing one, Unavailable when one is not established in time.
        """
        definitions = list(wanted)
        for definition in definitions:
            self._store(definition)
        for definition in definitions:
            self._await_established(definition["metadata"]["name"])

    def _store(self, definition: RawObject) -> None:
        name = definition["metadata"]["name"]
        for _ in range(_ATTEMPTS):
            existing = self._find(name)
            # Lost races are lost to another installation's deployment; the next round sees what it wrote.
            with suppress(AlreadyExists, StateConflict, Missing):
                if existing is None:
                    self._client.create(_KIND, "", definition)
                else:
                    spec = _merged_spec(existing, definition)
                    if spec != existing["spec"]:
                        self._client.update(_KIND, "", {**existing, "spec": spec})
                return
        raise Unavailable(KUBERNETES, f"customresourcedefinition {name} is being changed by somebody else")

    def _find(self, name: str) -> RawObject | None:
        try:
            return self._client.get(_KIND, "", name)
        except Missing:
            return None

    def _await_established(self, name: str) -> None:
        ends_at = time.monotonic() + _ESTABLISHED_WITHIN
        while True:
            status = mapping(self._client.get(_KIND, "", name).get("status"))
            conditions = {condition.get("type"): condition for condition in mappings(status.get("conditions"))}
            if mapping(conditions.get("Established")).get("status") == "True":
                return
            names = mapping(conditions.get("NamesAccepted"))
            if names.get("status") == "False":
                raise Refused(KUBERNETES, f"customresourcedefinition {name}: {text(names.get('message')) or 'names'}")
            if time.monotonic() > ends_at:
                raise Unavailable(KUBERNETES, f"customresourcedefinition {name} was not established in time")
            time.sleep(_LOOK_AGAIN)


def _merged_spec(existing: RawObject, wanted: RawObject) -> dict[str, Any]:
    name = wanted["metadata"]["name"]
    theirs, ours = existing["spec"], wanted["spec"]
    if theirs.get("scope") != ours["scope"]:
        raise Refused(KUBERNETES, f"customresourcedefinition {name} exists with scope {theirs.get('scope')}")
    merged = _merged(
        {key: value for key, value in theirs.items() if key != "versions"},
        {key: value for key, value in ours.items() if key != "versions"},
        name,
    )
    versions = {version["name"]: version for version in theirs["versions"]}
    for version in ours["versions"]:
        place = f"{name} {version['name']}"
        known = versions.get(version["name"])
        # Objects are stored in one version only, and that is the existing installation's to choose.
        versions[version["name"]] = _merged(known, version, place) if known else {**version, "storage": False}
    return {**merged, "versions": list(versions.values())}


def _merged(theirs: Mapping[str, Any], ours: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return theirs with what is ours added; where both have a value that is no object, ours counts."""
    merged = dict(theirs)
    for key, value in ours.items():
        current = merged.get(key)
        where = f"{place}.{key}"
        if current is None:
            if key not in _RESTRICTIONS or isinstance(value, dict):
                merged[key] = value
        elif key == "type" and isinstance(value, str) and current != value:
            raise Refused(KUBERNETES, f"{where} is {current!r} in the existing definition and {value!r} in ours")
        elif key in _UNITED and isinstance(current, list):
            merged[key] = _united(current, value, _UNITED[key])
        elif isinstance(current, dict) and isinstance(value, dict):
            merged[key] = _merged(current, value, where)
        elif key not in _THEIRS:
            merged[key] = value
    return merged


def _united(theirs: list[Any], ours: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    replaced = {identity(entry): entry for entry in ours}
    kept = [replaced.pop(identity(entry), entry) for entry in theirs]
    return kept + [entry for entry in ours if identity(entry) in replaced]


def _differences(before: Any, after: Any, place: str = "spec") -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        return [
            difference for key in keys for difference in _differences(before.get(key), after.get(key), f"{place}.{key}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [found for index, (old, new) in pairs for found in _differences(old, new, f"{place}[{index}]")]
    return [] if before == after else [place]
