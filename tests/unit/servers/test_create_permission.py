"""The right to create in a project (contract 5.5), and what a new server is attributed to (4.2)."""

from __future__ import annotations

import pytest

from server_api.servers import create_permission
from server_api.servers.errors import Forbidden, NotFound, Unverified
from server_api.servers.ports import Denied, GrantScope, Missing, PortError, TimedOut, Unavailable
from tests.doubles.caller import Check, StubCaller

GLOBAL, ORGANIZATION, PROJECT = GrantScope.GLOBAL, GrantScope.ORGANIZATION, GrantScope.PROJECT


@pytest.mark.parametrize(
    "granted_at",
    [{PROJECT}, {GLOBAL}, {GLOBAL, ORGANIZATION}, {ORGANIZATION, PROJECT}, {GLOBAL, ORGANIZATION, PROJECT}],
)
def test_c09_a_right_to_the_project_or_to_everything_needs_no_look_up(granted_at: set[GrantScope]) -> None:
    caller = StubCaller(granted_at=granted_at, project_failure=Unavailable("identity", "down"))

    create_permission.require(caller, "O1", "P1")

    assert caller.checks == [Check("region:servers", "create", "O1", "P1")]
    assert caller.checked_projects == []


def test_c08_a_right_to_the_organization_alone_asks_for_the_project() -> None:
    caller = StubCaller(granted_at={ORGANIZATION})

    create_permission.require(caller, "O1", "P1")

    assert caller.checked_projects == [("O1", "P1")]


def test_c07_a_project_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound, match="project"):
        create_permission.require(
            StubCaller(granted_at={ORGANIZATION}, project_failure=Missing("identity", "gone")), "O1", "P1"
        )


@pytest.mark.parametrize("failure", [Unavailable, TimedOut, Denied])
def test_a_project_that_cannot_be_looked_up_lets_nobody_in(failure: type[PortError]) -> None:
    with pytest.raises(Unverified):
        create_permission.require(
            StubCaller(granted_at={ORGANIZATION}, project_failure=failure("identity", "x")), "O1", "P1"
        )


def test_c06_without_the_right_nobody_is_asked() -> None:
    caller = StubCaller(refused=["region:servers create"], granted_at={ORGANIZATION})

    with pytest.raises(Forbidden):
        create_permission.require(caller, "O1", "P1")

    assert caller.checked_projects == []


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ((None, None), ("O1", "P1")),
        (("", ""), ("O1", "P1")),
        ((None, "P2"), ("O1", "P1")),
        (("O2", "P2"), ("O2", "P2")),
        (("O2", None), ("O2", None)),
    ],
)
def test_a_principal_without_an_organization_inherits_the_servers(
    named: tuple[str | None, str | None], expected: tuple[str, str | None]
) -> None:
    assert create_permission.attribution(StubCaller(attribution=named), "O1", "P1") == expected
