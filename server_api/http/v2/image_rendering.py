"""An image as reads show it (contract 2.9 and 6.9): plain dicts, like ``rendering``.

An image says about itself what somebody wrote into it. What is missing, or outside of what clients know, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from server_api.http.schemas.image import ARCHITECTURES, GPU_VENDORS, KERNELS, SOFTWARE_VERSION, VIRTUALIZATIONS
from server_api.servers.cloud_model import Image
from server_api.servers.snapshots import TAG_PREFIX

DEFAULT_ARCHITECTURE = "x86_64"

_PACKAGE_PREFIX = "unikorn:package:"
_LEGACY_KUBERNETES = "unikorn:kubernetes_version"
_OS_PREFIX = "unikorn:os:"
_OS_MEMBERS = ("family", "distro", "version", "variant", "codename")
_GPU_MODELS = re.compile(r"\w+(,\w+)*")


def image_document(image: Image) -> dict[str, Any]:
    """Return the document of one image."""
    return {"metadata": _metadata(image), "spec": _spec(image), "status": {"state": image.state.value}}


def _metadata(image: Image) -> dict[str, Any]:
    document: dict[str, Any] = {"id": image.id, "name": image.name}
    if image.created_at is not None:
        document["creationTime"] = image.created_at
    tags = _named(image.properties, TAG_PREFIX)
    if tags:
        document["tags"] = [{"name": name, "value": value} for name, value in sorted(tags.items())]
    return document


def _spec(image: Image) -> dict[str, Any]:
    document: dict[str, Any] = {"sizeGiB": image.size_gib, "os": _operating_system(image.properties)}
    _add_known(document, "architecture", image.architecture or DEFAULT_ARCHITECTURE, ARCHITECTURES)
    _add_known(document, "virtualization", image.virtualization, VIRTUALIZATIONS)
    versions = _software_versions(image.properties)
    if versions:
        document["softwareVersions"] = versions
    gpu = _gpu(image.properties)
    if gpu:
        document["gpu"] = gpu
    return document


def _operating_system(properties: Mapping[str, str]) -> dict[str, str]:
    told = _named(properties, _OS_PREFIX)
    document = {name: told[name] for name in _OS_MEMBERS if told.get(name)}
    _add_known(document, "kernel", told.get("kernel"), KERNELS)
    return document


def _software_versions(properties: Mapping[str, str]) -> dict[str, str]:
    versions = _named(properties, _PACKAGE_PREFIX)
    if _LEGACY_KUBERNETES in properties:
        versions.setdefault("kubernetes", properties[_LEGACY_KUBERNETES])
    return {name: version for name, version in sorted(versions.items()) if re.fullmatch(SOFTWARE_VERSION, version)}


def _gpu(properties: Mapping[str, str]) -> dict[str, Any]:
    vendor, driver = properties.get("unikorn:gpu_vendor"), properties.get("unikorn:gpu_driver_version")
    if vendor not in GPU_VENDORS or not driver:
        return {}
    document: dict[str, Any] = {"vendor": vendor, "driver": driver}
    models = properties.get("unikorn:gpu_models", "")
    if _GPU_MODELS.fullmatch(models):
        document["models"] = models.split(",")
    return document


def _named(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties with a prefix, by what follows it."""
    return {
        name.removeprefix(prefix): value
        for name, value in properties.items()
        if name.startswith(prefix) and name != prefix
    }


def _add_known(document: dict[str, Any], name: str, value: str | None, known: Container[str]) -> None:
    if value is not None and value in known:
        document[name] = value
