"""The tag selector of contract 2.15 and the instance metadata of 6.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_api.servers import tags
from server_api.servers.model import Tag
from tests.unit.servers.builders import ORGANIZATION, PROJECT, REGION, SERVER, server, spec

A1, A2, B1, B2 = Tag("a", "1"), Tag("a", "2"), Tag("b", "1"), Tag("b", "2")
few_tags = st.lists(st.builds(Tag, st.sampled_from(["a", "b", ""]), st.sampled_from(["1", "2", ""])), max_size=5)


@pytest.mark.parametrize(
    ("selectors", "present", "expected"),
    [
        ([], [], True),
        ([], [A1], True),
        ([A1], [A1], True),
        ([A1, B2], [A1, B2], True),
        ([B2, A1], [A1, B2, B1], True),
        ([A1], [], False),
        ([A1, B2], [A1], False),
        ([A2], [A1, B2], False),
        ([B1], [A1, B2], False),
        ([A1, A2], [A1], False),
        ([A1, A2], [A2, A1], True),
        ([Tag("", "")], [A1], False),
        ([Tag("", "")], [Tag("", "")], True),
        ([Tag("A", "1")], [A1], False),
    ],
)
def test_r14_r15_every_selector_must_equal_some_tag(selectors: list[Tag], present: list[Tag], expected: bool) -> None:
    assert tags.match(selectors, present) is expected


@given(few_tags, few_tags)
def test_selecting_is_being_a_subset(selectors: list[Tag], present: list[Tag]) -> None:
    assert tags.match(selectors, present) is (set(selectors) <= set(present))


@given(few_tags, few_tags, few_tags)
def test_one_more_selector_never_selects_more(selectors: list[Tag], more: list[Tag], present: list[Tag]) -> None:
    assert tags.match(selectors, present) or not tags.match([*selectors, *more], present)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("compute.unikorn-cloud.org/instance-id", "compute:instance_id"),
        ("my-service.unikorn-cloud.org/foo-bar", "my-service:foo_bar"),
        ("a.b/c", "a:c"),
        ("0.b/0", "0:0"),
        ("a-.b/c-d-", "a-:c_d_"),
        ("a.B_c d/e", "a:e"),
        ("a.b.c.d/e", "a:e"),
    ],
)
def test_a_tag_of_the_right_form_becomes_metadata(name: str, key: str) -> None:
    metadata = tags.instance_metadata(server(spec(tags=(Tag(name, "Value 1"),))))

    assert metadata[key] == "Value 1"
    assert len(metadata) == 9


@pytest.mark.parametrize(
    "name",
    [
        "Compute.unikorn-cloud.org/id",
        "instance-id",
        "compute.unikorn-cloud.org",
        "compute.unikorn-cloud.org/",
        "compute./id",
        "compute/id",
        ".unikorn-cloud.org/id",
        "-compute.unikorn-cloud.org/id",
        "compute.unikorn-cloud.org/-id",
        "compute.unikorn-cloud.org/Id",
        "compute.unikorn-cloud.org/a_b",
        "compute.unikorn-cloud.org/a/b",
        "com_pute.unikorn-cloud.org/id",
        "compute.unikorn-cloud.org/id\n",
        " compute.unikorn-cloud.org/id",
        "",
    ],
)
def test_any_other_tag_is_left_out_of_the_metadata(name: str) -> None:
    assert tags.instance_metadata(server(spec(tags=(Tag(name, "x"),)))) == tags.instance_metadata(server())


def test_the_instance_carries_whose_it_is() -> None:
    assert tags.instance_metadata(server()) == {
        "serverID": SERVER,
        "organizationID": ORGANIZATION,
        "projectID": PROJECT,
        "regionID": REGION,
        "region:server_id": SERVER,
        "identity:organization_id": ORGANIZATION,
        "identity:project_id": PROJECT,
        "region:region_id": REGION,
    }


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("identity.unikorn-cloud.org/organization-id", "identity:organization_id"),
        ("identity.unikorn-cloud.org/project-id", "identity:project_id"),
        ("region.unikorn-cloud.org/server-id", "region:server_id"),
        ("region.unikorn-cloud.org/region-id", "region:region_id"),
    ],
)
def test_k23_no_tag_passes_for_our_own_metadata(name: str, key: str) -> None:
    metadata = tags.instance_metadata(server(spec(tags=(Tag(name, "attacker"),))))

    assert metadata[key] == tags.instance_metadata(server())[key]
    assert "attacker" not in metadata.values()


def test_metadata_of_a_server_without_a_region_is_text_all_the_same() -> None:
    metadata = tags.instance_metadata(server(region_id=None))

    assert (metadata["regionID"], metadata["region:region_id"]) == ("", "")


@pytest.mark.parametrize(
    "tag",
    [Tag("a.b/c", "x" * 256), Tag(f"a.b/{'c' * 252}", "x")],
    ids=["value", "name"],
)
def test_b46_what_nova_would_not_take_as_metadata_is_left_out(tag: Tag) -> None:
    assert tags.instance_metadata(server(spec(tags=(tag,)))) == tags.instance_metadata(server())


def test_b46_the_longest_value_that_nova_takes_is_passed_on() -> None:
    assert tags.instance_metadata(server(spec(tags=(Tag("a.b/c", "x" * 255),))))["a:c"] == "x" * 255
