"""Objects and their history in SQLite: one global revision, transactions, snapshots, and a log that is compacted."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

from .errors import expired
from .metadata import Object
from .selectors import Row

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    grp TEXT, plural TEXT, namespace TEXT, name TEXT, uid TEXT, revision INTEGER, labels BLOB, body BLOB,
    PRIMARY KEY (grp, plural, namespace, name));
CREATE INDEX IF NOT EXISTS objects_by_uid ON objects (uid);
CREATE INDEX IF NOT EXISTS objects_by_namespace ON objects (namespace);
CREATE TABLE IF NOT EXISTS dependents (
    owner TEXT, grp TEXT, plural TEXT, namespace TEXT, name TEXT,
    PRIMARY KEY (owner, grp, plural, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY, grp TEXT, plural TEXT, namespace TEXT, name TEXT, type TEXT,
    body BLOB, previous BLOB);
CREATE INDEX IF NOT EXISTS log_by_resource ON log (grp, plural, revision);
CREATE TABLE IF NOT EXISTS state (revision INTEGER, compacted INTEGER);
INSERT INTO state SELECT 1, 1 WHERE NOT EXISTS (SELECT 1 FROM state);
"""
_OF_RESOURCE = "grp = :grp AND plural = :plural AND (:namespace IS NULL OR namespace = :namespace)"
_AFTER = "(:after_name IS NULL OR (namespace, name) > (:after_namespace, :after_name))"
_CURRENT = f"SELECT namespace, name, body, labels FROM objects WHERE {_OF_RESOURCE} AND {_AFTER}"
# The state at an older revision: what has not changed since, and of what has, the body before its first change.
_AT_REVISION = f"""
{_CURRENT} AND revision <= :revision
UNION ALL
SELECT namespace, name, previous, NULL FROM log WHERE previous IS NOT NULL AND {_AFTER} AND revision IN (
    SELECT MIN(revision) FROM log WHERE {_OF_RESOURCE} AND revision > :revision GROUP BY namespace, name)
"""


class Key(NamedTuple):
    """Where an object is stored. The namespace of a cluster-scoped object is empty."""

    group: str
    plural: str
    namespace: str
    name: str


class Touched(NamedTuple):
    """An object that a transaction wrote, for the garbage collector: its key, uid, and the uids it was owned by."""

    key: Key
    uid: str
    owners: tuple[str, ...]


class Change(NamedTuple):
    """One entry of the log. `before` is None for an object that did not exist; a deletion keeps its last state."""

    revision: int
    type: str
    after: Row
    before: Row | None


