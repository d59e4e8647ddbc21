"""The kinds served without a CustomResourceDefinition, with the fields Kubernetes gives them."""

from __future__ import annotations

from typing import Any

from .metadata import Object
from .resources import AGE_COLUMN, NAME_COLUMN, VERBS, Column, Resource
from .schema import StructuralSchema

_STRING = {"type": "string"}
_BOOLEAN = {"type": "boolean"}
_INTEGER = {"type": "integer"}
_TIME = {"type": "string", "format": "date-time", "nullable": True}
_STRINGS = {"type": "object", "additionalProperties": _STRING}
_BASE64 = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _object(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def _schema(**properties: Any) -> StructuralSchema:
    return StructuralSchema(_object(**properties))


_REFERENCE = _object(
    kind=_STRING,
    namespace=_STRING,
    name=_STRING,
    uid=_STRING,
    apiVersion=_STRING,
    resourceVersion=_STRING,
    fieldPath=_STRING,
)
_NAMED = {"type": "array", "items": _object(name=_STRING)}

# Stored as the core/v1 event; events.k8s.io/v1 serves the same objects under other field names.
EVENT_RENAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_FIELDS: Object = {
    "involvedObject": _REFERENCE,
    "related": _REFERENCE,
    "reason": _STRING,
    "message": _STRING,
    "type": _STRING,
    "action": _STRING,
    "source": _object(component=_STRING, host=_STRING),
    "firstTimestamp": _TIME,
    "lastTimestamp": _TIME,
    "eventTime": _TIME,
    "count": _INTEGER,
    "series": _object(count=_INTEGER, lastObservedTime=_TIME),
    "reportingComponent": _STRING,
    "reportingInstance": _STRING,
}
_SERVED_NAMES = {stored: served for served, stored in EVENT_RENAMES.items()}
_REFERENCE_FIELDS = tuple(_REFERENCE["properties"])

_EVENT_COLUMNS = (
    Column("Last Seen", "date", ".lastTimestamp"),
    Column("Type", "string", ".type"),
    Column("Reason", "string", ".reason"),
    Column("Kind", "string", ".involvedObject.kind"),
    Column("Object", "string", ".involvedObject.name"),
    Column("Message", "string", ".message"),
    Column("Name", "string", ".metadata.name", format="name", priority=1),
)


def builtin_resources() -> list[Resource]:
    """Every built-in resource; the first one of a storage is the form objects are stored in."""
    return [
        Resource(
            "",
            "v1",
            "namespaces",
            "Namespace",
            namespaced=False,
            schema=_schema(
                spec=_object(finalizers={"type": "array", "items": _STRING}),
                status=_object(phase=_STRING, conditions={"type": "array", "items": _OPEN}),
            ),
            has_status=True,
            short_names=("ns",),
            columns=(NAME_COLUMN, Column("Status", "string", ".status.phase"), AGE_COLUMN),
            strict_updates=False,
            verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
        ),
        Resource(
            "",
            "v1",
            "secrets",
            "Secret",
            namespaced=True,
            schema=_schema(data=_BASE64, stringData=_STRINGS, type=_STRING, immutable=_BOOLEAN),
            columns=(NAME_COLUMN, Column("Type", "string", ".type"), AGE_COLUMN),
            selectable=frozenset({"type"}),
            strict_updates=False,
        ),
        Resource(
            "",
            "v1",
            "configmaps",
            "ConfigMap",
            namespaced=True,
            schema=_schema(data=_STRINGS, binaryData=_BASE64, immutable=_BOOLEAN),
            short_names=("cm",),
            strict_updates=False,
        ),
        Resource(
            "",
            "v1",
            "serviceaccounts",
            "ServiceAccount",
            namespaced=True,
            schema=_schema(secrets=_NAMED, imagePullSecrets=_NAMED, automountServiceAccountToken=_BOOLEAN),
            short_names=("sa",),
        ),
        Resource(
            "",
            "v1",
            "events",
            "Event",
            namespaced=True,
            schema=_schema(**_EVENT_FIELDS),
            short_names=("ev",),
            columns=_EVENT_COLUMNS,
            selectable=frozenset(
                {f"involvedObject.{name}" for name in _REFERENCE_FIELDS} | {"type", "reason", "reportingComponent"}
            ),
            strict_updates=False,
        ),
        Resource(
            "events.k8s.io",
            "v1",
            "events",
            "Event",
            namespaced=True,
            schema=_schema(**{_SERVED_NAMES.get(name, name): value for name, value in _EVENT_FIELDS.items()}),
            short_names=("ev",),
            columns=tuple(_under_served_name(column) for column in _EVENT_COLUMNS),
            strict_updates=False,
            stored_as=("", "events"),
            stored_api_version="v1",
            renames=EVENT_RENAMES,
        ),
        Resource(
            "coordination.k8s.io",
            "v1",
            "leases",
            "Lease",
            namespaced=True,
            schema=_schema(
                spec=_object(
                    holderIdentity=_STRING,
                    leaseDurationSeconds=_INTEGER,
                    acquireTime=_TIME,
                    renewTime=_TIME,
                    leaseTransitions=_INTEGER,
                    preferredHolder=_STRING,
                    strategy=_STRING,
                )
            ),
            columns=(NAME_COLUMN, Column("Holder", "string", ".spec.holderIdentity"), AGE_COLUMN),
        ),
        Resource(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            namespaced=False,
            schema=_definition_schema(),
            has_status=True,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            columns=(NAME_COLUMN, Column("Created At", "date", ".metadata.creationTimestamp")),
            counts_generations=True,
        ),
    ]


def _under_served_name(column: Column) -> Column:
    first, dot, rest = column.json_path[1:].partition(".")
    path = f".{_SERVED_NAMES.get(first, first)}{dot}{rest}"
    return Column(column.name, column.type, path, column.description, column.format, column.priority)


def _definition_schema() -> StructuralSchema:
    strings = {"type": "array", "items": _STRING}
    names = _object(
        plural=_STRING, singular=_STRING, kind=_STRING, listKind=_STRING, shortNames=strings, categories=strings
    )
    column = _object(
        name=_STRING, type=_STRING, jsonPath=_STRING, description=_STRING, format=_STRING, priority=_INTEGER
    )
    version = _object(
        name=_STRING,
        served=_BOOLEAN,
        storage=_BOOLEAN,
        deprecated=_BOOLEAN,
        deprecationWarning=_STRING,
        schema=_object(openAPIV3Schema=_OPEN),
        subresources=_OPEN,
        additionalPrinterColumns={"type": "array", "items": {**column, "required": ["name", "type", "jsonPath"]}},
        selectableFields={"type": "array", "items": {**_object(jsonPath=_STRING), "required": ["jsonPath"]}},
    )
    spec = _object(
        group=_STRING,
        scope={"type": "string", "enum": ["Namespaced", "Cluster"]},
        names={**names, "required": ["plural", "kind"]},
        conversion=_OPEN,
        preserveUnknownFields=_BOOLEAN,
        versions={"type": "array", "minItems": 1, "items": {**version, "required": ["name", "served", "storage"]}},
    )
    return StructuralSchema(
        {
            **_object(spec={**spec, "required": ["group", "scope", "names", "versions"]}, status=_OPEN),
            "required": ["spec"],
        }
    )
