"""The kinds that server-api stores and reads (contract 4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from server_api.store.definitions import CustomResourceDefinitions
from server_api.store.migration import Kubernetes

TITLE = "custom resource definitions of region.unikorn-cloud.org/v1alpha1"

_FILES = Path(__file__).parent / "crds"


def plan(kubernetes: Kubernetes) -> list[str]:
    """Say which definitions would be created or updated."""
    return CustomResourceDefinitions(kubernetes.client).plan(_definitions())


def apply(kubernetes: Kubernetes) -> None:
    """Create or update the definitions and wait until they are served."""
    CustomResourceDefinitions(kubernetes.client).apply(_definitions())


def _definitions() -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(_FILES.glob("*.yaml"))]