class View:
    """A consistent sight of all objects at one revision."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.revision: int
        self.compacted: int
        self.revision, self.compacted = connection.execute("SELECT revision, compacted FROM state").fetchone()

    def body(self, key: Key) -> bytes | None:
        """The stored bytes of one object, None where there is none."""
        return _body(self._connection, key)

    def find(self, key: Key) -> Object | None:
        """The stored object, parsed anew at each call, so that the caller may change it."""
        body = self.body(key)
        return orjson.loads(body) if body is not None else None

    def rows(
        self,
        storage: tuple[str, str],
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        revision: int | None = None,
    ) -> Iterator[Row]:
        """Objects by namespace and name, beginning behind `after`; the state at an older `revision` if given.

        Raises Expired when the history back to that revision is gone.
        """
        query, parameters = self._query(storage, namespace, after, revision)
        for row in self._connection.execute(f"{query} ORDER BY namespace, name", parameters):
            yield Row(*row)

    def count(
        self,
        storage: tuple[str, str],
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        revision: int | None = None,
    ) -> int:
        """How many objects `rows` would yield."""
        query, parameters = self._query(storage, namespace, after, revision)
        return int(self._connection.execute(f"SELECT COUNT(*) FROM ({query})", parameters).fetchone()[0])

    def _query(
        self, storage: tuple[str, str], namespace: str | None, after: tuple[str, str] | None, revision: int | None
    ) -> tuple[str, dict[str, str | int | None]]:
        at = self.revision if revision is None else revision
        if at < self.compacted:
            raise expired(f"The provided resource version or continue parameter is too old ({at}); list again")
        query = _CURRENT if at == self.revision else _AT_REVISION
        return query, _parameters(storage, namespace, after) | {"revision": at}

    def in_namespace(self, namespace: str, limit: int = -1) -> list[Key]:
        """Everything in a namespace, of whatever kind; at most `limit` of it unless that is negative."""
        query = "SELECT grp, plural, namespace, name FROM objects WHERE namespace = ? LIMIT ?"
        return [Key(*row) for row in self._connection.execute(query, (namespace, limit))]

    def of_resource(self, storage: tuple[str, str], limit: int = -1) -> list[Key]:
        """Everything of a resource, in whatever namespace; at most `limit` of it unless that is negative."""
        query = "SELECT grp, plural, namespace, name FROM objects WHERE grp = ? AND plural = ? LIMIT ?"
        return [Key(*row) for row in self._connection.execute(query, (*storage, limit))]

    def everything(self) -> list[Key]:
        """The keys of all objects there are."""
        return [Key(*row) for row in self._connection.execute("SELECT grp, plural, namespace, name FROM objects")]

    def key_of(self, uid: str) -> Key | None:
        """The object with this uid, None where there is none."""
        query = "SELECT grp, plural, namespace, name FROM objects WHERE uid = ?"
        row = self._connection.execute(query, (uid,)).fetchone()
        return Key(*row) if row else None

    def dependents(self, uid: str) -> list[Key]:
        """The objects that name this uid among their owners."""
        query = "SELECT grp, plural, namespace, name FROM dependents WHERE owner = ?"
        return [Key(*row) for row in self._connection.execute(query, (uid,))]


class Transaction(View):
    """Writes that become visible together, each with a revision of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.touched: deque[Touched] = deque()
        self.on_commit: list[Callable[[], None]] = []
        """Called once the writes are kept, before the next transaction may begin."""

    def put(self, key: Key, obj: Object) -> None:
        """Stores the object and gives it its resourceVersion."""
        previous = self.body(key)
        metadata = obj["metadata"]
        self.revision += 1
        metadata["resourceVersion"] = str(self.revision)
        body = orjson.dumps(obj)
        labels = orjson.dumps(metadata.get("labels") or {})
        self._forget_owners(key, previous)
        self._connection.execute(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*key, metadata["uid"], self.revision, labels, body),
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO dependents VALUES (?, ?, ?, ?, ?)", [(owner, *key) for owner in _owners(obj)]
        )
        self._log(key, "ADDED" if previous is None else "MODIFIED", body, previous)
        self._touch(key, obj, previous)

    def remove(self, key: Key, obj: Object) -> None:
        """Deletes the object; `obj` is its last state, and gets the resourceVersion of the deletion."""
        previous = self.body(key)
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        self._forget_owners(key, previous)
        self._connection.execute("DELETE FROM objects WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?", key)
        self._log(key, "DELETED", orjson.dumps(obj), previous)
        self._touch(key, obj, previous)

    def rewrite(self, key: Key, obj: Object) -> None:
        """Changes how an object is stored without an event, for a schema that has changed under it."""
        self._connection.execute(
            "UPDATE objects SET body = ? WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?",
            (orjson.dumps(obj), *key),
        )

    def close(self, keep: int) -> None:
        """Writes the revision down, and forgets history beyond the last `keep` changes, an eighth of it at a time."""
        oldest = self.revision - keep
        if oldest - self.compacted > keep // 8:
            self._connection.execute("DELETE FROM log WHERE revision <= ?", (oldest,))
            self.compacted = oldest
        self._connection.execute("UPDATE state SET revision = ?, compacted = ?", (self.revision, self.compacted))

    def _log(self, key: Key, type_: str, body: bytes, previous: bytes | None) -> None:
        self._connection.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (self.revision, *key, type_, body, previous)
        )

    def _forget_owners(self, key: Key, previous: bytes | None) -> None:
        if previous is not None:
            self._connection.executemany(
                "DELETE FROM dependents WHERE owner = ? AND grp = ? AND plural = ? AND namespace = ? AND name = ?",
                [(owner, *key) for owner in _owners(orjson.loads(previous))],
            )

    def _touch(self, key: Key, obj: Object, previous: bytes | None) -> None:
        owners = {*_owners(obj), *(_owners(orjson.loads(previous)) if previous is not None else ())}
        self.touched.append(Touched(key, obj["metadata"]["uid"], tuple(sorted(owners))))


