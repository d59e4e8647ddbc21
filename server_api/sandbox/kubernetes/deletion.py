"""Deletion: finalizers, owners and dependents, and containers that go only when they are empty.

Kubernetes does in controllers, some time later, what follows from a deletion. Here it happens inside the transaction
of the write, so there is no moment, and no crash, after which garbage is left: the order of events is one a real
cluster might show as well.
"""

from __future__ import annotations

from .metadata import Object, now
from .resources import DEFINITIONS, NAMESPACES, Key, Registry
from .storage import Transaction

FOREGROUND = "foregroundDeletion"
"""The finalizer that holds an owner until its dependents are gone."""


def is_terminating(obj: Object) -> bool:
    """Whether the object is marked as deleted and only waits for its finalizers, or to be empty."""
    return "deletionTimestamp" in obj["metadata"]


def store(tx: Transaction, key: Key, obj: Object) -> None:
    """Stores the object; one that is terminating and held by nothing any more is removed instead."""
    if is_terminating(obj) and not _finalizers(obj) and not _contents(tx, key):
        tx.remove(key, obj)
    else:
        tx.put(key, obj)


def delete(tx: Transaction, key: Key, *, foreground: bool | None = None) -> None:
    """Removes the stored object, or marks it as terminating while finalizers or contents hold it.

    foreground: whether it waits for its dependents; None keeps what an earlier deletion chose. Deleting it once more
    changes nothing.
    """
    obj, before = tx.find(key), tx.find(key)
    if obj is None:
        return
    if foreground is not None:
        others = [item for item in _finalizers(obj) if item != FOREGROUND]
        _set_finalizers(obj, [*others, FOREGROUND] if foreground else others)
    if is_terminating(obj):
        if obj != before:
            store(tx, key, obj)
    elif not _finalizers(obj) and not _contents(tx, key):
        tx.remove(key, obj)
    else:
        obj["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
        if "generation" in obj["metadata"]:
            obj["metadata"]["generation"] += 1
        if key.resource == NAMESPACES:
            obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        tx.put(key, obj)


def settle(tx: Transaction, registry: Registry) -> None:
    """Works off everything the transaction touched, until nothing more follows."""
    while tx.touched:
        key, uid, owners = tx.touched.popleft()
        obj = tx.find(key)
        if obj is None or obj["metadata"]["uid"] != uid:
            definition = Key(*DEFINITIONS, "", f"{key.plural}.{key.group}")
            concerned = [*tx.dependents(uid), definition, Key(*NAMESPACES, "", key.namespace)]
        else:
            concerned = [key]
        for owner in owners:
            concerned += tx.keys_where("uid = ?", owner)
        for item in concerned:
            _review(tx, registry, item)


def _review(tx: Transaction, registry: Registry, key: Key) -> None:
    obj = tx.find(key)
    if obj is None:
        return
    if not is_terminating(obj):
        _check_owners(tx, registry, key, obj)
    elif FOREGROUND in _finalizers(obj):
        dependents = tx.dependents(obj["metadata"]["uid"])
        for dependent in dependents:
            found = tx.find(dependent)
            if found and not is_terminating(found):
                _check_owners(tx, registry, dependent, found)
        if not dependents:
            _set_finalizers(obj, [item for item in _finalizers(obj) if item != FOREGROUND])
            store(tx, key, obj)
    elif contents := _contents(tx, key):
        for content in contents:
            if (found := tx.find(content)) and not is_terminating(found):
                delete(tx, content)
    elif not _finalizers(obj):
        tx.remove(key, obj)


def _check_owners(tx: Transaction, registry: Registry, key: Key, obj: Object) -> None:
    """Deletes an object none of whose owners stays, and forgets the lost ones while another is there."""
    references = obj["metadata"].get("ownerReferences") or []
    kept, foreground = [], None
    for reference in references:
        owners = [owner for found in tx.keys_where("uid = ?", reference["uid"]) if (owner := tx.find(found))]
        if any(is_terminating(owner) and FOREGROUND in _finalizers(owner) for owner in owners):
            foreground = True
        elif owners or not registry.serves_kind(reference["apiVersion"], reference["kind"]):
            kept.append(reference)
    if len(kept) == len(references):
        return
    if kept:
        obj["metadata"]["ownerReferences"] = kept
        tx.put(key, obj)
    else:
        delete(tx, key, foreground=foreground)


def _finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def _set_finalizers(obj: Object, finalizers: list[str]) -> None:
    obj["metadata"].pop("finalizers", None)
    if finalizers:
        obj["metadata"]["finalizers"] = finalizers


def _contents(tx: Transaction, key: Key) -> list[Key]:
    """What lives in a namespace, or under a custom resource definition; nothing for any other object."""
    if key.resource == NAMESPACES:
        return tx.keys_where("namespace = ?", key.name)
    if key.resource == DEFINITIONS:
        plural, _, group = key.name.partition(".")
        return tx.keys_where("grp = ? AND plural = ?", group, plural)
    return []
