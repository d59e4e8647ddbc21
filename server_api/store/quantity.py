"""Kubernetes quantities ("512Gi", "1500m", "2e9") as whole numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]))?")
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}


def whole(value: Any) -> int | None:
    """Return the number a quantity stands for, rounded up as Kubernetes does; None when it is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    exact = Decimal(number + (exponent or "")) * _SUFFIXES.get(suffix, Decimal(1))
    return int(exact.to_integral_value(rounding="ROUND_CEILING"))
