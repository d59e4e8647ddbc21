"""User data: what cloud-init would make of it (contract 8.1 to 8.4).

One parser for the boundary, which refuses what could not work, and for provisioning, which adds a part. Payloads are
bytes and stay bytes: what is accepted reaches the guest as it was sent.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from email.errors import MessageError
from email.message import Message
from email.parser import BytesHeaderParser

from server_api.servers.errors import Unprocessable

FIELD = "spec.userData"

NOVA_LIMIT = 65_535
"""Characters of base64 that Nova takes."""

_LEAD_IN = "userData is not in a recognized cloud-init format"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
# What gzip and "Content-Type" look like in base64: a payload encoded once too often.
_ENCODED_TWICE = (b"H4sI", b"Q29u", b"I2Ns", b"IyEv")
_MULTIPART_LINE = b"content-type: multipart/"
_HEADER_LINE = re.compile(rb"[!-9;-~]+[ \t]*:.*", re.DOTALL)

# By first line; a longer prefix stands before its own beginning, or it would never be found.
_CONTENT_TYPES = (
    (b"## template: jinja", "text/jinja2"),
    (b"#cloud-config-archive", "text/cloud-config-archive"),
    (b"#cloud-config-jsonp", "text/cloud-config-jsonp"),
    (b"#cloud-config", "text/cloud-config"),
    (b"#cloud-boothook", "text/cloud-boothook"),
    (b"#include-once", "text/x-include-once-url"),
    (b"#include", "text/x-include-url"),
    (b"#part-handler", "text/part-handler"),
    (b"#!", "text/x-shellscript"),
)


@dataclass(frozen=True, slots=True)
class SinglePart:
    """One document of a known content type."""

    content_type: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Multipart:
    """A MIME multipart message: its parts as they stand between the delimiters, headers included."""

    parts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Gzip:
    """A compressed payload: passed through, since nobody looks inside."""

    payload: bytes


UserData = SinglePart | Multipart | Gzip | None


def check(payload: bytes | None, *, managed: bool) -> None:
    """Raise Unprocessable unless cloud-init will understand the payload and Nova will take it.

    ``managed``: a part will be added for an SSH certificate authority, so the payload has to support that.
    """
    parse(payload, managed=managed)
    check_size(payload)


def check_size(payload: bytes | None) -> None:
    """Raise Unprocessable when the payload, as it goes to the cloud, is longer than Nova takes."""
    if payload is not None and len(b64encode(payload)) > NOVA_LIMIT:
        raise Unprocessable(f"longer than {NOVA_LIMIT} characters of base64", FIELD)


def parse(payload: bytes | None, *, managed: bool) -> UserData:
    """Return what the payload is, None for nothing. Raises Unprocessable with the reason."""
    if not payload:
        return None
    if payload.startswith(_GZIP):
        if managed:
            raise _rejected("gzip cannot be combined with an SSH certificate authority")
        return Gzip(payload)
    if payload.startswith(_BOM):
        raise _rejected("it begins with a byte order mark (BOM), which hides the header from cloud-init")
    first_line = payload.split(b"\n", 1)[0].strip()
    if first_line.lower().startswith(_MULTIPART_LINE) or _has_multipart_header(payload):
        return Multipart(_parts(payload))
    for prefix, content_type in _CONTENT_TYPES:
        if first_line.startswith(prefix):
            return SinglePart(content_type, payload)
    if payload.startswith(_ENCODED_TWICE):
        raise _rejected("unsupported userData format: it looks base64-encoded twice")
    raise _rejected("unsupported userData format")


def _rejected(reason: str) -> Unprocessable:
    return Unprocessable(f"{_LEAD_IN}: {reason}", FIELD)


def _has_multipart_header(payload: bytes) -> bool:
    head = _head(payload)
    return head is not None and head.get_content_maintype() == "multipart"


def _parts(payload: bytes) -> tuple[bytes, ...]:
    head = _head(payload)
    if head is None:
        raise _rejected("unable to parse multipart userData: its header is malformed")
    if head.get_content_maintype() != "multipart":
        raise _rejected("unable to parse multipart userData: its content type is malformed")
    boundary = (head.get_boundary() or "").encode("utf-8", "surrogateescape")
    if not boundary:
        raise _rejected("unable to parse multipart userData: boundary missing")
    return _split(payload, boundary)


def _split(payload: bytes, boundary: bytes) -> tuple[bytes, ...]:
    """Return what stands between the delimiters. The line break before a delimiter belongs to the delimiter."""
    delimiter = re.compile(rb"(?:^|\r?\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?:\r?\n|$)")
    parts: list[bytes] = []
    start: int | None = None
    position = 0
    while True:
        match = delimiter.search(payload, position)
        if match is None:
            raise _rejected("unable to parse multipart userData: a part is not closed by the boundary")
        if start is not None:
            part = payload[start : max(start, match.start())]
            if _head(part) is None:
                raise _rejected("unable to parse multipart userData: a part's header is malformed")
            parts.append(part)
        if match[1]:
            return tuple(parts)
        start = match.end()
        # The next delimiter may share this one's line break, as after an empty part.
        position = match.end() - 1 if match[0].endswith(b"\n") else match.end()


def _head(message: bytes) -> Message | None:
    """Return a message's headers, None when its first lines are not well-formed headers and a blank line."""
    lines: list[bytes] = []
    for line in message.splitlines(keepends=True):
        text = line.rstrip(b"\r\n")
        if not text:
            break
        continued = text[:1] in b" \t" and lines
        if not continued and not _HEADER_LINE.fullmatch(text):
            return None
        lines.append(line)
    try:
        return BytesHeaderParser().parsebytes(b"".join(lines) + b"\n")
    except (MessageError, ValueError, LookupError):
        return None
