"""A service that calls with its certificate, as a proxy in front tells of it."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any
from urllib.parse import quote

import orjson

from server_api.sandbox import certificates

COMPUTE = "unikorn-compute"


@cache
def certificate(common_name: str) -> str:
    """Return a certificate as the header has it."""
    return quote(certificates.issued_by(certificates.authority(), common_name).pem)


def principal(document: Any) -> str:
    """Return a principal as the header has it."""
    return base64.urlsafe_b64encode(orjson.dumps(document)).rstrip(b"=").decode()


def headers(for_whom: Any = None, *, impersonate: str | None = None, common_name: str = COMPUTE) -> dict[str, str]:
    """Return the headers of a service's request; ``for_whom`` None: without a principal."""
    made = {"Ssl-Client-Cert": certificate(common_name), "Ssl-Client-Verify": "SUCCESS"}
    if for_whom is not None:
        made["X-Principal"] = principal(for_whom)
    if impersonate is not None:
        made["X-Impersonate"] = impersonate
    return made