class Store:
    """The database of one server process. `keep` is how many changes a watch may lie behind before it gets 410."""

    def __init__(self, path: Path, keep: int, *, durable: bool = True) -> None:
        self._path = path
        self._keep = keep
        self._durable = durable
        self._writing = threading.Lock()
        self._thread = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._changed = threading.Condition()
        self.closed = False
        connection = self._connect()
        connection.executescript(_TABLES)
        self._revision = View(connection).revision

    def body(self, key: Key) -> bytes | None:
        """The stored bytes of one object."""
        return _body(self._connect(), key)

    @contextmanager
    def read(self) -> Iterator[View]:
        """A snapshot: what is read inside belongs to one revision."""
        connection = self._connect()
        connection.execute("BEGIN")
        try:
            yield View(connection)
        finally:
            connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self, *, dry_run: bool = False) -> Iterator[Transaction]:
        """Writes that are kept together, or not at all: on an error, and in a dry run."""
        with self._writing:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                transaction = Transaction(connection)
                yield transaction
                if dry_run:
                    connection.execute("ROLLBACK")
                    return
                transaction.close(self._keep)
                connection.execute("COMMIT")
                for action in transaction.on_commit:
                    action()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            with self._changed:
                self._revision = transaction.revision
                self._changed.notify_all()

    def compact(self) -> None:
        """Forgets the whole history at once: every watch and page token of an older revision is now expired."""
        with self._writing:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM log")
            connection.execute("UPDATE state SET compacted = revision")
            connection.execute("COMMIT")

    def changes(self, storage: tuple[str, str], namespace: str | None, after: int) -> tuple[int, list[Change]]:
        """The log behind revision `after`, and the revision it reaches to. Raises Expired when it is compacted."""
        with self.read() as view:
            if after < view.compacted:
                raise expired(f"too old resource version: {after} ({view.compacted})")
            rows = self._connect().execute(
                f"SELECT revision, type, namespace, name, body, previous FROM log WHERE {_OF_RESOURCE}"
                " AND revision > :after ORDER BY revision",
                _parameters(storage, namespace) | {"after": after},
            )
            changes = [
                Change(revision, type_, Row(space, name, body), Row(space, name, before) if before else None)
                for revision, type_, space, name, body, before in rows
            ]
            return view.revision, changes

    def wait(self, after: int, timeout: float) -> None:
        """Returns once there is a revision behind `after`, the store closes, or `timeout` seconds have passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._revision > after or self.closed, max(0.0, timeout))

    def interrupt(self) -> None:
        """Ends every waiting watch, now and from now on."""
        self.closed = True
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Closes every connection; no thread may use the store any more."""
        self.interrupt()
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._thread, "connection", None)
        if connection is None:
            # Used by this thread only, but closed by the one that closes the store.
            connection = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if self._durable else 'OFF'}")
            self._thread.connection = connection
            self._connections.append(connection)
        return connection


def _body(connection: sqlite3.Connection, key: Key) -> bytes | None:
    query = "SELECT body FROM objects WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?"
    row = connection.execute(query, key).fetchone()
    return row[0] if row else None


def _owners(obj: Object) -> tuple[str, ...]:
    return tuple(owner["uid"] for owner in obj["metadata"].get("ownerReferences") or [])


def _parameters(
    storage: tuple[str, str], namespace: str | None, after: tuple[str, str] | None = None
) -> dict[str, str | int | None]:
    after_namespace, after_name = after or (None, None)
    return {
        "grp": storage[0],
        "plural": storage[1],
        "namespace": namespace,
        "after_namespace": after_namespace,
        "after_name": after_name,
    }
