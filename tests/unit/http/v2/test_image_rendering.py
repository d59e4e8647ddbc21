"""An image as reads show it (contract 2.9 and 6.9)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from server_api.http.v2.image_rendering import image_document
from server_api.servers.cloud_model import Image, ImageState

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
IMAGE = Image(id="i", name="ubuntu", state=ImageState.READY, size_gib=20, created_at=AT)


def spec(**properties: str) -> dict[str, Any]:
    """Return the spec of an image with these properties, named without their common prefix and ``.`` for ``:``."""
    named = {f"unikorn:{name.replace('.', ':')}": value for name, value in properties.items()}
    document: dict[str, Any] = image_document(replace(IMAGE, properties=named))["spec"]
    return document


def test_image_that_says_nothing_of_itself() -> None:
    assert image_document(IMAGE) == {
        "metadata": {"id": "i", "name": "ubuntu", "creationTime": AT},
        "spec": {"sizeGiB": 20, "os": {}, "architecture": "x86_64"},
        "status": {"state": "ready"},
    }


@pytest.mark.parametrize(
    ("architecture", "shown"), [(None, "x86_64"), ("", "x86_64"), ("aarch64", "aarch64"), ("ppc64le", None)]
)
def test_architecture(architecture: str | None, shown: str | None) -> None:
    assert image_document(replace(IMAGE, architecture=architecture))["spec"].get("architecture") == shown


@pytest.mark.parametrize(
    ("virtualization", "shown"), [(None, None), ("", None), ("any", "any"), ("baremetal", "baremetal"), ("xen", None)]
)
def test_virtualization(virtualization: str | None, shown: str | None) -> None:
    assert image_document(replace(IMAGE, virtualization=virtualization))["spec"].get("virtualization") == shown


@pytest.mark.parametrize("state", list(ImageState))
def test_states(state: ImageState) -> None:
    assert image_document(replace(IMAGE, state=state))["status"] == {"state": state.value}


def test_operating_system() -> None:
    told = {"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04", "variant": "server"}
    assert spec(**{f"os.{name}": value for name, value in told.items()})["os"] == told
    assert spec(**{"os.kernel": "darwin", "os.family": "", "os.invented": "x", "os.codename": "noble"})["os"] == {
        "codename": "noble"
    }


def test_i04_models_are_separated_by_commas() -> None:
    gpu = spec(gpu_vendor="NVIDIA", gpu_models="A100,H100", gpu_driver_version="550.90.07")["gpu"]
    assert gpu == {"vendor": "NVIDIA", "driver": "550.90.07", "models": ["A100", "H100"]}


def test_malformed_models_are_left_out() -> None:
    gpu = spec(gpu_vendor="AMD", gpu_models="A100 H100", gpu_driver_version="6")["gpu"]
    assert gpu == {"vendor": "AMD", "driver": "6"}


@pytest.mark.parametrize(
    "properties", [{"gpu_vendor": "NVIDIA"}, {"gpu_vendor": "Intel", "gpu_driver_version": "1"}, {"gpu_models": "A"}]
)
def test_graphics_processors_without_a_known_vendor_or_a_driver(properties: dict[str, str]) -> None:
    assert "gpu" not in spec(**properties)


def test_versions_of_no_legal_shape_are_left_out() -> None:
    versions = {"slurmd": "v24.5.0", "kubernetes": "v1.31.2", "cuda": "12", "": "v1.0.0"}
    packages = {f"package.{name}": version for name, version in versions.items()}
    assert spec(**packages)["softwareVersions"] == {"kubernetes": "v1.31.2", "slurmd": "v24.5.0"}
    assert "softwareVersions" not in spec(**{"package.cuda": "12", "package.x": "v1.2.3\n"})


def test_legacy_version_of_kubernetes_counts_only_without_the_new_one() -> None:
    assert spec(kubernetes_version="v1.20.0")["softwareVersions"] == {"kubernetes": "v1.20.0"}
    both = spec(**{"kubernetes_version": "v1.20.0", "package.kubernetes": "v1.31.2"})
    assert both["softwareVersions"] == {"kubernetes": "v1.31.2"}


def test_i05_tags_by_name() -> None:
    tags = {"b.c-d_e": "1", "a/b:c": "", "images.unikorn-cloud.org:source": "snapshot"}
    properties = {f"unikorn:tag:{name}": value for name, value in tags.items()} | {"unikorn:tag:": "no name"}
    document = image_document(replace(IMAGE, properties=properties))
    assert document["metadata"]["tags"] == [{"name": name, "value": tags[name]} for name in sorted(tags)]
