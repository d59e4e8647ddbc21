"""What single built-in kinds need beyond their schemas."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from . import definitions
from .errors import Cause
from .metadata import Object
from .resources import DEFINITIONS, Resource
from .storage import Transaction


def complete(resource: Resource, new: Object, old: Object | None) -> None:
    """Fills in, in place, what the server derives for a kind; before validation, so it trusts no shape."""
    if resource.definition is not None:
        return
    if resource.kind == "Namespace":
        new["spec"] = old["spec"] if old else {"finalizers": ["kubernetes"]}
        new.setdefault("status", {"phase": "Active"})
    elif resource.kind == "Secret":
        new.setdefault("type", "Opaque")
        _encode_string_data(new)
    elif resource.storage == DEFINITIONS and not resource.schema.validate(new, old):
        definitions.complete(new)


def check(tx: Transaction, resource: Resource, new: Object, old: Object | None) -> list[Cause]:
    """The rules of a built-in kind that an object of the right shape breaks."""
    if resource.definition is not None:
        return []
    if resource.storage == DEFINITIONS:
        keys = [key for key in tx.of_resource(DEFINITIONS) if key.name != new["metadata"]["name"]]
        others = [other for key in keys if (other := tx.find(key))]
        return definitions.check(new, old, others)
    if resource.kind in ("Secret", "ConfigMap"):
        return list(_check_immutable(new, old))
    if resource.kind == "Event":
        return list(_check_event(resource, new))
    return []


def _encode_string_data(secret: Object) -> None:
    """`stringData` is write-only: it replaces what `data` holds under the same keys."""
    texts, data = secret.get("stringData"), secret.get("data") or {}
    if not isinstance(texts, dict) or not isinstance(data, dict):
        return
    if not all(isinstance(text, str) for text in texts.values()):
        return
    del secret["stringData"]
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    secret["data"] = {**data, **encoded}


def _check_immutable(new: Object, old: Object | None) -> Iterator[Cause]:
    if old is None:
        return
    if new.get("type") != old.get("type"):
        yield Cause("type", "Invalid value: field is immutable")
    if old.get("immutable"):
        for field in ("data", "binaryData", "immutable"):
            if new.get(field) != old.get(field):
                message = "Forbidden: field is immutable when `immutable` is set"
                yield Cause(field, message, "FieldValueForbidden")


def _check_event(resource: Resource, event: Object) -> Iterator[Cause]:
    field = "regarding" if resource.renames else "involvedObject"
    if (event.get(field) or {}).get("namespace", event["metadata"]["namespace"]) != event["metadata"]["namespace"]:
        yield Cause(f"{field}.namespace", "Invalid value: does not match event.namespace")
