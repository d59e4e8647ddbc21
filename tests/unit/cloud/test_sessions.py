"""How the clients authenticate, and what every request carries."""

from __future__ import annotations

import gc
import logging
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from server_api import deadline, trace
from server_api.cloud.nova import NovaCompute
from server_api.cloud.sessions import SESSIONS_KEPT, CloudCredential, SessionPool
from server_api.servers.cloud_model import InstanceOrder
from server_api.servers.ports import PortError, TimedOut

DETAIL = "/compute/v2.1/servers/detail"
EMPTY = {"servers": []}


@pytest.fixture
def nova(clients, wire, answer):
    wire.answers[f"GET {DETAIL}"] = answer(body=EMPTY)
    return NovaCompute(clients, lambda: clients)


def test_one_log_in_serves_many_requests(nova, wire):
    for _ in range(3):
        nova.instances()

    assert wire.log_ins == 1


def test_b80_an_expired_token_is_renewed_exactly_once_under_concurrent_calls(nova, wire):
    nova.instances()
    wire.valid_token = "another"

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: nova.instances(), range(20)))

    assert answers == [[]] * 20
    assert wire.log_ins == 2


def test_a_log_in_is_forgotten_after_a_while_whether_it_is_used_or_not(settings):
    now = [0.0]
    pool = SessionPool(replace(settings, cloud_session_seconds=60), timer=lambda: now[0])
    credential, other = (CloudCredential("http://127.0.0.1:1", "user", "p", project) for project in ("one", "two"))
    used, unused = pool.clients(credential), weakref.ref(pool.clients(other))
    now[0] = 59.0
    assert pool.clients(credential) is used
    now[0] = 61.0
    assert pool.clients(credential) is not used
    gc.collect()
    assert unused() is None


