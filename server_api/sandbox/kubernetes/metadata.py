"""ObjectMeta: its shape, and the syntax of names, labels, annotations and finalizers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

from .errors import Cause

Object = dict[str, Any]

MAX_NAME = 253
MAX_ANNOTATIONS = 262_144


def each(names: str, schema: Object) -> Object:
    """Properties that share a schema; `names` is separated by spaces."""
    return dict.fromkeys(names.split(), schema)


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_STRING = {"type": "string"}
_STRINGS = {"type": "object", "additionalProperties": _STRING}
_OWNER = each("apiVersion kind name uid", {"type": "string", "minLength": 1})
_OWNER_FLAGS = each("controller blockOwnerDeletion", {"type": "boolean"})

SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")

OBJECT_META_SCHEMA: Object = {
    "type": "object",
    "properties": {
        # What the server sets is accepted in any form and overwritten, as Kubernetes does.
        **each(" ".join(SERVER_OWNED), {"x-kubernetes-preserve-unknown-fields": True}),
        **each("name namespace resourceVersion", _STRING),
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": {"type": "array", "items": _STRING},
        "ownerReferences": {
            "type": "array",
            "items": {"type": "object", "required": [*_OWNER], "properties": _OWNER | _OWNER_FLAGS},
        },
    },
}


def now() -> str:
    """The present time as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_subdomain(name: str) -> bool:
    """Whether this is a lowercase RFC 1123 subdomain, as most names must be."""
    return len(name) <= MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def is_label_key(key: str) -> bool:
    """An optional DNS subdomain and a slash, then at most 63 characters that start and end alphanumeric."""
    prefix, slash, name = key.rpartition("/")
    return (not slash or is_subdomain(prefix)) and name != "" and is_label_value(name)


def is_label_value(value: str) -> bool:
    """Whether this is empty, or at most 63 characters that start and end alphanumeric."""
    return value == "" or (len(value) <= 63 and _QUALIFIED.fullmatch(value) is not None)


def check(metadata: Object) -> Iterator[Cause]:
    """What is wrong with metadata whose shape the schema has already accepted; nothing when it is fine."""
    name = metadata.get("name") or ""
    if not name:
        yield Cause("metadata.name", "Required value", "FieldValueRequired")
    elif not is_subdomain(name):
        yield Cause("metadata.name", "Invalid value: a lowercase RFC 1123 subdomain is required")
    for key, value in (metadata.get("labels") or {}).items():
        if not is_label_key(key):
            yield Cause("metadata.labels", f"Invalid value: {key[:80]!r} is not a label key")
        elif not is_label_value(value):
            wanted = "empty or at most 63 characters that start and end alphanumeric, with '-', '_', '.' between"
            yield Cause("metadata.labels", f"Invalid value: label {key} must be {wanted}")
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        if not is_label_key(key.lower()):
            yield Cause("metadata.annotations", f"Invalid value: {key[:80]!r} is not an annotation key")
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        yield Cause("metadata.annotations", message, "FieldValueTooLong")
    if not all(is_label_key(finalizer) for finalizer in metadata.get("finalizers") or []):
        yield Cause("metadata.finalizers", "Invalid value: a finalizer must be a qualified name")
