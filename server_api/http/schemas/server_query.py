"""Query parameters of the list of servers (contract 1.2 and 2.15)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, post_load

from server_api.http.identifiers import canonical_uuid
from server_api.http.schemas.base import QuerySchema
from server_api.servers.model import Tag
from server_api.servers.requests import ServerQuery

_LABEL_VALUE = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?", re.ASCII)


class LabelID(fields.Field[str]):
    """An ID to select by. It is compared with a label, so it must be fit for one; a UUID is made canonical first."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> str:
        try:
            return canonical_uuid(value)
        except ValueError:
            if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
                raise ValidationError("Not a valid ID.") from None
            return value


class TagSelector(fields.Field[Tag]):
    """``name=value``; either may be empty and neither may contain another ``=``."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> Tag:
        parts = value.split("=")
        if len(parts) != 2:
            raise ValidationError("Must be name=value.")
        return Tag(*parts)


def _ids(name: str, noun: str) -> fields.List[str]:
    return fields.List(
        LabelID(),
        data_key=name,
        metadata={"description": f"Only servers of this {noun}. May be repeated: any of them then."},
    )


class ServerQuerySchema(QuerySchema):
    """What a list is restricted to."""

    tag = fields.List(
        TagSelector(metadata={"example": "team=storage"}),
        metadata={"description": "Only servers with this tag, as `name=value`. May be repeated: all of them then."},
    )
    organization_id = _ids("organizationID", "organization")
    project_id = _ids("projectID", "project")
    region_id = _ids("regionID", "region")
    network_id = _ids("networkID", "network")

    @post_load
    def _make(self, data: dict[str, Any], **_kwargs: Any) -> ServerQuery:
        return ServerQuery(
            organization_ids=frozenset(data.get("organization_id", ())),
            project_ids=frozenset(data.get("project_id", ())),
            region_ids=frozenset(data.get("region_id", ())),
            network_ids=frozenset(data.get("network_id", ())),
            tags=tuple(data.get("tag", ())),
        )
