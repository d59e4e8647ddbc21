"""Contract 6.9 and 6.10: which images are exported, and as what."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from server_api.cloud.images import exported_images, image_from
from server_api.servers.cloud_model import ImageState

PROPERTIES = {
    "unikorn:os:kernel": "linux",
    "unikorn:os:family": "debian",
    "unikorn:os:distro": "ubuntu",
    "unikorn:os:version": "24.04",
    "unikorn:virtualization": "any",
}
GPU = {
    "unikorn:gpu_vendor": "NVIDIA",
    "unikorn:gpu_models": "A100,H100",
    "unikorn:gpu_driver_version": "570.1",
}


def record(**more: object) -> dict[str, object]:
    merged = {
        "id": "1",
        "name": "ubuntu",
        "status": "active",
        "visibility": "public",
        "min_disk": 10,
        "virtual_size": None,
        "created_at": "2026-01-02T03:04:05Z",
        **PROPERTIES,
        **more,
    }
    return {name: value for name, value in merged.items() if value is not ...}


def test_a_well_formed_image_is_converted():
    image = image_from(record(architecture="aarch64", owner="somebody"))

    assert image is not None
    assert (image.id, image.name, image.state, image.size_gib) == ("1", "ubuntu", ImageState.READY, 10)
    assert (image.architecture, image.virtualization, image.organization_id) == ("aarch64", "any", None)
    assert image.created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert image.properties == PROPERTIES


def test_an_image_without_architecture_or_virtualization_is_visible_and_says_so():
    image = image_from(record(**{"unikorn:virtualization": ...}))

    assert image is not None
    assert (image.architecture, image.virtualization) == (None, None)


def test_an_unknown_virtualization_is_kept_for_the_rules_to_refuse():
    assert image_from(record(**{"unikorn:virtualization": "virtualised"})).virtualization == "virtualised"


def test_b15_an_unknown_architecture_is_kept_for_the_rules_to_refuse():
    assert image_from(record(architecture="weird")).architecture == "weird"


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() - {"unikorn:virtualization"}))
def test_i01_an_image_lacking_a_required_property_is_invisible(name):
    assert image_from(record(**{name: ...})) is None


@pytest.mark.parametrize(
    "properties",
    [
        {"unikorn:os:kernel": "darwin"},
        {"unikorn:os:version": 24},
        {"unikorn:os:family": ""},
        {"unikorn:package:kubernetes": "1.2.3"},
        {"unikorn:package:slurmd": "v1.2"},
        {"unikorn:kubernetes_version": "v1"},
        {"unikorn:tag:size": 3},
        {"unikorn:organization:id": None},
        {"visibility": "private"},
        {"visibility": ...},
        {"min_disk": "many"},
        {"created_at": "yesterday"},
        {"created_at": ...},
        {"status": ...},
        {"id": ...},
    ],
)
def test_i02_a_malformed_image_is_invisible(properties):
    assert image_from(record(**properties)) is None


@pytest.mark.parametrize(
    "properties",
    [
        {"unikorn:gpu_models": ...},
        {"unikorn:gpu_driver_version": ...},
        {"unikorn:gpu_driver_version": ""},
        {"unikorn:gpu_vendor": "Intel"},
        {"unikorn:gpu_models": "A100 H100"},
        {"unikorn:gpu_models": ""},
    ],
)
def test_i03_an_image_with_half_a_gpu_is_invisible(properties):
    assert image_from(record(**GPU)) is not None
    assert image_from(record(**(GPU | properties))) is None


@pytest.mark.parametrize(
    "properties",
    [
        {"unikorn:package:kubernetes": "v1.2.3"},
        {"unikorn:package:other": "any text"},
        {"unikorn:kubernetes_version": "v1.2.3"},
        {"unikorn:package:kubernetes": "v1.2.3", "unikorn:kubernetes_version": "old"},
        {"unikorn:tag:a.b-c_d": "value"},
    ],
)
def test_optional_properties_are_kept(properties):
    assert image_from(record(**properties)).properties == PROPERTIES | properties


@pytest.mark.parametrize(
    ("min_disk", "virtual_size", "expected"),
    [
        (10, 99 * 2**30, 10),
        (0, 2**30, 1),
        (0, 2**30 + 1, 2),
        (0, 1, 1),
        (0, 0, 0),
        (0, None, 0),
        (None, None, 0),
        (..., ..., 0),
    ],
)
def test_the_size_is_min_disk_or_the_virtual_size_rounded_up(min_disk, virtual_size, expected):
    assert image_from(record(min_disk=min_disk, virtual_size=virtual_size)).size_gib == expected


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("queued", ImageState.PENDING),
        ("saving", ImageState.CREATING),
        ("importing", ImageState.CREATING),
        ("uploading", ImageState.CREATING),
        ("active", ImageState.READY),
        ("killed", ImageState.FAILED),
        ("deleted", ImageState.FAILED),
        ("pending_delete", ImageState.FAILED),
        ("deactivated", ImageState.FAILED),
        ("invented later", ImageState.FAILED),
    ],
)
def test_glances_status_becomes_a_state(status, state):
    assert image_from(record(status=status)).state is state


@pytest.mark.parametrize(("owner", "expected"), [(..., None), ("", None), ("o1", "o1")])
def test_the_owner_is_the_organization_property(owner, expected):
    assert image_from(record(**{"unikorn:organization:id": owner})).organization_id == expected


def test_images_come_oldest_first_and_malformed_ones_do_not_hide_the_rest():
    records = [
        record(id="new", created_at="2026-02-01T00:00:00Z"),
        record(id="broken", **{"unikorn:os:kernel": ...}),
        record(id="old", created_at="2025-01-01T00:00:00Z"),
    ]

    assert [image.id for image in exported_images(records, None)] == ["old", "new"]


KEY = ec.generate_private_key(ec.SECP256R1())


def pem(key) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def signed(id_: str, signature_of: str, key=KEY) -> dict[str, object]:
    digest = base64.b64encode(key.sign(signature_of.encode(), ec.ECDSA(SHA256()))).decode()
    return record(id=id_, **{"unikorn:digest": digest})


def visible(*records, signing_key: str) -> list[str]:
    return [image.id for image in exported_images(records, signing_key)]


def test_with_a_signing_key_ownerless_images_must_verify():
    assert visible(signed("1", "1"), record(id="2"), signing_key=pem(KEY)) == ["1"]


def test_i06_a_signature_for_another_image_is_invalid():
    assert visible(signed("1", "2"), signing_key=pem(KEY)) == []


def test_a_signature_by_another_key_is_invalid():
    assert visible(signed("1", "1", ec.generate_private_key(ec.SECP256R1())), signing_key=pem(KEY)) == []


@pytest.mark.parametrize("digest", ["", "no base64!", "AAAA", "日本"])
def test_a_malformed_signature_is_invalid(digest):
    assert visible(record(**{"unikorn:digest": digest}), signing_key=pem(KEY)) == []


def test_owned_images_need_no_signature():
    assert visible(record(id="1", **{"unikorn:organization:id": "o"}), signing_key=pem(KEY)) == ["1"]


@pytest.mark.parametrize("signing_key", ["", "no key", pem(ed25519.Ed25519PrivateKey.generate())])
def test_an_unusable_signing_key_verifies_nothing_and_is_reported(signing_key, caplog):
    owned = record(id="2", **{"unikorn:organization:id": "o"})

    assert visible(signed("1", "1"), owned, signing_key=signing_key) == ["2"]
    assert "signing key" in caplog.text
