"""ObjectMeta: its shape, and the syntax of names, labels, annotations, finalizers and owner references."""

from __future__ import annotations

import datetime
import re
from typing import Any

from .errors import Cause

Object = dict[str, Any]

MAX_NAME = 253
MAX_ANNOTATIONS = 262_144

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_LABEL = re.compile(rf"{_LABEL}")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_STRING = {"type": "string"}
_STRINGS = {"type": "object", "additionalProperties": _STRING}
# Fields the server sets are accepted in any form and overwritten, as Kubernetes does.
_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}

OBJECT_META_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "generateName": _STRING,
        "namespace": _STRING,
        "uid": _STRING,
        "resourceVersion": _STRING,
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": {"type": "array", "items": _STRING},
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": {"type": "string", "minLength": 1},
                    "kind": {"type": "string", "minLength": 1},
                    "name": {"type": "string", "minLength": 1},
                    "uid": {"type": "string", "minLength": 1},
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
            },
        },
        "selfLink": _ANYTHING,
        "generation": _ANYTHING,
        "creationTimestamp": _ANYTHING,
        "deletionTimestamp": _ANYTHING,
        "deletionGracePeriodSeconds": _ANYTHING,
        "managedFields": _ANYTHING,
    },
}

# Who wrote which field is not tracked (there is no server-side apply), so nobody may claim it either.
UNTRACKED = ("selfLink", "managedFields")
SERVER_OWNED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


def now() -> str:
    """The present time as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_subdomain(name: str) -> bool:
    """Whether this is a lowercase RFC 1123 subdomain, as most names must be."""
    return len(name) <= MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def is_dns_label(name: str) -> bool:
    """Whether this is a lowercase RFC 1123 label: a subdomain without dots."""
    return len(name) <= 63 and _DNS_LABEL.fullmatch(name) is not None


def is_label_key(key: str) -> bool:
    """An optional DNS subdomain and a slash, then at most 63 characters that start and end alphanumeric."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Whether this is empty, or at most 63 characters that start and end alphanumeric."""
    return value == "" or (len(value) <= 63 and _QUALIFIED.fullmatch(value) is not None)


def check(metadata: Object, *, dns_label_name: bool = False) -> list[Cause]:
    """What is wrong with metadata whose shape the schema has already accepted; empty when nothing is."""
    return [
        *_check_name(metadata, dns_label_name),
        *_check_labels(metadata.get("labels") or {}),
        *_check_annotations(metadata.get("annotations") or {}),
        *(
            Cause("metadata.finalizers", "Invalid value: a finalizer must be a qualified name")
            for finalizer in metadata.get("finalizers") or []
            if not is_label_key(finalizer)
        ),
        *_check_owners(metadata.get("ownerReferences") or []),
    ]


def check_finalizers_of_terminating(new: Object, old: Object) -> list[Cause]:
    """What is being deleted may only lose finalizers."""
    added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if "deletionTimestamp" not in old or not added:
        return []
    message = "Forbidden: no new finalizers can be added if the object is being deleted"
    return [Cause("metadata.finalizers", message, "FieldValueForbidden")]


def _check_name(metadata: Object, dns_label: bool) -> list[Cause]:
    name = metadata.get("name") or ""
    if not name:
        return [Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")]
    if dns_label and not is_dns_label(name):
        return [Cause("metadata.name", "Invalid value: a lowercase RFC 1123 label of at most 63 characters")]
    if not is_subdomain(name):
        return [Cause("metadata.name", "Invalid value: a lowercase RFC 1123 subdomain is required")]
    return []


def _check_labels(labels: dict[str, str]) -> list[Cause]:
    causes = []
    for key, value in labels.items():
        if not is_label_key(key):
            causes.append(Cause("metadata.labels", f"Invalid value: {key[:80]!r} is not a label key"))
        elif not is_label_value(value):
            message = (
                "Invalid value: must be empty or at most 63 characters that start and end alphanumeric,"
                f" with '-', '_', '.' between (label {key})"
            )
            causes.append(Cause("metadata.labels", message))
    return causes


def _check_annotations(annotations: dict[str, str]) -> list[Cause]:
    causes = [
        Cause("metadata.annotations", f"Invalid value: {key[:80]!r} is not an annotation key")
        for key in annotations
        if not is_label_key(key.lower())
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        causes.append(Cause("metadata.annotations", message, "FieldValueTooLong"))
    return causes


def _check_owners(owners: list[Object]) -> list[Cause]:
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        return [Cause("metadata.ownerReferences", "Invalid value: only one reference can have controller set to true")]
    return []
