"""Objects and their history in SQLite: one global revision, transactions, and a log that is compacted."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

from .errors import expired
from .metadata import Object
from .resources import EVERYWHERE, Key
from .selectors import Row

_FORMAT = 2
_TABLES = f"""
PRAGMA user_version = {_FORMAT};
CREATE TABLE IF NOT EXISTS objects (
    grp TEXT, plural TEXT, namespace TEXT, name TEXT, uid TEXT, owners TEXT, labels BLOB, body BLOB,
    PRIMARY KEY (grp, plural, namespace, name));
CREATE INDEX IF NOT EXISTS objects_by_uid ON objects (uid);
CREATE INDEX IF NOT EXISTS objects_by_namespace ON objects (namespace);
CREATE INDEX IF NOT EXISTS owned_objects ON objects (owners) WHERE owners != '[]';
CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY, grp TEXT, plural TEXT, namespace TEXT, name TEXT, type TEXT,
    body BLOB, previous BLOB);
CREATE INDEX IF NOT EXISTS log_by_resource ON log (grp, plural, revision);
CREATE TABLE IF NOT EXISTS state (revision INTEGER, compacted INTEGER);
INSERT INTO state SELECT 1, 1 WHERE NOT EXISTS (SELECT 1 FROM state);
"""
_KEY = "grp = ? AND plural = ? AND namespace = ? AND name = ?"
_OF_RESOURCE = "grp = ? AND plural = ? AND ? IN (namespace, '*')"


class Touched(NamedTuple):
    """An object that a transaction wrote, for the garbage collector: its key, uid, and the uids it was owned by."""

    key: Key
    uid: str
    owners: frozenset[str]


class Change(NamedTuple):
    """One entry of the log. `before` is None for an object that did not exist; a deletion keeps its last state."""

    type: str
    after: Row
    before: Row | None


class View:
    """All objects at one revision, for as long as the store's lock is held."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.revision: int
        self.compacted: int
        self.revision, self.compacted = connection.execute("SELECT revision, compacted FROM state").fetchone()

    def body(self, key: Key) -> bytes | None:
        """The stored bytes of one object, None where there is none."""
        row = self._connection.execute(f"SELECT body FROM objects WHERE {_KEY}", key).fetchone()
        return row[0] if row else None

    def find(self, key: Key) -> Object | None:
        """The stored object, parsed anew at each call, so that the caller may change it."""
        body = self.body(key)
        return orjson.loads(body) if body is not None else None

    def rows(
        self, resource: tuple[str, str], namespace: str = EVERYWHERE, after: tuple[str, str] = ("", "")
    ) -> Iterator[Row]:
        """Objects of a resource (group and plural) by namespace and name, beginning behind `after`."""
        query = (
            f"SELECT namespace, name, body, labels FROM objects WHERE {_OF_RESOURCE}"
            " AND (namespace, name) > (?, ?) ORDER BY namespace, name"
        )
        for row in self._connection.execute(query, (*resource, namespace, *after)):
            yield Row(*row)

    def changes(self, resource: tuple[str, str], namespace: str, after: int) -> list[Change]:
        """The log of a resource behind revision `after`. Raises Expired when it is compacted."""
        if after < self.compacted:
            raise expired(f"too old resource version: {after} ({self.compacted})")
        query = (
            f"SELECT type, namespace, name, body, previous FROM log WHERE {_OF_RESOURCE}"
            " AND revision > ? ORDER BY revision"
        )
        return [
            Change(type_, Row(space, name, body), Row(space, name, before) if before else None)
            for type_, space, name, body, before in self._connection.execute(query, (*resource, namespace, after))
        ]

    def keys_where(self, condition: str, *values: str) -> list[Key]:
        """The keys of the objects that fulfil an SQL condition on grp, plural, namespace, name, uid or owners."""
        query = f"SELECT grp, plural, namespace, name FROM objects WHERE {condition}"
        return [Key(*row) for row in self._connection.execute(query, values)]

    def dependents(self, uid: str) -> list[Key]:
        """The objects that name this uid among their owners."""
        return self.keys_where("owners != '[]' AND instr(owners, ?)", orjson.dumps(uid).decode())


class Transaction(View):
    """Writes that become visible together, each with a revision of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.touched: deque[Touched] = deque()
        """What the garbage collector has still to look at."""
        self.resources: set[tuple[str, str]] = set()
        """Groups and plurals of what was written."""

    def put(self, key: Key, obj: Object) -> None:
        """Stores the object and gives it its resourceVersion."""
        previous = self.body(key)
        body = self._log(key, "MODIFIED" if previous else "ADDED", obj, previous)
        labels, owners = orjson.dumps(obj["metadata"].get("labels") or {}), orjson.dumps([*_owners(obj)]).decode()
        self._connection.execute(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*key, obj["metadata"]["uid"], owners, labels, body),
        )

    def remove(self, key: Key, obj: Object) -> None:
        """Deletes the object; `obj` is its last state, and gets the resourceVersion of the deletion."""
        self._log(key, "DELETED", obj, self.body(key))
        self._connection.execute(f"DELETE FROM objects WHERE {_KEY}", key)

    def close(self, keep: int) -> None:
        """Writes the revision down, and forgets history beyond the last `keep` changes."""
        self.compacted = max(self.compacted, self.revision - keep)
        self._connection.execute("DELETE FROM log WHERE revision <= ?", (self.compacted,))
        self._connection.execute("UPDATE state SET revision = ?, compacted = ?", (self.revision, self.compacted))

    def _log(self, key: Key, type_: str, obj: Object, previous: bytes | None) -> bytes:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        body = orjson.dumps(obj)
        self._connection.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (self.revision, *key, type_, body, previous)
        )
        owners = _owners(obj) | (_owners(orjson.loads(previous)) if previous else frozenset())
        self.touched.append(Touched(key, obj["metadata"]["uid"], owners))
        self.resources.add(key.resource)
        return body


class Store:
    """The database of one server process. `keep` is how many changes a watch may lie behind before it gets 410.

    Raises ValueError for a file that another version has written.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self._keep = keep
        # One connection for all threads: its lock is what makes a view consistent and a transaction alone.
        self._lock = threading.Condition()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        is_new = not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not is_new and self._connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
            raise ValueError(f"{path} was written by another version of the embedded Kubernetes API: remove it")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_TABLES)
        self._revision = View(self._connection).revision
        self.closed = False

    @contextmanager
    def read(self) -> Iterator[View]:
        """What is read inside belongs to one revision. Writers wait meanwhile."""
        with self._lock:
            yield View(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Writes that are kept together, or not at all on an error."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                transaction = Transaction(self._connection)
                yield transaction
                transaction.close(self._keep)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._revision = transaction.revision
            self._lock.notify_all()

    def compact(self) -> None:
        """Forgets the whole history at once: every watch and page token of an older revision is now expired."""
        with self.transaction() as transaction:
            transaction.compacted = transaction.revision

    def wait(self, after: int, timeout: float) -> None:
        """Returns once there is a revision behind `after`, the store closes, or `timeout` seconds have passed."""
        with self._lock:
            self._lock.wait_for(lambda: self._revision > after or self.closed, max(0.0, timeout))

    def interrupt(self) -> None:
        """Ends every waiting watch, now and from now on."""
        with self._lock:
            self.closed = True
            self._lock.notify_all()

    def close(self) -> None:
        """Closes the database; no thread may use the store any more."""
        self.interrupt()
        self._connection.close()


def _owners(obj: Object) -> frozenset[str]:
    return frozenset(owner["uid"] for owner in obj["metadata"].get("ownerReferences") or [])
