"""Publishing and deleting images of a tenant's project (contract 6.11)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from server_api import deadline
from server_api.cloud import glance
from server_api.cloud.glance import GlanceTenancyImages
from server_api.servers.cloud_model import Image, ImageState
from server_api.servers.ports import Denied, Missing, StateConflict, TimedOut, Unavailable

IMAGE = "/image/v2/images/1"
OURS = {
    "unikorn:os:kernel": "linux",
    "unikorn:os:family": "debian",
    "unikorn:os:distro": "ubuntu",
    "unikorn:os:version": "24.04",
    "unikorn:virtualization": "any",
    "unikorn:organization:id": "organization",
}
WANTED = OURS | {"hw_disk_bus": "scsi", "architecture": "aarch64"}


@pytest.fixture
def images(clients):
    return GlanceTenancyImages(lambda: clients)


class Stored:
    """One image as Glance keeps it; ``statuses`` are what it shows, one for each answer, the last one for ever."""

    def __init__(self, wire, answer, **properties: object) -> None:
        self.record: dict[str, object] = {
            "id": "1",
            "name": "snapshot",
            "visibility": "private",
            "created_at": "2026-01-02T03:04:05Z",
            "min_disk": 0,
            "size": None,
            "virtual_size": None,
            **properties,
        }
        self.statuses = ["queued"]
        self._answer = answer
        wire.answers |= {f"GET {IMAGE}": self.show, f"PATCH {IMAGE}": self.change}

    def show(self, _):
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return self._answer(body=self.record | {"status": status})

    def change(self, request):
        for change in request.body:
            root, pointer = change["path"].split("/")
            assert root == ""
            name = pointer.replace("~1", "/").replace("~0", "~")
            if change["op"] == "remove":
                del self.record[name]
            else:
                self.record[name] = change["value"]
        return self.show(request)


@pytest.fixture
def stored(wire, answer):
    return lambda **properties: Stored(wire, answer, **properties)


def test_a_published_image_is_public_with_the_properties_given(images, stored, wire):
    image = stored(**OURS)

    published = images.publish("1", WANTED)

    assert image.record["visibility"] == "public"
    assert WANTED.items() <= image.record.items()
    assert published == Image(
        id="1",
        name="snapshot",
        state=ImageState.PENDING,
        size_gib=0,
        created_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        architecture="aarch64",
        virtualization="any",
        organization_id="organization",
        properties=OURS,
    )
    change = wire.seen("PATCH", IMAGE)[0]
    assert change.headers["Content-Type"] == "application/openstack-images-v2.1-json-patch"


def test_what_the_image_inherited_of_ours_is_removed_and_nothing_else(images, stored):
    inherited = {"unikorn:tag:old": "1", "unikorn:digest": "AAAA", "unikorn:tag:a/b~c": "2"}
    image = stored(**inherited, base_image_ref="other", os_type="linux")

    published = images.publish("1", WANTED)

    assert published.properties == OURS
    assert inherited.keys().isdisjoint(image.record)
    assert (image.record["base_image_ref"], image.record["os_type"]) == ("other", "linux")


def test_nobody_sees_the_image_between_two_changes(images, stored, wire):
    stored(**{"unikorn:tag:old": "1"})

    images.publish("1", WANTED)

    assert [request.method for request in wire.requests if request.path == IMAGE] == ["GET", "PATCH"]


def test_b76_property_names_reach_glance_as_they_are(images, stored):
    odd = {"unikorn:tag:a/b~1 %2F": "日本", "unikorn:tag:~0": ""}
    image = stored()

    images.publish("1", WANTED | odd)

    assert odd.items() <= image.record.items()


def test_an_upload_under_way_is_waited_for_because_its_end_would_undo_everything(images, stored, wire, monkeypatch):
    monkeypatch.setattr(glance, "UPLOAD_POLL_SECONDS", 0.001)
    image = stored()
    image.statuses = ["saving", "saving", "active"]

    assert images.publish("1", WANTED).state is ImageState.READY
    assert len(wire.seen("PATCH", IMAGE)) == 1


def test_an_upload_that_began_meanwhile_is_waited_for_too(images, stored, wire, monkeypatch):
    monkeypatch.setattr(glance, "UPLOAD_POLL_SECONDS", 0.001)
    image = stored()
    image.statuses = ["queued", "saving", "saving", "active"]

    assert images.publish("1", WANTED).state is ImageState.READY
    assert len(wire.seen("PATCH", IMAGE)) == 2


def test_an_upload_that_does_not_end_is_a_conflict_and_the_image_stays_private(images, stored, monkeypatch):
    monkeypatch.setattr(glance, "UPLOAD_POLL_SECONDS", 0.001)
    image = stored()
    image.statuses = ["saving"]

    with pytest.raises(StateConflict, match="uploaded"):
        images.publish("1", WANTED)
    assert image.record["visibility"] == "private"


def test_b61_waiting_for_an_upload_ends_with_the_deadline(images, stored):
    stored().statuses = ["saving"]

    with deadline.within(0.1), pytest.raises(TimedOut, match="glance"):
        images.publish("1", WANTED)


def test_b79_a_token_that_expires_halfway_is_renewed_and_is_in_no_log(images, stored, wire, caplog):
    caplog.set_level("DEBUG")
    image = stored()

    def show_and_expire(request):
        wire.valid_token = "another"
        return image.show(request)

    wire.answers[f"GET {IMAGE}"] = show_and_expire

    assert images.publish("1", WANTED).properties == OURS
    assert wire.log_ins == 2
    assert "gAAAAA" not in caplog.text


@pytest.mark.parametrize("answered", ["GET", "PATCH"])
@pytest.mark.parametrize(
    ("status", "expected"), [(403, Denied), (409, StateConflict), (503, Unavailable), (404, Unavailable)]
)
def test_a_failure_to_publish_is_the_callers(images, stored, wire, answer, answered, status, expected):
    stored()
    wire.answers[f"{answered} {IMAGE}"] = answer(status, "<html><h1>no</h1></html>")

    with pytest.raises(expected, match="glance"):
        images.publish("1", WANTED)


@pytest.mark.parametrize("answered", ["GET", "PATCH"])
def test_an_image_that_vanished_is_missing(images, stored, wire, answer, answered):
    stored()
    gone = "<html><head><title>404 Not Found</title></head><body><h1>404 Not Found</h1>No image found with ID 1<br/>"
    wire.answers[f"{answered} {IMAGE}"] = answer(404, gone)

    with pytest.raises(Missing, match=r"^glance: 404 Not Found No image found with ID 1$"):
        images.publish("1", WANTED)


@pytest.mark.parametrize("answered", ["GET", "PATCH"])
@pytest.mark.parametrize("body", ["", "{", [], {}, {"status": "queued", "visibility": "public"}])
def test_b37_an_answer_that_is_no_image_is_unavailable(images, stored, wire, answer, answered, body):
    stored()
    wire.answers[f"PATCH {IMAGE}"] = answer(200, {"status": "queued"})
    wire.answers[f"{answered} {IMAGE}"] = answer(200, body, {"Content-Type": "application/json"})

    with pytest.raises(Unavailable):
        images.publish("1", WANTED)


def test_an_image_is_deleted_by_its_id(images, wire, answer):
    wire.answers[f"DELETE {IMAGE}"] = answer(204, "")

    images.delete("1")

    assert len(wire.seen("DELETE", IMAGE)) == 1


@pytest.mark.parametrize("said", ["Failed to find image 1 to delete", "No image found with ID 1"])
def test_deleting_an_image_that_is_gone_is_no_error(images, wire, answer, said):
    wire.answers[f"DELETE {IMAGE}"] = answer(404, f"<html><h1>404 Not Found</h1>{said}<br/></html>")

    images.delete("1")

    assert len(wire.seen("DELETE", IMAGE)) == 1


@pytest.mark.parametrize("body", ["<html>The requested URL /v2/images/1 was not found</html>", {"message": "no"}, ""])
def test_a_404_that_is_not_glances_own_does_not_mean_that_the_image_is_gone(images, wire, answer, body):
    wire.answers[f"DELETE {IMAGE}"] = answer(404, body)

    with pytest.raises(Unavailable):
        images.delete("1")


@pytest.mark.parametrize(("status", "expected"), [(403, Denied), (409, StateConflict), (500, Unavailable)])
def test_an_image_that_cannot_be_deleted_is_a_failure(images, wire, answer, status, expected):
    wire.answers[f"DELETE {IMAGE}"] = answer(status, "")

    with pytest.raises(expected):
        images.delete("1")
