"""OpenAPI v3 documents, as small as they may be: what `kubectl apply` and `kubectl explain` look up before they act."""

from __future__ import annotations

from typing import Any

from .patches import JSON, MERGE
from .registry import Registry
from .resources import Resource

_WRITE_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_PATH_PARAMETERS = [
    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("namespace", "name")
]


def openapi(registry: Registry, path: list[str]) -> dict[str, Any] | None:
    """The document at a path (its segments): the index, or one group and version; None where there is none."""
    match path:
        case ["openapi", "v3"]:
            places = dict.fromkeys(_place(resource) for resource in registry)
            return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}
        case ["openapi", "v3", *rest]:
            place = "/".join(rest)
            served = [resource for resource in registry if _place(resource) == place]
            return _document(place, served) if served else None
    return None


def _place(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.api_version}"


def _document(place: str, served: list[Resource]) -> dict[str, Any]:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Embedded Kubernetes API", "version": "v1"},
        "paths": {_item_path(place, resource): _item(resource) for resource in served},
        "components": {"schemas": {_schema_name(resource): _schema(resource) for resource in served}},
    }


def _item_path(place: str, resource: Resource) -> str:
    return f"/{place}/{'namespaces/{namespace}/' if resource.namespaced else ''}{resource.plural}/{{name}}"


def _item(resource: Resource) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{_schema_name(resource)}"}}}
    answer = {
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-group-version-kind": _kind(resource),
    }
    patch_body: dict[str, Any] = {"content": {media_type: {"schema": {}} for media_type in (JSON, MERGE)}}
    return {
        "parameters": _PATH_PARAMETERS if resource.namespaced else _PATH_PARAMETERS[1:],
        "get": {"x-kubernetes-action": "get", **answer},
        "put": {
            "x-kubernetes-action": "put",
            "parameters": _WRITE_PARAMETERS,
            "requestBody": {"content": content},
            **answer,
        },
        "patch": {
            "x-kubernetes-action": "patch",
            "parameters": _WRITE_PARAMETERS,
            "requestBody": patch_body,
            **answer,
        },
        "delete": {"x-kubernetes-action": "delete", **answer},
    }


def _schema_name(resource: Resource) -> str:
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind]).lstrip(".")


def _schema(resource: Resource) -> dict[str, Any]:
    return {**resource.schema.document, "x-kubernetes-group-version-kind": [_kind(resource)]}


def _kind(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}
