"""The writing verbs: what is admitted, under which metadata, and that what follows from it follows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

import orjson

from . import definitions, deletion, metadata
from .builtin_kinds import builtin_resources, complete
from .errors import ApiError, Cause, already_exists, bad_request, conflict, forbidden, invalid, not_found
from .metadata import Object
from .resources import DEFINITIONS, NAMESPACES, Key, Registry, Resource, Target
from .storage import Store, Transaction, View

PERMANENT_NAMESPACES = ("default", "kube-system")


class FieldValidation(StrEnum):
    """What to do about fields the schema does not know; they are never stored."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class Verbs:
    """Writes to the store; everything that follows from a write has happened when a verb returns."""

    def __init__(self, store: Store) -> None:
        self.registry = Registry(builtin_resources())
        self._store = store
        with store.read() as view:
            self._serve_definitions(view)
            missing = [name for name in PERMANENT_NAMESPACES if view.body(Key(*NAMESPACES, "", name)) is None]
        for name in missing:
            namespaces = Target(self.registry.builtin(NAMESPACES), "")
            self.create(namespaces, {"metadata": {"name": name}}, FieldValidation.STRICT)

    def create(self, target: Target, body: Object, validation: FieldValidation) -> tuple[Object, list[str]]:
        """The stored object, and the paths of fields to warn about: they were left out as unknown.

        Raises NotFound for the namespace, AlreadyExists, Forbidden while the namespace terminates, Invalid.
        """
        with self._transaction() as tx:
            self._require_place_to_live(tx, target.resource, target.namespace)
            unknown = _shape(target.resource, body, validation)
            _admit_new(target.resource, body, target.namespace)
            key = target.named(body["metadata"]["name"])
            if tx.body(key) is not None:
                raise already_exists(target.resource, key.name)
            tx.put(key, body)
        return body, unknown

    def change(
        self, target: Target, change: Callable[[Object], Object], validation: FieldValidation
    ) -> tuple[Object, list[str]]:
        """Stores what `change` makes of the present object, unless that is the same; returns what `create` does.

        Raises NotFound, Conflict when the object is newer than the change assumes, Invalid.
        """
        key = target.named(target.name)
        with self._transaction() as tx:
            body = tx.body(key)
            if body is None:
                raise not_found(target.resource, key.name)
            current, new = orjson.loads(body), change(orjson.loads(body))
            unknown = _shape(target.resource, new, validation)
            obj = _admit_change(target.resource, new, current, target.subresource)
            if obj != current:
                deletion.store(tx, key, obj)
        return obj, unknown

    def delete(self, target: Target, foreground: bool | None) -> tuple[Object, bool]:
        """The last state of the object, and whether it is gone. Raises NotFound, Forbidden."""
        key = target.named(target.name)
        with self._transaction() as tx:
            obj = tx.find(key)
            if obj is None:
                raise not_found(target.resource, key.name)
            if key.resource == NAMESPACES and key.name in PERMANENT_NAMESPACES:
                raise forbidden(target.resource, key.name, "this namespace may not be deleted")
            deletion.delete(tx, key, foreground=foreground)
        with self._store.read() as view:
            remaining = view.find(key)
        if remaining and remaining["metadata"]["uid"] == obj["metadata"]["uid"]:
            return remaining, False
        return obj, True

    def reset(self) -> None:
        """Removes everything but namespaces and custom resource definitions, whatever holds it."""
        with self._transaction() as tx:
            for key in tx.keys_where("TRUE"):
                if key.resource not in (NAMESPACES, DEFINITIONS) and (obj := tx.find(key)):
                    tx.remove(key, obj)

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        with self._store.transaction() as tx:
            yield tx
            deletion.settle(tx, self.registry)
            if DEFINITIONS in tx.resources:
                self._serve_definitions(tx)

    def _serve_definitions(self, view: View) -> None:
        self.registry.serve([definitions.resource_of(orjson.loads(row.body)) for row in view.rows(DEFINITIONS)])

    def _require_place_to_live(self, tx: Transaction, resource: Resource, namespace: str) -> None:
        if resource.definition:
            definition = tx.find(Key(*DEFINITIONS, "", resource.definition))
            if definition is None or deletion.is_terminating(definition):
                raise ApiError(405, "MethodNotAllowed", "the custom resource definition is being terminated")
        if resource.namespaced:
            holder = tx.find(Key(*NAMESPACES, "", namespace))
            if holder is None:
                raise not_found(self.registry.builtin(NAMESPACES), namespace)
            if deletion.is_terminating(holder):
                raise forbidden(resource, "", f"namespace {namespace} is being terminated and takes nothing new")


