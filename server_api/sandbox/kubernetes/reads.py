"""Lists, in pages where a limit is given, and watches: the log of changes as a stream."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from .errors import ApiError, bad_request, expired
from .inputs import flag, whole_number
from .presentation import Json
from .resources import Resource
from .selectors import Row, Selection
from .storage import Change, Store, View

DEFAULT_SECONDS = 1800
BOOKMARK_SECONDS = 30.0
LIVENESS_SECONDS = 1.0
"""How often a silent watch looks whether its client is still there."""


@dataclass(frozen=True)
class Reading:
    """A list or a watch of a resource, in one namespace or in all, by the parameters in its query."""

    store: Store
    resource: Resource
    namespace: str
    selection: Selection
    presenter: Json
    query: Mapping[str, str]

    def page(self) -> bytes:
        """The list, or a page of it.

        Every page carries the revision of the first, from which a watch tells what has changed meanwhile. Raises
        BadRequest, Expired for a page whose first one lies behind the history, and Timeout.
        """
        limit = whole_number(self.query, "limit")
        with self.store.read() as view:
            revision, after = self._start(view)
            rows = view.rows(self.resource.storage, self.namespace, after)
            chosen = filter(self.selection.matches, rows) if self.selection.tests else rows
            page = list(islice(chosen, limit + 1)) if limit else list(chosen)
        metadata = {"resourceVersion": str(revision)}
        if limit and len(page) > limit:
            del page[limit:]
            token = orjson.dumps([revision, page[-1].namespace, page[-1].name])
            metadata["continue"] = base64.urlsafe_b64encode(token).decode()
        return self.presenter.many(self.resource, metadata, [row.body for row in page])

    def watch(self, is_abandoned: Callable[[], bool]) -> Iterator[bytes]:
        """The lines of a watch, until its time or the store ends, or `is_abandoned` tells that the client has left.

        Raises BadRequest, and Timeout for a revision not yet reached, before the first line.
        """
        for name in ("limit", "continue"):
            if self.query.get(name):
                raise bad_request(f"{name} is not supported for watch")
        revision = whole_number(self.query, "resourceVersion")
        with self.store.read() as view:
            _require_reached(view, revision)
        deadline = time.monotonic() + (whole_number(self.query, "timeoutSeconds") or DEFAULT_SECONDS)
        return self._lines(revision, deadline, flag(self.query, "allowWatchBookmarks"), is_abandoned)

    def _start(self, view: View) -> tuple[int, tuple[str, str]]:
        """The revision a page tells, and the namespace and name it begins behind."""
        asked, token = whole_number(self.query, "resourceVersion"), self.query.get("continue")
        _require_reached(view, asked)
        if not token:
            return view.revision, ("", "")
        if asked:
            raise bad_request("specifying resource version is not allowed when using continue")
        try:
            revision, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
            after, revision = (str(namespace), str(name)), int(revision)
        except (ValueError, TypeError) as error:
            raise bad_request("continue key is not valid") from error
        if not view.compacted <= revision <= view.revision:
            raise expired("The provided continue parameter is too old; list again without it")
        return revision, after

    def _lines(
        self, revision: int, deadline: float, bookmarks: bool, is_abandoned: Callable[[], bool]
    ) -> Iterator[bytes]:
        """An expired revision is told in an ERROR event, as real clusters do, and ends the watch."""
        if not revision:
            with self.store.read() as view:
                revision = view.revision
                rows = list(view.rows(self.resource.storage, self.namespace))
            yield from (self._line("ADDED", row) for row in rows if self.selection.matches(row))
        last_sign = time.monotonic()
        while True:
            try:
                with self.store.read() as view:
                    changes = view.changes(self.resource.storage, self.namespace, revision)
                    revision = view.revision
            except ApiError as error:
                yield _event("ERROR", orjson.dumps(error.status()))
                return
            for line in filter(None, map(self._translate, changes)):
                yield line
                last_sign = time.monotonic()
            now = time.monotonic()
            ends = now >= deadline or self.store.closed
            if bookmarks and (ends or now - last_sign >= BOOKMARK_SECONDS):
                yield self._bookmark(revision)
                last_sign = now
            if ends or is_abandoned():
                return
            self.store.wait(revision, min(deadline - now, LIVENESS_SECONDS))

    def _translate(self, change: Change) -> bytes | None:
        """An object enters and leaves a selection by ADDED and DELETED, also where it was only modified."""
        was = change.before is not None and self.selection.matches(change.before)
        if change.type != "DELETED" and self.selection.matches(change.after):
            return self._line("MODIFIED" if was else "ADDED", change.after)
        return self._line("DELETED", change.after) if was else None

    def _line(self, type_: str, row: Row) -> bytes:
        return _event(type_, self.presenter.one(self.resource, row.body))

    def _bookmark(self, revision: int) -> bytes:
        about: dict[str, Any] = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        mark = orjson.dumps({**about, "metadata": {"resourceVersion": str(revision)}})
        return _event("BOOKMARK", self.presenter.one(self.resource, mark))


def _event(type_: str, body: bytes) -> bytes:
    """A line of a watch. Clients split at newlines, of which JSON by orjson has none."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), body)


def _require_reached(view: View, revision: int) -> None:
    """Raises Timeout for a state this server never had, for example one of before its database was replaced."""
    if revision > view.revision:
        message = f"Too large resource version: {revision}, current: {view.revision}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})
