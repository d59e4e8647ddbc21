"""The writing verbs: create, update, patch, delete and the deletion of a collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from . import definitions
from .admission import FieldValidation, admit_change, admit_new
from .deletion import Propagation, delete, is_terminating
from .errors import already_exists, bad_request, conflict, forbidden, method_not_allowed, not_found
from .garbage_collection import settle
from .metadata import Object
from .registry import Registry
from .resources import DEFINITIONS, NAMESPACES, Resource
from .selectors import Selection
from .storage import Key, Store, Transaction

PERMANENT_NAMESPACES = ("default", "kube-system")


@dataclass(frozen=True)
class WriteOptions:
    """How to create or change an object."""

    dry_run: bool = False
    validation: FieldValidation = FieldValidation.WARN


@dataclass(frozen=True)
class DeleteOptions:
    """`uid` and `resource_version` are preconditions; None asks for nothing."""

    propagation: Propagation | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Written:
    """The object as served after a write, and the paths of the fields that were left out of it as unknown."""

    obj: Object
    unknown: list[str]


class Verbs:
    """Writes to the store; everything that follows from a write has happened when a verb returns."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    def create(self, resource: Resource, namespace: str, body: Object, options: WriteOptions) -> Written:
        """Raises NotFound for the namespace, AlreadyExists, Forbidden while the namespace terminates, Invalid."""
        with self._store.transaction(dry_run=options.dry_run) as tx:
            _require_place_to_live(tx, resource, namespace)
            obj, unknown = admit_new(tx, resource, body, namespace, options.validation)
            key = Key(*resource.storage, namespace, obj["metadata"]["name"])
            if tx.body(key) is not None:
                raise already_exists(resource, key.name)
            self._put(tx, resource, key, obj)
            settle(tx, self._registry)
        if options.dry_run:
            del obj["metadata"]["resourceVersion"]
        return Written(obj, unknown)

    def change(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        subresource: str | None,
        change: Callable[[Object], Object],
        options: WriteOptions,
    ) -> Written:
        """Stores what `change` makes of the present object, unless that is the same.

        Raises NotFound, Conflict when the object is newer than the change assumes, Invalid.
        """
        key = Key(*resource.storage, namespace, name)
        with self._store.transaction(dry_run=options.dry_run) as tx:
            body = tx.body(key)
            if body is None:
                raise not_found(resource, name)
            current = resource.load(body)
            obj, unknown = admit_change(
                tx, resource, change(resource.load(body)), current, subresource, options.validation
            )
            if obj != current:
                if is_terminating(obj) and not obj["metadata"].get("finalizers"):
                    # The last finalizer is gone: this, not a deletion, is what removes the object.
                    delete(tx, key, resource.store(obj), None)
                else:
                    self._put(tx, resource, key, obj)
                settle(tx, self._registry)
        if options.dry_run:
            obj["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
        return Written(obj, unknown)

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> tuple[Object, bool]:
        """The last state of the object, and whether it is gone. Raises NotFound, Conflict for a precondition."""
        key = Key(*resource.storage, namespace, name)
        with self._store.transaction(dry_run=options.dry_run) as tx:
            body = tx.body(key)
            if body is None:
                raise not_found(resource, name)
            obj = resource.load(body)
            _require_preconditions(resource, obj, options)
            self._delete(tx, resource, key, options)
            settle(tx, self._registry)
            remaining = tx.body(key)
        return (obj, True) if remaining is None else (resource.load(remaining), False)

    def delete_collection(
        self, resource: Resource, namespace: str | None, selection: Selection, options: DeleteOptions
    ) -> list[bytes]:
        """Deletes what the selection chooses and returns it, as served before."""
        if options.uid or options.resource_version:
            raise bad_request("preconditions are not supported for the deletion of a collection")
        with self._store.transaction(dry_run=options.dry_run) as tx:
            chosen = [row for row in tx.rows(resource.storage, namespace) if selection.matches(row)]
            for row in chosen:
                self._delete(tx, resource, Key(*resource.storage, row.namespace, row.name), options)
            settle(tx, self._registry)
        return [resource.serve(row.body) for row in chosen]

    def reset(self) -> None:
        """Removes everything but namespaces and custom resource definitions, whatever holds it."""
        with self._store.transaction() as tx:
            for key in tx.everything():
                if (key.group, key.plural) not in (NAMESPACES, DEFINITIONS) and (obj := tx.find(key)):
                    tx.remove(key, obj)

    def _put(self, tx: Transaction, resource: Resource, key: Key, obj: Object) -> None:
        if resource.storage == DEFINITIONS:
            definitions.establish(obj)
            self._redefine(tx, obj)
        stored = resource.store(obj)
        tx.put(key, stored)
        obj["metadata"] = stored["metadata"]

    def _redefine(self, tx: Transaction, definition: Object) -> None:
        """Serves the definition from the commit on, and stores its objects as if they were written under it."""
        tx.on_commit.append(partial(self._registry.define, definition))
        resource = next(item for item in definitions.resources_of(definition) if item.is_stored_form)
        for row in list(tx.rows(resource.storage)):
            key = Key(*resource.storage, row.namespace, row.name)
            obj, before = resource.load(row.body), resource.load(row.body)
            obj["apiVersion"] = resource.api_version
            resource.schema.prune(obj)
            resource.schema.default(obj)
            if obj != before:
                tx.rewrite(key, obj)

    def _delete(self, tx: Transaction, resource: Resource, key: Key, options: DeleteOptions) -> None:
        if resource.storage == NAMESPACES and key.name in PERMANENT_NAMESPACES:
            raise forbidden(resource, key.name, "this namespace may not be deleted")
        if stored := tx.find(key):
            delete(tx, key, stored, options.propagation)


def _require_place_to_live(tx: Transaction, resource: Resource, namespace: str) -> None:
    if resource.definition:
        definition = tx.find(Key(*DEFINITIONS, "", resource.definition))
        if definition is None or is_terminating(definition):
            raise method_not_allowed("create not allowed while custom resource definition is terminating")
    if resource.namespaced:
        holder = tx.find(Key(*NAMESPACES, "", namespace))
        if holder is None:
            raise not_found(_NAMESPACE, namespace)
        if is_terminating(holder):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(resource, "", why)


def _require_preconditions(resource: Resource, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    for field, wanted in (("uid", options.uid), ("resourceVersion", options.resource_version)):
        if wanted and wanted != metadata[field]:
            why = f"the {field} in the precondition ({wanted[:60]}) does not match the {field} in record"
            raise conflict(resource, metadata["name"], f"{why} ({metadata[field]})")


_NAMESPACE = next(item for item in Registry() if item.storage == NAMESPACES)
