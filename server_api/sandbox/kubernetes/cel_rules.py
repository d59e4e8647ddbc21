"""Validation rules in CEL (`x-kubernetes-validations`), among them the transition rules that make fields immutable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cel

from .errors import Cause
from .metadata import Object

_ABSENT = object()
_OLD_SELF = re.compile(r"\boldSelf\b")


@dataclass(frozen=True)
class Rule:
    """One rule at one place of a schema, ready to run."""

    source: str
    program: cel.Program
    message: str
    reason: str
    field: str
    is_transition: bool
    """Compares with the old value, so it holds by itself where there is none."""

    @classmethod
    def compile(cls, document: Object) -> Rule:
        """Raises ValueError naming the rule when it is no CEL."""
        source = document.get("rule") or ""
        try:
            program = cel.compile(source)
        except Exception as error:
            raise ValueError(f"rule {source[:200]!r} cannot be compiled: {error}") from error
        return cls(
            source,
            program,
            document.get("message") or f"failed rule: {source}",
            document.get("reason") or "FieldValueInvalid",
            document.get("fieldPath") or "",
            _OLD_SELF.search(source) is not None,
        )

    def check(self, value: Any, old: Any, path: str) -> Cause | None:
        """Why the rule refuses `value` at `path`, None when it holds."""
        if self.is_transition and old is _ABSENT:
            return None
        context = {"self": value} if old is _ABSENT else {"self": value, "oldSelf": old}
        try:
            holds = self.program.execute(context) is True
            message = self.message
        except Exception as error:  # noqa: BLE001 - CEL raises whatever the functions it calls raise
            # A rule that cannot be evaluated refuses the object, as in Kubernetes: nothing unchecked is stored.
            holds, message = False, f"{self.message} (the rule could not be evaluated: {type(error).__name__})"
        return None if holds else Cause(f"{path}{self.field}" or "<nil>", f"Invalid value: {message}", self.reason)


class Rules:
    """Every rule of a schema. Raises ValueError when one cannot be compiled."""

    def __init__(self, schema: Object) -> None:
        self._root = _Node(schema)

    def check(self, new: Object, old: Object | None) -> list[Cause]:
        """The rules `new` breaks, given the object it replaces (None on creation)."""
        if not self._root.relevant:
            return []
        return list(self._root.check(new, _ABSENT if old is None else old, ""))


class _Node:
    """A place in a schema: its own rules, and those of its children where there are any."""

    def __init__(self, schema: Object) -> None:
        self.rules = [Rule.compile(rule) for rule in schema.get("x-kubernetes-validations") or []]
        children = {name: _Node(child) for name, child in (schema.get("properties") or {}).items()}
        self.children = {name: child for name, child in children.items() if child.relevant}
        self.additional = _relevant(schema.get("additionalProperties"))
        self.items = _relevant(schema.get("items"))
        is_map = schema.get("x-kubernetes-list-type") == "map"
        self.map_keys: list[str] = schema["x-kubernetes-list-map-keys"] if is_map else []
        self.relevant: bool = bool(self.rules or self.children or self.additional or self.items)

    def check(self, value: Any, old: Any, path: str) -> Iterator[Cause]:
        for rule in self.rules:
            if cause := rule.check(value, old, path):
                yield cause
        if isinstance(value, dict):
            for key, item in value.items():
                if child := self.children.get(key) or self.additional:
                    before = old.get(key, _ABSENT) if isinstance(old, dict) else _ABSENT
                    yield from child.check(item, before, f"{path}.{key}".removeprefix("."))
        elif isinstance(value, list) and self.items:
            previous = self._by_key(old)
            for index, item in enumerate(value):
                yield from self.items.check(item, previous.get(self._key(item), _ABSENT), f"{path}[{index}]")

    def _key(self, item: Any) -> tuple[Any, ...]:
        return tuple(item.get(key) for key in self.map_keys) if isinstance(item, dict) else ()

    def _by_key(self, old: Any) -> dict[tuple[Any, ...], Any]:
        """Only items of a list of type map can be told to be the same as before."""
        if not self.map_keys or not isinstance(old, list):
            return {}
        return {self._key(item): item for item in old}


def _relevant(schema: Any) -> _Node | None:
    if not isinstance(schema, dict):
        return None
    node = _Node(schema)
    return node if node.relevant else None
