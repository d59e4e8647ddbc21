"""JSON merge patch, JSON patch, and strategic merge patch where it means the same as a merge patch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jsonpatch
import orjson

from .errors import bad_request, unprocessable, unsupported_media_type
from .metadata import Object
from .resources import Resource

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
MAX_OPERATIONS = 10_000


def parse_patch(media_type: str, resource: Resource, patch: bytes) -> Callable[[Object], Object]:
    """What the patch makes of an object; the object it is given is not changed.

    Raises UnsupportedMediaType for a kind of patch that is not implemented for this resource or this body, BadRequest
    for what is no patch, and the result raises Invalid for an object the patch does not fit.
    """
    if media_type in APPLY:
        raise unsupported_media_type(
            "server-side apply is not implemented by the embedded Kubernetes API: apply without --server-side"
        )
    accepted = [JSON, MERGE] if resource.definition else [JSON, MERGE, STRATEGIC]
    if media_type not in accepted:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )
    document = parse(patch)
    if media_type == JSON:
        if not isinstance(document, list) or len(document) > MAX_OPERATIONS:
            raise bad_request(f"a JSON patch must be a list of at most {MAX_OPERATIONS} operations")
        return partial(_json_patch, document)
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


def _json_patch(document: list[Any], current: Object) -> Object:
    try:
        patched = jsonpatch.JsonPatch(document).apply(current)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request("the body is not a JSON patch") from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, LookupError, TypeError) as error:
        reason = type(error).__name__
        raise unprocessable(f"the server rejected our request due to an error in our request: {reason}") from error
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
