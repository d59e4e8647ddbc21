"""The image contract: may this image run on this flavor (contract 1.8).

It fronts a rebuild that wipes the root disk, so a value nobody knows fails closed. An absent value passes: it is no
evidence of incompatibility, and images uploaded by other means have none.
"""

from __future__ import annotations

from server_api.servers.cloud_model import Flavor, Image, ImageState
from server_api.servers.errors import Unprocessable

_FIELD = "spec.imageId"
_BAREMETAL = "baremetal"
_VIRTUALIZED = "virtualized"
_ANY = "any"


def check_ready(image: Image) -> None:
    """Raise Unprocessable unless the image can be booted."""
    if image.state is not ImageState.READY:
        raise Unprocessable("the image is not ready", _FIELD)


def check_compatible(image: Image, flavor: Flavor) -> None:
    """Raise Unprocessable for the first of architecture, disk and virtualization that does not fit."""
    _check_architecture(image, flavor)
    _check_disk(image, flavor)
    _check_virtualization(image, flavor)


def _check_architecture(image: Image, flavor: Flavor) -> None:
    if image.architecture and flavor.architecture and image.architecture != flavor.architecture:
        raise Unprocessable("the image's architecture is not compatible with the flavor's", _FIELD)


def _check_disk(image: Image, flavor: Flavor) -> None:
    # The two units differ, and are compared as plain numbers all the same: existing clients rely on it.
    if flavor.disk_gb is not None and flavor.disk_gb < image.size_gib:
        raise Unprocessable("the flavor's disk is too small for the image", _FIELD)


def _check_virtualization(image: Image, flavor: Flavor) -> None:
    if not image.virtualization or image.virtualization == _ANY:
        return
    if image.virtualization not in (_BAREMETAL, _VIRTUALIZED):
        raise Unprocessable("the image's virtualization type is not recognized", _FIELD)
    if image.virtualization != (_BAREMETAL if flavor.baremetal else _VIRTUALIZED):
        raise Unprocessable("the image's virtualization is not compatible with the flavor's", _FIELD)
