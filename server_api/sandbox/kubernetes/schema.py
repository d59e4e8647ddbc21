"""Structural schemas as Kubernetes understands them: pruning, defaulting, and validation of whole objects."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from .cel_rules import Rules
from .errors import Cause
from .metadata import OBJECT_META_SCHEMA, Object
from .validation import OpenApiValidator, field_path

_OPEN_KEYWORDS = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string")


class StructuralSchema:
    """One `openAPIV3Schema`, compiled.

    Raises ValueError when a rule in it cannot be compiled; what the embedded API does not implement is refused
    earlier, by `definitions.check`.
    """

    def __init__(self, document: Object) -> None:
        envelope = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": OBJECT_META_SCHEMA}
        self.document: Object = {**document, "properties": {**(document.get("properties") or {}), **envelope}}
        self._validator = OpenApiValidator(self.document)
        self._rules = Rules(self.document)

    def prune(self, obj: Object) -> list[str]:
        """Removes what the schema does not know, in place, and returns the paths of what was removed."""
        return [field_path(path) for path in _prune(obj, self.document, [])]

    def default(self, obj: Object) -> None:
        """Fills in defaults and drops nulls where null is not allowed, in place."""
        _default(obj, self.document)

    def validate(self, new: Object, old: Object | None) -> list[Cause]:
        """Why `new` may not be stored; `old` is the object it replaces, None on creation."""
        causes = self._validator.validate(new)
        if not causes:
            causes = list(_duplicates(new, self.document, []))
        if not causes:
            causes = self._rules.check(new, old)
        return causes


def _prune(value: Any, schema: Object, path: list[str | int]) -> Iterator[list[str | int]]:
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        keep_unknown = bool(additional) or any(schema.get(keyword) for keyword in _OPEN_KEYWORDS)
        for key in list(value):
            if key in properties:
                yield from _prune(value[key], properties[key], [*path, key])
            elif isinstance(additional, dict):
                yield from _prune(value[key], additional, [*path, key])
            elif not keep_unknown:
                del value[key]
                yield [*path, key]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _prune(item, schema.get("items") or {}, [*path, index])


def _default(value: Any, schema: Object) -> None:
    if isinstance(value, dict):
        for key, child in (schema.get("properties") or {}).items():
            if value.get(key) is None and not (key in value and child.get("nullable")):
                if "default" in child:
                    value[key] = copy.deepcopy(child["default"])
                else:
                    value.pop(key, None)
            if key in value:
                _default(value[key], child)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for item in value.values():
                _default(item, additional)
    elif isinstance(value, list):
        for item in value:
            _default(item, schema.get("items") or {})


def _duplicates(value: Any, schema: Object, path: list[str | int]) -> Iterator[Cause]:
    """Items that occur twice in a list of type set, or share their keys in a list of type map."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for key, item in value.items():
            child = properties.get(key) or additional
            if isinstance(child, dict):
                yield from _duplicates(item, child, [*path, key])
    elif isinstance(value, list):
        identities: list[Any] = []
        keys = schema.get("x-kubernetes-list-map-keys") or []
        list_type = schema.get("x-kubernetes-list-type")
        for index, item in enumerate(value):
            if list_type in ("set", "map"):
                identity = [item.get(key) for key in keys] if list_type == "map" else item
                if identity in identities:
                    yield Cause(field_path([*path, index]), "Duplicate value", "FieldValueDuplicate")
                identities.append(identity)
            yield from _duplicates(item, schema.get("items") or {}, [*path, index])
