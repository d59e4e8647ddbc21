"""Rebuild, console and snapshot against a real Nova and Glance."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import uuid4

import pytest

from server_api.cloud import OpenStackCloud
from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.seed_openstack import IMAGE_CONTENT, SERVICE_ACCOUNT
from server_api.sandbox.waiting import wait_for
from server_api.servers.cloud_model import Image, ImageState, Instance
from server_api.servers.model import Tag
from server_api.servers.naming import SSH_KEY_NAME
from server_api.servers.ports import Catalogue, Missing, Refused, StateConflict, Tenancy, Unavailable
from server_api.servers.snapshots import SnapshotCreate, snapshot_properties
from server_api.servers.surroundings import Region
from server_api.settings import Settings
from tests.integration.cloud_project import USER_DATA, SeededCredentials, Servers, unique
from tests.integration.harness import Sandbox
from tests.unit.servers import builders

INHERITED = {"unikorn:tag:flavour": "vanilla", "unikorn:digest": "AAAA", "unikorn:os:codename": "noble"}


@dataclass(kw_only=True)
class Project(Servers):
    """The tenant's project with the region's catalogue and the service account that fills it."""

    catalogue: Catalogue
    service: OpenStackUser

    def active_instance(self, **more: str) -> Instance:
        name, server_id = unique(), str(uuid4())
        self.instance(name, {"serverID": server_id}, **more)
        return self.active(name, server_id)

    def settled(self, instance: Instance) -> Instance:
        return self.active(instance.name, str(instance.server_id))

    def slow_snapshot(self, instance: Instance) -> AbstractContextManager[None]:
        """Let a snapshot take its time, as on every real hypervisor: Glance loses an upload that meets a change."""
        return self.sandbox.rules({"op": "snapshot", "delay": 3, "name": instance.name})

    def details(self, instance: Instance) -> dict[str, object]:
        """What only an administrator is shown of an instance."""
        return dict(self.service.compute.get(f"/servers/{instance.id}").json()["server"])

    def stored(self, image_id: str) -> dict[str, object] | None:
        """Return an image as Glance has it, whoever may see it."""
        answer = self.service.image.get(f"/v2/images/{image_id}", raise_exc=False)
        return dict(answer.json()) if answer.status_code == 200 else None

    def known(self, image_id: str) -> Image | None:
        return next((image for image in self.catalogue.images() if image.id == image_id), None)

    def ready(self, image_id: str) -> Image:
        def look() -> Image | None:
            image = self.known(image_id)
            return image if image and image.state is ImageState.READY else None

        return wait_for("the image is ready", look)


@pytest.fixture
def project(region: Sandbox) -> Iterator[Project]:
    credentials = SeededCredentials(region)
    place = Region("region", "sandbox", "openstack", region.region.openstack.auth_url, "namespace", "secret")
    cloud = OpenStackCloud(credentials, Settings(read_timeout=30, image_cache_seconds=0))
    service = OpenStackUser(
        region.region.openstack.auth_url, SERVICE_ACCOUNT, region.world.service_password, SERVICE_ACCOUNT
    )
    tenancy = cloud.tenancy(place, "identity")
    project = Project(region, tenancy, catalogue=cloud.catalogue(place), service=service)
    yield project
    project.remove()


@pytest.fixture
def images(project: Project) -> Iterator[list[str]]:
    """Remove the images whose IDs a test appends."""
    ids: list[str] = []
    yield ids
    for image_id in ids:
        project.tenancy.images.delete(image_id)


@pytest.fixture
def source(project: Project) -> Iterator[Image]:
    """A public image with tags and a signature of its own."""
    members = {"name": "source", "visibility": "public", "disk_format": "raw", "container_format": "bare"}
    properties = project.sandbox.world.images["ready"].properties | INHERITED
    image_id = project.service.image.post("/v2/images", json=members | properties).json()["id"]
    content_type = {"Content-Type": "application/octet-stream"}
    project.service.image.put(f"/v2/images/{image_id}/file", data=IMAGE_CONTENT, headers=content_type)
    yield project.ready(image_id)
    project.service.image.delete(f"/v2/images/{image_id}")


@pytest.fixture
def tenancy(project: Project) -> Tenancy:
    return project.tenancy


def wanted(source: Image) -> dict[str, str]:
    return snapshot_properties(source, builders.server(), SnapshotCreate("name", (Tag("mine", "日本"),)))


def test_a_server_boots_from_a_snapshot_that_carries_our_tags_and_not_those_of_its_source(
    project: Project, tenancy: Tenancy, source: Image, images: list[str]
) -> None:
    instance = project.active_instance(image_id=source.id)
    properties = wanted(source)

    with project.slow_snapshot(instance):
        image_id = tenancy.compute.create_image(instance.id, "日本 %2F ✓", properties)
        images.append(image_id)
        inherited = project.stored(image_id) or {}
        published = tenancy.images.publish(image_id, properties)

    # Nova does copy what publishing has to take away
    assert inherited["unikorn:tag:flavour"] == "vanilla"
    assert (published.id, published.name) == (image_id, "日本 %2F ✓")
    assert published.organization_id == builders.ORGANIZATION
    ready = project.ready(image_id)
    assert ready.properties == {name: value for name, value in properties.items() if name.startswith("unikorn:")}
    assert ready.properties.keys() & INHERITED.keys() == {"unikorn:os:codename"}
    assert {name: value for name, value in ready.properties.items() if name.startswith("unikorn:tag:")} == {
        "unikorn:tag:mine": "日本",
        "unikorn:tag:images.unikorn-cloud.org:source": "snapshot",
        "unikorn:tag:images.unikorn-cloud.org:organization-id": builders.ORGANIZATION,
    }
    assert (ready.architecture, ready.virtualization) == (source.architecture, source.virtualization)
    stored = project.stored(image_id) or {}
    assert (stored["hw_disk_bus"], stored["hw_machine_type"]) == ("scsi", "q35")

    project.settled(instance)
    assert project.active_instance(image_id=image_id).image_id == image_id


def test_b81_an_instance_deleted_during_its_snapshot_leaves_no_image_that_is_ready(
    project: Project, tenancy: Tenancy, source: Image, images: list[str]
) -> None:
    instance = project.active_instance(image_id=source.id)
    with project.slow_snapshot(instance):
        image_id = tenancy.compute.create_image(instance.id, "lost", wanted(source))
        images.append(image_id)
        tenancy.images.publish(image_id, wanted(source))
        tenancy.compute.delete(instance.id)
        gone = "the instance is gone"
        wait_for(gone, lambda: instance.id not in {one.id for one in tenancy.compute.instances()})

        def given_up() -> bool:
            image = project.known(image_id)
            assert image is None or image.state is not ImageState.READY
            return image is None or image.state is ImageState.FAILED

        wait_for("the image is given up", given_up)


def test_an_image_that_cannot_be_published_stays_private_and_can_be_deleted(
    project: Project, tenancy: Tenancy, source: Image
) -> None:
    instance = project.active_instance(image_id=source.id)
    image_id = tenancy.compute.create_image(instance.id, "unseen", wanted(source))
    project.settled(instance)

    refusal = {"service": "glance", "method": "PATCH", "path": f"/v2/images/{image_id}", "status": 503}
    with project.sandbox.rules(refusal), pytest.raises(Unavailable, match="glance"):
        tenancy.images.publish(image_id, wanted(source))

    assert (project.stored(image_id) or {})["visibility"] == "private"
    assert project.known(image_id) is None
    tenancy.images.delete(image_id)
    assert project.stored(image_id) is None
    tenancy.images.delete(image_id)
    with pytest.raises(Missing, match="No image found"):
        tenancy.images.publish(image_id, wanted(source))


def test_b18_a_rebuild_changes_the_image_and_keeps_user_data_and_key(project: Project, tenancy: Tenancy) -> None:
    instance = project.active_instance(key_name=SSH_KEY_NAME)
    image_id = project.sandbox.world.images["ready-too"].id
    before = project.details(instance)

    tenancy.compute.rebuild(instance.id, image_id)
    rebuilt = project.settled(instance)

    after = project.details(instance)
    assert (instance.image_id, rebuilt.image_id) == (project.sandbox.world.images["ready"].id, image_id)
    assert base64.b64decode(str(after["OS-EXT-SRV-ATTR:user_data"])) == USER_DATA
    assert after["key_name"] == SSH_KEY_NAME
    kept = (
        "id",
        "name",
        "metadata",
        "addresses",
        "flavor",
        "description",
        "OS-EXT-SRV-ATTR:hostname",
        "OS-EXT-SRV-ATTR:host",
    )
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert rebuilt.mac_addresses == instance.mac_addresses
    actions = project.service.compute.get(f"/servers/{instance.id}/os-instance-actions").json()["instanceActions"]
    assert [action["action"] for action in actions] == ["rebuild", "create"]


def test_a_server_that_is_being_rebuilt_is_neither_imaged_nor_rebuilt_again(project: Project, tenancy: Tenancy) -> None:
    instance = project.active_instance()
    image_id = project.sandbox.world.images["ready-too"].id
    with project.sandbox.rules({"op": "rebuild", "delay": 3, "name": instance.name}):
        tenancy.compute.rebuild(instance.id, image_id)

        with pytest.raises(StateConflict, match="nova"):
            tenancy.compute.create_image(instance.id, "never", {})
        with pytest.raises(StateConflict, match="nova"):
            tenancy.compute.rebuild(instance.id, image_id)
    project.settled(instance)


def test_a_server_that_is_being_imaged_is_not_rebuilt(
    project: Project, tenancy: Tenancy, source: Image, images: list[str]
) -> None:
    instance = project.active_instance()
    with project.slow_snapshot(instance):
        images.append(tenancy.compute.create_image(instance.id, "slow", wanted(source)))

        with pytest.raises(StateConflict, match="nova"):
            tenancy.compute.rebuild(instance.id, source.id)
    project.settled(instance)


@pytest.mark.parametrize("image_id", ["no-uuid", "http://glance/v2/images/1", "../x", str(uuid4())])
def test_b24_an_image_that_is_none_is_refused_and_nothing_is_rebuilt(
    project: Project, tenancy: Tenancy, image_id: str
) -> None:
    instance = project.active_instance()

    with pytest.raises(Refused, match=r"(?i)image"):
        tenancy.compute.rebuild(instance.id, image_id)

    assert project.settled(instance).image_id == instance.image_id


def test_the_console_is_read_and_opened(project: Project, tenancy: Tenancy) -> None:
    instance = project.active_instance()
    compute = tenancy.compute

    assert compute.console_output(instance.id, None).splitlines() == [
        f"FAKE CONSOLE OUTPUT of {instance.name}",
        "ANOTHER",
        "LAST LINE",
    ]
    assert compute.console_output(instance.id, 2).splitlines() == ["ANOTHER", "LAST LINE"]
    first, second = compute.console_url(instance.id), compute.console_url(instance.id)
    assert first.startswith("http://127.0.0.1:6080/vnc_lite.html?path=%3Ftoken%3D")
    assert first != second


def test_a_server_that_is_being_built_has_no_console_yet(project: Project, tenancy: Tenancy) -> None:
    name, server_id = unique(), str(uuid4())
    with project.sandbox.rules({"op": "spawn", "delay": 3, "name": name}):
        instance = project.instance(name, {"serverID": server_id})

        with pytest.raises(StateConflict, match="nova"):
            tenancy.compute.console_url(instance.id)
    project.active(name, server_id)


def test_b05_a_server_that_is_gone_is_missing_to_every_call(project: Project, tenancy: Tenancy) -> None:
    gone, compute = str(uuid4()), tenancy.compute

    for ask in (
        lambda: compute.rebuild(gone, project.sandbox.world.images["ready"].id),
        lambda: compute.console_output(gone, 5),
        lambda: compute.console_url(gone),
        lambda: compute.create_image(gone, "never", {}),
    ):
        with pytest.raises(Missing, match="nova"):
            ask()
