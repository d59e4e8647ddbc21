"""Lists: one snapshot, in pages where a limit is given, at an older revision where one is asked for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from .errors import bad_request, expired, too_large_resource_version
from .resources import Resource
from .selectors import Row, Selection
from .storage import Store, View


@dataclass(frozen=True)
class Page:
    """Some objects in order, and the metadata of the list they are answered in."""

    rows: list[Row]
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Start:
    """Where a page begins: behind an object, in the state at a revision. None: at the beginning; the present."""

    after: tuple[str, str] | None = None
    revision: int | None = None


def list_page(
    store: Store, resource: Resource, namespace: str | None, selection: Selection, query: Mapping[str, str]
) -> Page:
    """One page of a list. Raises BadRequest, and Expired when the state asked for is no longer known."""
    limit = whole_number(query, "limit")
    with store.read() as view:
        start = _start(view, query)
        rows = view.rows(resource.storage, namespace, start.after, start.revision)
        chosen = rows if selection.everything else (row for row in rows if selection.matches(row))
        page = list(islice(chosen, limit + 1)) if limit else list(chosen)
        revision = view.revision if start.revision is None else start.revision
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if limit and len(page) > limit:
            page.pop()
            last = (page[-1].namespace, page[-1].name)
            metadata["continue"] = _token(revision, last)
            if selection.everything:
                metadata["remainingItemCount"] = view.count(resource.storage, namespace, last, start.revision)
        return Page(page, metadata)


def whole_number(query: Mapping[str, str], name: str) -> int:
    """A query parameter that counts something; 0 where it is absent."""
    text = query.get(name) or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise bad_request(f"{name} must be a whole number of at least 0")
    return int(text)


def require_known(view: View, revision: int) -> None:
    """Raises Timeout when the client asks for a state this server has not reached."""
    if revision > view.revision:
        raise too_large_resource_version(revision, view.revision)


def _start(view: View, query: Mapping[str, str]) -> Start:
    asked, match = whole_number(query, "resourceVersion"), query.get("resourceVersionMatch", "")
    if token := query.get("continue"):
        if asked or match:
            raise bad_request("specifying resource version is not allowed when using continue")
        return _parse_token(view, token)
    if match not in ("", "NotOlderThan", "Exact"):
        raise bad_request("resourceVersionMatch must be NotOlderThan or Exact")
    if match and not query.get("resourceVersion"):
        raise bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
    require_known(view, asked)
    if match != "Exact":
        return Start()
    if not asked:
        raise bad_request('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    return Start(revision=asked)


def _token(revision: int, last: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([revision, *last])).decode()


def _parse_token(view: View, token: str) -> Start:
    try:
        revision, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, binascii.Error) as error:
        raise bad_request("continue key is not valid") from error
    if not (isinstance(revision, int) and isinstance(namespace, str) and isinstance(name, str)):
        raise bad_request("continue key is not valid")
    if not view.compacted <= revision <= view.revision:
        raise expired("The provided continue parameter is too old; list again without it")
    return Start((namespace, name), revision)
