"""The API over HTTP, as a WSGI application: paths and queries in, objects and Status errors out."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from . import inputs, patches
from .discovery import discover
from .errors import ApiError, bad_request, method_not_allowed, no_such_path, not_found, unprocessable
from .listing import list_page, require_known, whole_number
from .metadata import Object
from .openapi import openapi
from .presentation import Json
from .registry import Registry
from .resources import DEFINITIONS, NAMESPACES, Resource
from .storage import Key, Store
from .verbs import PERMANENT_NAMESPACES, Verbs, WriteOptions, Written
from .watching import Watch, flag

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

PEER_GONE = "server_api.peer_gone"
"""Key of the WSGI environment under which the server puts a function that tells whether the client has left."""

_HEALTH = ("healthz", "livez", "readyz")


@dataclass(frozen=True)
class Target:
    """What a path names. The namespace is None across namespaces and empty for a cluster-scoped resource."""

    resource: Resource
    namespace: str | None
    name: str | None
    subresource: str | None


class KubernetesApp:
    """The API server. `token`, if given, is the bearer token every request but health checks must carry."""

    def __init__(self, database: Path, *, keep: int = 10_000, token: str | None = None, durable: bool = True) -> None:
        self.store = Store(database, keep, durable=durable)
        self.registry = Registry()
        self.verbs = Verbs(self.store, self.registry)
        self._token = token
        self._load()

    def _load(self) -> None:
        with self.store.read() as view:
            for row in view.rows(DEFINITIONS):
                self.registry.define(orjson.loads(row.body))
        namespaces = self.registry.stored(NAMESPACES)
        assert namespaces
        for name in PERMANENT_NAMESPACES:
            if self.store.body(Key(*NAMESPACES, "", name)) is None:
                self.verbs.create(namespaces, "", {"metadata": {"name": name}}, WriteOptions())

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request; whatever goes wrong is a Status object."""
        request = inputs.BoundedRequest(environ)
        try:
            response = self._answer(request)
        except ApiError as error:
            response = _error(error)
        except RequestEntityTooLarge:
            message = f"the body of the request is larger than {inputs.MAX_BODY} bytes"
            response = _error(ApiError(413, "RequestEntityTooLarge", message))
        except HTTPException as error:
            response = _error(ApiError(error.code or 400, "BadRequest", error.description or "bad request"))
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            response = _error(ApiError(500, "InternalError", "an error on the server has prevented the request"))
        if response.is_streamed:
            # Headers go out before the first event: a watch on which nothing happens must not look like a hang.
            start_response(response.status, list(response.headers))(b"")
            return response.iter_encoded()
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        path = request.path.strip("/").split("/") if request.path != "/" else []
        if len(path) == 1 and path[0] in _HEALTH:
            return Response("ok")
        self._authenticate(request)
        if request.method == "GET":
            document = discover(self.registry, path) or openapi(self.registry, path)
            if document is not None:
                return _json(document)
        target = self._target(path)
        if target.name is None:
            handlers = {"GET": self._list, "POST": self._create, "DELETE": self._delete_collection}
            if "deletecollection" not in target.resource.verbs:
                del handlers["DELETE"]
            if target.resource.namespaced and target.namespace is None:
                handlers = {"GET": self._list}
        else:
            handlers = {"GET": self._get, "PUT": self._replace, "PATCH": self._patch, "DELETE": self._delete}
            if target.subresource:
                del handlers["DELETE"]
        handler = handlers.get(request.method)
        if handler is None:
            message = "the server does not allow this method on the requested resource"
            raise method_not_allowed(message, tuple(handlers))
        return handler(request, target)

    def _authenticate(self, request: Request) -> None:
        sent = request.headers.get("Authorization", "")
        if self._token and not hmac.compare_digest(sent.encode(), f"Bearer {self._token}".encode()):
            raise ApiError(401, "Unauthorized", "Unauthorized")

    def _target(self, path: list[str]) -> Target:
        match path:
            case ["api", version, *rest] if rest:
                group = ""
            case ["apis", group, version, *rest] if rest:
                pass
            case _:
                raise no_such_path()
        namespace: str | None = None
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2:] != ["status"]:
            namespace, rest = rest[1], rest[2:]
        resource = self.registry.find(group, version, rest[0])
        name = rest[1] if len(rest) > 1 else None
        subresource = rest[2] if len(rest) > 2 else None
        if (
            resource is None
            or len(rest) > 3
            or not all(rest)
            or namespace == ""
            or (namespace is not None and not resource.namespaced)
            or (name is not None and namespace is None and resource.namespaced)
            or (subresource is not None and not (subresource == "status" and resource.has_status))
        ):
            raise no_such_path()
        return Target(resource, namespace if resource.namespaced else "", name, subresource)

    def _get(self, request: Request, target: Target) -> Response:
        query = inputs.query_of(request, inputs.GET)
        presenter = inputs.presenter_of(request, query)
        if asked := whole_number(query, "resourceVersion"):
            with self.store.read() as view:
                require_known(view, asked)
        resource, name = target.resource, target.name or ""
        body = self.store.body(Key(*resource.storage, target.namespace or "", name))
        if body is None:
            raise not_found(resource, name)
        return Response(presenter.one(resource, resource.serve(body)), content_type=presenter.media_type)

    def _list(self, request: Request, target: Target) -> Response:
        query = inputs.query_of(request, inputs.LIST)
        presenter = inputs.presenter_of(request, query)
        resource = target.resource
        namespace = target.namespace if resource.namespaced else None
        selection = inputs.selection_of(resource, query)
        if flag(query, "watch"):
            is_abandoned = request.environ.get(PEER_GONE, lambda: False)
            watch = Watch.parse(self.store, resource, namespace, selection, presenter, is_abandoned, query)
            return Response(watch.lines(), content_type=presenter.media_type)
        if "sendInitialEvents" in query:
            raise bad_request("sendInitialEvents is forbidden for list")
        page = list_page(self.store, resource, namespace, selection, query)
        bodies = [row.body for row in page.rows]
        if not resource.is_stored_form:
            bodies = [resource.serve(body) for body in bodies]
        return Response(presenter.many(resource, page.metadata, bodies), content_type=presenter.media_type)

    def _create(self, request: Request, target: Target) -> Response:
        options = inputs.write_options(inputs.query_of(request, inputs.WRITE))
        body = inputs.body_of(request, options.validation)
        return _written(self.verbs.create(target.resource, target.namespace or "", body, options), 201)

    def _replace(self, request: Request, target: Target) -> Response:
        options = inputs.write_options(inputs.query_of(request, inputs.WRITE))
        body = inputs.body_of(request, options.validation)
        return self._change(target, lambda _: body, options)

    def _patch(self, request: Request, target: Target) -> Response:
        query = inputs.query_of(request, inputs.WRITE | {"force"})
        media_type, content = request.mimetype, inputs.content_of(request)
        if "force" in query and media_type not in patches.APPLY:
            raise unprocessable("force may not be specified for non-apply patch")
        change = patches.parse_patch(media_type, target.resource, content)
        return self._change(target, change, inputs.write_options(query))

    def _change(self, target: Target, change: Callable[[Object], Object], options: WriteOptions) -> Response:
        namespace, name = target.namespace or "", target.name or ""
        return _written(self.verbs.change(target.resource, namespace, name, target.subresource, change, options), 200)

    def _delete(self, request: Request, target: Target) -> Response:
        options = inputs.delete_options(request, inputs.query_of(request, inputs.DELETE))
        resource, name = target.resource, target.name or ""
        obj, gone = self.verbs.delete(resource, target.namespace or "", name, options)
        if not gone:
            return _json(obj)
        about = {"name": name, "group": resource.group, "kind": resource.plural, "uid": obj["metadata"]["uid"]}
        return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about})

    def _delete_collection(self, request: Request, target: Target) -> Response:
        query = inputs.query_of(request, inputs.DELETE_COLLECTION)
        options = inputs.delete_options(request, query)
        resource = target.resource
        namespace = target.namespace if resource.namespaced else None
        bodies = self.verbs.delete_collection(resource, namespace, inputs.selection_of(resource, query), options)
        return Response(Json().many(resource, {}, bodies), content_type=Json.media_type)


def _json(document: Mapping[str, Any], code: int = 200) -> Response:
    return Response(orjson.dumps(document), code, content_type="application/json")


def _error(error: ApiError) -> Response:
    response = _json(error.status(), error.code)
    response.headers.extend(error.headers)
    return response


def _written(written: Written, code: int) -> Response:
    response = _json(written.obj, code)
    for field in written.unknown:
        response.headers.add("Warning", f'299 - "unknown field \\"{_printable(field)}\\""')
    return response


def _printable(text: str) -> str:
    return "".join(char if char.isascii() and char.isprintable() and char not in '"\\' else "?" for char in text)