def test_b77_every_request_carries_the_trace_of_the_work_in_hand(nova, wire):
    token = trace.begin("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    try:
        nova.instances()
    finally:
        trace.end(token)

    assert len(wire.requests) == 2
    for request in wire.requests:
        assert request.headers["X-OpenStack-Request-ID"] == "req-0af76519-16cd-43dd-8448-eb211c80319c"
        assert request.headers["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")


def test_outside_of_traced_work_no_trace_is_sent(nova, wire):
    nova.instances()

    assert wire.requests[-1].headers.get("X-OpenStack-Request-ID") is None


def test_nova_is_asked_at_the_contracts_microversion(nova, wire):
    nova.instances()

    assert wire.requests[-1].headers["OpenStack-API-Version"] == "compute 2.90"


def test_the_password_logs_in_by_user_id_on_the_project(nova, wire):
    nova.instances()

    auth = wire.requests[0].body["auth"]
    assert auth["identity"]["password"]["user"]["id"] == "user"
    assert auth["scope"] == {"project": {"id": "project"}}


@pytest.mark.parametrize("suffix", ["", "/", "/v3", "/v3/"])
def test_keystones_address_may_lack_its_version(suffix):
    credential = CloudCredential(f"http://keystone{suffix}", "user", "password", "project")

    assert credential.auth_url == "http://keystone/v3"


def test_a_pool_keeps_the_session_of_a_credential(credential, settings):
    pool = SessionPool(settings)

    assert pool.clients(credential) is pool.clients(replace(credential))


@pytest.mark.parametrize("change", ["endpoint", "user_id", "password", "project_id"])
def test_a_changed_credential_gets_another_session(credential, settings, change):
    pool = SessionPool(settings)

    assert pool.clients(replace(credential, **{change: "other"})) is not pool.clients(credential)


def test_the_least_recently_used_session_is_dropped(credential, settings):
    pool = SessionPool(settings)
    first = pool.clients(credential)
    for number in range(SESSIONS_KEPT):
        pool.clients(replace(credential, user_id=str(number)))

    assert pool.clients(credential) is not first


def test_b75_many_sessions_share_one_pool_of_connections(credential, settings, wire, answer):
    wire.answers[f"GET {DETAIL}"] = answer(body=EMPTY)
    pool = SessionPool(settings)

    for number in range(50):
        clients = pool.clients(replace(credential, user_id=str(number)))
        NovaCompute(clients, pool.clients).instances()

    assert (wire.log_ins, wire.connections) == (50, 1)


def test_a_log_in_leaves_less_time_for_the_request_after_it(nova, wire, monkeypatch):
    budgets = []

    def remaining(limit):
        budgets.append(limit)
        return limit

    monkeypatch.setattr(deadline, "remaining", remaining)
    nova.instances()

    assert budgets == [2, 5, 2, 5]


def test_b74_the_debug_log_of_a_create_has_no_secret(clients, wire, answer, caplog):
    caplog.set_level(logging.DEBUG)
    wire.answers["POST /compute/v2.1/servers"] = answer(202, {"server": {"id": "1", "adminPass": "p4ss"}})

    NovaCompute(clients, lambda: clients).create(
        InstanceOrder("n", "image", "flavor", "port", {}, user_data=b"#!/bin/sh\nhush")
    )

    assert wire.seen("POST", "/compute/v2.1/servers")[0].body["server"]["user_data"] == "IyEvYmluL3NoCmh1c2g="
    for secret in ("s3cret-pass-phrase", "gAAAAAtoken", "IyEvYmluL3NoCmh1c2g=", "p4ss"):
        assert secret not in caplog.text


def test_a_credential_does_not_show_its_password(credential):
    assert "s3cret" not in repr(credential)


def test_novaclient_writes_no_completion_cache(nova, wire, answer, tmp_path, monkeypatch):
    monkeypatch.setenv("NOVACLIENT_UUID_CACHE_DIR", str(tmp_path / "cache"))

    nova.instances()

    assert not (tmp_path / "cache").exists()


class Observed(list):
    """The requests told of: service, method, outcome."""

    def __call__(self, service, method, outcome, seconds):
        assert seconds >= 0
        self.append((service, method, outcome))


@pytest.fixture
def observed():
    return Observed()


@pytest.fixture
def observed_clients(credential, settings, observed):
    return SessionPool(settings, observed).clients(credential)


def test_every_request_is_told_with_service_method_and_outcome(observed_clients, observed, wire, answer):
    wire.answers[f"GET {DETAIL}"] = answer(body=EMPTY)
    wire.answers["GET /image/v2/images"] = answer(body={"images": []})
    wire.answers["GET /network/v2.0/ports"] = answer(body={"ports": []})

    NovaCompute(observed_clients, lambda: observed_clients).instances()
    list(observed_clients.glance.images.list())
    list(observed_clients.network.ports())

    assert observed == [
        ("keystone", "POST", "2xx"),
        ("nova", "GET", "2xx"),
        ("glance", "GET", "2xx"),
        ("neutron", "GET", "2xx"),
    ]
    assert len(observed) == len(wire.requests)


@pytest.mark.parametrize(("status", "outcome"), [(404, "4xx"), (409, "4xx"), (429, "4xx"), (500, "5xx"), (503, "5xx")])
def test_an_answer_that_fails_is_told_by_its_class(observed_clients, observed, wire, answer, status, outcome):
    wire.answers[f"GET {DETAIL}"] = answer(status)

    with pytest.raises(PortError):
        NovaCompute(observed_clients, lambda: observed_clients).instances()

    assert observed[-1] == ("nova", "GET", outcome)


def test_no_answer_in_time_is_told_as_that(observed_clients, observed, wire, answer):
    wire.answers[f"GET {DETAIL}"] = wire.hang

    with pytest.raises(TimedOut), deadline.within(0.2):
        NovaCompute(observed_clients, lambda: observed_clients).instances()

    assert observed[-1] == ("nova", "GET", "timeout")


def test_a_request_whose_log_in_failed_was_not_sent_and_is_not_told(observed_clients, observed, wire, answer):
    wire.answers["POST /identity/v3/auth/tokens"] = answer(401)

    with pytest.raises(PortError):
        NovaCompute(observed_clients, lambda: observed_clients).instances()

    assert observed == [("keystone", "POST", "4xx")]


def test_a_service_that_is_not_there_is_told_as_failed(settings, observed):
    clients = SessionPool(settings, observed).clients(CloudCredential("http://127.0.0.1:1", "user", "p", "project"))

    with pytest.raises(PortError):
        NovaCompute(clients, lambda: clients).instances()

    assert observed == [("keystone", "POST", "failed")]
