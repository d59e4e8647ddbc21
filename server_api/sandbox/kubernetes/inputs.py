"""What the headers, the query and the body of a request ask for; whatever has no meaning here is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jsonpatch
import orjson
from werkzeug.wrappers import Request

from .errors import ApiError, bad_request, unprocessable, unsupported_media_type
from .metadata import Object
from .presentation import INCLUDE_OBJECT, MEDIA_TYPE, Json, Table
from .writes import FieldValidation

MAX_BODY = 3 * 1024 * 1024

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_ANY = frozenset({"pretty", "timeout"})
GET = _ANY | {"includeObject"}
LIST = GET | {"labelSelector", "fieldSelector", "resourceVersion", "limit", "continue"}
LIST |= {"watch", "timeoutSeconds", "allowWatchBookmarks"}
WRITE = _ANY | {"fieldManager", "fieldValidation"}
DELETE = _ANY | {"gracePeriodSeconds", "propagationPolicy"}


class BoundedRequest(Request):
    """A request whose body may not be larger than Kubernetes allows."""

    max_content_length = MAX_BODY


def query_of(request: Request, known: frozenset[str]) -> dict[str, str]:
    """The query, of which every parameter must mean something to the verb, and only one thing."""
    for name, values in request.args.lists():
        if name not in known:
            raise bad_request(f"query parameter {name[:80]} is not implemented here by the embedded Kubernetes API")
        if len(set(values)) > 1:
            raise bad_request(f"query parameter {name} is given more than once")
    return request.args.to_dict()


def whole_number(query: Mapping[str, str], name: str) -> int:
    """A query parameter that counts something; 0 where it is absent."""
    text = query.get(name) or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise bad_request(f"{name} must be a whole number of at least 0")
    return int(text)


def flag(query: Mapping[str, str], name: str) -> bool:
    """A query parameter that is true or false; false where it is absent."""
    text = query.get(name, "").lower()
    if text not in ("true", "1", "false", "0", ""):
        raise bad_request(f"{name} must be true or false")
    return text in ("true", "1")


def presenter_of(request: Request, query: Mapping[str, str]) -> Json:
    """The first form in Accept that is implemented. Raises NotAcceptable when none is."""
    include = query.get("includeObject", "")
    if include not in INCLUDE_OBJECT:
        raise bad_request("includeObject must be None, Metadata or Object")
    for accepted in (request.headers.get("Accept") or "*/*").split(","):
        media_type, *parameters = (part.strip() for part in accepted.split(";"))
        if media_type not in (MEDIA_TYPE, "application/*", "*/*"):
            continue
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        if "as" not in given:
            return Json()
        if (given["as"], given.get("g"), given.get("v")) == ("Table", "meta.k8s.io", "v1"):
            return Table(include)
    raise ApiError(406, "NotAcceptable", "only application/json and its form as=Table;v=v1;g=meta.k8s.io are served")


def field_validation(query: Mapping[str, str]) -> FieldValidation:
    """What to do about unknown fields. Raises Invalid for a choice that does not exist."""
    given = query.get("fieldValidation") or FieldValidation.WARN
    if given not in list(FieldValidation):
        raise unprocessable("fieldValidation: Unsupported value: supported values: Ignore, Warn, Strict")
    return FieldValidation(given)


def body_of(request: Request) -> Object:
    """The object in the body. Raises BadRequest, and UnsupportedMediaType for anything but JSON."""
    if request.mimetype not in (MEDIA_TYPE, ""):
        raise unsupported_media_type(
            "the body of the request must be application/json: no protobuf or YAML is taken (kubectl apply sends JSON)"
        )
    body = parse(request.get_data())
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    return body


def is_foreground(request: Request, query: Mapping[str, str]) -> bool | None:
    """Whether a deletion waits for dependents, None where nothing is said, from the query and the DeleteOptions.

    Raises BadRequest for options that are not implemented, and Invalid for another propagation policy.
    """
    options = body_of(request) if request.get_data() else {}
    for name in set(options) - {"apiVersion", "kind", "gracePeriodSeconds", "propagationPolicy"}:
        raise bad_request(f"DeleteOptions: {name[:80]} is not implemented by the embedded Kubernetes API")
    policy = query.get("propagationPolicy") or options.get("propagationPolicy")
    if policy not in (None, "Background", "Foreground"):
        raise unprocessable("propagationPolicy: Unsupported value: supported values: Background, Foreground")
    return policy == "Foreground" if policy else None


def parse_patch(media_type: str, is_builtin: bool, patch: bytes) -> Callable[[Object], Object]:
    """What the patch makes of an object; the object it is given may be changed.

    Raises UnsupportedMediaType for a kind of patch that is not implemented for this resource or this body (server-side
    apply is not for any), BadRequest for what is no patch, and the result raises Invalid for an object it does not fit.
    """
    accepted = [JSON, MERGE, STRATEGIC] if is_builtin else [JSON, MERGE]
    if media_type not in accepted:
        raise unsupported_media_type(
            "this form of patch is not implemented by the embedded Kubernetes API (kubectl apply without --server-side"
            f" works) - accepted media types include: {', '.join(accepted)}"
        )
    document = parse(patch)
    if media_type == JSON:
        return lambda current: _json_patch(document, current)
    if not isinstance(document, dict):
        raise bad_request("a merge patch must be an object")
    if media_type == STRATEGIC:
        _require_plain(document)
    return lambda current: merge(current, document)


def parse(text: bytes) -> Any:
    """The JSON document. Raises BadRequest when it is none."""
    try:
        return orjson.loads(text)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from error


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _json_patch(document: Any, current: Object) -> Object:
    try:
        patched = jsonpatch.JsonPatch(document).apply(current)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request("the body is not a JSON patch") from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, LookupError, TypeError) as error:
        raise unprocessable(f"the JSON patch does not fit the object: {type(error).__name__}") from error
    if not isinstance(patched, dict):
        raise unprocessable("the patched object is no object")
    return patched


def _require_plain(patch: Any) -> None:
    """Refuses directives and lists: every list of the built-in kinds may be one that merges by element."""
    values = patch.items() if isinstance(patch, dict) else ()
    for key, value in values:
        if key.startswith("$") or isinstance(value, list):
            raise unsupported_media_type(
                "strategic merge patch with directives or lists is not implemented by the embedded Kubernetes API:"
                f" use {MERGE}"
            )
        _require_plain(value)
