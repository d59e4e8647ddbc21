"""What a server may refer to (contract 1.5 steps 1, 2 and 9)."""

from __future__ import annotations

from typing import Any

import pytest

from server_api.servers.errors import Forbidden, NotFound, Rejection, Unprocessable
from server_api.servers.references import certificate_authority, readable_network, security_groups
from tests.doubles.caller import Check, StubCaller
from tests.doubles.directory import InMemoryDirectory
from tests.unit.servers.builders import (
    AUTHORITY,
    GROUP,
    GROUP_2,
    NETWORK,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    authority,
    group,
    network,
)

GROUP_READ = "region:securitygroups:v2 read"


def test_a_readable_network_is_returned() -> None:
    caller = StubCaller()

    assert readable_network(InMemoryDirectory(network()), caller, NETWORK, "spec.networkId") == network()
    assert caller.checks == [Check("region:networks:v2", "read", ORGANIZATION, PROJECT)]


def test_c03_a_network_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound) as refusal:
        readable_network(InMemoryDirectory(), StubCaller(), NETWORK, "spec.networkId")

    assert refusal.value.field == "spec.networkId"


def test_c04_a_network_the_caller_may_not_read_is_forbidden() -> None:
    caller = StubCaller(refused=["region:networks:v2 read"])

    with pytest.raises(Forbidden) as refusal:
        readable_network(InMemoryDirectory(network()), caller, NETWORK, "spec.networkId")
    assert refusal.value.field == "spec.networkId"


def test_a_network_without_labels_is_for_callers_with_global_rights_only() -> None:
    caller = StubCaller()

    readable_network(
        InMemoryDirectory(network(organization_id=None, project_id=None)), caller, NETWORK, "spec.networkId"
    )

    assert caller.checks == [Check("region:networks:v2", "read", "", None)]


def test_c24_groups_of_the_servers_network_are_returned_in_order_each_once() -> None:
    directory = InMemoryDirectory(group(), group(id=GROUP_2))

    assert security_groups(directory, StubCaller(), [GROUP_2, GROUP, GROUP_2], NETWORK) == (GROUP_2, GROUP)
    assert security_groups(directory, StubCaller(), [], NETWORK) == ()


@pytest.mark.parametrize(
    ("changes", "refused", "rejection"),
    [
        pytest.param({}, [GROUP_READ], Forbidden, id="not readable"),
        pytest.param({"api_version": None}, [], NotFound, id="of no generation"),
        pytest.param({"api_version": "1"}, [], NotFound, id="of another generation"),
        pytest.param({"network_id": OTHER_NETWORK}, [], Unprocessable, id="c23 u19 of another network"),
        pytest.param({"network_id": None}, [], Unprocessable, id="of no network"),
        pytest.param({"api_version": "1"}, [GROUP_READ], Forbidden, id="rights come before the generation"),
        pytest.param({"api_version": "1", "network_id": None}, [], NotFound, id="the generation before the network"),
    ],
)
def test_c23_a_group_that_may_not_be_attached_is_refused(
    changes: dict[str, Any], refused: list[str], rejection: type[Rejection]
) -> None:
    directory = InMemoryDirectory(group(id=GROUP_2), group(**changes))

    with pytest.raises(rejection) as refusal:
        security_groups(directory, StubCaller(refused=refused), [GROUP_2, GROUP] if not refused else [GROUP], NETWORK)

    assert refusal.value.field == f"spec.networking.securityGroups[{0 if refused else 1}]"


def test_c22_a_group_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound) as refusal:
        security_groups(InMemoryDirectory(group()), StubCaller(), [GROUP, GROUP_2], NETWORK)

    assert refusal.value.field == "spec.networking.securityGroups[1]"


def test_the_right_to_read_a_group_is_asked_for_where_the_group_is() -> None:
    caller = StubCaller()
    elsewhere = group(organization_id=OTHER_ORGANIZATION, project_id=OTHER_PROJECT, network_id=OTHER_NETWORK)

    with pytest.raises(Unprocessable):
        security_groups(InMemoryDirectory(elsewhere), caller, [GROUP], NETWORK)
    assert caller.checks == [Check("region:securitygroups:v2", "read", OTHER_ORGANIZATION, OTHER_PROJECT)]


def test_a_server_without_a_network_takes_no_group_not_even_one_without() -> None:
    with pytest.raises(Unprocessable):
        security_groups(InMemoryDirectory(group(network_id=None)), StubCaller(), [GROUP], None)


AUTHORITY_READ = "region:sshcertificateauthorities:v2 read"


def test_c15_an_authority_of_the_networks_project_is_returned() -> None:
    caller = StubCaller()

    assert certificate_authority(InMemoryDirectory(authority()), caller, AUTHORITY, network()) == authority()
    assert caller.checks == [Check("region:sshcertificateauthorities:v2", "read", ORGANIZATION, PROJECT)]


@pytest.mark.parametrize(
    ("changes", "refused", "rejection"),
    [
        pytest.param({"id": "another"}, [], NotFound, id="c13 not there"),
        pytest.param({}, [AUTHORITY_READ], Forbidden, id="not readable"),
        pytest.param({"api_version": None}, [], NotFound, id="of no generation"),
        pytest.param({"project_id": OTHER_PROJECT}, [], Unprocessable, id="c14 of another project"),
        pytest.param({"organization_id": OTHER_ORGANIZATION}, [], Unprocessable, id="of another organization"),
        pytest.param({"organization_id": None, "project_id": None}, [], Unprocessable, id="of none"),
        pytest.param({"api_version": None}, [AUTHORITY_READ], Forbidden, id="rights come before the generation"),
        pytest.param({"api_version": None, "project_id": None}, [], NotFound, id="the generation before the project"),
    ],
)
def test_c13_c14_an_authority_that_may_not_be_trusted_is_refused(
    changes: dict[str, Any], refused: list[str], rejection: type[Rejection]
) -> None:
    with pytest.raises(rejection) as refusal:
        certificate_authority(
            InMemoryDirectory(authority(**changes)), StubCaller(refused=refused), AUTHORITY, network()
        )

    assert refusal.value.field == "spec.sshCertificateAuthorityId"


def test_the_right_to_read_an_authority_is_asked_for_where_it_is() -> None:
    caller = StubCaller()
    elsewhere = authority(organization_id=OTHER_ORGANIZATION, project_id=OTHER_PROJECT)

    with pytest.raises(Unprocessable):
        certificate_authority(InMemoryDirectory(elsewhere), caller, AUTHORITY, network())
    assert caller.checks == [Check("region:sshcertificateauthorities:v2", "read", OTHER_ORGANIZATION, OTHER_PROJECT)]


def test_groups_and_authorities_without_labels_are_for_callers_with_global_rights_only() -> None:
    caller = StubCaller()
    nowhere = {"organization_id": None, "project_id": None}
    directory = InMemoryDirectory(group(**nowhere), authority(**nowhere))

    security_groups(directory, caller, [GROUP], NETWORK)
    with pytest.raises(Unprocessable):
        certificate_authority(directory, caller, AUTHORITY, network())

    assert [(check.organization_id, check.project_id) for check in caller.checks] == [("", None), ("", None)]
