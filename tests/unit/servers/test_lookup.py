"""Finding the server of a request and its project in the cloud (contract 1.6 step 1, 6.8)."""

from __future__ import annotations

import pytest

from server_api.servers.errors import Forbidden, InvalidRequest, NotFound
from server_api.servers.lookup import permitted_server, readable_server, tenancy_of
from server_api.servers.ports import Denied
from tests.doubles.caller import Check, StubCaller
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import IDENTITY, ORGANIZATION, PROJECT, REGION, SERVER, region, server


def test_a_v2_server_is_returned_to_a_caller_who_may_read_it() -> None:
    caller = StubCaller()

    assert readable_server(InMemoryServerStore(server()), caller, SERVER).id == SERVER
    assert caller.checks == [Check("region:servers", "read", ORGANIZATION, PROJECT)]


def test_r01_a_server_that_is_not_there_is_not_found_before_any_right_is_asked_for() -> None:
    caller = StubCaller()

    with pytest.raises(NotFound, match="does not exist"):
        readable_server(InMemoryServerStore(), caller, SERVER)
    assert caller.checks == []


@pytest.mark.parametrize("api_version", [None, "", "1", "3"])
def test_r02_a_server_of_another_generation_is_not_found(api_version: str | None) -> None:
    with pytest.raises(NotFound, match="version of the API"):
        readable_server(InMemoryServerStore(server(api_version=api_version)), StubCaller(), SERVER)


@pytest.mark.parametrize("api_version", [None, "2"])
def test_r03_a_server_the_caller_may_not_read_is_forbidden_whatever_its_generation(api_version: str | None) -> None:
    with pytest.raises(Forbidden, match="read"):
        readable_server(
            InMemoryServerStore(server(api_version=api_version)), StubCaller(refused=["region:servers read"]), SERVER
        )


@pytest.mark.parametrize("refused", ["region:servers read", "region:servers update"])
def test_doing_something_needs_the_right_to_read_and_to_do_it(refused: str) -> None:
    with pytest.raises(Forbidden, match=refused.split()[1]):
        permitted_server(InMemoryServerStore(server()), StubCaller(refused=[refused]), SERVER, "update")


def test_doing_something_asks_for_both_rights_in_the_servers_project() -> None:
    caller = StubCaller()

    permitted_server(InMemoryServerStore(server()), caller, SERVER, "delete")

    assert caller.checks == [
        Check("region:servers", "read", ORGANIZATION, PROJECT),
        Check("region:servers", "delete", ORGANIZATION, PROJECT),
    ]


def test_a_store_that_denies_us_is_not_the_callers_fault() -> None:
    store = InMemoryServerStore(server())
    store.fail("get", Denied("kubernetes", "no"))

    with pytest.raises(Denied):
        readable_server(store, StubCaller(), SERVER)


def test_the_project_is_that_of_the_servers_region_and_identity() -> None:
    cloud = OneProjectCloud()

    assert tenancy_of(InMemoryDirectory(region()), cloud, server()).compute is cloud.compute
    assert cloud.asked_for == [(REGION, IDENTITY)]


@pytest.mark.parametrize("region_id", [REGION, None])
def test_a_server_whose_region_is_gone_has_no_project(region_id: str | None) -> None:
    with pytest.raises(NotFound):
        tenancy_of(InMemoryDirectory(), OneProjectCloud(), server(region_id=region_id))


def test_a_server_whose_identity_has_no_credentials_has_no_project() -> None:
    with pytest.raises(NotFound):
        tenancy_of(InMemoryDirectory(region()), OneProjectCloud(without_credentials=True), server())


@pytest.mark.parametrize("provider", ["kubernetes", "simulated"])
def test_a_region_that_is_no_openstack_offers_nothing_for_a_server(provider: str) -> None:
    cloud = OneProjectCloud()

    with pytest.raises(InvalidRequest):
        tenancy_of(InMemoryDirectory(region(provider=provider)), cloud, server())
    assert cloud.asked_for == []
