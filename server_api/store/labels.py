"""Labels and annotations of stored objects (contract 4.2), and selectors over them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

NAME = "unikorn-cloud.org/name"
ORGANIZATION = "unikorn-cloud.org/organization"
PROJECT = "unikorn-cloud.org/project"
REGION_ID = "regions.unikorn-cloud.org/region-id"
IDENTITY_ID = "regions.unikorn-cloud.org/identity-id"
NETWORK_ID = "regions.unikorn-cloud.org/network-id"
API_VERSION = "resource.unikorn-cloud.org/api-version"
PRINCIPAL_ORGANIZATION = "principal.unikorn-cloud.org/organization"
PRINCIPAL_PROJECT = "principal.unikorn-cloud.org/project"

DESCRIPTION = "unikorn-cloud.org/description"
CREATOR = "unikorn-cloud.org/creator"
PRINCIPAL_CREATOR = "principal.unikorn-cloud.org/creator"
MODIFIER = "unikorn-cloud.org/modifier"
PRINCIPAL_MODIFIER = "principal.unikorn-cloud.org/modifier"
MODIFIED_AT = "unikorn-cloud.org/modifiedTimestamp"
CLOUD_REQUEST = "server-api.unikorn-cloud.org/cloud-request"

_LEGAL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def is_legal_value(value: str) -> bool:
    """Say whether Kubernetes accepts the text as the value of a label."""
    return _LEGAL_VALUE.fullmatch(value) is not None


def selector(requirements: Mapping[str, Collection[str]]) -> str | None:
    """Return a label selector: any of the values for a label, and all of the labels.

    A value that no label can have is left out, since it matches nothing and the API would refuse the whole selector.
    Returns None when that leaves a label without a value: nothing can match.
    """
    terms = []
    for label, values in requirements.items():
        legal = sorted(value for value in values if is_legal_value(value))
        if not legal:
            return None
        terms.append(f"{label}={legal[0]}" if len(legal) == 1 else f"{label} in ({','.join(legal)})")
    return ",".join(terms)
