"""Flavors and images a server may be created with (contract 1.5 step 10)."""

from __future__ import annotations

import pytest

from server_api.servers.errors import NotFound, Unprocessable
from server_api.servers.offers import check_placement, offered_flavor, visible_image
from tests.unit.servers.builders import FLAVOR, IMAGE, ORGANIZATION, OTHER_ID, OTHER_ORGANIZATION, flavor, image


def test_an_exported_flavor_is_offered() -> None:
    assert offered_flavor([flavor(id=OTHER_ID), flavor()], FLAVOR) == flavor()


def test_c33_a_flavor_that_is_not_exported_is_refused() -> None:
    with pytest.raises(Unprocessable) as refusal:
        offered_flavor([flavor(id=OTHER_ID)], FLAVOR)

    assert refusal.value.field == "spec.flavorId"


@pytest.mark.parametrize("owner", [None, "", ORGANIZATION])
def test_a_public_or_own_image_is_visible(owner: str | None) -> None:
    offered = [image(id=OTHER_ID), image(organization_id=owner)]

    assert visible_image(offered, IMAGE, ORGANIZATION) == image(organization_id=owner)


def test_c35_i07_the_image_of_another_organization_does_not_exist() -> None:
    with pytest.raises(NotFound) as refusal:
        visible_image([image(organization_id=OTHER_ORGANIZATION)], IMAGE, ORGANIZATION)

    assert refusal.value.field == "spec.imageId"


def test_c35_an_unknown_image_does_not_exist() -> None:
    with pytest.raises(NotFound):
        visible_image([image(id=OTHER_ID)], IMAGE, ORGANIZATION)


def test_c31_a_pinned_only_flavor_needs_a_host() -> None:
    with pytest.raises(Unprocessable) as refusal:
        check_placement(flavor(pinned_only=True), None)

    assert refusal.value.field == "spec.flavorId"


@pytest.mark.parametrize(("pinned_only", "host"), [(True, "a-host"), (False, None), (False, "a-host")])
def test_c32_any_other_flavor_goes_anywhere(pinned_only: bool, host: str | None) -> None:
    check_placement(flavor(pinned_only=pinned_only), host)
