"""Which of Glance's images a region exports, and as what (contract 6.9 and 6.10)."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from server_api.servers.cloud_model import Image, ImageState

logger = logging.getLogger(__name__)

PREFIX = "unikorn:"
GIB = 1 << 30

_STATES = {
    "queued": ImageState.PENDING,
    "saving": ImageState.CREATING,
    "importing": ImageState.CREATING,
    "uploading": ImageState.CREATING,
    "active": ImageState.READY,
    "killed": ImageState.FAILED,
    "deleted": ImageState.FAILED,
    "pending_delete": ImageState.FAILED,
    "deactivated": ImageState.FAILED,
}

_ANY = re.compile(r".+", re.DOTALL)
_VERSION = re.compile(r"v\d+\.\d+\.\d+", re.ASCII)

_REQUIRED = {
    "unikorn:os:kernel": re.compile(r"linux"),
    "unikorn:os:family": _ANY,
    "unikorn:os:distro": _ANY,
    "unikorn:os:version": _ANY,
}
"""Neither architecture nor virtualization is here: a create has to see an image that lacks the one or names an
unknown other, to accept the first and to refuse the second with a reason (behaviour text)."""
_OPTIONAL = {
    "unikorn:package:kubernetes": _VERSION,
    "unikorn:package:slurmd": _VERSION,
    "unikorn:kubernetes_version": _VERSION,
    "unikorn:gpu_vendor": re.compile(r"AMD|NVIDIA"),
    "unikorn:gpu_models": re.compile(r"\w+(,\w+)*"),
    "unikorn:gpu_driver_version": _ANY,
}
_SUPERSEDED = {"unikorn:kubernetes_version": "unikorn:package:kubernetes"}
"""A legacy property and the one that, when present, makes it irrelevant."""
_GPU = frozenset({"unikorn:gpu_models", "unikorn:gpu_driver_version"})


def exported_images(records: Iterable[Mapping[str, Any]], signing_key: str | None) -> list[Image]:
    """Return the images a region exports, oldest first, from Glance's JSON.

    An image that is not public, breaks the property schema, or has no owner and no valid signature although there is
    a ``signing_key`` (PEM), is left out. A key that cannot be read verifies nothing.
    """
    images = [image for image in map(image_from, records) if image is not None]
    if signing_key is not None:
        key = _verification_key(signing_key)
        images = [image for image in images if image.organization_id or (key and signature_valid(image, key))]
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(images, key=lambda image: (image.created_at or oldest, image.id))


def image_from(record: Mapping[str, Any]) -> Image | None:
    """Return one of Glance's images, or None when it is not public or malformed. Never raises."""
    try:
        return _image(record)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def signature_valid(image: Image, key: ec.EllipticCurvePublicKey) -> bool:
    """Say whether ``unikorn:digest`` is the key's signature of this very image's ID."""
    try:
        signature = base64.b64decode(image.properties.get("unikorn:digest", ""), validate=True)
        key.verify(signature, image.id.encode(), ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def _image(record: Mapping[str, Any]) -> Image | None:
    properties = {name: value for name, value in record.items() if name.startswith(PREFIX)}
    if record["visibility"] != "public" or not _well_formed(properties):
        return None
    return Image(
        id=record["id"],
        name=record.get("name") or "",
        # A state this version does not know is not one to boot from.
        state=_STATES.get(record["status"], ImageState.FAILED),
        size_gib=_size_gib(record),
        created_at=datetime.fromisoformat(record["created_at"]),
        architecture=record.get("architecture") or None,
        virtualization=properties.get("unikorn:virtualization") or None,
        organization_id=properties.get("unikorn:organization:id") or None,
        properties=properties,
    )


def _well_formed(properties: Mapping[str, Any]) -> bool:
    if not all(isinstance(value, str) for value in properties.values()):
        return False
    if not all(pattern.fullmatch(properties.get(name, "")) for name, pattern in _REQUIRED.items()):
        return False
    for name, pattern in _OPTIONAL.items():
        relevant = name in properties and _SUPERSEDED.get(name) not in properties
        if relevant and not pattern.fullmatch(properties[name]):
            return False
    return "unikorn:gpu_vendor" not in properties or properties.keys() >= _GPU


def _size_gib(record: Mapping[str, Any]) -> int:
    """The smallest disk, in GiB; 0 when Glance does not know, as for an image still being uploaded."""
    return int(record.get("min_disk") or -(-int(record.get("virtual_size") or 0) // GIB))


def _verification_key(pem: str) -> ec.EllipticCurvePublicKey | None:
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key
    logger.error("the region's image signing key is no PEM public key of an elliptic curve: ownerless images vanish")
    return None