def _shape(resource: Resource, body: Object, validation: FieldValidation) -> list[str]:
    """Checks the envelope, drops what the schema does not know and fills in defaults, in place."""
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if resource.definition is None:
            body.setdefault(field, expected)
        if body.get(field) != expected:
            raise bad_request(f"the {field} in the data ({str(body.get(field))[:80]}) is not {expected}")
    if not isinstance(body.setdefault("metadata", {}), dict):
        raise bad_request("metadata must be an object")
    unknown = resource.schema.prune(body)
    if unknown and validation is FieldValidation.STRICT:
        fields = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise bad_request(f"strict decoding error: {fields}")
    resource.schema.default(body)
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not body["metadata"].get(field, True):
            del body["metadata"][field]
    return [] if validation is FieldValidation.IGNORE else unknown


def _admit_new(resource: Resource, body: Object, namespace: str) -> None:
    """Makes of a shaped body the object to create, in place. Raises BadRequest, or Invalid with causes."""
    meta = body["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    _require_place(resource, meta, namespace)
    if resource.has_status:
        body.pop("status", None)
    for field in metadata.SERVER_OWNED:
        meta.pop(field, None)
    meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": metadata.now()}
    if resource.counts_generations:
        meta["generation"] = 1
    _complete_and_check(resource, body, None)


def _admit_change(resource: Resource, new: Object, current: Object, subresource: str | None) -> Object:
    """What a shaped body makes of the current object.

    Through the status subresource only the status changes, otherwise everything but the status. Raises BadRequest,
    Conflict when the object has changed since `new` was read, or Invalid with causes.
    """
    before, meta = current["metadata"], new["metadata"]
    if meta.setdefault("name", before["name"]) != before["name"]:
        raise bad_request("the name of the object does not match the name on the URL")
    _require_place(resource, meta, before.get("namespace", ""))
    _require_fresh(resource, meta, before)
    if subresource == "status":
        changed = {**current, "status": new.get("status")}
    else:
        owned = {field: before[field] for field in (*metadata.SERVER_OWNED, "resourceVersion") if field in before}
        rest = {field: value for field, value in meta.items() if field not in metadata.SERVER_OWNED}
        changed = {**new, "metadata": {**rest, **owned}}
        if resource.has_status:
            changed["status"] = current.get("status")
    if changed.get("status", True) is None:
        del changed["status"]
    if changed != current:
        _complete_and_check(resource, changed, current)
    if resource.counts_generations and _desired(resource, changed) != _desired(resource, current):
        changed["metadata"] = {**changed["metadata"], "generation": before.get("generation", 0) + 1}
    return changed


def _require_place(resource: Resource, meta: Object, namespace: str) -> None:
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _require_fresh(resource: Resource, meta: Object, before: Object) -> None:
    version = meta.get("resourceVersion")
    if not version and resource.group:  # the kinds of the core group may be replaced without having been read
        cause = Cause("metadata.resourceVersion", "Invalid value: must be specified for an update")
        raise invalid(resource, before["name"], [cause])
    if version and version != before["resourceVersion"]:
        raise conflict(resource, before["name"], "it has been modified; apply your changes to the latest version")
    if meta.get("uid", before["uid"]) != before["uid"]:
        raise conflict(resource, before["name"], "the UID in the object is not that of the stored object")


def _desired(resource: Resource, obj: Object) -> Object:
    ignored = ("metadata", "status") if resource.has_status else ("metadata",)
    return {field: value for field, value in obj.items() if field not in ignored}


def _complete_and_check(resource: Resource, new: Object, old: Object | None) -> None:
    meta = new["metadata"]
    if resource.definition is None:
        complete(resource.kind, new)
    causes = resource.schema.validate(new, old) or list(metadata.check(meta))
    added = set(meta.get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ()) if old else set()
    if not causes and added and "deletionTimestamp" in meta:
        message = "Forbidden: no new finalizers can be added if the object is being deleted"
        causes = [Cause("metadata.finalizers", message, "FieldValueForbidden")]
    if not causes and resource.storage == DEFINITIONS:
        definitions.complete(new)
        causes = list(definitions.check(new, old))
    if causes:
        raise invalid(resource, str(meta.get("name") or "")[: metadata.MAX_NAME], causes)
