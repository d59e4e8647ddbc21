"""CustomResourceDefinitions: what they may ask for, and the resources they make."""

from __future__ import annotations

from collections.abc import Iterator

import jsonpath

from .errors import Cause
from .metadata import Object, each, is_subdomain, now
from .resources import AGE_COLUMN, NAME_COLUMN, Column, Resource
from .schema import FORMATS, StructuralSchema, compiled_rule, is_transition, validator, violations

_TEXT, _TEXTS, _FLAG = {"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "boolean"}
_NUMBER, _COUNT, _CHILD = {"type": "number"}, {"type": "integer", "minimum": 0}, {"$ref": "#/definitions/schema"}
_RULE = {
    "type": "object",
    "required": ["rule"],
    "properties": each("rule message reason fieldPath", _TEXT),
    "additionalProperties": False,
}
_KEYWORDS = {
    "type": {"enum": ["object", "array", "string", "integer", "number", "boolean"]},
    "format": {"enum": sorted(FORMATS)},
    "pattern": {"type": "string", "format": "regex"},
    "enum": {"type": "array", "minItems": 1},
    "required": _TEXTS,
    "properties": {"type": "object", "additionalProperties": _CHILD},
    **each("additionalProperties items", _CHILD),
    **each("minimum maximum multipleOf", _NUMBER),
    **each("minLength maxLength minItems maxItems minProperties maxProperties", _COUNT),
    **each("exclusiveMinimum exclusiveMaximum x-kubernetes-int-or-string", _FLAG),
    **each("title description", _TEXT),
    **each("example default", {}),
    "anyOf": {"enum": [[{"type": "integer"}, {"type": "string"}]]},  # what int-or-string comes with
    "x-kubernetes-preserve-unknown-fields": {"enum": [True]},
    "x-kubernetes-list-type": {"enum": ["atomic", "set", "map"]},
    "x-kubernetes-list-map-keys": _TEXTS,
    "x-kubernetes-map-type": {"enum": ["atomic", "granular"]},
    "x-kubernetes-validations": {"type": "array", "items": _RULE},
}
_SCHEMA = {
    **_CHILD,
    "definitions": {"schema": {"type": "object", "properties": _KEYWORDS, "additionalProperties": False}},
}
"""What a schema may say here. Everything else is refused: it would be ignored, or mean more than is implemented."""


def resource_of(definition: Object) -> Resource:
    """The resource of an accepted definition, in the version that is stored: no other version is served."""
    spec = definition["spec"]
    names, version = spec["names"], next(version for version in spec["versions"] if version["storage"])
    columns = version.get("additionalPrinterColumns") or []
    return Resource(
        *(spec["group"], version["name"], names["plural"], names["kind"]),
        namespaced=spec["scope"] == "Namespaced",
        schema=StructuralSchema(version["schema"]["openAPIV3Schema"]),
        has_status="status" in (version.get("subresources") or {}),
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=(NAME_COLUMN, *map(_column, columns)) if columns else (NAME_COLUMN, AGE_COLUMN),
        definition=definition["metadata"]["name"],
    )


def complete(definition: Object) -> None:
    """Fills in, in place, what Kubernetes derives, and the status of an accepted definition: nothing is waited for."""
    names, status = definition["spec"]["names"], definition.setdefault("status", {})
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    definition["spec"].setdefault("conversion", {"strategy": "None"})
    status["acceptedNames"] = names
    stored = [version["name"] for version in definition["spec"]["versions"] if version["storage"]]
    status["storedVersions"] = sorted({*(status.get("storedVersions") or []), *stored})
    condition = {"status": "True", "reason": "Accepted", "lastTransitionTime": now()}
    status.setdefault("conditions", [{"type": type_, **condition} for type_ in ("NamesAccepted", "Established")])


def check(definition: Object, old: Object | None) -> Iterator[Cause]:
    """Why a definition of the right shape is refused: what Kubernetes forbids, and what is not implemented here."""
    spec = definition["spec"]
    names = spec["names"]
    if definition["metadata"]["name"] != f"{names['plural']}.{spec['group']}":
        yield Cause("metadata.name", 'Invalid value: must be spec.names.plural+"."+spec.group')
    if "." not in spec["group"] or not is_subdomain(spec["group"]):
        yield Cause("spec.group", "Invalid value: must be a domain with at least one dot")
    if old and (spec["scope"], names["kind"]) != (old["spec"]["scope"], old["spec"]["names"]["kind"]):
        yield Cause("spec", "Invalid value: scope and names.kind are immutable")
    if [version["served"] for version in spec["versions"] if version["storage"]] != [True]:
        yield Cause("spec.versions", "Invalid value: exactly one version must be stored, and it must be served")
    for index, version in enumerate(spec["versions"]):
        yield from _check_version(version, f"spec.versions[{index}]")


def _column(declared: Object) -> Column:
    return Column(declared["name"], declared["type"], declared["jsonPath"], declared.get("priority") or 0)


def _check_version(version: Object, path: str) -> Iterator[Cause]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or []):
        try:
            jsonpath.compile(f"${column['jsonPath']}")
        except jsonpath.JSONPathError as error:
            yield Cause(f"{path}.additionalPrinterColumns[{index}].jsonPath", f"Invalid value: {error}")
    schema, path = version["schema"]["openAPIV3Schema"], f"{path}.schema.openAPIV3Schema"
    malformed = [cause._replace(field=f"{path}.{cause.field}") for cause in violations(validator(_SCHEMA), schema)]
    if malformed:
        yield from malformed
        return
    if schema.get("type") != "object":
        yield Cause(f"{path}.type", "Invalid value: must be object at the root")
    if set(schema.get("properties", {}).get("metadata", {})) - {"type", "description"}:
        yield Cause(f"{path}.properties.metadata", "Forbidden: rules for metadata are not implemented")
    yield from _check_rules(schema, path, correlated=True)


def _check_rules(schema: Object, path: str, *, correlated: bool) -> Iterator[Cause]:
    """Walks a schema; `correlated` tells whether a value here can be told to be the same as before an update."""
    is_map = schema.get("x-kubernetes-list-type") == "map"
    if is_map != bool(schema.get("x-kubernetes-list-map-keys")):
        yield Cause(f"{path}.x-kubernetes-list-map-keys", "Invalid value: belongs to every list of type map")
    for index, rule in enumerate(schema.get("x-kubernetes-validations", [])):
        place = f"{path}.x-kubernetes-validations[{index}].rule"
        if not correlated and is_transition(rule["rule"]):
            yield Cause(place, "Invalid value: oldSelf cannot be used inside a list that is not of type map")
        try:
            compiled_rule(rule["rule"])
        except ValueError as error:
            yield Cause(place, f"Invalid value: {error}")
    children = {f"properties.{name}": child for name, child in schema.get("properties", {}).items()}
    if "additionalProperties" in schema:
        children["additionalProperties"] = schema["additionalProperties"]
    for name, child in children.items():
        yield from _check_rules(child, f"{path}.{name}", correlated=correlated)
    if "items" in schema:
        yield from _check_rules(schema["items"], f"{path}.items", correlated=correlated and is_map)
