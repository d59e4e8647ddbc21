"""What happens to an object between the request and the storage: shape, defaults, metadata, generation, rules."""

from __future__ import annotations

import secrets
import uuid
from enum import StrEnum

from . import kind_rules, metadata
from .errors import Cause, bad_request, conflict, invalid
from .metadata import Object
from .resources import Resource
from .storage import Transaction

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OMITTED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")


class FieldValidation(StrEnum):
    """What to do about fields the schema does not know; they are never stored."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


def admit_new(
    tx: Transaction, resource: Resource, body: Object, namespace: str, validation: FieldValidation
) -> tuple[Object, list[str]]:
    """The object to create, and the unknown fields left out. Raises BadRequest, or Invalid with causes."""
    unknown = _shape(resource, body, validation)
    meta = body["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    _require_place(resource, meta, namespace)
    if resource.has_status:
        body.pop("status", None)
    if meta.get("generateName") and not meta.get("name"):
        meta["name"] = f"{meta['generateName']}{''.join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))}"
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(field, None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = metadata.now()
    if resource.counts_generations:
        meta["generation"] = 1
    kind_rules.complete(resource, body, None)
    _validate(tx, resource, body, None)
    return body, unknown


def admit_change(
    tx: Transaction,
    resource: Resource,
    new: Object,
    current: Object,
    subresource: str | None,
    validation: FieldValidation,
) -> tuple[Object, list[str]]:
    """What `new` makes of `current`, and the unknown fields left out.

    Through the status subresource only the status changes, otherwise everything but the status. Raises BadRequest,
    Conflict when the object has changed since `new` was read, or Invalid with causes.
    """
    unknown = _shape(resource, new, validation)
    before, meta = current["metadata"], new["metadata"]
    if meta.get("name", before["name"]) != before["name"]:
        raise bad_request("the name of the object does not match the name on the URL")
    _require_place(resource, meta, before.get("namespace", ""))
    _require_fresh(resource, meta, before)
    if subresource == "status":
        new = {**current, "status": new.get("status")}
        if new["status"] is None:
            del new["status"]
    else:
        new["metadata"] = _merge_metadata(meta, before)
        if resource.has_status:
            new.pop("status", None)
            new |= {"status": current["status"]} if "status" in current else {}
    kind_rules.complete(resource, new, current)
    if resource.counts_generations and _desired(resource, new) != _desired(resource, current):
        new["metadata"] = {**new["metadata"], "generation": before.get("generation", 0) + 1}
    if new != current:
        _validate(tx, resource, new, current)
    return new, unknown


def _shape(resource: Resource, body: Object, validation: FieldValidation) -> list[str]:
    """Checks the envelope, drops what the schema does not know, fills in defaults; returns what to warn about."""
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if field not in body and resource.definition is None:
            body[field] = expected
        if body.get(field) != expected:
            raise bad_request(f"the {field} in the data ({str(body.get(field))[:80]}) is not {expected}")
    if not isinstance(body.setdefault("metadata", {}), dict):
        raise bad_request("metadata must be an object")
    unknown = resource.schema.prune(body)
    if unknown and validation is FieldValidation.STRICT:
        fields = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise bad_request(f"strict decoding error: {fields}")
    resource.schema.default(body)
    for field in metadata.UNTRACKED:
        body["metadata"].pop(field, None)
    for field in _OMITTED_WHEN_EMPTY:
        if not body["metadata"].get(field, True):
            del body["metadata"][field]
    return [] if validation is FieldValidation.IGNORE else unknown


def _require_place(resource: Resource, meta: Object, namespace: str) -> None:
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _require_fresh(resource: Resource, meta: Object, before: Object) -> None:
    name, version = before["name"], meta.get("resourceVersion")
    if not version and resource.strict_updates:
        cause = Cause("metadata.resourceVersion", "Invalid value: must be specified for an update")
        raise invalid(resource, name, [cause])
    if version and version != before["resourceVersion"]:
        raise conflict(resource, name)
    if meta.get("uid", before["uid"]) != before["uid"]:
        raise conflict(resource, name, "Precondition failed: the UID in the object is not that of the stored object")


def _merge_metadata(meta: Object, before: Object) -> Object:
    kept = {field: before[field] for field in metadata.SERVER_OWNED if field in before}
    rest = {field: value for field, value in meta.items() if field not in metadata.SERVER_OWNED}
    return {**rest, **kept, "resourceVersion": before["resourceVersion"]}


def _desired(resource: Resource, obj: Object) -> Object:
    ignored = ("metadata", "status") if resource.has_status else ("metadata",)
    return {field: value for field, value in obj.items() if field not in ignored}


def _validate(tx: Transaction, resource: Resource, new: Object, old: Object | None) -> None:
    causes = resource.schema.validate(new, old)
    if not causes:
        causes = metadata.check(new["metadata"], dns_label_name=resource.kind == "Namespace")
    if not causes and old is not None:
        causes = metadata.check_finalizers_of_terminating(new["metadata"], old["metadata"])
    if not causes:
        causes = kind_rules.check(tx, resource, new, old)
    if causes:
        name = new["metadata"].get("name") or new["metadata"].get("generateName") or ""
        raise invalid(resource, str(name)[: metadata.MAX_NAME], causes)
