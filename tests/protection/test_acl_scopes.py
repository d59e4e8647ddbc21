"""Who may do what where: a grant at a wider scope satisfies a narrower check, and nothing else does (contract 5.3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_api.access.acl import OPERATIONS, Acl

PERMISSIONS = [
    "region:servers",
    "region:servers:v2",
    "region:servers:v2/provider-create-gates",
    "region:networks:v2",
    "region:securitygroups:v2",
    "region:sshcertificateauthorities:v2",
    "region:images",
]


def granted(scope: str, permission: str, operation: str) -> Acl:
    endpoints = [{"name": permission, "operations": [operation]}]
    documents: dict[str, dict[str, Any]] = {
        "nothing": {"organizations": [{"id": "O1", "projects": [{"id": "P1"}]}]},
        "global": {"global": endpoints},
        "organization": {"organizations": [{"id": "O1", "endpoints": endpoints}]},
        "project": {"organizations": [{"id": "O1", "projects": [{"id": "P1", "endpoints": endpoints}]}]},
    }
    return Acl.from_document(documents[scope])


@pytest.mark.parametrize(
    ("scope", "organization_id", "project_id", "allowed"),
    [
        ("nothing", "O1", "P1", False),
        ("nothing", "O1", None, False),
        ("global", "O1", "P1", True),
        ("global", "O1", None, True),
        ("global", "O2", "P2", True),
        ("global", "", None, True),
        ("organization", "O1", "P1", True),
        ("organization", "O1", "P2", True),
        ("organization", "O1", None, True),
        ("organization", "O2", "P1", False),
        ("organization", "O2", None, False),
        ("organization", "", None, False),
        ("project", "O1", "P1", True),
        ("project", "O1", "P2", False),
        ("project", "O1", None, False),
        ("project", "O1", "", False),
        ("project", "O2", "P1", False),
        ("project", "", "P1", False),
    ],
)
@pytest.mark.parametrize("permission", PERMISSIONS)
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_grant_holds_at_its_scope_and_below(
    permission: str, operation: str, scope: str, organization_id: str, project_id: str | None, allowed: bool
) -> None:
    acl = granted(scope, permission, operation)

    assert acl.allows(permission, operation, organization_id, project_id) is allowed


@pytest.mark.parametrize("scope", ["global", "organization", "project"])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_grant_is_for_one_permission_and_one_operation(scope: str, operation: str) -> None:
    acl = granted(scope, "region:servers", operation)

    allowed = {
        (permission, asked)
        for permission in PERMISSIONS
        for asked in OPERATIONS
        if acl.allows(permission, asked, "O1", "P1")
    }
    assert allowed == {("region:servers", operation)}


@pytest.mark.parametrize("asked", ["region:server", "region:servers ", "Region:Servers", "region:*", "*", ""])
def test_permissions_are_compared_as_a_whole(asked: str) -> None:
    assert not granted("global", "region:servers", "read").allows(asked, "read", "O1", "P1")


def test_the_operations_are_those_of_the_contract() -> None:
    assert {"create", "read", "update", "delete"} == OPERATIONS


few = st.sampled_from(["A", "B"])
endpoint_lists = st.lists(
    st.fixed_dictionaries({"name": few, "operations": st.lists(st.sampled_from(["read", "update"]), max_size=2)}),
    max_size=2,
)
projects = st.lists(
    st.fixed_dictionaries({"id": few, "endpoints": endpoint_lists}), max_size=2, unique_by=lambda p: p["id"]
)
organizations = st.lists(
    st.fixed_dictionaries({"id": few, "endpoints": endpoint_lists, "projects": projects}),
    max_size=2,
    unique_by=lambda o: o["id"],
)
documents = st.fixed_dictionaries({"global": endpoint_lists, "organizations": organizations})


@given(documents, few, st.sampled_from(["read", "update"]), few, st.none() | few)
def test_any_document_decides_as_the_contract_says(
    document: dict[str, Any], permission: str, operation: str, organization_id: str, project_id: str | None
) -> None:
    lists = [document["global"]]
    for organization in document["organizations"]:
        if organization["id"] == organization_id:
            lists.append(organization["endpoints"])
            lists.extend(project["endpoints"] for project in organization["projects"] if project["id"] == project_id)
    expected = any(
        endpoint["name"] == permission and operation in endpoint["operations"]
        for endpoints in lists
        for endpoint in endpoints
    )

    assert Acl.from_document(document).allows(permission, operation, organization_id, project_id) is expected
