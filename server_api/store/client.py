"""The Kubernetes API as raw JSON: typed models are slow and fail on null lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from server_api import deadline
from server_api.servers.ports import Expired, Missing, Unavailable
from server_api.settings import Settings
from server_api.store import failures, tolerant
from server_api.store.connection import ConfigurationSource, Connection, Session, configuration_source
from server_api.store.failures import Attempt
from server_api.store.kinds import SERVER, Kind
from server_api.store.watching import events

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

# Kubernetes' names of objects (RFC 1123 subdomains): nothing that a path would read as something else.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_PAGE = 500
_MOST_LIST_ATTEMPTS = 3

RawObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of one list and the version a watch goes on from."""

    items: list[RawObject]
    version: str


class KubernetesClient:
    """Thread-safe; one per process. Every method raises errors of ``servers.ports`` only:

    Denied, Unavailable and TimedOut always, Missing where an object is named, and what it says besides.
    """

    def __init__(
        self,
        source: ConfigurationSource,
        *,
        namespace: str,
        connections: int = 32,
        connect_timeout: float = 3.0,
        read_timeout: float = 10.0,
        watch_seconds: float = 300.0,
    ) -> None:
        self._connection = Connection(source, connections)
        self._namespace = namespace
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._watch_seconds = watch_seconds
        self._permitted: Callable[[], None] | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return a client of the configured cluster. It connects when first used."""
        return cls(
            configuration_source(settings.kubeconfig),
            namespace=settings.namespace,
            connections=settings.kubernetes_connections,
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            watch_seconds=settings.watch_seconds,
        )

    @property
    def longest_call_seconds(self) -> float:
        """How long a call other than a watch can be under way."""
        return self._connect_timeout + self._read_timeout

    def guarded(self, permitted: Callable[[], None]) -> KubernetesClient:
        """Return a client on the same connections that runs ``permitted`` before every call; what it raises passes."""
        client = object.__new__(type(self))
        client.__dict__.update(self.__dict__, _permitted=permitted)
        return client

    def ping(self) -> None:
        """Return if servers can be read: the API is there, knows the kind, and accepts us."""
        self._call("GET", SERVER.path(self._namespace), Attempt("list", SERVER.plural), query={"limit": "1"})

    def get(self, kind: Kind, namespace: str, name: str) -> RawObject:
        """Return one object."""
        return self._call("GET", _object_path(kind, namespace, name), Attempt("get", kind.plural, name))

    def list(self, kind: Kind, namespace: str, selector: str = "") -> Listing:
        """Return all objects that match a label selector, read page by page."""
        for _ in range(_MOST_LIST_ATTEMPTS):
            # 410 for a page: the list it belongs to has expired, and its parts would not fit together any more.
            with suppress(Expired):
                return self._list(kind, namespace, selector)
        raise Unavailable(failures.KUBERNETES, f"list {kind.plural}: pages expire faster than they are read")

    def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> RawObject:
        """Create an object and return it as stored. Raises AlreadyExists, Refused."""
        attempt = Attempt("create", kind.plural, body["metadata"]["name"])
        return self._call("POST", kind.path(namespace), attempt, body=body)

    def update(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> RawObject:
        """Replace an object, of the version in its metadata. Raises StateConflict, Refused."""
        name = body["metadata"]["name"]
        return self._call("PUT", _object_path(kind, namespace, name), Attempt("update", kind.plural, name), body=body)

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        content_type: str = MERGE_PATCH,
    ) -> RawObject:
        """Patch an object; a version in the patch's metadata is a precondition. Raises StateConflict, Refused."""
        attempt = Attempt("patch", kind.plural, name)
        return self._call("PATCH", _object_path(kind, namespace, name), attempt, body=patch, content_type=content_type)

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Mapping[str, Any], version: str) -> RawObject:
        """Merge into an object's status if it still has that version. Raises StateConflict, Refused."""
        patch = {"metadata": {"resourceVersion": version}, "status": status}
        attempt = Attempt("patch the status of", kind.plural, name)
        path = _object_path(kind, namespace, name, "status")
        return self._call("PATCH", path, attempt, body=patch, content_type=MERGE_PATCH)

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Ask for deletion; objects that depend on it follow in the background."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        self._call("DELETE", _object_path(kind, namespace, name), Attempt("delete", kind.plural, name), body=options)

    def watch(
        self, kind: Kind, namespace: str, version: str, selector: str = "", *, silence: float | None = None
    ) -> Iterator[RawObject]:
        """Yield events after ``version`` until the API ends the watch or the connection is lost.

        ``silence`` is how many seconds may pass without a byte; by default somewhat longer than the watch is to last,
        so that only a dead connection is cut. Raises Expired, and Unavailable on silence.
        """
        attempt = Attempt("watch", kind.plural)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, int(self._watch_seconds))),
        }
        if selector:
            query["labelSelector"] = selector
        quiet = self._watch_seconds + self._read_timeout if silence is None else silence
        timeout = urllib3.Timeout(connect=self._connect_timeout, read=quiet)
        response = self._send("GET", kind.path(namespace), attempt, query, None, JSON, timeout, stream=True)
        try:
            if response.status != 200:
                raise failures.from_response(response.status, self._rest(response), response.headers, attempt)
            yield from events(response, attempt)
        finally:
            # Not released to the pool: what is left of the stream would be taken for the next answer.
            response.close()

    def _list(self, kind: Kind, namespace: str, selector: str) -> Listing:
        query = {"limit": str(_PAGE)}
        if selector:
            query["labelSelector"] = selector
        items: list[RawObject] = []
        version = ""
        while True:
            page = self._call("GET", kind.path(namespace), Attempt("list", kind.plural), query=query)
            items.extend(page.get("items") or ())
            metadata = tolerant.mapping(page.get("metadata"))
            version = version or tolerant.text(metadata.get("resourceVersion")) or ""
            following = tolerant.text(metadata.get("continue"))
            if following is None:
                return Listing(items, version)
            query["continue"] = following

    def _call(
        self,
        method: str,
        path: str,
        attempt: Attempt,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> RawObject:
        try:
            limit = deadline.remaining(self._read_timeout)
        except TimeoutError as error:
            raise failures.from_transport(error, attempt) from None
        timeout = urllib3.Timeout(connect=min(self._connect_timeout, limit), read=limit, total=limit)
        response = self._send(method, path, attempt, query, body, content_type, timeout)
        if not 200 <= response.status < 300:
            raise failures.from_response(response.status, response.data, response.headers, attempt)
        try:
            answer = orjson.loads(response.data)
        except orjson.JSONDecodeError:
            raise failures.nonsense(attempt) from None
        if not isinstance(answer, dict):
            raise failures.nonsense(attempt)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        attempt: Attempt,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        content_type: str,
        timeout: urllib3.Timeout,
        *,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        content = None if body is None else orjson.dumps(body)
        target = f"{path}?{urlencode(query)}" if query else path

        def send(session: Session) -> urllib3.BaseHTTPResponse:
            if self._permitted is not None:
                self._permitted()
            headers = session.headers()
            if content is not None:
                headers["Content-Type"] = content_type
            url = session.configuration.host.rstrip("/") + target
            return session.pool.urlopen(
                method, url, body=content, headers=headers, timeout=timeout, redirect=False, preload_content=not stream
            )

        try:
            session = self._connection.session()
            response = send(session)
            if response.status == 401:
                response.drain_conn()
                response.release_conn()
                response = send(self._connection.renewed(session))
            return response
        except (HTTPError, OSError) as error:
            raise failures.from_transport(error, attempt) from None

    @staticmethod
    def _rest(response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            return response.data
        except (HTTPError, OSError):
            return b""


def _object_path(kind: Kind, namespace: str, name: str, subresource: str | None = None) -> str:
    """Return an object's path. Raises Missing for text that no object can be named: it would be another path."""
    if not _NAME.fullmatch(name):
        raise Missing(failures.KUBERNETES, f"{kind.plural}: no object can have such a name")
    return kind.path(namespace, name, subresource)
