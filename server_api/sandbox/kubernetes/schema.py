"""Structural schemas as Kubernetes understands them: pruning, defaulting, validation, and rules in CEL."""

from __future__ import annotations

import base64
import copy
import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import cel
from jsonschema import Draft4Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError

from .errors import Cause
from .metadata import OBJECT_META_SCHEMA, Object

_OPEN_KEYWORDS = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string")
_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
_OLD_SELF = re.compile(r"\boldSelf\b")
_ABSENT = object()
_REASONS = {
    "required": "FieldValueRequired",
    "enum": "FieldValueNotSupported",
    "type": "FieldValueTypeInvalid",
    "maxLength": "FieldValueTooLong",
    "maxItems": "FieldValueTooMany",
    "x-kubernetes-list-type": "FieldValueDuplicate",
    "additionalProperties": "FieldValueForbidden",
}


def _is_date_time(value: str) -> bool:
    return bool(_DATE_TIME.fullmatch(value) and datetime.datetime.fromisoformat(value[:19].upper()))


_FORMATS: dict[str, tuple[type, Callable[[Any], object]]] = {
    "byte": (str, lambda value: base64.b64decode(value, validate=True) is not None),
    "date-time": (str, _is_date_time),
    "uuid": (str, _UUID.fullmatch),
    "regex": (str, re.compile),
    "int32": (int, lambda value: -(2**31) <= value < 2**31),
    "int64": (int, lambda value: -(2**63) <= value < 2**63),
}
FORMATS = frozenset(_FORMATS) - {"regex"}
"""Formats a custom resource may use. Any other would be checked, or ignored, differently than by a real cluster."""


def _format_checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, (kind, accepts) in _FORMATS.items():
        checker.checks(name, raises=(ValueError, re.error))(
            lambda value, kind=kind, accepts=accepts: not isinstance(value, kind) or bool(accepts(value))
        )
    return checker


def _int_or_string(validator: Any, wanted: bool, value: Any, schema: Object) -> Iterator[ValidationError]:
    if wanted and (isinstance(value, bool) or not isinstance(value, int | str)):
        yield ValidationError("must be an integer or a string")


def _list_type(validator: Any, kind: str, value: Any, schema: Object) -> Iterator[ValidationError]:
    """Refuses items that occur twice in a list of type set, or share their keys in a list of type map."""
    if kind == "atomic" or not isinstance(value, list):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or []
    found: list[Any] = []
    for index, item in enumerate(value):
        identity = [item.get(key) for key in keys] if kind == "map" and isinstance(item, dict) else item
        if identity in found:
            yield ValidationError("duplicate", path=[index])
        found.append(identity)


_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft4Validator,
    {"x-kubernetes-int-or-string": _int_or_string, "x-kubernetes-list-type": _list_type},
    format_checker=_format_checker(),
)


def validator(schema: Object) -> Any:
    """What `violations` takes: the schema, made ready to validate against."""
    return _Validator(schema, format_checker=_Validator.FORMAT_CHECKER)


def violations(validator: Any, value: Any) -> list[Cause]:
    """How a value violates a schema; nothing when it does not."""
    return list(dict.fromkeys(cause for error in validator.iter_errors(value) for cause in _causes(error)))


class StructuralSchema:
    """One `openAPIV3Schema`; what the embedded API does not implement is refused earlier, by `definitions.check`."""

    def __init__(self, document: Object) -> None:
        envelope = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": OBJECT_META_SCHEMA}
        self._document: Object = {**document, "properties": {**(document.get("properties") or {}), **envelope}}
        self._validator = validator(self._document)

    def prune(self, obj: Object) -> list[str]:
        """Removes what the schema does not know, in place, and returns the paths of what was removed."""
        return [field_path(path) for path in _prune(obj, self._document, [])]

    def default(self, obj: Object) -> None:
        """Fills in defaults and drops nulls of known fields, in place."""
        _default(obj, self._document)

    def validate(self, new: Object, old: Object | None) -> list[Cause]:
        """Why `new` may not be stored; `old` is the object it replaces, None on creation.

        Causes name the field and the rule, and never quote the value.
        """
        return violations(self._validator, new) or list(
            _rules(self._document, new, _ABSENT if old is None else old, "")
        )


