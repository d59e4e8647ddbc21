"""Kubernetes quantities."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.store import quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (512, 512),
        ("512", 512),
        ("1Ki", 1024),
        ("512Gi", 549755813888),
        ("1.5Gi", 1610612736),
        ("128M", 128_000_000),
        ("1k", 1000),
        ("2e9", 2_000_000_000),
        ("1500m", 2),
        ("1E", 10**18),
        ("1Ei", 2**60),
    ],
)
def test_a_quantity_is_the_number_it_stands_for(text: Any, number: int) -> None:
    assert quantity.whole(text) == number


@pytest.mark.parametrize("text", [None, True, "", "Gi", "1 Gi", "1GiB", "1K", "0x10", [], "1e999999999"])
def test_anything_else_is_no_quantity(text: Any) -> None:
    assert quantity.whole(text) is None
