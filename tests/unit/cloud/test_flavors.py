"""Contract 6.7: which flavors are exported, and as what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_api.cloud.flavors import exported_flavors
from server_api.servers.cloud_model import Flavor
from server_api.servers.surroundings import FlavorMetadata, Region

REGION = Region("r", "r", "openstack", "http://keystone", "namespace", "secret")


def record(id_: str, name: str = "small", *, public: bool = True, **more: object) -> dict[str, object]:
    return {"id": id_, "name": name, "vcpus": 2, "ram": 4096, "disk": 20, "os-flavor-access:is_public": public, **more}


def test_a_flavor_without_metadata_is_a_virtual_x86():
    assert exported_flavors([record("1")], REGION) == [Flavor("1", "small", 2, 4096, 20, architecture="x86_64")]


def test_metadata_overrides_what_nova_says():
    metadata = FlavorMetadata(
        "1",
        baremetal=True,
        pinned_only=True,
        architecture="aarch64",
        cpu_count=64,
        cpu_family="Neoverse",
        memory_bytes=256 * 2**30 + 2**19,
    )

    assert exported_flavors([record("1")], replace(REGION, flavor_metadata=(metadata,))) == [
        Flavor(
            "1",
            "small",
            cpus=64,
            memory_mib=262_144,
            disk_gb=20,
            architecture="aarch64",
            baremetal=True,
            pinned_only=True,
            cpu_family="Neoverse",
        )
    ]


def test_metadata_of_another_flavor_changes_nothing():
    region = replace(REGION, flavor_metadata=(FlavorMetadata("2", baremetal=True),))

    assert not exported_flavors([record("1")], region)[0].baremetal


def test_private_flavors_are_not_exported_even_when_selected():
    region = replace(REGION, flavor_ids=frozenset({"1", "2"}))

    assert [flavor.id for flavor in exported_flavors([record("1", public=False), record("2")], region)] == ["2"]


@pytest.mark.parametrize(
    ("selected", "expected"), [(None, ["1", "2"]), (frozenset(), ["1", "2"]), (frozenset({"2", "9"}), ["2"])]
)
def test_only_selected_flavors_are_exported(selected, expected):
    flavors = exported_flavors([record("1"), record("2")], replace(REGION, flavor_ids=selected))

    assert [flavor.id for flavor in flavors] == expected


def test_flavors_are_sorted_by_name():
    flavors = exported_flavors([record("1", "b"), record("2", "a"), record("3", "c")], REGION)

    assert [flavor.name for flavor in flavors] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"extra_specs": {"resources:CUSTOM_NODE": "1"}}, {"resources:CUSTOM_NODE": "1"}),
        ({"extra_specs": {}}, {}),
        ({"extra_specs": None}, {}),
        ({}, {}),
    ],
)
def test_extra_specs_are_kept_where_nova_shows_them(more, expected):
    assert exported_flavors([record("1", **more)], REGION)[0].extra_specs == expected


def test_a_disk_of_zero_means_none_is_named():
    assert exported_flavors([record("1", disk=0)], REGION)[0].disk_gb is None
