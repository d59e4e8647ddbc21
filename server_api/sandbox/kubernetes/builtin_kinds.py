"""The kinds served without a CustomResourceDefinition: their fields, and what single ones need beyond them."""

from __future__ import annotations

import base64
from typing import Any

from .metadata import Object, each
from .resources import AGE_COLUMN, DEFINITIONS, NAME_COLUMN, Column, Resource
from .schema import StructuralSchema

_STRING = {"type": "string"}
_BOOLEAN = {"type": "boolean"}
_INTEGER = {"type": "integer"}
_TIME = {"type": "string", "format": "date-time"}
_STRINGS = {"type": "object", "additionalProperties": _STRING}
_BASE64 = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_FALSE = {"type": "boolean", "enum": [False]}
"""Of what is not implemented, so that nobody may ask for it."""


def _object(texts: str = "", required: str = "", **properties: Any) -> Object:
    """`texts` names the properties that are strings, `required` those that must be there."""
    schema = {"type": "object", "properties": {**each(texts, _STRING), **properties}}
    return schema | ({"required": required.split()} if required else {})


def _list(items: Object) -> Object:
    return {"type": "array", "items": items}


def _with_rule(schema: Object, rule: str, field: str, message: str) -> Object:
    return schema | {"x-kubernetes-validations": [{"rule": rule, "fieldPath": field, "message": message}]}


_NAMESPACE = _object(spec=_OPEN, status=_object("phase", conditions=_list(_OPEN)))
_SECRET = _with_rule(
    _object("type", data=_BASE64, stringData=_STRINGS, immutable=_FALSE),
    "self.type == oldSelf.type",
    ".type",
    "field is immutable",
)
_CONFIG_MAP = _object(data=_STRINGS, binaryData=_BASE64, immutable=_FALSE)
_REFERENCE = _object("kind namespace name uid apiVersion resourceVersion fieldPath")
_EVENT = _with_rule(
    _object(
        "reason message type action reportingComponent reportingInstance",
        required="involvedObject",
        involvedObject=_REFERENCE,
        related=_REFERENCE,
        source=_object("component host"),
        series=_object(count=_INTEGER, lastObservedTime=_TIME),
        count=_INTEGER,
        **each("firstTimestamp lastTimestamp eventTime", _TIME),
    ),
    "!has(self.involvedObject.namespace) || self.involvedObject.namespace == self.metadata.namespace",
    ".involvedObject.namespace",
    "does not match event.namespace",
)
_LEASE = _object(
    spec=_object(
        "holderIdentity",
        **each("leaseDurationSeconds leaseTransitions", _INTEGER),
        **each("acquireTime renewTime", _TIME),
    )
)
_COLUMN = _object(
    "name jsonPath description format",
    required="name type jsonPath",
    type={"type": "string", "enum": ["integer", "number", "string", "boolean", "date"]},
    priority=_INTEGER,
)
_VERSION = _object(
    "name",
    required="name served storage schema",
    served=_BOOLEAN,
    storage=_BOOLEAN,
    schema=_object(required="openAPIV3Schema", openAPIV3Schema=_OPEN),
    subresources=_object(status=_OPEN, scale={"not": {}}),
    additionalPrinterColumns=_list(_COLUMN),
    selectableFields={"not": {}},
)
_NAMES = _object(
    "plural singular kind listKind",
    required="plural kind",
    shortNames=_list(_STRING),
    categories=_list(_STRING),
)
_DEFINITION = _object(
    required="spec",
    spec=_object(
        "group",
        required="group scope names versions",
        scope={"type": "string", "enum": ["Namespaced", "Cluster"]},
        names=_NAMES,
        conversion=_object(strategy={"type": "string", "enum": ["None"]}, webhook={"not": {}}),
        preserveUnknownFields=_FALSE,
        versions=_list(_VERSION),
    ),
    status=_OPEN,
)


def builtin_resources() -> list[Resource]:
    """Every built-in resource."""
    type_, status = Column("Type", "string", ".type"), Column("Status", "string", ".status.phase")
    reason, message = Column("Reason", "string", ".reason"), Column("Message", "string", ".message")
    about = Column("Object", "string", ".involvedObject.name")
    event_fields = ("type", "reason", *(f"involvedObject.{field}" for field in _REFERENCE["properties"]))
    return [
        _builtin("", "namespaces", "Namespace", _NAMESPACE, columns=(status,)),
        _builtin("", "secrets", "Secret", _SECRET, columns=(type_,), selectable=("type",)),
        _builtin("", "configmaps", "ConfigMap", _CONFIG_MAP),
        _builtin("", "events", "Event", _EVENT, columns=(type_, reason, about, message), selectable=event_fields),
        _builtin("coordination.k8s.io", "leases", "Lease", _LEASE),
        _builtin(*DEFINITIONS, "CustomResourceDefinition", _DEFINITION),
    ]


_SHORT_NAMES = {"Namespace": ("ns",), "ConfigMap": ("cm",), "CustomResourceDefinition": ("crd", "crds")}


def _builtin(
    group: str,
    plural: str,
    kind: str,
    schema: Object,
    columns: tuple[Column, ...] = (),
    selectable: tuple[str, ...] = (),
) -> Resource:
    has_status = "status" in schema["properties"]
    return Resource(
        *(group, "v1", plural, kind),
        namespaced=not has_status,  # so it happens to be for these kinds
        schema=StructuralSchema(schema),
        has_status=has_status,
        short_names=_SHORT_NAMES.get(kind, ()),
        columns=(NAME_COLUMN, *columns, AGE_COLUMN),
        selectable=frozenset(selectable),
    )


def complete(kind: str, new: Object) -> None:
    """Fills in, in place, what the server derives for a built-in kind; before validation, so it trusts no shape."""
    if kind == "Namespace":
        new.setdefault("status", {"phase": "Active"})
    elif kind == "Secret":
        new.setdefault("type", "Opaque")
        texts, data = new.get("stringData"), new.get("data") or {}
        # Write-only: it replaces what `data` holds under the same keys.
        if isinstance(texts, dict) and isinstance(data, dict) and all(isinstance(text, str) for text in texts.values()):
            encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
            new["data"] = data | encoded
            del new["stringData"]
