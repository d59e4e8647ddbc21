"""The API over HTTP, as a WSGI application: paths and queries in, objects and Status errors out."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from . import inputs, selectors
from .errors import ApiError, not_found
from .metadata import Object
from .presentation import MEDIA_TYPE
from .reads import Reading
from .resources import EVERYWHERE, Resource, Target
from .storage import Store
from .writes import Verbs

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

PEER_GONE = "server_api.peer_gone"
"""Key of the WSGI environment under which the server puts a function that tells whether the client has left."""

_HEALTH = ("/healthz", "/livez", "/readyz")


class KubernetesApp:
    """The API server. `token`, if given, is the bearer token every request but health checks must carry."""

    def __init__(self, database: Path, *, keep: int = 10_000, token: str | None = None) -> None:
        self.store = Store(database, keep)
        self.verbs = Verbs(self.store)
        self._token = token

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request; whatever goes wrong is a Status object."""
        request = inputs.BoundedRequest(environ)
        try:
            response = self._answer(request)
        except ApiError as error:
            response = _error(error)
        except HTTPException as error:  # a body over the limit, or no HTTP
            response = _error(ApiError(error.code or 400, type(error).__name__, error.description or "bad request"))
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            response = _error(ApiError(500, "InternalError", "an error on the server has prevented the request"))
        if response.is_streamed:
            # Headers go out before the first event: a watch on which nothing happens must not look like a hang.
            start_response(response.status, list(response.headers))(b"")
            return response.iter_encoded()
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        if request.path in _HEALTH:
            return Response("ok")
        sent = request.headers.get("Authorization", "")
        if self._token and not hmac.compare_digest(sent.encode(), f"Bearer {self._token}".encode()):
            raise ApiError(401, "Unauthorized", "Unauthorized")
        path = request.path.strip("/").split("/") if request.path != "/" else []
        document = self.verbs.registry.discover(path) if request.method == "GET" else None
        if document is not None:
            return _json(document)
        target = self._target(path)
        handlers = self._handlers(target)
        if request.method in handlers:
            return handlers[request.method](request, target)
        response = _error(ApiError(405, "MethodNotAllowed", "the server does not allow this method on this resource"))
        response.headers["Allow"] = ", ".join(handlers)
        return response

    def _target(self, path: list[str]) -> Target:
        match path:
            case ["api", version, *rest] if rest:
                group = ""
            case ["apis", group, version, *rest] if rest:
                pass
            case _:
                raise _no_such_path()
        namespace = EVERYWHERE
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2:] != ["status"]:
            namespace, rest = rest[1], rest[2:]
        resource = self.verbs.registry.find(group, version, rest[0])
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else None
        if resource is None or len(rest) > 3 or not all(rest):
            raise _no_such_path()
        is_placed = namespace not in ("", EVERYWHERE) if resource.namespaced else namespace == EVERYWHERE
        if not is_placed and (name or namespace != EVERYWHERE):
            raise _no_such_path()
        if subresource is not None and not (subresource == "status" and resource.has_status):
            raise _no_such_path()
        return Target(resource, namespace if resource.namespaced else "", name, subresource)

    def _handlers(self, target: Target) -> dict[str, Callable[[Request, Target], Response]]:
        """What the path can do, by method."""
        if target.namespace == EVERYWHERE:
            return {"GET": self._list}
        if not target.name:
            return {"GET": self._list, "POST": self._create}
        if target.subresource:
            return {"GET": self._get, "PUT": self._replace, "PATCH": self._patch}
        return {"GET": self._get, "PUT": self._replace, "PATCH": self._patch, "DELETE": self._delete}

    def _get(self, request: Request, target: Target) -> Response:
        presenter = inputs.presenter_of(request, inputs.query_of(request, inputs.GET))
        with self.store.read() as view:
            body = view.body(target.named(target.name))
        if body is None:
            raise not_found(target.resource, target.name)
        return Response(presenter.one(target.resource, body), content_type=MEDIA_TYPE)

    def _list(self, request: Request, target: Target) -> Response:
        query = inputs.query_of(request, inputs.LIST)
        presenter, selection = inputs.presenter_of(request, query), _selection(target.resource, query)
        reading = Reading(self.store, target.resource, target.namespace, selection, presenter, query)
        if not inputs.flag(query, "watch"):
            return Response(reading.page(), content_type=MEDIA_TYPE)
        lines = reading.watch(request.environ.get(PEER_GONE, lambda: False))
        return Response(lines, content_type=MEDIA_TYPE)

    def _create(self, request: Request, target: Target) -> Response:
        validation = inputs.field_validation(inputs.query_of(request, inputs.WRITE))
        body = inputs.body_of(request)
        return _written(*self.verbs.create(target, body, validation), 201)

    def _replace(self, request: Request, target: Target) -> Response:
        body = inputs.body_of(request)
        return self._change(request, target, lambda current: body)

    def _patch(self, request: Request, target: Target) -> Response:
        is_builtin = target.resource.definition is None
        return self._change(request, target, inputs.parse_patch(request.mimetype, is_builtin, request.get_data()))

    def _change(self, request: Request, target: Target, change: Callable[[Object], Object]) -> Response:
        validation = inputs.field_validation(inputs.query_of(request, inputs.WRITE))
        return _written(*self.verbs.change(target, change, validation), 200)

    def _delete(self, request: Request, target: Target) -> Response:
        foreground = inputs.is_foreground(request, inputs.query_of(request, inputs.DELETE))
        obj, is_gone = self.verbs.delete(target, foreground)
        if not is_gone:
            return _json(obj)
        resource, uid = target.resource, obj["metadata"]["uid"]
        about = {"name": target.name, "group": resource.group, "kind": resource.plural, "uid": uid}
        return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about})


def _selection(resource: Resource, query: Mapping[str, str]) -> selectors.Selection:
    return selectors.parse(query.get("labelSelector", ""), query.get("fieldSelector", ""), resource.selectable)


def _no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def _json(document: Mapping[str, Any], code: int = 200) -> Response:
    return Response(orjson.dumps(document), code, content_type=MEDIA_TYPE)


def _error(error: ApiError) -> Response:
    return _json(error.status(), error.code)


def _written(obj: Object, unknown: list[str], code: int) -> Response:
    response = _json(obj, code)
    for field in unknown:
        printable = "".join(
            char if char.isascii() and char.isprintable() and char not in '"\\' else "?" for char in field
        )
        response.headers.add("Warning", f'299 - "unknown field \\"{printable}\\""')
    return response
