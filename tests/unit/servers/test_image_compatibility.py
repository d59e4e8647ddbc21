"""May this image run on this flavor (contract 1.8)."""

from __future__ import annotations

import pytest

from server_api.servers.cloud_model import ImageState
from server_api.servers.errors import Unprocessable
from server_api.servers.image_compatibility import check_compatible, check_ready
from tests.unit.servers.builders import flavor, image


def fits(made_of: dict[str, object], runs_on: dict[str, object]) -> bool:
    try:
        check_compatible(image(**made_of), flavor(**runs_on))
    except Unprocessable:
        return False
    return True


def test_a_ready_image_passes() -> None:
    check_ready(image(state=ImageState.READY))


@pytest.mark.parametrize("state", [ImageState.PENDING, ImageState.CREATING, ImageState.FAILED])
def test_c34_an_image_in_any_other_state_is_refused(state: ImageState) -> None:
    with pytest.raises(Unprocessable, match="not ready") as refusal:
        check_ready(image(state=state))

    assert refusal.value.field == "spec.imageId"


@pytest.mark.parametrize(
    ("of_image", "of_flavor", "expected"),
    [
        ("x86_64", "x86_64", True),
        ("aarch64", "x86_64", False),
        ("weird", "x86_64", False),
        (None, "x86_64", True),
        ("", "x86_64", True),
        ("aarch64", None, True),
        ("aarch64", "", True),
        (None, None, True),
    ],
)
def test_c36_c37_b15_two_different_architectures_do_not_fit(
    of_image: str | None, of_flavor: str | None, expected: bool
) -> None:
    assert fits({"architecture": of_image}, {"architecture": of_flavor}) is expected


@pytest.mark.parametrize(
    ("size", "disk", "expected"),
    [(80, 40, False), (41, 40, False), (40, 40, True), (39, 40, True), (0, 0, True), (1, 0, False), (80, None, True)],
)
def test_c38_the_disk_has_to_hold_the_image(size: int, disk: int | None, expected: bool) -> None:
    assert fits({"size_gib": size}, {"disk_gb": disk}) is expected


@pytest.mark.parametrize(
    ("virtualization", "on_virtual", "on_baremetal"),
    [
        (None, True, True),
        ("", True, True),
        ("any", True, True),
        ("virtualized", True, False),
        ("baremetal", False, True),
        ("paravirtualized", False, False),
        ("Virtualized", False, False),
        ("ANY", False, False),
    ],
)
def test_c39_c40_c41_virtualization_has_to_fit(
    virtualization: str | None, on_virtual: bool, on_baremetal: bool
) -> None:
    assert fits({"virtualization": virtualization}, {"baremetal": False}) is on_virtual
    assert fits({"virtualization": virtualization}, {"baremetal": True}) is on_baremetal


def test_the_first_of_architecture_disk_and_virtualization_is_told() -> None:
    runs_on = flavor(architecture="x86_64", disk_gb=1)
    for broken, told in [
        ({"architecture": "aarch64", "size_gib": 9, "virtualization": "baremetal"}, "architecture"),
        ({"architecture": "x86_64", "size_gib": 9, "virtualization": "baremetal"}, "disk"),
        ({"architecture": "x86_64", "size_gib": 1, "virtualization": "baremetal"}, "virtualization"),
    ]:
        with pytest.raises(Unprocessable, match=told) as refusal:
            check_compatible(image(**broken), runs_on)
        assert refusal.value.field == "spec.imageId"


@pytest.mark.parametrize("baremetal", [True, False])
def test_c41_an_unknown_virtualization_is_told_apart_from_an_unfit_one(baremetal: bool) -> None:
    with pytest.raises(Unprocessable, match="not recognized"):
        check_compatible(image(virtualization="paravirtualized"), flavor(baremetal=baremetal))
    with pytest.raises(Unprocessable, match="not compatible"):
        check_compatible(image(virtualization="virtualized" if baremetal else "baremetal"), flavor(baremetal=baremetal))
