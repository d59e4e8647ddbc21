"""Make oslo.db's enginefacade safe and cheap for many threads on one SQLite file.

SQLite has one writer per file, and oslo.db opens every transaction with a plain (deferred) BEGIN: one that
reads first and writes later gets "database is locked" AT ONCE, whatever the time-out, if another thread
committed in between. The cure is that of Nova's functional tests (DatabaseWriteLock): one re-entrant lock per
database file around every writer scope of the process. Without it 20 parallel creates fail.

oslo.db also gives file databases a NullPool: every transaction opens a connection, and SQLite then parses the
schema of a hundred tables again. A pool keeps connections open, which saves a fifth of the CPU of a create.
"""

import collections
import contextlib
import threading

import sqlalchemy
from oslo_db.sqlalchemy import enginefacade, engines
from sqlalchemy import pool

_guard = threading.Lock()
_locks = collections.defaultdict(threading.RLock)


def install():
    """Patch oslo.db; before the first engine is made."""
    _pool_connections()
    _serialise_writers()


def _pool_connections():
    create_engine = engines.create_engine

    def create(*args, **kwargs):
        kwargs.setdefault("_engine_target", _pooled_engine)
        return create_engine(*args, **kwargs)

    engines.create_engine = create


def _pooled_engine(url, **kwargs):
    if url.drivername.startswith("sqlite") and kwargs.get("poolclass") is pool.NullPool:
        connect_args = dict(kwargs.get("connect_args") or {}, check_same_thread=False)
        kwargs.update(poolclass=pool.QueuePool, pool_size=20, max_overflow=80, connect_args=connect_args)
    engine = sqlalchemy.create_engine(url, **kwargs)
    return engine, engine


def _serialise_writers():
    original = enginefacade._TransactionContextManager._transaction_scope

    @contextlib.contextmanager
    def transaction_scope(self, context):
        lock = contextlib.nullcontext()
        if self._mode is enginefacade._WRITER:
            # by file, not by engine: Nova has several engines on the database of a cell
            database = str(self.reader.get_engine().url.database)
            with _guard:
                lock = _locks[database]
        with lock, original(self, context) as resource:
            yield resource

    enginefacade._TransactionContextManager._transaction_scope = transaction_scope
