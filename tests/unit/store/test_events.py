"""Events that operators read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from server_api.servers.model import Server
from server_api.servers.ports import EventType
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.events import KubernetesEvents
from server_api.store.server_object import from_object


@pytest.fixture
def server(stored_server: dict[str, Any]) -> Server:
    return from_object(stored_server)


def recorded(client: KubernetesClient, namespace: str) -> list[dict[str, Any]]:
    return client.list(kinds.EVENT, namespace).items


def test_an_event_names_its_server(client: KubernetesClient, namespace: str, server: Server) -> None:
    KubernetesEvents(client, namespace).record(server, EventType.WARNING, "CreateFailed", "no valid host")
    (event,) = recorded(client, namespace)
    assert event["involvedObject"]["name"] == server.id
    assert event["involvedObject"]["uid"] == server.metadata.uid
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "CreateFailed", "no valid host")
    assert (event["count"], event["source"]) == (1, {"component": "server-api"})


def test_b47_a_repeated_event_is_counted(client: KubernetesClient, namespace: str, server: Server) -> None:
    events = KubernetesEvents(client, namespace)
    for _ in range(3):
        events.record(server, EventType.WARNING, "CreateFailed", "no valid host")
    events.record(server, EventType.NORMAL, "Created", "")
    assert sorted((event["reason"], event["count"]) for event in recorded(client, namespace)) == [
        ("CreateFailed", 3),
        ("Created", 1),
    ]


def test_an_event_that_expired_meanwhile_is_written_anew(
    client: KubernetesClient, namespace: str, server: Server
) -> None:
    events = KubernetesEvents(client, namespace)
    events.record(server, EventType.WARNING, "CreateFailed", "no valid host")
    client.delete(kinds.EVENT, namespace, recorded(client, namespace)[0]["metadata"]["name"])
    events.record(server, EventType.WARNING, "CreateFailed", "no valid host")
    assert len(recorded(client, namespace)) == 1


def test_a_long_message_is_cut(client: KubernetesClient, namespace: str, server: Server) -> None:
    KubernetesEvents(client, namespace).record(server, EventType.NORMAL, "Created", "x" * 5000)
    assert recorded(client, namespace)[0]["message"] == "x" * 1024


def test_a_failure_to_record_is_logged_and_not_raised(
    connect: Callable[..., KubernetesClient],
    scripted_api: Any,
    http: Callable[..., bytes],
    server: Server,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripted_api.will_answer(http(500, {}))
    with caplog.at_level(logging.WARNING):
        KubernetesEvents(connect(scripted_api.url), "ns").record(server, EventType.NORMAL, "Created", "a message")
    assert server.id in caplog.text
    assert "a message" not in caplog.text
