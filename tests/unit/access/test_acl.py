"""Reading an access control list and asking it (contract 5.3)."""

from __future__ import annotations

import pytest

from server_api.access.acl import Acl, InvalidAcl
from server_api.servers.ports import GrantScope

READ = {"name": "region:servers", "operations": ["read"]}
CREATE = {"name": "region:servers", "operations": ["create"]}


def test_the_document_of_the_contract_is_read() -> None:
    acl = Acl.from_document(
        {
            "global": [{"name": "g", "operations": ["read"]}],
            "organizations": [
                {"id": "O1", "endpoints": [READ], "projects": [{"id": "P1", "endpoints": [CREATE]}]},
                {"id": "O2"},
            ],
        }
    )

    assert acl.everywhere == {("g", "read")}
    assert set(acl.organizations) == {"O1", "O2"}
    assert acl.organizations["O1"].grants == {("region:servers", "read")}
    assert acl.organizations["O1"].projects == {"P1": {("region:servers", "create")}}
    assert acl.organizations["O2"].grants == frozenset()


def test_every_operation_of_an_endpoint_is_granted() -> None:
    acl = Acl.from_document({"global": [{"name": "n", "operations": ["create", "read", "update", "delete"]}]})

    assert acl.everywhere == {("n", operation) for operation in ("create", "read", "update", "delete")}


@pytest.mark.parametrize("document", [{}, {"global": None, "organizations": None}, {"organizations": []}])
def test_an_empty_document_grants_nothing(document: object) -> None:
    assert Acl.from_document(document) == Acl()
    assert not Acl.from_document(document).allows("region:servers", "read", "O1", "P1")


def test_the_singular_members_are_ignored() -> None:
    document = {
        "organization": {"id": "O1", "endpoints": [READ]},
        "projects": [{"id": "P1", "endpoints": [READ]}],
        "something": "newer",
    }

    assert Acl.from_document(document) == Acl()


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (None, "acl"),
        ([], "acl"),
        ("acl", "acl"),
        ({"global": {}}, "global"),
        ({"global": "region:servers"}, "global"),
        ({"global": ["region:servers"]}, r"global\[0\]"),
        ({"global": [{"operations": ["read"]}]}, r"global\[0\]\.name"),
        ({"global": [{"name": "", "operations": ["read"]}]}, r"global\[0\]\.name"),
        ({"global": [{"name": 7, "operations": ["read"]}]}, r"global\[0\]\.name"),
        ({"global": [{"name": "n", "operations": "read"}]}, r"global\[0\]\.operations"),
        ({"global": [{"name": "n", "operations": ["write"]}]}, r"global\[0\]\.operations"),
        ({"global": [READ, {"name": "n", "operations": ["READ"]}]}, r"global\[1\]\.operations"),
        ({"organizations": {}}, "organizations"),
        ({"organizations": ["O1"]}, r"organizations\[0\]"),
        ({"organizations": [{"endpoints": []}]}, r"organizations\[0\]\.id"),
        ({"organizations": [{"id": ""}]}, r"organizations\[0\]\.id"),
        ({"organizations": [{"id": "O1", "endpoints": {}}]}, r"organizations\[0\]\.endpoints"),
        ({"organizations": [{"id": "O1", "projects": {}}]}, r"organizations\[0\]\.projects"),
        ({"organizations": [{"id": "O1", "projects": ["P1"]}]}, r"organizations\[0\]\.projects\[0\]"),
        ({"organizations": [{"id": "O1", "projects": [{}]}]}, r"organizations\[0\]\.projects\[0\]\.id"),
        (
            {"organizations": [{"id": "O1", "projects": [{"id": "P1", "endpoints": [{}]}]}]},
            r"organizations\[0\]\.projects\[0\]\.endpoints\[0\]\.name",
        ),
    ],
)
def test_a_document_of_another_shape_is_refused_by_its_place(document: object, place: str) -> None:
    with pytest.raises(InvalidAcl, match=f"^{place}: "):
        Acl.from_document(document)


@pytest.mark.parametrize("operation", [["read"], {"read": True}])
def test_an_operation_that_is_no_text_is_refused(operation: object) -> None:
    with pytest.raises(InvalidAcl):
        Acl.from_document({"global": [{"name": "n", "operations": [operation]}]})


def test_an_endpoint_without_operations_is_refused() -> None:
    with pytest.raises(InvalidAcl, match=r"global\[0\]\.operations"):
        Acl.from_document({"global": [{"name": "n"}]})


def test_an_organization_named_twice_has_the_rights_of_both_entries() -> None:
    acl = Acl.from_document(
        {
            "organizations": [
                {"id": "O1", "endpoints": [READ], "projects": [{"id": "P1", "endpoints": [CREATE]}]},
                {"id": "O1", "endpoints": [CREATE]},
            ]
        }
    )

    assert acl.allows("region:servers", "read", "O1")
    assert acl.allows("region:servers", "create", "O1", "P1")


IN_ALL_SCOPES = {
    "global": [READ],
    "organizations": [
        {"id": "O1", "endpoints": [CREATE], "projects": [{"id": "P1", "endpoints": [READ, CREATE]}]},
        {"id": "O2", "projects": [{"id": "P2", "endpoints": [CREATE]}]},
    ],
}


@pytest.mark.parametrize(
    ("operation", "organization", "project", "scopes"),
    [
        ("read", "O1", "P1", {GrantScope.GLOBAL, GrantScope.PROJECT}),
        ("create", "O1", "P1", {GrantScope.ORGANIZATION, GrantScope.PROJECT}),
        ("create", "O1", "P9", {GrantScope.ORGANIZATION}),
        ("create", "O2", "P2", {GrantScope.PROJECT}),
        ("create", "O2", "P9", set()),
        ("read", "O9", "P9", {GrantScope.GLOBAL}),
        ("delete", "O1", "P1", set()),
    ],
)
def test_a_right_is_granted_at_every_scope_that_covers_the_project(
    operation: str, organization: str, project: str, scopes: set[GrantScope]
) -> None:
    acl = Acl.from_document(IN_ALL_SCOPES)

    assert acl.granted_at("region:servers", operation, organization, project) == scopes
    assert acl.allows("region:servers", operation, organization, project) == bool(scopes)


def test_a_limit_takes_away_at_every_scope_and_organizations_stay_named() -> None:
    acl = Acl.from_document(IN_ALL_SCOPES)

    only_create = acl.limited_to(frozenset({("region:servers", "create")}))
    assert only_create.everywhere == frozenset()
    assert only_create.organizations["O1"].grants == {("region:servers", "create")}
    assert only_create.organizations["O1"].projects == {"P1": {("region:servers", "create")}}

    nothing = acl.limited_to(frozenset())
    assert set(nothing.organizations) == {"O1", "O2"}
    assert not nothing.allows("region:servers", "read", "O1", "P1")


def test_a_union_grants_what_any_of_them_grants() -> None:
    lists = [
        Acl.from_document({"global": [READ]}),
        Acl.from_document({"organizations": [{"id": "O1", "projects": [{"id": "P1", "endpoints": [CREATE]}]}]}),
        Acl.from_document({"organizations": [{"id": "O1", "endpoints": [READ], "projects": [{"id": "P1"}]}]}),
        Acl.from_document({"organizations": [{"id": "O2"}]}),
    ]

    union = Acl.union(lists)

    assert union.everywhere == {("region:servers", "read")}
    assert set(union.organizations) == {"O1", "O2"}
    assert union.organizations["O1"].grants == {("region:servers", "read")}
    assert union.organizations["O1"].projects == {"P1": {("region:servers", "create")}}
    assert Acl.union([]) == Acl()
