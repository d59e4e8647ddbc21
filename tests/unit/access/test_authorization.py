"""The caller of one request."""

from __future__ import annotations

import pytest

from server_api.access.acl import Acl
from server_api.access.authorization import AuthorizedCaller
from server_api.access.principal import Principal

PROJECT_READER = Acl.from_document(
    {
        "organizations": [
            {"id": "O1", "projects": [{"id": "P1", "endpoints": [{"name": "n", "operations": ["read"]}]}]},
            {"id": "O2"},
        ]
    }
)


def caller(acl: Acl) -> AuthorizedCaller:
    return AuthorizedCaller(Principal(subject="alice", account_type="user", acl=acl))


def test_the_subject_acts_for_itself() -> None:
    assert (caller(Acl()).subject, caller(Acl()).actor) == ("alice", "alice")


def test_the_organizations_are_those_the_acl_names_with_or_without_rights_in_them() -> None:
    assert caller(PROJECT_READER).organization_ids == {"O1", "O2"}
    assert caller(Acl(everywhere=frozenset({("n", "read")}))).organization_ids == frozenset()


@pytest.mark.parametrize(
    ("operation", "organization_id", "project_id", "allowed"),
    [
        ("read", "O1", "P1", True),
        ("update", "O1", "P1", False),
        ("read", "O1", "P2", False),
        ("read", "O1", None, False),
        ("read", "O2", "P1", False),
    ],
)
def test_the_acl_decides(operation: str, organization_id: str, project_id: str | None, allowed: bool) -> None:
    assert caller(PROJECT_READER).may("n", operation, organization_id, project_id) is allowed


@pytest.mark.parametrize("operation", ["read", "update"])
def test_any_answer_of_the_acl_counts_as_consulted(operation: str) -> None:
    asked = caller(PROJECT_READER)

    assert not asked.consulted
    asked.may("n", operation, "O1", "P1")
    assert asked.consulted


def test_looking_at_who_calls_does_not_count_as_consulted() -> None:
    looked_at = caller(PROJECT_READER)

    assert looked_at.subject
    assert looked_at.actor
    assert not looked_at.consulted


def test_restricting_a_list_to_the_callers_organizations_counts_as_consulted() -> None:
    restricted = caller(PROJECT_READER)

    assert restricted.organization_ids
    assert restricted.consulted


def test_the_first_question_says_whose_object_it_is_about_and_the_last_refusal_what_is_lacking() -> None:
    asked = caller(PROJECT_READER)

    assert (asked.concerned, asked.lacking) == (None, None)
    asked.may("n", "read", "O1", "P1")
    assert (asked.concerned, asked.lacking) == (("O1", "P1"), None)
    asked.may("n", "update", "O1", None)
    asked.granted_at("m", "create", "O2", "P2")
    asked.may("n", "read", "O1", "P1")
    assert (asked.concerned, asked.lacking) == (("O1", "P1"), ("m", "create"))
