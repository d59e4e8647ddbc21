"""The policy: roles, and who has them where."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.access.acl import Acl
from server_api.access.policy import InvalidPolicy, Policy

ROLES = {
    "user": [{"name": "region:servers", "operations": ["create", "read"]}],
    "reader": [{"name": "region:servers", "operations": ["read"]}],
}


def policy(*bindings: dict[str, Any]) -> Policy:
    return Policy.from_document({"roles": ROLES, "bindings": list(bindings)})


def allows(acl: Acl, operation: str, organization: str = "O1", project: str | None = "P1") -> bool:
    return acl.allows("region:servers", operation, organization, project)


def test_a_binding_holds_in_its_project_and_nowhere_else() -> None:
    acl = policy({"role": "user", "subjects": ["alice"], "organization": "O1", "project": "P1"}).of_user("alice", [])

    assert allows(acl, "create")
    assert not allows(acl, "create", project="P2")
    assert not allows(acl, "create", project=None)
    assert not allows(acl, "create", organization="O2")
    assert not allows(acl, "delete")


def test_a_binding_to_an_organization_holds_in_all_of_its_projects() -> None:
    acl = policy({"role": "reader", "subjects": ["alice"], "organization": "O1"}).of_user("alice", [])

    assert allows(acl, "read", project="P9")
    assert allows(acl, "read", project=None)
    assert not allows(acl, "read", organization="O2")
    assert not allows(acl, "create")


def test_a_binding_may_hold_everywhere() -> None:
    acl = policy({"role": "reader", "subjects": ["alice"], "everywhere": True}).of_user("alice", [])

    assert allows(acl, "read", "O9", "P9")
    assert acl.organizations == {}


def test_a_user_has_the_rights_of_all_its_groups_and_its_own_together() -> None:
    found = policy(
        {"role": "reader", "subjects": ["alice"], "organization": "O1", "project": "P1"},
        {"role": "user", "groups": ["developers"], "organization": "O1", "project": "P1"},
        {"role": "reader", "groups": ["auditors"], "organization": "O2"},
        {"role": "user", "groups": ["others"], "everywhere": True},
    )

    acl = found.of_user("alice", ["developers", "auditors", "unknown"])
    assert allows(acl, "create")
    assert allows(acl, "read", "O2", "P5")
    assert not allows(acl, "create", "O2", "P5")
    assert found.of_user("bob", []) == Acl()


def test_subjects_groups_and_services_of_one_name_are_not_mistaken_for_each_other() -> None:
    found = policy(
        {"role": "user", "subjects": ["x"], "organization": "subjects"},
        {"role": "user", "groups": ["x"], "organization": "groups"},
        {"role": "user", "services": ["x"], "organization": "services"},
    )

    assert set(found.of_user("x", []).organizations) == {"subjects"}
    assert set(found.of_user("y", ["x"]).organizations) == {"groups"}
    assert set(found.of_service("x").organizations) == {"services"}
    assert set(found.of_actor("x", "user").organizations) == {"subjects"}
    assert found.of_service("y") == found.of_actor("y", "") == Acl()


BINDING = {"role": "user", "subjects": ["alice"], "organization": "O1"}


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (None, "policy: not an object"),
        ([], "policy: not an object"),
        ({"roles": ROLES, "bindings": [], "extra": 1}, "policy.extra: only bindings, roles are known"),
        ({"bindings": []}, "roles: not an object"),
        ({"roles": ROLES}, "bindings: a list is required"),
        ({"roles": {7: []}, "bindings": []}, "roles: a text is required"),
        ({"roles": {"r": "read"}, "bindings": []}, "roles.r: not a list"),
        (
            {"roles": {"r": [{"name": "n", "operations": ["write"]}]}, "bindings": []},
            r"roles\.r\[0\]\.operations: only",
        ),
        ({"roles": ROLES, "bindings": ["x"]}, r"bindings\[0\]: not an object"),
        ({"roles": ROLES, "bindings": [BINDING | {"subject": "x"}]}, r"bindings\[0\]\.subject: only"),
        ({"roles": ROLES, "bindings": [BINDING | {"role": "root"}]}, r"bindings\[0\]\.role: the name of one"),
        ({"roles": ROLES, "bindings": [BINDING | {"role": ["user"]}]}, r"bindings\[0\]\.role: the name of one"),
        ({"roles": ROLES, "bindings": [BINDING | {"subjects": []}]}, r"bindings\[0\]: names nobody"),
        ({"roles": ROLES, "bindings": [BINDING | {"subjects": "alice"}]}, r"bindings\[0\]\.subjects: not a list"),
        ({"roles": ROLES, "bindings": [BINDING | {"subjects": [""]}]}, r"bindings\[0\]\.subjects: a text"),
        ({"roles": ROLES, "bindings": [BINDING | {"groups": [7]}]}, r"bindings\[0\]\.groups: a text"),
        ({"roles": ROLES, "bindings": [BINDING | {"project": None}]}, r"bindings\[0\]\.project: a text"),
        ({"roles": ROLES, "bindings": [BINDING | {"everywhere": True}]}, r"bindings\[0\]: either an organization or"),
        ({"roles": ROLES, "bindings": [BINDING | {"everywhere": "yes"}]}, r"bindings\[0\]\.everywhere: only true"),
        ({"roles": ROLES, "bindings": [BINDING, {"role": "user", "subjects": ["a"]}]}, r"bindings\[1\]: either"),
        (
            {"roles": ROLES, "bindings": [{"role": "user", "subjects": ["a"], "everywhere": True, "project": "P"}]},
            r"bindings\[0\]\.project: needs its organization",
        ),
    ],
)
def test_a_document_of_another_shape_is_refused_by_its_place(document: object, place: str) -> None:
    with pytest.raises(InvalidPolicy, match=f"^{place}"):
        Policy.from_document(document)
