"""Label and field selectors in Kubernetes' syntax, and the choice of objects they make."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from .errors import bad_request
from .metadata import is_label_key, is_label_value

_PARTS = re.compile(r"(?:[^,(]|\([^)]*\))+")
_SET = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")
_EQUALITY = re.compile(r"([^=!\s]+)\s*(!=|==?)\s*([^=!\s]*)")
_EXISTS = re.compile(r"(!?)\s*([^=!\s]+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One stored object as a selector sees it: bytes, parsed only where a selector asks for their content."""

    namespace: str
    name: str
    body: bytes
    labels: bytes | None = None

    def read_labels(self) -> Mapping[str, str]:
        """The labels of the object."""
        if self.labels is not None:
            found: Mapping[str, str] = orjson.loads(self.labels)
            return found
        return orjson.loads(self.body)["metadata"].get("labels") or {}

    def read_field(self, path: str) -> str:
        """The text at a dotted path, empty when there is none."""
        if path == "metadata.name":
            return self.name
        if path == "metadata.namespace":
            return self.namespace
        value: Any = orjson.loads(self.body)
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""


Test = Callable[[Row], bool]


@dataclass(frozen=True)
class Selection:
    """The objects a list, a watch or a deletion of a collection is about: those that pass every test."""

    tests: tuple[Test, ...] = ()

    def matches(self, row: Row) -> bool:
        """Whether the object is chosen."""
        return all(test(row) for test in self.tests)


def parse(labels: str, fields: str, selectable: frozenset[str]) -> Selection:
    """A selection from the texts of `labelSelector` and `fieldSelector`.

    `selectable` names the fields of the kind beyond metadata.name and metadata.namespace. Raises BadRequest for a
    text that is no selector, and for a field that cannot be selected on: never a selection of everything.
    """
    known = selectable | {"metadata.name", "metadata.namespace"}
    return Selection(
        (
            *(_label_test(part.strip()) for part in _split(labels)),
            *(_field_test(part.strip(), known) for part in _split(fields)),
        )
    )


def _split(text: str) -> list[str]:
    if not text.strip():
        return []
    parts = _PARTS.findall(text)
    if ",".join(parts) != text:
        raise bad_request(f"unable to parse selector {text[:200]!r}")
    return parts


def _label_test(part: str) -> Test:
    values: frozenset[str] = frozenset()
    if found := _SET.fullmatch(part):
        key, wanted = found[1], found[2] == "in"
        values = frozenset(value.strip() for value in found[3].split(","))
    elif found := _EQUALITY.fullmatch(part):
        key, wanted = found[1], found[2] != "!="
        values = frozenset({found[3]})
    elif found := _EXISTS.fullmatch(part):
        key, wanted = found[2], not found[1]
    else:
        raise bad_request(f"unable to parse requirement {part[:200]!r} of the label selector")
    if not is_label_key(key) or not all(is_label_value(value) for value in values):
        raise bad_request(f"unable to parse requirement {part[:200]!r}: not a label key, or not a label value")
    if values:
        return lambda row: (row.read_labels().get(key) in values) is wanted
    return lambda row: (key in row.read_labels()) is wanted


def _field_test(part: str, selectable: frozenset[str]) -> Test:
    found = _EQUALITY.fullmatch(part)
    if not found:
        raise bad_request(f"unable to parse requirement {part[:200]!r} of the field selector")
    path, operator, wanted = found.groups()
    if path not in selectable:
        raise bad_request(f"field label not supported: {path[:80]}")
    return lambda row: (row.read_field(path) == wanted) is (operator != "!=")
