"""Reading of raw JSON that other programs and people wrote: nulls, missing parts and wrong types read as absent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_NOTHING: Mapping[str, Any] = {}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list; anything else in it, or instead of it, is passed over."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(value: Any) -> tuple[str, ...]:
    """Return the non-empty strings in a list."""
    return tuple(item for item in value if isinstance(item, str) and item) if isinstance(value, list) else ()


def text(value: Any) -> str | None:
    """Return a string that is not empty, otherwise None."""
    return value if isinstance(value, str) and value else None


def boolean(value: Any) -> bool | None:
    """Return a truth value, also from the words people write for one; None when it is neither."""
    if isinstance(value, bool):
        return value
    word = str(value).lower() if isinstance(value, str | int) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def integer(value: Any) -> int | None:
    """Return a whole number, otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def moment(value: Any) -> datetime | None:
    """Return the aware time of an RFC 3339 text; None when it does not parse."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def timestamp(value: datetime | None) -> str | None:
    """Return the RFC 3339 text of a time: UTC, whole seconds, as Kubernetes writes it."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if value else None


def decoded(value: Any) -> bytes | None:
    """Return the bytes of a base64 text; None when it is no base64."""
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def encoded(value: bytes) -> str:
    """Return the base64 text of bytes."""
    return base64.b64encode(value).decode("ascii")
