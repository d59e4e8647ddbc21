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

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One stored object as a selector sees it: bytes, parsed only where a selector asks for their content."""

    namespace: str
    name: str
    body: bytes
    labels: bytes | None = None

    def read_labels(self) -> Labels:
        """The labels of the object."""
        if self.labels is not None:
            found: Labels = orjson.loads(self.labels)
            return found
        return orjson.loads(self.body)["metadata"].get("labels") or {}


@dataclass(frozen=True)
class FieldTest:
    """One requirement of a field selector."""

    path: str
    value: str
    equal: bool

    def matches(self, row: Row) -> bool:
        """Whether the object is chosen."""
        return (self._found(row) == self.value) is self.equal

    def _found(self, row: Row) -> str:
        if self.path == "metadata.name":
            return row.name
        if self.path == "metadata.namespace":
            return row.namespace
        return as_text(dig(orjson.loads(row.body), self.path))


def dig(document: Any, path: str) -> Any:
    """The value at a dotted path, None when any step is missing."""
    for step in path.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(step)
    return document


def as_text(value: Any) -> str:
    """A value of a field as a selector compares it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


@dataclass(frozen=True)
class Selection:
    """The objects a list, a watch or a deletion of a collection is about."""

    label_tests: tuple[LabelTest, ...] = ()
    field_tests: tuple[FieldTest, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not self.label_tests and not self.field_tests

    def matches(self, row: Row) -> bool:
        """Whether the object is chosen."""
        if self.label_tests:
            labels = row.read_labels()
            if not all(test(labels) for test in self.label_tests):
                return False
        return all(test.matches(row) for test in self.field_tests)


def parse(labels: str, fields: str, selectable: frozenset[str]) -> Selection:
    """A selection from the texts of `labelSelector` and `fieldSelector`.

    `selectable` names the fields of the kind beyond metadata.name and metadata.namespace. Raises BadRequest for a
    text that is no selector, and for a field that cannot be selected on: never a selection of everything.
    """
    return Selection(
        tuple(_label_test(part.strip()) for part in _split(labels)),
        tuple(_field_test(part.strip(), selectable) for part in _split(fields)),
    )


def _split(text: str) -> list[str]:
    if not text.strip():
        return []
    parts = _PARTS.findall(text)
    if ",".join(parts) != text:
        raise bad_request(f"unable to parse selector {text[:200]!r}")
    return parts


def _label_test(part: str) -> LabelTest:
    if found := _SET.fullmatch(part):
        key, operator = found[1], found[2]
        values = frozenset(value.strip() for value in found[3].split(","))
        _require_label(key, *values)
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUALITY.fullmatch(part):
        key, operator, wanted = found[1], found[2], found[3]
        _require_label(key, wanted)
        if operator == "!=":
            return lambda labels: labels.get(key) != wanted
        return lambda labels: labels.get(key) == wanted
    if found := _EXISTS.fullmatch(part):
        absent, key = bool(found[1]), found[2]
        _require_label(key)
        return lambda labels: (key in labels) is not absent
    raise bad_request(f"unable to parse requirement {part[:200]!r} of the label selector")


def _require_label(key: str, *values: str) -> None:
    if not is_label_key(key):
        raise bad_request(f"unable to parse label selector: {key[:80]!r} is not a label key")
    for value in values:
        if not is_label_value(value):
            raise bad_request(f"unable to parse label selector: {value[:80]!r} is not a label value")


def _field_test(part: str, selectable: frozenset[str]) -> FieldTest:
    found = _EQUALITY.fullmatch(part)
    if not found:
        raise bad_request(f"unable to parse requirement {part[:200]!r} of the field selector")
    path = found[1]
    if path not in selectable | {"metadata.name", "metadata.namespace"}:
        raise bad_request(f"field label not supported: {path[:80]}")
    return FieldTest(path, found[3], found[2] != "!=")
