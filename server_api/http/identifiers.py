"""Identifiers of objects: UUIDs in the textual forms that contract section 0 accepts."""

from __future__ import annotations

import re
from uuid import UUID

_HYPHENATED = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_FORMS = re.compile(rf"[0-9a-f]{{32}}|(?:urn:uuid:)?{_HYPHENATED}|\{{{_HYPHENATED}\}}", re.IGNORECASE | re.ASCII)


def canonical_uuid(text: object) -> str:
    """Return a UUID as lower case with hyphens.

    Accepts upper case, no hyphens at all, braces and a ``urn:uuid:`` prefix. Raises ValueError.
    """
    if not isinstance(text, str) or not _FORMS.fullmatch(text):
        raise ValueError("not a valid UUID")
    return str(UUID(text.lower()))
