"""Images, through python-glanceclient (contract 6.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from server_api.cloud.errors import translated
from server_api.cloud.sessions import CloudClients

PAGE_SIZE = 1000
"""Glance's own default for the most it returns at once."""


@translated("glance")
def public_images(clients: CloudClients) -> list[Mapping[str, Any]]:
    """Return every public image, as Glance's JSON: organizations' own images are public too and fenced by property."""
    return list(clients.glance.images.list(filters={"visibility": "public"}, page_size=PAGE_SIZE))
