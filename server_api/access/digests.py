"""The digest that stands for a token wherever the token itself must not be kept."""

from __future__ import annotations

import hashlib


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
