"""The write-ahead record of a request to the cloud, as an annotation of the server.

An annotation and not a field of the status: the definitions of an older installation would cut off a field they do not
know, and it must be written before the status is.
"""

from __future__ import annotations

from typing import Any

import orjson

from server_api.servers.model import CloudRequest, CloudRequestKind
from server_api.store.tolerant import mapping, moment, text, timestamp


def request_from(annotation: Any) -> CloudRequest | None:
    """Return the request in the annotation's text; None when it is none, or has been edited beyond recognition."""
    try:
        written = mapping(orjson.loads(annotation)) if isinstance(annotation, str) else {}
        kind = CloudRequestKind(written.get("kind", ""))
    except ValueError:
        return None
    sent_at = moment(written.get("sentAt"))
    if sent_at is None:
        return None
    return CloudRequest(kind, sent_at, text(written.get("imageID")) or "", text(written.get("before")) or "")


def to_annotation(request: CloudRequest | None) -> str | None:
    """Return the text that ``request_from`` reads."""
    if request is None:
        return None
    written = {
        "kind": request.kind.value,
        "sentAt": timestamp(request.sent_at),
        "imageID": request.image_id,
        "before": request.before,
    }
    return orjson.dumps({name: value for name, value in written.items() if value}).decode()