def field_path(steps: Iterable[str | int]) -> str:
    """`spec.ports[0].name` for ["spec", "ports", 0, "name"]; `<nil>` for the object itself."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".") or "<nil>"


def _causes(error: ValidationError) -> Iterator[Cause]:
    keyword, path = str(error.validator), list(error.absolute_path)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    reason = _REASONS.get(keyword, "FieldValueInvalid")
    if keyword == "required":
        missing = (name for name in wanted if name not in instance)
        yield from (Cause(field_path([*path, name]), "Required value", reason) for name in missing)
    elif keyword == "additionalProperties":
        schema: Any = error.schema
        unknown = set(instance) - set(schema["properties"])
        yield from (Cause(field_path([*path, name]), "Forbidden: not implemented here", reason) for name in unknown)
    elif keyword == "x-kubernetes-list-type":
        yield Cause(field_path(path), "Duplicate value", reason)
    elif keyword == "enum":
        yield Cause(field_path(path), f"Unsupported value: supported values: {', '.join(map(repr, wanted))}", reason)
    else:
        rule = f"{keyword} {wanted}" if isinstance(wanted, str | int | float) else keyword
        yield Cause(field_path(path), f"Invalid value: does not satisfy {rule}", reason)


def _prune(value: Any, schema: Object, path: list[str | int]) -> Iterator[list[str | int]]:
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        keep_unknown = bool(additional) or any(schema.get(keyword) for keyword in _OPEN_KEYWORDS)
        for key in list(value):
            child = properties.get(key, additional)
            if isinstance(child, dict):
                yield from _prune(value[key], child, [*path, key])
            elif not keep_unknown:
                del value[key]
                yield [*path, key]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _prune(item, schema.get("items") or {}, [*path, index])


def _default(value: Any, schema: Object) -> None:
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, child in properties.items():
            if value.get(key) is None and "default" in child:
                value[key] = copy.deepcopy(child["default"])
            elif key in value and value[key] is None:
                del value[key]
        for key, item in value.items():
            child = properties.get(key, additional)
            if isinstance(child, dict):
                _default(item, child)
    elif isinstance(value, list):
        for item in value:
            _default(item, schema.get("items") or {})


@lru_cache(maxsize=1024)
def compiled_rule(rule: str) -> cel.Program:
    """The rule, ready to run. Raises ValueError naming the rule when it is no CEL."""
    try:
        return cel.compile(rule)
    except Exception as error:
        raise ValueError(f"rule {rule[:200]!r} cannot be compiled: {error}") from error


def is_transition(rule: str) -> bool:
    """Whether the rule compares with the old value, so that it holds by itself where there is none."""
    return _OLD_SELF.search(rule) is not None


def _rules(schema: Object, value: Any, old: Any, path: str) -> Iterator[Cause]:
    for rule in schema.get("x-kubernetes-validations") or []:
        if old is not _ABSENT or not is_transition(rule["rule"]):
            yield from _rule(rule, value, old, path)
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            child = properties.get(key, additional)
            if isinstance(child, dict):
                before = old.get(key, _ABSENT) if isinstance(old, dict) else _ABSENT
                yield from _rules(child, item, before, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        # Only items of a list of type map can be told to be the same as before.
        keys = schema.get("x-kubernetes-list-map-keys") or []
        previous = {_identity(item, keys): item for item in old} if keys and isinstance(old, list) else {}
        for index, item in enumerate(value):
            before = previous.get(_identity(item, keys), _ABSENT)
            yield from _rules(schema.get("items") or {}, item, before, f"{path}[{index}]")


def _rule(rule: Object, value: Any, old: Any, path: str) -> Iterator[Cause]:
    context = {"self": value} if old is _ABSENT else {"self": value, "oldSelf": old}
    message = rule.get("message") or f"failed rule: {rule['rule']}"
    try:
        holds = compiled_rule(rule["rule"]).execute(context) is True
    except Exception as error:  # noqa: BLE001 - CEL raises whatever the functions it calls raise
        # A rule that cannot be evaluated refuses the object, as in Kubernetes: nothing unchecked is stored.
        holds, message = False, f"{message} (the rule could not be evaluated: {type(error).__name__})"
    if not holds:
        field = f"{path}{rule.get('fieldPath') or ''}".removeprefix(".") or "<nil>"
        yield Cause(field, f"Invalid value: {message}", rule.get("reason") or "FieldValueInvalid")


def _identity(item: Any, keys: list[str]) -> tuple[Any, ...]:
    return tuple(item.get(key) for key in keys) if isinstance(item, dict) else ()
