"""IDs in paths of requests that we make."""

from __future__ import annotations

import re

_SEGMENT = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,252}")


def path_segment(identifier: str) -> str:
    """Return the ID. Raises ValueError for what would be another path: stored objects may hold anything."""
    if not _SEGMENT.fullmatch(identifier):
        raise ValueError("not an ID")
    return identifier
