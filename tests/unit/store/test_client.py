"""The client against an embedded API, and on the wire against a scripted one."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from server_api import deadline, trace
from server_api.servers import ports
from server_api.store import kinds
from server_api.store.client import KubernetesClient

Connect = Callable[..., KubernetesClient]
Http = Callable[..., bytes]


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def test_an_object_is_created_read_replaced_patched_and_deleted(client: KubernetesClient, namespace: str) -> None:
    created = client.create(kinds.CONFIG_MAP, namespace, config_map("one"))
    assert client.get(kinds.CONFIG_MAP, namespace, "one") == created
    replaced = client.update(kinds.CONFIG_MAP, namespace, created | {"data": {"a": "1"}})
    assert replaced["data"] == {"a": "1"}
    with pytest.raises(ports.StateConflict):
        client.update(kinds.CONFIG_MAP, namespace, created)
    assert client.patch(kinds.CONFIG_MAP, namespace, "one", {"data": {"a": None, "b": "2"}})["data"] == {"b": "2"}
    client.delete(kinds.CONFIG_MAP, namespace, "one")
    with pytest.raises(ports.Missing):
        client.get(kinds.CONFIG_MAP, namespace, "one")


def test_a_name_that_is_taken_is_told_from_a_lost_race(client: KubernetesClient, namespace: str) -> None:
    client.create(kinds.CONFIG_MAP, namespace, config_map("one"))
    with pytest.raises(ports.AlreadyExists):
        client.create(kinds.CONFIG_MAP, namespace, config_map("one"))


def test_a_selector_restricts_a_list(client: KubernetesClient, namespace: str) -> None:
    for name, color in (("one", "red"), ("two", "blue"), ("three", "red")):
        client.create(kinds.CONFIG_MAP, namespace, config_map(name, color=color))
    listing = client.list(kinds.CONFIG_MAP, namespace, "color in (red,green)")
    assert {item["metadata"]["name"] for item in listing.items} == {"one", "three"}


def test_a_list_follows_all_pages_and_keeps_the_version_of_the_first(
    scripted_api: Any, http: Http, connect: Connect
) -> None:
    scripted_api.will_answer(
        http(200, {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"n": 1}, {"n": 2}]}),
        http(200, {"metadata": {"resourceVersion": "8", "continue": ""}, "items": [{"n": 3}]}),
    )
    listing = connect(scripted_api.url).list(kinds.SERVER, "ns", "a=1")
    assert ([item["n"] for item in listing.items], listing.version) == ([1, 2, 3], "7")
    queries = [parse_qs(urlsplit(request.target).query) for request in scripted_api.requests]
    assert queries == [
        {"limit": ["500"], "labelSelector": ["a=1"]},
        {"limit": ["500"], "labelSelector": ["a=1"], "continue": ["more"]},
    ]


def test_b40_a_list_whose_page_expired_starts_over(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(
        http(200, {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"n": 1}]}),
        http(410, {"kind": "Status", "reason": "Expired", "code": 410}),
        http(200, {"metadata": {"resourceVersion": "9"}, "items": [{"n": 1}, {"n": 2}]}),
    )
    listing = connect(scripted_api.url).list(kinds.SERVER, "ns")
    assert ([item["n"] for item in listing.items], listing.version) == ([1, 2], "9")
    assert "continue" not in scripted_api.requests[2].target


def test_b41_a_list_without_items_is_empty(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(http(200, {"metadata": None, "items": None}))
    assert connect(scripted_api.url).list(kinds.SERVER, "ns").items == []


def test_b42_content_types_and_bodies_on_the_wire(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(http(200, {}))
    client = connect(scripted_api.url)
    body = {"metadata": {"name": "x", "resourceVersion": "4"}}
    client.create(kinds.SERVER, "ns", body)
    client.update(kinds.SERVER, "ns", body)
    client.patch(kinds.SERVER, "ns", "x", {"spec": None})
    client.patch_status(kinds.SERVER, "ns", "x", {"phase": "Running"}, "4")
    client.delete(kinds.SERVER, "ns", "x")
    client.get(kinds.SECRET, "ns", "a.b")
    path = "/apis/region.unikorn-cloud.org/v1alpha1/namespaces/ns/servers"
    assert [
        (request.method, request.target, request.headers.get("content-type"), json.loads(request.body or b"null"))
        for request in scripted_api.requests
    ] == [
        ("POST", path, "application/json", body),
        ("PUT", f"{path}/x", "application/json", body),
        ("PATCH", f"{path}/x", "application/merge-patch+json", {"spec": None}),
        (
            "PATCH",
            f"{path}/x/status",
            "application/merge-patch+json",
            {"metadata": {"resourceVersion": "4"}, "status": {"phase": "Running"}},
        ),
        (
            "DELETE",
            f"{path}/x",
            "application/json",
            {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"},
        ),
        ("GET", "/api/v1/namespaces/ns/secrets/a.b", None, None),
    ]


def test_calls_carry_credentials_and_the_trace(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(http(200, {}))
    token = trace.begin("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    try:
        connect(scripted_api.url, "sesame").get(kinds.SERVER, "ns", "x")
    finally:
        trace.end(token)
    headers = scripted_api.requests[0].headers
    assert headers["authorization"] == "Bearer sesame"
    assert headers["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert headers["user-agent"].startswith("server-api")


@pytest.mark.parametrize("body", [b"{", b"null", b"[1]", b"<html>", b""])
def test_broken_json_is_the_dependencys_failure(scripted_api: Any, http: Http, connect: Connect, body: bytes) -> None:
    scripted_api.will_answer(http(200, body))
    with pytest.raises(ports.Unavailable, match="get servers/x"):
        connect(scripted_api.url).get(kinds.SERVER, "ns", "x")


def test_a_truncated_answer_is_the_dependencys_failure(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(http(200, {"metadata": {"name": "x"}})[:-5])
    with pytest.raises(ports.Unavailable):
        connect(scripted_api.url).get(kinds.SERVER, "ns", "x")


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_api_is_asked_once_and_its_retry_after_passed_on(
    scripted_api: Any, http: Http, connect: Connect, status: int
) -> None:
    scripted_api.will_answer(http(status, {}, Retry_After="7"))
    with pytest.raises(ports.Unavailable) as raised:
        connect(scripted_api.url).get(kinds.SERVER, "ns", "x")
    assert raised.value.retry_after == "7"
    assert len(scripted_api.requests) == 1


def test_a_redirect_is_not_followed(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(http(302, {}, Location=f"{scripted_api.url}/elsewhere"))
    with pytest.raises(ports.Unavailable):
        connect(scripted_api.url, "sesame").get(kinds.SERVER, "ns", "x")
    assert len(scripted_api.requests) == 1


def test_silence_is_a_time_out(scripted_api: Any, connect: Connect) -> None:
    scripted_api.will_answer(lambda connection: scripted_api.finished.wait(10))
    with pytest.raises(ports.TimedOut):
        connect(scripted_api.url, read_timeout=0.1).get(kinds.SERVER, "ns", "x")
    assert len(scripted_api.requests) == 1


def test_a_call_ends_with_the_deadline_of_the_work_in_hand(scripted_api: Any, connect: Connect) -> None:
    scripted_api.will_answer(lambda connection: scripted_api.finished.wait(10))
    client = connect(scripted_api.url, read_timeout=30.0)
    with deadline.within(0.2):
        with pytest.raises(ports.TimedOut):
            client.get(kinds.SERVER, "ns", "x")
        with pytest.raises(ports.TimedOut):
            client.get(kinds.SERVER, "ns", "x")
    assert len(scripted_api.requests) == 1, "nothing is sent once the deadline has passed"


def test_an_api_that_is_down_is_unavailable(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ports.Unavailable):
        connect(address).ping()


def test_ping_fails_while_the_kind_is_not_served(connect: Connect, kubernetes: Any, client: KubernetesClient) -> None:
    client.ping()
    with pytest.raises(ports.Unavailable):
        connect(f"{kubernetes.url}/not-a-cluster").ping()


def test_many_threads_share_a_client(client: KubernetesClient, namespace: str) -> None:
    def work(number: int) -> str:
        name = f"config-{number}"
        client.create(kinds.CONFIG_MAP, namespace, config_map(name))
        return str(client.get(kinds.CONFIG_MAP, namespace, name)["metadata"]["name"])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(32))) == [f"config-{number}" for number in range(32)]


def test_a_guarded_client_calls_nothing_once_it_may_not(scripted_api: Any, http: Http, connect: Connect) -> None:
    permitted = threading.Event()
    permitted.set()

    def check() -> None:
        if not permitted.is_set():
            raise LookupError

    scripted_api.will_answer(http(200, {}))
    client = connect(scripted_api.url)
    guarded = client.guarded(check)
    guarded.get(kinds.SERVER, "ns", "x")
    permitted.clear()
    with pytest.raises(LookupError):
        guarded.get(kinds.SERVER, "ns", "x")
    client.get(kinds.SERVER, "ns", "x")
    assert len(scripted_api.requests) == 2


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "A", "a b", "a%2e", "a\n", "-a", "é"])
def test_text_that_no_object_can_be_named_is_missing_and_never_part_of_a_path(
    connect: Callable[..., KubernetesClient], scripted_api: Any, name: str
) -> None:
    client = connect(scripted_api.url)
    for call in (client.get, client.delete):
        with pytest.raises(ports.Missing):
            call(kinds.SSH_CERTIFICATE_AUTHORITY, "ns", name)
    assert scripted_api.requests == []
