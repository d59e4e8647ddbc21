"""CustomResourceDefinitions: what they may ask for, and the resources they make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonpath

from .errors import Cause
from .metadata import Object, is_dns_label, is_subdomain, now
from .resources import AGE_COLUMN, NAME_COLUMN, Column, Resource
from .schema import StructuralSchema
from .validation import CHECKED_FORMATS

_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")
_NOT_IMPLEMENTED = ("x-kubernetes-embedded-resource",)
_RULE_FIELDS = {"rule", "message", "reason", "fieldPath"}
_SIMPLE_PATH = re.compile(r"(\.[A-Za-z_][\w-]*)+")


def resources_of(definition: Object) -> list[Resource]:
    """The served resources of a definition, one per version. Raises ValueError for a rule that is no CEL."""
    spec = definition["spec"]
    names = spec["names"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    return [
        Resource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            schema=StructuralSchema(version["schema"]["openAPIV3Schema"]),
            served=version["served"],
            has_status="status" in (version.get("subresources") or {}),
            singular=names.get("singular", ""),
            list_kind=names.get("listKind", ""),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            columns=_columns(version.get("additionalPrinterColumns")),
            selectable=frozenset(item["jsonPath"][1:] for item in version.get("selectableFields") or []),
            definition=definition["metadata"]["name"],
            counts_generations=True,
            stored_api_version=f"{spec['group']}/{stored}",
        )
        for version in spec["versions"]
        if version["served"] or version["storage"]
    ]


def complete(definition: Object) -> None:
    """Fills in the names Kubernetes derives from others, in place."""
    names = definition["spec"]["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    definition["spec"].setdefault("conversion", {"strategy": "None"})


def establish(definition: Object) -> None:
    """Writes the status of a definition that has been accepted, in place. There is nothing to wait for."""
    spec = definition["spec"]
    status = definition.setdefault("status", {})
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    status["acceptedNames"] = spec["names"]
    status["storedVersions"] = sorted({*(status.get("storedVersions") or []), stored})
    status.setdefault(
        "conditions",
        [
            {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now()}
            for type_, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ],
    )


def check(definition: Object, old: Object | None, others: list[Object]) -> list[Cause]:
    """Why a definition of the right shape is refused: what Kubernetes forbids, and what is not implemented here."""
    try:
        causes = [
            *_check_names(definition, others),
            *_check_unchanged(definition, old),
            *_check_versions(definition["spec"]),
        ]
        if not causes:
            resources_of(definition)
    except ValueError as error:
        return [Cause("spec.versions", f"Invalid value: {error}")]
    except (AttributeError, KeyError, TypeError):
        return [Cause("spec.versions", "Invalid value: holds a schema that is malformed")]
    return causes


def _check_names(definition: Object, others: list[Object]) -> Iterator[Cause]:
    spec = definition["spec"]
    names = spec["names"]
    if definition["metadata"]["name"] != f"{names['plural']}.{spec['group']}":
        yield Cause("metadata.name", 'Invalid value: must be spec.names.plural+"."+spec.group')
    if "." not in spec["group"] or not is_subdomain(spec["group"]):
        yield Cause("spec.group", "Invalid value: must be a domain with at least one dot")
    for field in ("plural", "singular"):
        if not is_dns_label(names[field]):
            yield Cause(f"spec.names.{field}", "Invalid value: a lowercase RFC 1123 label is required")
    for other in others:
        theirs = other["spec"]["names"]
        if other["spec"]["group"] == spec["group"] and names["kind"] in (theirs["kind"], theirs["listKind"]):
            yield Cause("spec.names.kind", f"Invalid value: already used by {other['metadata']['name']}")


def _check_unchanged(definition: Object, old: Object | None) -> Iterator[Cause]:
    if old is None:
        return
    for path in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        new_value: Any = definition["spec"]
        old_value: Any = old["spec"]
        for step in path:
            new_value, old_value = new_value[step], old_value[step]
        if new_value != old_value:
            yield Cause(f"spec.{'.'.join(path)}", "Invalid value: field is immutable")


def _check_versions(spec: Object) -> Iterator[Cause]:
    if sum(version["storage"] for version in spec["versions"]) != 1:
        yield Cause("spec.versions", "Invalid value: exactly one version must have storage set to true")
    if len({version["name"] for version in spec["versions"]}) != len(spec["versions"]):
        yield Cause("spec.versions", "Invalid value: version names must be unique")
    if spec["conversion"].get("strategy") != "None":
        yield _not_implemented("spec.conversion.strategy", "conversion webhooks")
    if spec.get("preserveUnknownFields"):
        yield Cause("spec.preserveUnknownFields", "Invalid value: must be false")
    for index, version in enumerate(spec["versions"]):
        yield from _check_version(version, f"spec.versions[{index}]")


def _check_version(version: Object, path: str) -> Iterator[Cause]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield Cause(f"{path}.schema.openAPIV3Schema", "Required value: schemas are required", "FieldValueRequired")
    elif schema.get("type") != "object":
        yield Cause(f"{path}.schema.openAPIV3Schema.type", "Invalid value: must be object at the root")
    else:
        if set((schema.get("properties") or {}).get("metadata") or {}) - {"type", "description"}:
            yield _not_implemented(f"{path}.schema.openAPIV3Schema.properties.metadata", "rules for metadata")
        yield from _check_schema(schema, f"{path}.schema.openAPIV3Schema", correlated=True)
    for name in set(version.get("subresources") or {}) - {"status"}:
        yield _not_implemented(f"{path}.subresources.{name}", "this subresource")
    for index, column in enumerate(version.get("additionalPrinterColumns") or []):
        place = f"{path}.additionalPrinterColumns[{index}]"
        if column["type"] not in _COLUMN_TYPES:
            yield Cause(f"{place}.type", f"Unsupported value: supported values: {', '.join(_COLUMN_TYPES)}")
        try:
            jsonpath.compile(f"${column['jsonPath']}")
        except jsonpath.JSONPathError as error:
            yield Cause(f"{place}.jsonPath", f"Invalid value: not a JSON path: {error}")
    for index, selectable in enumerate(version.get("selectableFields") or []):
        if not _SIMPLE_PATH.fullmatch(selectable["jsonPath"]):
            yield Cause(f"{path}.selectableFields[{index}].jsonPath", "Invalid value: must be a simple path")


def _check_schema(schema: Any, path: str, *, correlated: bool) -> Iterator[Cause]:
    """Walks a schema; `correlated` tells whether a value here can be told to be the same as before an update."""
    if not isinstance(schema, dict):
        return
    for keyword in _NOT_IMPLEMENTED:
        if schema.get(keyword):
            yield _not_implemented(f"{path}.{keyword}", "this extension")
    if "$ref" in schema:
        yield Cause(f"{path}.$ref", "Forbidden: $ref is not allowed", "FieldValueForbidden")
    if "format" in schema and schema["format"] not in CHECKED_FORMATS:
        yield _not_implemented(f"{path}.format", f"format {str(schema['format'])[:60]!r}")
    if "pattern" in schema and not _is_pattern(schema["pattern"]):
        yield Cause(f"{path}.pattern", "Invalid value: not a regular expression")
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or []):
        place = f"{path}.x-kubernetes-validations[{index}]"
        for field in sorted(set(rule) - _RULE_FIELDS):
            yield _not_implemented(f"{place}.{field}", "this field")
        if not correlated and re.search(r"\boldSelf\b", str(rule.get("rule"))):
            yield Cause(f"{place}.rule", "Invalid value: oldSelf cannot be used inside a list that is not of type map")
    list_type = schema.get("x-kubernetes-list-type", "atomic")
    if list_type not in ("atomic", "set", "map"):
        yield Cause(f"{path}.x-kubernetes-list-type", "Unsupported value: supported values: atomic, set, map")
    if list_type == "map" and not schema.get("x-kubernetes-list-map-keys"):
        place = f"{path}.x-kubernetes-list-map-keys"
        yield Cause(place, "Required value: for a list of type map", "FieldValueRequired")
    for name, child in (schema.get("properties") or {}).items():
        yield from _check_schema(child, f"{path}.properties.{name}", correlated=correlated)
    yield from _check_schema(schema.get("additionalProperties"), f"{path}.additionalProperties", correlated=correlated)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(keyword) or []):
            yield from _check_schema(child, f"{path}.{keyword}[{index}]", correlated=correlated)
    yield from _check_schema(schema.get("items"), f"{path}.items", correlated=correlated and list_type == "map")


def _is_pattern(pattern: object) -> bool:
    try:
        re.compile(str(pattern))
    except re.error:
        return False
    return True


def _not_implemented(path: str, what: str) -> Cause:
    message = f"Forbidden: the embedded Kubernetes API does not implement {what}"
    return Cause(path, message, "FieldValueForbidden")


def _columns(declared: list[Object] | None) -> tuple[Column, ...]:
    if not declared:
        return NAME_COLUMN, AGE_COLUMN
    columns = (
        Column(
            item["name"],
            item["type"],
            item["jsonPath"],
            item.get("description") or f"Custom resource definition column (in JSONPath format): {item['jsonPath']}",
            item.get("format") or "",
            item.get("priority") or 0,
        )
        for item in declared
    )
    return NAME_COLUMN, *columns
