"""Every failure of the cloud comes out as one of the port's errors."""

from __future__ import annotations

import glanceclient.exc
import keystoneauth1.exceptions
import novaclient.exceptions
import openstack.exceptions
import pytest
import requests

from server_api import deadline
from server_api.cloud.errors import DETAIL_LIMIT, safe_detail, translated
from server_api.cloud.nova import NovaCompute
from server_api.servers.ports import (
    Denied,
    Missing,
    PortError,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)

DETAIL = "/compute/v2.1/servers/detail"
ACTION = "/compute/v2.1/servers/1/action"


def caught(error: Exception, dependency: str = "nova") -> PortError:
    with pytest.raises(PortError) as caught, translated(dependency):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Refused),
        (401, Denied),
        (403, Denied),
        (405, Refused),
        (406, Refused),
        (408, Unavailable),
        (409, StateConflict),
        (412, StateConflict),
        (413, Refused),
        (422, Refused),
        (429, Unavailable),
        (500, Unavailable),
        (501, Unavailable),
        (502, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
    ],
)
def test_b37_a_failed_answer_becomes_the_error_of_its_status(wire, answer, clients, status, expected):
    wire.answers[f"POST {ACTION}"] = answer(
        status, {"fault": {"message": "said so", "code": status}}, {"Retry-After": "7"}
    )

    with pytest.raises(PortError) as failure:
        NovaCompute(clients, lambda: clients).start("1")

    assert type(failure.value) is expected
    assert (failure.value.dependency, failure.value.detail, failure.value.retry_after) == ("nova", "said so", "7")


UNEXPECTED = "Unexpected API Error. Please report this and attach the Nova API log if possible.\n<class '{}'>"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("nova.exception.UnexpectedTaskStateError", StateConflict),
        ("nova.exception.InstanceUpdateConflict", StateConflict),
        ("nova.exception.MessagingTimeout", Unavailable),
        ("keystoneauth1.exceptions.http.InternalServerError", Unavailable),
    ],
)
def test_b37_a_500_of_nova_is_a_conflict_if_the_instance_moved_on_meanwhile(wire, answer, clients, raised, expected):
    fault = {"computeFault": {"message": UNEXPECTED.format(raised), "code": 500}}
    wire.answers[f"POST {ACTION}"] = answer(500, fault)

    with pytest.raises(PortError) as failure:
        NovaCompute(clients, lambda: clients).hard_reboot("1")

    assert type(failure.value) is expected


def test_novas_own_404_is_missing(wire, answer, clients):
    wire.answers[f"POST {ACTION}"] = answer(404, {"itemNotFound": {"message": "Instance 1 could not be found."}})

    with pytest.raises(Missing, match="Instance 1 could not be found"):
        NovaCompute(clients, lambda: clients).start("1")


@pytest.mark.parametrize("body", ["<html>no such page</html>", {"message": "no route"}, ""])
def test_a_404_that_is_not_the_services_own_is_not_missing(wire, answer, clients, body):
    wire.answers["DELETE /compute/v2.1/servers/1"] = answer(404, body)

    with pytest.raises(Unavailable):
        NovaCompute(clients, lambda: clients).delete("1")


@pytest.mark.parametrize(
    "body",
    ["not json", "", {"servers": [{"id": "1", "name": "n"}]}, {"other": 1}, [1], {"servers": [7]}, {"servers": None}],
)
def test_b37_an_answer_that_makes_no_sense_is_unavailable(wire, answer, clients, body):
    def first_page(request):
        page = {"servers": []} if "marker" in request.query else body
        return answer(200, page, {"Content-Type": "application/json"})

    wire.answers[f"GET {DETAIL}"] = first_page

    with pytest.raises(Unavailable, match="nova: the answer was not understood"):
        NovaCompute(clients, lambda: clients).instances()


def test_a_failure_without_a_body_says_its_status(wire, answer, clients):
    wire.answers[f"GET {DETAIL}"] = answer(503, "")

    with pytest.raises(Unavailable, match="503"):
        NovaCompute(clients, lambda: clients).instances()


def test_b73_a_service_that_hangs_is_timed_out_within_the_deadline(wire, clients):
    wire.answers[f"GET {DETAIL}"] = wire.hang

    with deadline.within(0.3), pytest.raises(TimedOut, match="nova"):
        NovaCompute(clients, lambda: clients).instances()


