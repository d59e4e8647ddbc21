"""Every endpoint with every caller (contract 5.4): what ``matrix`` says is answered, and a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server_api.access.digests import token_digest
from server_api.sandbox.identity_service import StandInIdentityService
from tests.api.conftest import checked_client
from tests.api.errors import assert_error
from tests.api.world import EVERYTHING, World
from tests.protection.matrix import (
    ADMIN,
    CALLERS,
    ENDPOINTS,
    HOME_SERVER,
    LISTS,
    PERMISSIONS,
    Caller,
    Endpoint,
    bearer,
    callers_of,
    token,
)
from tests.protection.tenants import assert_refused, document, state, store_server

READS_OF_THE_CLOUD = ("catalogue", "flavors", "images", "tenancy")
every_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)


def test_every_endpoint_is_in_the_matrix_and_nothing_else(app: Flask) -> None:
    served = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    assert served == {endpoint.key for endpoint in ENDPOINTS}


def test_rows_and_columns_are_told_apart() -> None:
    assert len({str(endpoint) for endpoint in ENDPOINTS}) == len(ENDPOINTS)
    assert len({caller.name for caller in CALLERS}) == len(CALLERS)


def test_every_right_that_is_needed_is_one_of_the_contract() -> None:
    needed = {need.grant for endpoint in ENDPOINTS for need in endpoint.needs}

    assert needed <= {(permission, operation) for permission in PERMISSIONS for operation in EVERYTHING}
    assert needed <= ADMIN


class Trial:
    """Sends one endpoint's request as one caller after the other, to the same world."""

    def __init__(self, client: FlaskClient, world: World, endpoint: Endpoint) -> None:
        self._client = client
        self._world = world
        self._endpoint = endpoint
        self._numbers = count()
        self._state = state(world)

    def run(self, caller: Caller) -> None:
        """Fail unless the answer is what the matrix says."""
        endpoint, expected = self._endpoint, self._endpoint.expects(caller)
        body = endpoint.body_number(next(self._numbers))
        self._world.cloud.calls.clear()
        response = self._send(endpoint.method, caller, body)
        assert response.status_code == expected, f"{endpoint} as {caller.name}: {response.status} {response.text}"
        if expected >= 400:
            assert_refused(response, expected, endpoint.path, body)
            # Nothing that a GET is refused for could have been written by it: the time goes to those that write.
            if endpoint.method != "GET":
                assert state(self._world) == self._state, f"{endpoint} as {caller.name} was refused and wrote"
            done = [call for call in self._world.cloud.calls if call not in READS_OF_THE_CLOUD]
            assert not done, f"{endpoint} as {caller.name} was refused and reached the cloud: {done}"
            return
        if endpoint.method == "GET" and endpoint.rule in LISTS:
            rows = {item["metadata"]["id"] for item in response.get_json()}
            assert rows == endpoint.rows(caller), f"{endpoint} as {caller.name}"
        if endpoint.method != "GET":
            self._restore()

    def run_head(self, caller: Caller) -> None:
        """Fail unless HEAD answers as GET does, without a body."""
        response = self._send("HEAD", caller, None)
        assert response.status_code == self._endpoint.expects(caller), f"HEAD of {self._endpoint} as {caller.name}"
        assert response.data == b""

    def _send(self, method: str, caller: Caller, body: Any) -> Any:
        peer = {"REMOTE_ADDR": caller.peer}
        return self._client.open(
            self._endpoint.path, method=method, headers=dict(caller.headers), json=body, environ_base=peer
        )

    def _restore(self) -> None:
        if self._endpoint.method == "DELETE":
            assert HOME_SERVER not in state(self._world), f"{self._endpoint} did nothing"
            store_server(self._world, HOME_SERVER)
        self._state = state(self._world)


@every_endpoint
@pytest.mark.parametrize("seconds", [60.0, 0.0], ids=["rights kept", "rights asked for each time"])
def test_every_caller_is_answered_as_the_matrix_says(
    make_app: Callable[[float], Flask], world: World, endpoint: Endpoint, seconds: float
) -> None:
    trial = Trial(checked_client(make_app(seconds)), world, endpoint)

    for caller in callers_of(endpoint):
        trial.run(caller)


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if one.method == "GET"], ids=str)
def test_head_is_refused_whenever_get_is(app: Flask, world: World, endpoint: Endpoint) -> None:
    trial = Trial(checked_client(app), world, endpoint)

    for caller in callers_of(endpoint):
        trial.run_head(caller)


def test_every_endpoint_is_both_granted_and_refused() -> None:
    for endpoint in ENDPOINTS:
        statuses = {endpoint.expects(caller) for caller in callers_of(endpoint)}
        refusals = {400, 401, 403} if endpoint.needs else {400, 401}
        assert statuses == ({endpoint.success} if endpoint.public else {endpoint.success, *refusals}), endpoint


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if not one.public], ids=str)
def test_a_token_that_expires_while_its_passport_is_kept_is_refused(
    make_app: Callable[[float], Flask], identity: StandInIdentityService, world: World, endpoint: Endpoint
) -> None:
    headers = bearer("global administrator")
    client = checked_client(make_app(0.0))
    before = identity.app.calls["exchange"]
    warm = client.get(endpoint.path if endpoint.method == "GET" else "/api/version", headers=headers)
    assert warm.status_code == 200
    assert identity.app.calls["exchange"] == before + 1
    identity.know(document(token_digest(token("global administrator"))))
    response = client.open(endpoint.path, method=endpoint.method, headers=headers, json=endpoint.body_number(0))
    assert_error(response, 401, "access_denied")


def test_the_size_of_the_matrix(record_testsuite_property: Callable[[str, object], None]) -> None:
    cases = sum(len(callers_of(endpoint)) for endpoint in ENDPOINTS)
    heads = sum(len(callers_of(endpoint)) for endpoint in ENDPOINTS if endpoint.method == "GET")
    sizes = {
        "endpoints": len({endpoint.key for endpoint in ENDPOINTS}),
        "rows": len(ENDPOINTS),
        "callers": len(CALLERS),
        "callers of one row at most": max(len(callers_of(endpoint)) for endpoint in ENDPOINTS),
        "cases": cases,
        "requests": 2 * cases + heads,
    }
    for name, value in sizes.items():
        record_testsuite_property(f"protection matrix, {name}", value)

    assert sizes["endpoints"] >= 33
    assert cases >= 2000
