"""Deletion of one object: finalizers, propagation, and containers that go only when they are empty."""

from __future__ import annotations

from enum import StrEnum

from .metadata import Object, now
from .resources import DEFINITIONS, NAMESPACES
from .storage import Key, Transaction, View

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Propagation(StrEnum):
    """What becomes of the objects that name the deleted one as their owner."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


_FINALIZERS = {Propagation.BACKGROUND: [], Propagation.FOREGROUND: [FOREGROUND], Propagation.ORPHAN: [ORPHAN]}


def delete(tx: Transaction, key: Key, obj: Object, propagation: Propagation | None) -> None:
    """Removes the stored object, or marks it as terminating while finalizers or contents hold it.

    Without a propagation the one chosen earlier stays. A second deletion changes nothing.
    """
    metadata = obj["metadata"]
    finalizers = list(metadata.get("finalizers") or [])
    if propagation is not None:
        finalizers = [item for item in finalizers if item not in (FOREGROUND, ORPHAN)] + _FINALIZERS[propagation]
    if not finalizers and not contents(tx, key, limit=1):
        tx.remove(key, obj)
        return
    if is_terminating(obj) and finalizers == (metadata.get("finalizers") or []):
        return
    if finalizers:
        metadata["finalizers"] = finalizers
    if not is_terminating(obj):
        _mark(key, obj)
    tx.put(key, obj)


def is_terminating(obj: Object) -> bool:
    """Whether the object is marked as deleted and only waits for its finalizers."""
    return "deletionTimestamp" in obj["metadata"]


def contents(view: View, key: Key, limit: int = -1) -> list[Key]:
    """What lives in a namespace, or under a custom resource definition; nothing for any other object."""
    if (key.group, key.plural) == NAMESPACES:
        return view.in_namespace(key.name, limit)
    if (key.group, key.plural) == DEFINITIONS:
        plural, _, group = key.name.partition(".")
        return view.of_resource((group, plural), limit)
    return []


def containers(key: Key) -> list[Key]:
    """Where the object lives: its namespace and its custom resource definition, whether or not they exist."""
    definition = Key(*DEFINITIONS, "", f"{key.plural}.{key.group}")
    return [definition, Key(*NAMESPACES, "", key.namespace)] if key.namespace else [definition]


def _mark(key: Key, obj: Object) -> None:
    metadata = obj["metadata"]
    metadata["deletionTimestamp"] = now()
    metadata["deletionGracePeriodSeconds"] = 0
    if "generation" in metadata:
        metadata["generation"] += 1
    if (key.group, key.plural) == NAMESPACES:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
