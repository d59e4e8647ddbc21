"""What the headers, the query and the body of a request ask for; whatever has no meaning here is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from werkzeug.wrappers import Request

from . import patches, selectors
from .admission import FieldValidation
from .deletion import Propagation
from .errors import ApiError, bad_request, unprocessable, unsupported_media_type
from .listing import whole_number
from .metadata import Object
from .presentation import Json, Presenter
from .resources import Resource
from .tables import INCLUDE_OBJECT, Table
from .validation import OpenApiValidator
from .verbs import DeleteOptions, WriteOptions
from .watching import flag

MAX_BODY = 3 * 1024 * 1024

_ANY = frozenset({"pretty", "timeout"})
GET = _ANY | {"resourceVersion", "includeObject"}
LIST = GET | {
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersionMatch",
    "timeoutSeconds",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
}
WRITE = _ANY | {"dryRun", "fieldManager", "fieldValidation"}
DELETE = _ANY | {"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"}
DELETE_COLLECTION = DELETE | {"labelSelector", "fieldSelector"}


class BoundedRequest(Request):
    """A request whose body may not be larger than Kubernetes allows."""

    max_content_length = MAX_BODY


_DELETE_OPTIONS = OpenApiValidator(
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string", "enum": ["DeleteOptions"]},
            "dryRun": {"type": "array", "nullable": True},
            "gracePeriodSeconds": {"type": "integer", "minimum": 0, "nullable": True},
            "orphanDependents": {"type": "boolean", "nullable": True},
            "propagationPolicy": {"type": "string", "nullable": True},
            "preconditions": {
                "type": "object",
                "nullable": True,
                "additionalProperties": False,
                "properties": {
                    "uid": {"type": "string", "nullable": True},
                    "resourceVersion": {"type": "string", "nullable": True},
                },
            },
        },
    }
)


def query_of(request: Request, known: frozenset[str]) -> dict[str, str]:
    """The query, of which every parameter must mean something to the verb, and only one thing."""
    for name, values in request.args.lists():
        if name not in known:
            raise bad_request(f"query parameter {name[:80]} is not implemented here by the embedded Kubernetes API")
        if len(set(values)) > 1:
            raise bad_request(f"query parameter {name} is given more than once")
    return request.args.to_dict()


def selection_of(resource: Resource, query: Mapping[str, str]) -> selectors.Selection:
    """The objects the selectors choose. Raises BadRequest for a selector that cannot be honoured."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return selectors.parse(labels, fields, resource.selectable)


def presenter_of(request: Request, query: Mapping[str, str]) -> Presenter:
    """The first form in Accept that is implemented. Raises NotAcceptable when none is."""
    include = query.get("includeObject", "")
    if include not in INCLUDE_OBJECT:
        raise bad_request("includeObject must be None, Metadata or Object")
    for accepted in (request.headers.get("Accept") or "*/*").split(","):
        media_type, *parameters = (part.strip() for part in accepted.split(";"))
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        if "as" not in given:
            return Json()
        if (given["as"], given.get("g"), given.get("v")) == ("Table", "meta.k8s.io", "v1"):
            return Table(include)
    raise ApiError(406, "NotAcceptable", "only application/json and its form as=Table;v=v1;g=meta.k8s.io are served")


def _dry_run(values: object) -> bool:
    if values in (None, "", []):
        return False
    if values in ("All", ["All"]):
        return True
    raise unprocessable("dryRun: Unsupported value: supported values: All")


def write_options(query: Mapping[str, str]) -> WriteOptions:
    """Options of create, update and patch. Raises Invalid for a value that does not exist."""
    given = query.get("fieldValidation") or FieldValidation.WARN
    if given not in list(FieldValidation):
        raise unprocessable("fieldValidation: Unsupported value: supported values: Ignore, Warn, Strict")
    return WriteOptions(_dry_run(query.get("dryRun")), FieldValidation(given))


def content_of(request: Request) -> bytes:
    """The bytes of the body. Raises UnsupportedMediaType for a compressed one."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise unsupported_media_type("compressed bodies are not accepted")
    return request.get_data()


def body_of(request: Request, validation: FieldValidation) -> Object:
    """The object in the body. Raises BadRequest, and UnsupportedMediaType for anything but JSON."""
    if request.mimetype not in ("application/json", ""):
        raise unsupported_media_type(
            "the body of the request must be application/json: no protobuf or YAML is taken (kubectl apply sends JSON)"
        )
    content = content_of(request)
    body = patches.parse(content)
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    if validation is FieldValidation.STRICT:
        json.loads(content, object_pairs_hook=_refuse_duplicates)
    return body


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise bad_request(f'strict decoding error: duplicate field "{name[:80]}"')


def delete_options(request: Request, query: Mapping[str, str]) -> DeleteOptions:
    """From the body, which kubectl and the official clients send, and from the query."""
    body = body_of(request, FieldValidation.WARN) if content_of(request) else {}
    if causes := _DELETE_OPTIONS.validate(body):
        raise bad_request(f"DeleteOptions: {causes[0].field}: {causes[0].message}")
    whole_number(query, "gracePeriodSeconds")  # none of the kinds here has a period of grace
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        _propagation(
            query.get("propagationPolicy") or body.get("propagationPolicy"),
            flag(query, "orphanDependents") if "orphanDependents" in query else body.get("orphanDependents"),
        ),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        _dry_run(query.get("dryRun") or body.get("dryRun")),
    )


def _propagation(policy: str | None, orphan: bool | None) -> Propagation | None:
    if policy and orphan is not None:
        raise unprocessable("orphanDependents and propagationPolicy may not both be set")
    if orphan is not None:
        return Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    if not policy:
        return None
    if policy not in list(Propagation):
        raise unprocessable(f"propagationPolicy: Unsupported value: supported values: {', '.join(Propagation)}")
    return Propagation(policy)
