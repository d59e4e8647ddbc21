"""Watches: the log of changes as a stream, translated for what the watcher has selected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from .errors import ApiError, bad_request
from .listing import require_known, whole_number
from .presentation import Presenter, event
from .resources import Resource
from .selectors import Row, Selection
from .storage import Change, Store

DEFAULT_SECONDS = 1800
BOOKMARK_SECONDS = 30.0
LIVENESS_SECONDS = 1.0
"""How often a silent watch looks whether its client is still there."""

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True)
class Watch:
    """A watch on a resource, in one namespace or in all (None)."""

    store: Store
    resource: Resource
    namespace: str | None
    selection: Selection
    presenter: Presenter
    is_abandoned: Callable[[], bool]
    revision: int
    """Changes behind it are sent; 0 sends the present state first."""
    initial_events: bool
    bookmarks: bool
    seconds: float

    @classmethod
    def parse(
        cls,
        store: Store,
        resource: Resource,
        namespace: str | None,
        selection: Selection,
        presenter: Presenter,
        is_abandoned: Callable[[], bool],
        query: Mapping[str, str],
    ) -> Watch:
        """A watch from the query of its request. Raises BadRequest, and Timeout for a revision not yet reached."""
        revision = whole_number(query, "resourceVersion")
        initial_events = flag(query, "sendInitialEvents")
        bookmarks = flag(query, "allowWatchBookmarks")
        if initial_events and (query.get("resourceVersionMatch") != "NotOlderThan" or not bookmarks):
            raise bad_request(
                "sendInitialEvents requires resourceVersionMatch=NotOlderThan and allowWatchBookmarks=true"
            )
        if not initial_events and query.get("resourceVersionMatch"):
            raise bad_request("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        for name in ("limit", "continue"):
            if query.get(name):
                raise bad_request(f"{name} is not supported for watch")
        with store.read() as view:
            require_known(view, revision)
        seconds = whole_number(query, "timeoutSeconds") or DEFAULT_SECONDS
        return cls(
            store,
            resource,
            namespace,
            selection,
            presenter,
            is_abandoned,
            revision,
            initial_events or not revision,
            bookmarks,
            float(seconds),
        )

    def lines(self) -> Iterator[bytes]:
        """The stream. An expired revision is told in an ERROR event, as real clusters do, and ends it."""
        deadline = time.monotonic() + self.seconds
        revision = self.revision
        if self.initial_events:
            revision, rows = self._present()
            for row in rows:
                yield self._line("ADDED", row)
            if self.bookmarks:
                yield self._bookmark(revision, INITIAL_EVENTS_END)
        last_sign = time.monotonic()
        while True:
            try:
                reached, changes = self.store.changes(self.resource.storage, self.namespace, revision)
            except ApiError as error:
                yield event("ERROR", orjson.dumps(error.status()))
                return
            for change in changes:
                if line := self._translate(change):
                    yield line
                    last_sign = time.monotonic()
            revision = reached
            now = time.monotonic()
            ends = now >= deadline or self.store.closed
            if self.bookmarks and (ends or now - last_sign >= BOOKMARK_SECONDS):
                yield self._bookmark(revision)
                last_sign = now
            if ends or self.is_abandoned():
                return
            self.store.wait(revision, min(deadline - now, LIVENESS_SECONDS))

    def _present(self) -> tuple[int, list[Row]]:
        with self.store.read() as view:
            rows = view.rows(self.resource.storage, self.namespace)
            return view.revision, [row for row in rows if self.selection.matches(row)]

    def _translate(self, change: Change) -> bytes | None:
        """An object enters and leaves a selection by ADDED and DELETED, also where it was only modified."""
        was = change.before is not None and self.selection.matches(change.before)
        if change.type == "DELETED":
            return self._line("DELETED", change.after) if was else None
        matches = self.selection.matches(change.after)
        if matches:
            return self._line("MODIFIED" if was else "ADDED", change.after)
        return self._line("DELETED", change.after) if was else None

    def _line(self, type_: str, row: Row) -> bytes:
        return self.presenter.event(self.resource, type_, self.resource.serve(row.body))

    def _bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": metadata}
        return self.presenter.event(self.resource, "BOOKMARK", orjson.dumps(mark))


def flag(query: Mapping[str, str], name: str) -> bool:
    """A query parameter that is true or false; false where it is absent."""
    text = query.get(name, "false")
    if text not in ("true", "false", "1", "0", "True", "False", "TRUE", "FALSE", "t", "f", "T", "F", ""):
        raise bad_request(f"{name} must be true or false")
    return text[:1] in ("t", "T", "1")
