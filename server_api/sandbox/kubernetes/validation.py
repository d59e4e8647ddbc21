"""Validation of values against OpenAPI v3 schemas, with causes that name the field and never quote the value."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

from .errors import Cause
from .metadata import Object

_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MAC = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")

_REASONS = {
    "required": "FieldValueRequired",
    "enum": "FieldValueNotSupported",
    "type": "FieldValueTypeInvalid",
    "maxLength": "FieldValueTooLong",
    "maxItems": "FieldValueTooMany",
}
_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def _base64(value: str) -> None:
    base64.b64decode(value, validate=True)


def _date_time(value: str) -> None:
    if not _DATE_TIME.fullmatch(value):
        raise ValueError
    datetime.datetime.fromisoformat(value[:19].upper())


def _matching(pattern: re.Pattern[str]) -> Callable[[str], None]:
    def check(value: str) -> None:
        if not pattern.fullmatch(value):
            raise ValueError

    return check


_FORMATS: dict[str, Callable[[str], object]] = {
    "byte": _base64,
    "date-time": _date_time,
    "date": datetime.date.fromisoformat,
    "uuid": _matching(_UUID),
    "mac": _matching(_MAC),
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "cidr": ipaddress.ip_interface,
    "password": str,
}
_INTEGER_BITS = {"int32": 31, "int64": 63}
_UNCHECKED_NUMBERS = ("float", "double")

CHECKED_FORMATS = frozenset({*_FORMATS, *_INTEGER_BITS, *_UNCHECKED_NUMBERS})
"""Formats a schema may use. Any other would be checked, or ignored, differently than by a real cluster."""


def _format_checker() -> jsonschema.FormatChecker:
    checker = jsonschema.FormatChecker(formats=())
    for name, parse in _FORMATS.items():
        checker.checks(name, raises=(ValueError, binascii.Error))(_on_strings(parse))
    for name, bits in _INTEGER_BITS.items():
        checker.checks(name)(_within(bits))
    return checker


def _on_strings(parse: Callable[[str], object]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if isinstance(value, str):
            parse(value)
        return True

    return check


def _within(bits: int) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, int) or -(2**bits) <= value < 2**bits


_CHECKER = _format_checker()


class OpenApiValidator:
    """Validates whole objects against one `openAPIV3Schema`."""

    def __init__(self, schema: Object) -> None:
        self._validator = jsonschema.Draft4Validator(_json_schema(schema), format_checker=_CHECKER)

    def validate(self, obj: Object) -> list[Cause]:
        """Every violation, once each; empty when there is none."""
        causes: dict[Cause, None] = {}
        for error in self._validator.iter_errors(obj):
            causes.update(dict.fromkeys(_causes(error)))
        return list(causes)


def field_path(steps: Iterable[str | int]) -> str:
    """`spec.ports[0].name` for ["spec", "ports", 0, "name"]; `<nil>` for the object itself."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".") or "<nil>"


def _causes(error: ValidationError) -> list[Cause]:
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    path = list(error.absolute_path)
    reason = _REASONS.get(keyword, "FieldValueInvalid")
    if keyword == "required":
        missing = [name for name in wanted if name not in instance]
        return [Cause(field_path([*path, name]), "Required value", reason) for name in missing]
    return [Cause(field_path(path), _message(keyword, wanted, instance), reason)]


def _message(keyword: str, wanted: Any, value: object) -> str:
    if keyword == "enum":
        supported = ", ".join(f'"{item}"' for item in wanted)
        return f"Unsupported value: supported values: {supported}"
    if keyword == "type":
        return f"Invalid value: must be of type {wanted}, not {_JSON_TYPES.get(type(value), 'null')}"
    if keyword == "additionalProperties":
        return "Invalid value: holds an unknown field"
    if keyword in ("allOf", "anyOf", "oneOf", "not"):
        return f"Invalid value: does not satisfy the schema's {keyword}"
    return f"Invalid value: does not satisfy {keyword} {wanted}"


def _json_schema(schema: Object) -> Object:
    """The same rules in JSON Schema, draft 4, the dialect OpenAPI v3.0 descends from."""
    converted: Object = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            converted[keyword] = {name: _json_schema(child) for name, child in value.items()}
        elif keyword in ("items", "not", "additionalProperties") and isinstance(value, dict):
            converted[keyword] = _json_schema(value)
        elif keyword in ("allOf", "anyOf", "oneOf"):
            converted[keyword] = [_json_schema(child) for child in value]
        elif keyword not in ("default", "nullable", "description", "example", "title"):
            converted[keyword] = value
    if schema.get("x-kubernetes-int-or-string"):
        converted["type"] = ["integer", "string"]
    if schema.get("nullable"):
        if "type" in converted:
            kinds = converted["type"] if isinstance(converted["type"], list) else [converted["type"]]
            converted["type"] = [*kinds, "null"]
        if "enum" in converted:
            converted["enum"] = [*converted["enum"], None]
    return converted
