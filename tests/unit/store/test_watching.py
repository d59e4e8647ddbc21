"""Watches: cut anywhere, silent, expired."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from server_api.servers import ports
from server_api.store import kinds
from server_api.store.client import KubernetesClient

Connect = Callable[..., KubernetesClient]
Http = Callable[..., bytes]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def line(type_: str, **content: Any) -> bytes:
    return json.dumps({"type": type_, "object": content}, ensure_ascii=False).encode() + b"\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def watch(client: KubernetesClient, **options: Any) -> list[dict[str, Any]]:
    return list(client.watch(kinds.SERVER, "ns", "5", **options))


def test_b45_characters_cut_in_one_byte_chunks_arrive_whole(scripted_api: Any, connect: Connect) -> None:
    events = line("ADDED", tag="𝒳日✓") + b"\n" + line("MODIFIED", tag="😀" * 5)
    chunks = b"".join(chunk(events[at : at + 1]) for at in range(len(events)))
    scripted_api.will_answer(HEAD + chunks + b"0\r\n\r\n")
    assert watch(connect(scripted_api.url)) == [
        {"type": "ADDED", "object": {"tag": "𝒳日✓"}},
        {"type": "MODIFIED", "object": {"tag": "😀" * 5}},
    ]


def test_a_watch_asks_for_bookmarks_and_an_end(scripted_api: Any, connect: Connect) -> None:
    scripted_api.will_answer(HEAD + b"0\r\n\r\n")
    assert watch(connect(scripted_api.url, watch_seconds=30.0), selector="a=1") == []
    assert scripted_api.requests[0].target.partition("?")[2] == (
        "watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=30&labelSelector=a%3D1"
    )


def test_an_event_is_seen_before_the_next_one_is_sent(scripted_api: Any, connect: Connect) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(HEAD + chunk(line("ADDED", n=1)))
        scripted_api.finished.wait(10)

    scripted_api.will_answer(answer)
    events = connect(scripted_api.url).watch(kinds.SERVER, "ns", "5")
    assert next(events)["object"] == {"n": 1}
    events.close()  # type: ignore[attr-defined]


def test_b39_a_watch_that_goes_silent_is_given_up(scripted_api: Any, connect: Connect) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(HEAD + chunk(line("ADDED", n=1)))
        scripted_api.finished.wait(10)

    scripted_api.will_answer(answer)
    events = connect(scripted_api.url).watch(kinds.SERVER, "ns", "5", silence=0.1)
    assert next(events)["object"] == {"n": 1}
    with pytest.raises(ports.Unavailable, match="silent"):
        next(events)


def test_b39_a_watch_that_is_never_answered_is_given_up(scripted_api: Any, connect: Connect) -> None:
    scripted_api.will_answer(lambda connection: scripted_api.finished.wait(10))
    with pytest.raises(ports.TimedOut):
        watch(connect(scripted_api.url), silence=0.1)


def test_b40_410_as_http_status_is_expired(scripted_api: Any, http: Http, connect: Connect) -> None:
    scripted_api.will_answer(http(410, {"kind": "Status", "code": 410, "reason": "Expired"}))
    with pytest.raises(ports.Expired):
        watch(connect(scripted_api.url))


def test_b40_410_as_an_event_is_expired(scripted_api: Any, connect: Connect) -> None:
    event = line("ERROR", kind="Status", code=410, reason="Expired", message="too old")
    scripted_api.will_answer(HEAD + chunk(event) + b"0\r\n\r\n")
    with pytest.raises(ports.Expired):
        watch(connect(scripted_api.url))


def test_another_error_event_is_no_end(scripted_api: Any, connect: Connect) -> None:
    scripted_api.will_answer(HEAD + chunk(line("ERROR", kind="Status", message="hush")) + b"0\r\n\r\n")
    with pytest.raises(ports.Unavailable, match="500"):
        watch(connect(scripted_api.url))


def test_a_lost_connection_is_an_end_and_half_an_event_no_event(scripted_api: Any, connect: Connect) -> None:
    scripted_api.will_answer(HEAD + chunk(line("ADDED", n=1)) + chunk(line("ADDED", n=2)[:10]))
    assert watch(connect(scripted_api.url)) == [{"type": "ADDED", "object": {"n": 1}}]


@pytest.mark.parametrize("nonsense", [b"{\n", b"[]\n", b'{"type": "ADDED"}\n'])
def test_nonsense_in_a_watch_is_the_dependencys_failure(scripted_api: Any, connect: Connect, nonsense: bytes) -> None:
    scripted_api.will_answer(HEAD + chunk(nonsense) + b"0\r\n\r\n")
    with pytest.raises(ports.Unavailable):
        watch(connect(scripted_api.url))
