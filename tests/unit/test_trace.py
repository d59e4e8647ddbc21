"""The trace of the work in hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from server_api import trace

T = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@contextmanager
def traced(header: str | None = None) -> Iterator[str]:
    token = trace.begin(header)
    try:
        current = trace.current()
        assert current is not None
        yield current
    finally:
        trace.end(token)


@pytest.mark.parametrize(
    "header",
    [f"00-{T}-{PARENT}-01", f"00-{T}-{PARENT}-00", f"  00-{T}-{PARENT}-01 ", f"cc-{T}-{PARENT}-01-what-comes-later"],
)
def test_t24_the_trace_of_the_caller_is_continued(header: str) -> None:
    with traced(header) as current:
        assert current == T


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        T,
        f"{T}-{PARENT}-01",
        f"00-{T}-{PARENT}",
        f"00-{T[1:]}-{PARENT}-01",
        f"00-{T}0-{PARENT}-01",
        f"00-{T}-{PARENT[1:]}-01",
        f"00-{T.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{T}-{'0' * 16}-01",
        f"ff-{T}-{PARENT}-01",
        f"00-{T}-{PARENT}-01x",
        f"00-{T}-{PARENT}-01\n-x",
    ],
)
def test_t23_anything_else_begins_a_trace_of_our_own(header: str | None) -> None:
    with traced(header) as current:
        assert re.fullmatch("[0-9a-f]{32}", current)
        assert current.strip("0")
        assert current != T


def test_two_traces_of_our_own_differ() -> None:
    with traced() as one:
        pass
    with traced() as other:
        pass

    assert one != other


def test_ending_restores_what_was_there_before() -> None:
    with traced(f"00-{T}-{PARENT}-01"):
        with traced() as inner:
            assert inner != T
        assert trace.current() == T
    assert trace.current() is None


def test_b77_an_outgoing_call_carries_the_trace_with_a_parent_of_its_own() -> None:
    with traced(f"00-{T}-{PARENT}-01"):
        one, other = trace.traceparent(), trace.traceparent()

    assert one is not None
    assert other is not None
    assert re.fullmatch(f"00-{T}-[0-9a-f]{{16}}-01", one)
    assert PARENT not in one
    assert one != other


def test_b77_openstack_gets_the_trace_as_a_request_id() -> None:
    with traced(f"00-{T}-{PARENT}-01"):
        assert trace.openstack_request_id() == "req-4bf92f35-77b3-4da6-a3ce-929d0e0e4736"


def test_outside_of_any_work_there_is_nothing_to_carry() -> None:
    assert trace.current() is None
    assert trace.traceparent() is None
    assert trace.openstack_request_id() is None


def test_more_fields_in_version_00_are_refused() -> None:
    with traced(f"00-{T}-{PARENT}-01-extra") as current:
        assert current != T
