"""Snapshots: the checks, the properties, and what happens when the cloud fails (contract 1.10, 6.9 and 6.11)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_api.servers.cloud_model import Image, ImageState
from server_api.servers.errors import Forbidden, InvalidRequest, NotFound, Rejection, Unprocessable
from server_api.servers.model import Server, Tag
from server_api.servers.ports import (
    Ambiguous,
    Denied,
    Missing,
    PortError,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)
from server_api.servers.snapshots import MAX_TAG_NAME, SnapshotCreate, Snapshots, snapshot_properties
from tests.doubles.caller import Check, StubCaller
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import JournaledCompute, OneProjectCloud
from tests.unit.servers.builders import (
    IDENTITY,
    IMAGE,
    NAME,
    ORGANIZATION,
    OTHER_ORGANIZATION,
    PROJECT,
    SERVER,
    image,
    instance,
    region,
    server,
    spec,
)

SNAPSHOT = "image-of-instance-1"
CONTENT = {
    "unikorn:os:kernel": "linux",
    "unikorn:os:family": "debian",
    "unikorn:os:distro": "ubuntu",
    "unikorn:os:version": "24.04",
    "unikorn:virtualization": "any",
    "unikorn:package:kubernetes": "v1.32.1",
    "unikorn:gpu_vendor": "NVIDIA",
    "unikorn:gpu_models": "A100,H100",
    "unikorn:gpu_driver_version": "550",
}
SOURCE_TAG, OWNER_TAG = (f"unikorn:tag:images.unikorn-cloud.org:{name}" for name in ("source", "organization-id"))
OURS = {
    SOURCE_TAG: "snapshot",
    OWNER_TAG: ORGANIZATION,
    "unikorn:organization:id": ORGANIZATION,
    "unikorn:identity_id": IDENTITY,
}
HARDWARE = {"hw_disk_bus": "scsi", "hw_firmware_type": "uefi", "hw_scsi_model": "virtio-scsi", "hw_machine_type": "q35"}
REQUEST = SnapshotCreate("foobar")


def source(*more: Mapping[str, str], **changes: Any) -> Image:
    properties = dict(CONTENT)
    for each in more:
        properties |= each
    # Read-only: the catalogue's own entry, which every other request reads too.
    return image(**{"properties": MappingProxyType(properties), "architecture": "x86_64", **changes})


class RecordingCompute(JournaledCompute):
    """Remembers the properties of the image that was asked for."""

    properties: Mapping[str, str] | None = None

    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        self.properties = properties
        return super().create_image(instance_id, name, properties)


class World:
    """A server with its instance in the cloud, and the image it was made from in the catalogue."""

    def __init__(self, *stored: Server, images: tuple[Image, ...] = (source(),)) -> None:
        self.store = InMemoryServerStore(*(stored or (server(),)))
        self.directory = InMemoryDirectory(region())
        self.cloud = OneProjectCloud()
        self.compute = self.cloud.compute = RecordingCompute(self.cloud.journal, instance())
        self.cloud.offers.exported_images.extend(images)

    def take(self, caller: StubCaller | None = None, request: SnapshotCreate = REQUEST) -> Image:
        return Snapshots(self.store, self.directory, self.cloud).create(caller or StubCaller(), SERVER, request)

    @property
    def asked_for_an_image(self) -> bool:
        return any(call.startswith("create_image") for call in self.cloud.journal)


# The checks


def test_v14_an_image_is_begun_published_and_found_at_once() -> None:
    world = World()

    taken = world.take()

    assert (taken.id, taken.state) == (SNAPSHOT, ImageState.PENDING)
    assert world.cloud.journal == [
        "images",
        f"find {NAME}",
        "create_image instance-1 foobar",
        f"publish {SNAPSHOT}",
        f"add_image {SNAPSHOT}",
    ]
    assert world.cloud.offers.exported_images == [source(), taken]
    assert taken.properties == CONTENT | {"architecture": "x86_64"} | HARDWARE | OURS
    # Nova takes fewer characters than a tag may have, so tags are set when the image is published.
    assert world.compute.properties == {
        name: value for name, value in taken.properties.items() if not name.startswith("unikorn:tag:")
    }


def test_v13_it_needs_the_right_to_read_the_server_and_to_create_images_in_the_organization() -> None:
    caller = StubCaller()

    World().take(caller)

    assert caller.checks == [
        Check("region:servers", "read", ORGANIZATION, PROJECT),
        Check("region:images", "create", ORGANIZATION, None),
    ]


@pytest.mark.parametrize(
    "refused",
    [["region:servers read"], ["region:images create"], ["region:servers read", "region:images create"]],
    ids=["only images", "only the server", "neither"],
)
def test_v13_without_either_right_nothing_is_asked_of_the_cloud(refused: list[str]) -> None:
    world = World()

    with pytest.raises(Forbidden):
        world.take(StubCaller(refused=refused))
    assert world.cloud.journal == []


@pytest.mark.parametrize(
    ("world", "rejection"),
    [
        pytest.param(World(server(server_id="another")), NotFound, id="no server"),
        pytest.param(World(server(api_version=None)), NotFound, id="another generation"),
        pytest.param(World(server(region_id="elsewhere")), NotFound, id="no region"),
        pytest.param(World(images=()), NotFound, id="source image gone"),
        pytest.param(World(images=(source(organization_id=OTHER_ORGANIZATION),)), NotFound, id="source of others"),
        pytest.param(World(server(spec(image_id=None))), NotFound, id="no source image"),
    ],
)
def test_what_is_not_there_is_not_found_and_no_image_is_begun(world: World, rejection: type[Rejection]) -> None:
    with pytest.raises(rejection):
        world.take()
    assert not world.asked_for_an_image


def test_an_identity_without_a_project_has_nothing_to_take_an_image_of() -> None:
    world = World()
    world.cloud.without_credentials = True

    with pytest.raises(NotFound):
        world.take()


def test_the_project_is_resolved_before_the_right_to_create_images_is_asked_for() -> None:
    world = World()
    world.cloud.without_credentials = True

    with pytest.raises(NotFound):
        world.take(StubCaller(refused=["region:images create"]))


def test_the_right_comes_before_whether_the_source_image_is_there() -> None:
    with pytest.raises(Forbidden):
        World(images=()).take(StubCaller(refused=["region:images create"]))


@pytest.mark.parametrize("organization_id", [None, "", ORGANIZATION])
def test_an_image_of_the_organization_and_a_public_one_are_sources(organization_id: str | None) -> None:
    assert World(images=(source(organization_id=organization_id),)).take().id == SNAPSHOT


@pytest.mark.parametrize("others", [(), (instance(name=f"{NAME}-1"),), (instance(server_id="another"),)])
def test_v05_b05_without_an_instance_of_ours_no_strangers_is_taken(others: tuple[Any, ...]) -> None:
    world = World()
    world.compute.held[:] = others

    with pytest.raises(NotFound, match="no instance"):
        world.take()
    assert not world.asked_for_an_image


# What the cloud answers


@pytest.mark.parametrize(
    ("error", "rejection"),
    [(Missing("nova", "it is gone"), NotFound), (StateConflict("nova", "it is rebuilding"), InvalidRequest)],
)
def test_the_clouds_no_is_the_callers_to_handle(error: PortError, rejection: type[Rejection]) -> None:
    world = World()
    world.compute.fail("create_image", error)

    with pytest.raises(rejection):
        world.take()
    assert world.cloud.journal[-1].startswith("create_image")


FAILURES = [
    Ambiguous("nova", "two of them"),
    Unavailable("nova", "503"),
    TimedOut("nova", "no answer"),
    Denied("nova", "401"),
    Refused("nova", "413"),
]
each_failure = pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)


@each_failure
@pytest.mark.parametrize("method", ["find", "create_image"])
def test_b37_a_failure_of_the_cloud_stays_one(method: str, error: PortError) -> None:
    world = World()
    world.compute.fail(method, error)

    with pytest.raises(PortError) as raised:
        world.take()
    assert raised.value is error


def test_an_image_whose_upload_does_not_let_it_be_published_is_deleted_and_the_caller_may_try_again() -> None:
    world = World()
    world.cloud.images.fail("publish", StateConflict("glance", "uploading"))

    with pytest.raises(InvalidRequest, match="try again"):
        world.take()
    assert world.cloud.journal[-1] == f"delete_image {SNAPSHOT}"


@each_failure
@pytest.mark.parametrize("kept", [False, True], ids=["deleted", "not even deleted"])
def test_v17_an_image_that_could_not_be_published_is_deleted_and_that_is_told(error: PortError, kept: bool) -> None:
    world = World()
    world.cloud.images.fail("publish", error)
    if kept:
        world.cloud.images.fail("delete_image", Unavailable("glance", "the second failure"))

    with pytest.raises(PortError) as raised:
        world.take()
    assert raised.value is error
    assert world.cloud.journal[-2:] == [f"publish {SNAPSHOT}", f"delete_image {SNAPSHOT}"]
    assert world.cloud.offers.exported_images == [source()]


def test_an_image_that_vanished_before_it_was_published_is_not_found_and_not_deleted() -> None:
    world = World()
    world.cloud.images.fail("publish", Missing("glance", "no such image"))

    with pytest.raises(NotFound, match="vanished"):
        world.take()
    assert world.cloud.journal[-1] == f"publish {SNAPSHOT}"
    assert world.cloud.offers.exported_images == [source()]


# The properties


def properties(of_source: Image | None = None, *tags: Tag) -> dict[str, str]:
    return snapshot_properties(of_source or source(), server(), SnapshotCreate("foobar", tags))


def test_what_is_in_the_image_is_copied() -> None:
    assert CONTENT.items() <= properties().items()


@pytest.mark.parametrize("name", ["unikorn:digest", "unikorn:identity_id", "unikorn:organization:id"])
def test_signature_identity_and_owner_of_the_source_are_not_copied(name: str) -> None:
    assert properties(source({name: "of the source"})).get(name) in (None, OURS.get(name))


def test_tags_of_the_source_are_replaced_by_those_of_the_request() -> None:
    made = properties(source({"unikorn:tag:old": "1", "unikorn:tag:both": "1"}), Tag("both", "2"), Tag("new", "3"))

    tags = {name: value for name, value in made.items() if name.startswith("unikorn:tag:")}
    assert tags == {"unikorn:tag:both": "2", "unikorn:tag:new": "3", SOURCE_TAG: "snapshot", OWNER_TAG: ORGANIZATION}


@pytest.mark.parametrize("name", [SOURCE_TAG, OWNER_TAG])
def test_v15_system_tags_win_over_those_of_the_request_and_of_the_source(name: str) -> None:
    made = properties(source({name: "of the source"}), Tag(name.removeprefix("unikorn:tag:"), "of the request"))

    assert made[name] == OURS[name]


@pytest.mark.parametrize(
    ("architecture", "machine_type"),
    [("x86_64", "q35"), ("aarch64", "virt"), (None, "q35"), ("", "q35"), ("riscv64", "q35")],
)
def test_the_machine_type_follows_the_architecture(architecture: str | None, machine_type: str) -> None:
    made = properties(source({"hw_machine_type": "pc"}, architecture=architecture))

    assert made["hw_machine_type"] == machine_type
    assert made.get("architecture") == (architecture or None)


def test_a_server_without_an_identity_makes_an_image_of_nobodys_project() -> None:
    made = snapshot_properties(source(), server(identity_id=None), REQUEST)

    assert made["unikorn:identity_id"] == ""


_NAMES = st.sampled_from(
    [*OURS, *HARDWARE, "unikorn:digest", "unikorn:os:variant", "unikorn:tag:a", "unikorn:tag:unikorn:digest", "other"]
)
_TAG_NAMES = _NAMES.map(lambda name: name.removeprefix("unikorn:tag:")) | st.text(max_size=8)


@given(
    copied=st.dictionaries(_NAMES | st.text(max_size=8), st.text(max_size=4)),
    tags=st.lists(st.builds(Tag, _TAG_NAMES, st.text(max_size=4)), max_size=4),
)
def test_no_source_and_no_request_can_change_what_we_say_of_the_image(copied: dict[str, str], tags: list[Tag]) -> None:
    of_source = image(properties=dict(copied), architecture="x86_64")

    made = properties(of_source, *tags)

    assert OURS.items() <= made.items()
    assert HARDWARE.items() <= made.items()
    assert "unikorn:digest" not in made
    wanted = {f"unikorn:tag:{tag.name}" for tag in tags} | {SOURCE_TAG, OWNER_TAG}
    assert {name for name in made if name.startswith("unikorn:tag:")} == wanted
    assert of_source.properties == copied


def test_the_source_is_read_and_not_changed() -> None:
    world = World()

    world.take(request=SnapshotCreate("foobar", (Tag("a", "b"),)))

    assert world.cloud.offers.exported_images[0] == source()
    assert world.store.writes == []


def test_the_image_is_taken_of_the_image_that_the_server_is_to_have() -> None:
    """What the disk holds while a rebuild is pending may be another one: the contract takes the stored ID."""
    other = source({"unikorn:os:version": "26.04"}, id="image-other")
    world = World(server(spec(image_id="image-other")), images=(source(id=IMAGE), other))

    assert world.take().properties["unikorn:os:version"] == "26.04"


def test_a_tag_whose_name_is_no_name_of_a_property_is_refused() -> None:
    longest = "x" * MAX_TAG_NAME
    World().take(request=SnapshotCreate("foobar", (Tag(longest, "y"),)))

    with pytest.raises(Unprocessable) as refusal:
        World().take(request=SnapshotCreate("foobar", (Tag("a", "b"), Tag(longest + "x", "y"))))
    assert refusal.value.field == "metadata.tags[1].name"


@pytest.mark.parametrize(
    ("tags", "field"),
    [
        pytest.param((Tag("a", "b"), Tag("\U0001f600", "x")), "metadata.tags[1].name", id="name"),
        pytest.param((Tag("a", "\U0001f600"),), "metadata.tags[0].value", id="value"),
        pytest.param(tuple(Tag(str(number), "x") for number in range(65)), "metadata.tags", id="count"),
    ],
)
def test_tags_that_glance_does_not_take_are_refused_before_anything_is_asked_of_the_cloud(
    tags: tuple[Tag, ...], field: str
) -> None:
    world = World()

    with pytest.raises(Unprocessable) as refusal:
        world.take(request=SnapshotCreate("foobar", tags))
    assert refusal.value.field == field
    assert not world.asked_for_an_image


def test_as_many_tags_as_are_allowed_and_any_character_of_the_basic_plane_are_taken() -> None:
    World().take(request=SnapshotCreate("foobar", tuple(Tag(f"日本 {number}", "✓") for number in range(64))))
