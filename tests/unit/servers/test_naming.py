"""The deterministic names of contract 4.6, and the cloud names of 6.2."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_api.servers import naming


@pytest.mark.parametrize(
    ("network_id", "name", "expected"),
    [
        ("aaaabbbb-1234-5678-9abc-def012345678", "test-server", "ed626a98-a0d7-5b9c-be46-a1083505313a"),
        ("aaaabbbb-1234-5678-9abc-def012345678", "other-server", "cf130a7f-6f3f-5b2d-ac0f-5fa0fe1d7fca"),
        ("bbbbcccc-1234-5678-9abc-def012345678", "test-server", "a15b8f54-aff6-5b87-8c62-0dd03288317d"),
        ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "web-0", "fe259b5e-8ccd-579f-b2ad-8dc4b919d738"),
        ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "web-1", "b2cbf219-8d79-585d-b67b-4ed676361c70"),
        ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "a", "e33b1119-4c8f-5203-b9b2-f57de07ac498"),
    ],
)
def test_c11_server_ids_are_those_of_the_contract(network_id: str, name: str, expected: str) -> None:
    assert naming.server_id(network_id, name) == expected


def test_the_network_may_be_written_in_any_form_of_a_uuid() -> None:
    assert naming.server_id("AAAABBBB123456789ABCDEF012345678", "test-server") == naming.server_id(
        "aaaabbbb-1234-5678-9abc-def012345678", "test-server"
    )


@given(network_id=st.uuids(), name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_server_id_begins_with_a_letter_and_is_a_version_5_uuid(network_id: UUID, name: str) -> None:
    result = naming.server_id(str(network_id), name)

    assert result[0] in "abcdef"
    assert UUID(result).version == 5
    assert str(UUID(result)) == result


@given(network_id=st.uuids(), name=st.from_regex(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True))
def test_c11_the_same_network_and_name_give_the_same_server_id(network_id: UUID, name: str) -> None:
    assert naming.server_id(str(network_id), name) == naming.server_id(str(network_id), name)


@given(
    one=st.tuples(st.uuids(), st.from_regex(r"[a-zA-Z0-9-]{1,63}", fullmatch=True)),
    other=st.tuples(st.uuids(), st.from_regex(r"[a-zA-Z0-9-]{1,63}", fullmatch=True)),
)
def test_c12_another_network_or_name_gives_another_server_id(one: tuple[UUID, str], other: tuple[UUID, str]) -> None:
    same = naming.server_id(str(one[0]), one[1]) == naming.server_id(str(other[0]), other[1])

    assert same == (one == other)


def test_c12_the_case_of_a_name_counts() -> None:
    network_id = "aaaabbbb-1234-5678-9abc-def012345678"

    assert naming.server_id(network_id, "Web") != naming.server_id(network_id, "web")


def test_cloud_names_are_those_of_the_contract() -> None:
    assert naming.cloud_network("N") == "network-N"
    assert naming.cloud_security_group("G") == "securitygroup-G"
    assert naming.cloud_port("S") == "server-S"
    assert naming.SSH_KEY_NAME == "unikorn-openstack-provider"
