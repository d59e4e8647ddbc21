"""What a region offers: the flavor and the image a server may be created with (contract 1.5 step 10)."""

from __future__ import annotations

from collections.abc import Sequence

from server_api.servers.cloud_model import Flavor, Image
from server_api.servers.errors import NotFound, Unprocessable


def find_flavor(flavors: Sequence[Flavor], flavor_id: str) -> Flavor | None:
    """Return the exported flavor, None when the region does not, or no longer, offer it."""
    return next((flavor for flavor in flavors if flavor.id == flavor_id), None)


def offered_flavor(flavors: Sequence[Flavor], flavor_id: str) -> Flavor:
    """Return the exported flavor. Raises Unprocessable when the region does not, or no longer, offer it."""
    flavor = find_flavor(flavors, flavor_id)
    if flavor is None:
        raise Unprocessable("the flavor is no longer offered by the region", "spec.flavorId")
    return flavor


def visible_image(
    images: Sequence[Image], image_id: str, organization_id: str, field: str | None = "spec.imageId"
) -> Image:
    """Return the image if it is public or the organization's own.

    Raises NotFound, naming ``field``, otherwise: the image of another organization does not exist for this one.
    """
    for image in images:
        if image.id == image_id and image.organization_id in (None, "", organization_id):
            return image
    raise NotFound("the image does not exist", field)


def check_placement(flavor: Flavor, infrastructure_ref: str | None) -> None:
    """Raise Unprocessable for a flavor that is only for servers pinned to a host, without such a pin."""
    if flavor.pinned_only and not infrastructure_ref:
        raise Unprocessable("the flavor requires infrastructureRef", "spec.flavorId")
