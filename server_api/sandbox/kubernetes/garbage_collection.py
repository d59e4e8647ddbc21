"""What follows from a write: dependents, waiting owners, and the contents of what is being removed.

Kubernetes does this in controllers, some time later. Here it happens inside the transaction of the write, so there is
no moment, and no crash, after which garbage is left: the order of events is one a real cluster might show as well.
"""

from __future__ import annotations

from functools import partial

from .deletion import FOREGROUND, ORPHAN, Propagation, containers, contents, delete, is_terminating
from .metadata import Object
from .registry import Registry
from .resources import DEFINITIONS
from .storage import Key, Touched, Transaction


def settle(tx: Transaction, registry: Registry) -> None:
    """Works off everything the transaction touched, until nothing more follows."""
    while tx.touched:
        touched = tx.touched.popleft()
        obj = tx.find(touched.key)
        if obj is None or obj["metadata"]["uid"] != touched.uid:
            _after_removal(tx, registry, touched)
        else:
            _review(tx, registry, touched.key, obj)
        for owner in touched.owners:
            _wake_waiting_owner(tx, owner)


def _after_removal(tx: Transaction, registry: Registry, removed: Touched) -> None:
    if (removed.key.group, removed.key.plural) == DEFINITIONS:
        tx.on_commit.append(partial(registry.undefine, removed.key.name))
    for dependent in tx.dependents(removed.uid):
        _touch(tx, dependent)
    for container in containers(removed.key):
        holder = tx.find(container)
        if holder and is_terminating(holder) and not contents(tx, container, limit=1):
            _touch(tx, container)


def _wake_waiting_owner(tx: Transaction, uid: str) -> None:
    key = tx.key_of(uid)
    owner = tx.find(key) if key else None
    if key and owner and _waits_for_dependents(owner):
        tx.touched.append(Touched(key, uid, ()))


def _review(tx: Transaction, registry: Registry, key: Key, obj: Object) -> None:
    if not is_terminating(obj):
        _check_owners(tx, registry, key, obj)
        return
    finalizers = obj["metadata"].get("finalizers") or []
    if FOREGROUND in finalizers:
        _delete_in_foreground(tx, key, obj)
    elif ORPHAN in finalizers:
        _release_dependents(tx, key, obj)
    else:
        held = contents(tx, key)
        for content in held:
            found = tx.find(content)
            if found and not is_terminating(found):
                delete(tx, content, found, None)
        if not held and not finalizers:
            tx.remove(key, obj)


def _check_owners(tx: Transaction, registry: Registry, key: Key, obj: Object) -> None:
    """Deletes an object none of whose owners is left, and forgets the lost ones while another is there."""
    references = obj["metadata"].get("ownerReferences") or []
    kept, waiting = [], False
    for reference in references:
        owner_key = tx.key_of(reference["uid"])
        owner = tx.find(owner_key) if owner_key else None
        if owner is None and registry.serves_kind(reference["apiVersion"], reference["kind"]):
            continue
        if owner and _waits_for_dependents(owner) and reference.get("blockOwnerDeletion"):
            waiting = True
            continue
        kept.append(reference)
    if len(kept) == len(references):
        return
    if kept:
        obj["metadata"]["ownerReferences"] = kept
        tx.put(key, obj)
    else:
        in_foreground = waiting and tx.dependents(obj["metadata"]["uid"])
        delete(tx, key, obj, Propagation.FOREGROUND if in_foreground else None)


def _delete_in_foreground(tx: Transaction, key: Key, obj: Object) -> None:
    uid = obj["metadata"]["uid"]
    blocking = [dependent for dependent in tx.dependents(uid) if _blocks(tx, dependent, uid)]
    if blocking:
        for dependent in blocking:
            found = tx.find(dependent)
            if found and not is_terminating(found):
                _touch(tx, dependent)
    else:
        _drop_finalizer(tx, key, obj, FOREGROUND)


def _blocks(tx: Transaction, dependent: Key, uid: str) -> bool:
    found = tx.find(dependent)
    references = found["metadata"].get("ownerReferences") or [] if found else []
    return any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in references)


def _release_dependents(tx: Transaction, key: Key, obj: Object) -> None:
    uid = obj["metadata"]["uid"]
    for dependent in tx.dependents(uid):
        if found := tx.find(dependent):
            metadata = found["metadata"]
            kept = [reference for reference in metadata["ownerReferences"] if reference["uid"] != uid]
            if kept:
                metadata["ownerReferences"] = kept
            else:
                del metadata["ownerReferences"]
            tx.put(dependent, found)
    _drop_finalizer(tx, key, obj, ORPHAN)


def _drop_finalizer(tx: Transaction, key: Key, obj: Object, finalizer: str) -> None:
    metadata = obj["metadata"]
    metadata["finalizers"] = [item for item in metadata["finalizers"] if item != finalizer]
    if metadata["finalizers"]:
        tx.put(key, obj)
        return
    del metadata["finalizers"]
    if contents(tx, key, limit=1):
        tx.put(key, obj)
    else:
        tx.remove(key, obj)


def _waits_for_dependents(obj: Object) -> bool:
    return is_terminating(obj) and FOREGROUND in (obj["metadata"].get("finalizers") or [])


def _touch(tx: Transaction, key: Key) -> None:
    if found := tx.find(key):
        tx.touched.append(Touched(key, found["metadata"]["uid"], ()))
