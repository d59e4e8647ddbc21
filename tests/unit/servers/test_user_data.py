"""Contract section 8: which user data is accepted, and what is refused with which reason."""

from __future__ import annotations

import gzip
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_api.servers.errors import Unprocessable
from server_api.servers.user_data import NOVA_LIMIT, Gzip, Multipart, SinglePart, check, parse

MULTIPART = (
    b'Content-Type: multipart/mixed; boundary="==x=="\nMIME-Version: 1.0\n\n'
    b"--==x==\nContent-Type: text/cloud-config\n\n#cloud-config\n"
    b"--==x==\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho hi\n"
    b"--==x==--\n"
)


def refusal(payload: bytes, *, managed: bool = False) -> str:
    with pytest.raises(Unprocessable) as caught:
        check(payload, managed=managed)
    assert caught.value.field == "spec.userData"
    return caught.value.reason


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("payload", [None, b""])
def test_d01_nothing_is_valid(payload: bytes | None, managed: bool) -> None:
    check(payload, managed=managed)
    assert parse(payload, managed=managed) is None


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize(
    ("payload", "content_type"),
    [
        (b"## template: jinja\n#cloud-config\n", "text/jinja2"),
        (b"#cloud-config\npackages: []\n", "text/cloud-config"),
        (b"#cloud-config", "text/cloud-config"),
        (b"#cloud-config-archive\n- x\n", "text/cloud-config-archive"),
        (b"#cloud-config-jsonp\n[]\n", "text/cloud-config-jsonp"),
        (b"#!/bin/sh\necho\n", "text/x-shellscript"),
        (b"#!/bin/sh\n\xff\xfe\x00", "text/x-shellscript"),
        (b"#cloud-boothook\n", "text/cloud-boothook"),
        (b"#include\nhttp://x\n", "text/x-include-url"),
        (b"#include-once\nhttp://x\n", "text/x-include-once-url"),
        (b"#part-handler\n", "text/part-handler"),
        (b"  #cloud-config\n", "text/cloud-config"),
    ],
)
def test_d02_each_known_first_line_is_accepted_as_its_content_type(
    payload: bytes, content_type: str, managed: bool
) -> None:
    assert parse(payload, managed=managed) == SinglePart(content_type, payload)


@pytest.mark.parametrize("payload", [b"#cloud-config\r\npackages: []\r\n", b"#!/bin/bash\r\necho\r\n"])
def test_d03_b70_line_ends_of_windows_are_accepted(payload: bytes) -> None:
    assert isinstance(parse(payload, managed=True), SinglePart)


@pytest.mark.parametrize(
    "head",
    [
        b'Content-Type: multipart/mixed; boundary="b"\nMIME-Version: 1.0\n\n',
        b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n',
        b"MIME-Version: 1.0\r\ncontent-type: Multipart/Mixed;\r\n boundary=b\r\n\r\n",
    ],
)
def test_d04_a_multipart_header_is_found_in_whatever_order(head: bytes) -> None:
    body = b"--b\nContent-Type: text/cloud-config\n\n#cloud-config\n\n--b--\n"
    assert parse(head + body, managed=True) == Multipart((b"Content-Type: text/cloud-config\n\n#cloud-config\n",))


def test_parts_keep_their_own_headers_and_bytes() -> None:
    assert parse(MULTIPART, managed=False) == Multipart(
        (
            b"Content-Type: text/cloud-config\n\n#cloud-config",
            b"Content-Type: text/x-shellscript\n\n#!/bin/sh\necho hi",
        )
    )


def test_a_payload_of_nothing_but_the_closing_delimiter_has_no_parts() -> None:
    payload = b"Content-Type: multipart/mixed; boundary=b\n\n--b--\n"
    assert parse(payload, managed=False) == Multipart(())


@pytest.mark.parametrize("value", [b"multipart/mixed", b'multipart/mixed; boundary=""', b"multipart/mixed; charset=x"])
def test_d05_a_missing_boundary_is_named(value: bytes) -> None:
    assert "boundary missing" in refusal(b"Content-Type: " + value + b"\n\n--b--\n")


@pytest.mark.parametrize(
    "payload",
    [
        b"Content-Type: multipart/mixed; boundary=b\nthis is no header\n\n--b--\n",
        b"Content-Type: multipart/mixed; boundary=b\nBroken Name: x\n\n--b--\n",
        b"Content-Type: multipart/\n\n--b--\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nno header here\n\nbody\n--b--\n",
    ],
)
def test_d06_a_broken_header_is_named(payload: bytes) -> None:
    assert "unable to parse multipart userData" in refusal(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/cloud-config\n\n#cloud-config\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--other--\n",
        MULTIPART.replace(b"--==x==--", b"--==x=="),
    ],
)
def test_d07_a_part_that_is_never_closed_is_refused(payload: bytes) -> None:
    assert "multipart" in refusal(payload)


@pytest.mark.parametrize(
    "payload", [b"echo hello", b"\n\n#cloud-config\n", b"hello #cloud-config", b"# cloud-config\n"]
)
def test_d08_unknown_text_is_refused_without_a_word_of_augmentation(payload: bytes) -> None:
    reason = refusal(payload)
    assert "recognized cloud-init format" in reason
    assert "unsupported userData format" in reason
    assert "augment" not in reason
    assert "hello" not in reason


def test_gzip_is_passed_through_without_an_authority_and_refused_with_one() -> None:
    payload = gzip.compress(b"#cloud-config\n")
    check(payload, managed=False)
    assert parse(payload, managed=False) == Gzip(payload)
    assert "gzip" in refusal(payload, managed=True)


def test_b67_a_byte_order_mark_is_named() -> None:
    assert "BOM" in refusal("\ufeff#cloud-config\n".encode())


@pytest.mark.parametrize("payload", [b"---\n#cloud-config\n", b"packages: [vim]\n"])
def test_b68_a_header_that_is_not_first_is_refused(payload: bytes) -> None:
    assert "unsupported userData format" in refusal(payload)


@pytest.mark.parametrize("payload", [gzip.compress(b"#cloud-config\n"), MULTIPART, b"#cloud-config\n", b"#!/bin/sh\n"])
def test_b69_a_payload_encoded_twice_is_named(payload: bytes) -> None:
    assert "base64-encoded twice" in refusal(b64encode(payload))


def test_b71_a_literal_backslash_n_is_accepted_because_only_the_header_is_inspected() -> None:
    assert isinstance(parse(rb"#cloud-config\n coreos:", managed=False), SinglePart)


def test_b72_what_nova_cannot_take_is_refused() -> None:
    largest = NOVA_LIMIT // 4 * 3
    check(b"#!" + b"x" * (largest - 2), managed=False)
    assert "65535" in refusal(b"#!" + b"x" * (largest - 1))


@given(st.binary(max_size=200), st.booleans())
def test_arbitrary_bytes_are_accepted_or_refused_and_nothing_else(payload: bytes, managed: bool) -> None:
    try:
        check(payload, managed=managed)
    except Unprocessable:
        assert payload


@given(st.binary(max_size=60), st.booleans())
def test_arbitrary_multipart_bodies_are_accepted_or_refused_and_nothing_else(body: bytes, managed: bool) -> None:
    try:
        result = parse(b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" + body + b"\n--b--\n", managed=managed)
    except Unprocessable:
        return
    assert isinstance(result, Multipart)