def test_nothing_is_sent_after_the_deadline(wire, clients):
    with deadline.within(0), pytest.raises(TimedOut):
        NovaCompute(clients, lambda: clients).instances()

    assert wire.requests == []


def test_keystone_that_hangs_is_timed_out_as_keystone(wire, clients):
    wire.answers["POST /identity/v3/auth/tokens"] = wire.hang

    with deadline.within(0.3), pytest.raises(TimedOut) as failure:
        NovaCompute(clients, lambda: clients).instances()

    assert failure.value.dependency == "keystone"


@pytest.mark.parametrize(
    ("status", "expected"), [(401, Denied), (403, Denied), (404, Unavailable), (500, Unavailable), (429, Unavailable)]
)
def test_a_refused_log_in_is_a_failure_of_keystone(wire, answer, clients, status, expected):
    wire.answers["POST /identity/v3/auth/tokens"] = answer(status, {"error": {"message": "no", "code": status}})

    with pytest.raises(PortError) as failure:
        NovaCompute(clients, lambda: clients).instances()

    assert (type(failure.value), failure.value.dependency) == (expected, "keystone")


def test_a_service_that_is_not_in_the_catalogue_is_a_failure_of_keystone():
    error = caught(keystoneauth1.exceptions.EndpointNotFound())

    assert (type(error), error.dependency) == (Unavailable, "keystone")


def test_a_refused_connection_is_unavailable(wire, clients):
    wire.close()

    with pytest.raises(Unavailable) as failure:
        NovaCompute(clients, lambda: clients).instances()

    assert type(failure.value) is Unavailable


def test_a_redirect_is_not_followed_with_our_token(wire, answer, clients):
    wire.answers[f"GET {DETAIL}"] = answer(302, "", {"Location": f"{wire.url}/elsewhere"})

    with pytest.raises(Unavailable, match="redirects are not followed"):
        NovaCompute(clients, lambda: clients).instances()
    assert wire.seen("GET", "/elsewhere") == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (novaclient.exceptions.Conflict(409, "busy"), StateConflict),
        (novaclient.exceptions.NotFound(404, "gone"), Missing),
        (novaclient.exceptions.ClientException(503, "down"), Unavailable),
        (glanceclient.exc.HTTPForbidden("no"), Denied),
        (glanceclient.exc.HTTPServiceUnavailable("down"), Unavailable),
        (glanceclient.exc.CommunicationError("lost"), Unavailable),
        (openstack.exceptions.SDKException("odd"), Unavailable),
        (keystoneauth1.exceptions.ConnectTimeout("slow"), TimedOut),
        (keystoneauth1.exceptions.ConnectFailure("lost"), Unavailable),
        (keystoneauth1.exceptions.AuthorizationFailure("no"), Denied),
        (requests.ReadTimeout("slow"), TimedOut),
        (requests.ConnectionError("lost"), Unavailable),
        (TimeoutError("the deadline has passed"), TimedOut),
    ],
)
def test_the_clients_own_errors_are_understood(error, expected):
    assert type(caught(error)) is expected


def test_glanceclients_disguised_time_out_is_timed_out(wire, clients):
    wire.answers["GET /image/v2/images"] = wire.hang

    with deadline.within(0.5), pytest.raises(TimedOut, match="glance"), translated("glance"):
        list(clients.glance.images.list())


def test_a_port_error_passes_unchanged():
    error = Missing("kubernetes", "no such secret")

    assert caught(error) is error


def test_a_defect_of_ours_is_not_disguised():
    with pytest.raises(RuntimeError), translated("nova"):
        raise RuntimeError("defect")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two\nlines\x00 and  more", "two lines and more"),
        ("see http://nova/x?token=abc&a=b for", "see http://nova/x for"),
        ("token gAAAAABnSecretSecretSecret== is bad", "token [redacted] is bad"),
        (
            "Invalid input for field/attribute user_data. Value: aGVsbG8=. 'aGVsbG8=' is too long",
            "Invalid input for field/attribute user_data.",
        ),
    ],
)
def test_b74_a_detail_is_one_line_without_secrets(text, expected):
    assert safe_detail(text) == expected


def test_a_detail_is_bounded():
    assert len(safe_detail("x" * 10_000)) == DETAIL_LIMIT
