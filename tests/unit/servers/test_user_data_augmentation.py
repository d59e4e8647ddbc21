"""Contract 8.5: a guest that trusts the SSH certificate authority, whatever else its user data does."""

from __future__ import annotations

import gzip
from email import message_from_bytes
from email.message import Message

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from server_api.servers.errors import Unprocessable
from server_api.servers.user_data_augmentation import augment

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ca@example"
KEYS_PATH = "/etc/ssh/trusted-user-ca-keys.pub"


def parts_of(payload: bytes) -> list[Message]:
    message = message_from_bytes(payload)
    assert message.get_content_type() == "multipart/mixed"
    assert message["MIME-Version"] == "1.0"
    parts = message.get_payload()
    assert isinstance(parts, list)
    return [part for part in parts if isinstance(part, Message)]


def test_k27_without_user_data_the_authoritys_configuration_stands_alone() -> None:
    payload = augment(None, KEY)
    assert payload.startswith(b"#cloud-config\n")
    document = yaml.safe_load(payload)
    assert document["write_files"] == [
        {"path": KEYS_PATH, "owner": "root:root", "permissions": "0644", "content": KEY},
        {
            "path": "/etc/ssh/sshd_config.d/90-unikorn-trusted-user-ca.conf",
            "owner": "root:root",
            "permissions": "0644",
            "content": f"TrustedUserCAKeys {KEYS_PATH}",
        },
    ]


def test_the_ssh_daemon_is_reloaded_or_else_restarted_under_either_name() -> None:
    (command,) = yaml.safe_load(augment(None, KEY))["runcmd"]
    assert command[:2] == ["sh", "-c"]
    assert command[2].split(" || ") == [
        "systemctl reload sshd",
        "systemctl reload ssh",
        "service ssh reload",
        "service sshd reload",
        "systemctl restart sshd",
        "systemctl restart ssh",
        "service ssh restart",
        "service sshd restart",
    ]


def test_lists_of_other_parts_are_appended_to_and_not_replaced() -> None:
    assert yaml.safe_load(augment(None, KEY))["merge_how"].startswith("list(append)")


@pytest.mark.parametrize(
    ("payload", "content_type"),
    [(b"#cloud-config\npackages: [vim]\n", "text/cloud-config"), (b"#!/bin/sh\necho \xff\r\n", "text/x-shellscript")],
)
def test_k28_a_single_document_becomes_the_first_of_two_parts(payload: bytes, content_type: str) -> None:
    first, second = parts_of(augment(payload, KEY))
    assert first.get_content_type() == content_type
    assert first.get_payload(decode=True) == payload
    assert second.get_content_type() == "text/cloud-config"
    assert second.get_filename() == "unikorn-ssh-certificate-authority"
    assert second.get_payload(decode=True) == augment(None, KEY)


def test_k29_the_parts_of_a_multipart_keep_their_headers_and_their_order() -> None:
    payload = (
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n"
        b"Content-Type: text/x-shellscript\nX-Mine: yes\n\n#!/bin/sh\n"
        b"\n--b\nContent-Type: text/cloud-config\n\n#cloud-config\n\n--b--\n"
    )
    first, second, third = parts_of(augment(payload, KEY))
    assert (first["X-Mine"], first.get_payload(decode=True)) == ("yes", b"#!/bin/sh\n")
    assert second.get_content_type() == "text/cloud-config"
    assert third.get_filename() == "unikorn-ssh-certificate-authority"


def test_the_same_input_gives_the_same_bytes() -> None:
    assert augment(b"#!/bin/sh\n", KEY) == augment(b"#!/bin/sh\n", KEY)


def test_gzip_cannot_be_augmented() -> None:
    with pytest.raises(Unprocessable):
        augment(gzip.compress(b"#cloud-config\n"), KEY)


@given(st.binary(max_size=200))
def test_the_original_payload_survives_byte_for_byte(body: bytes) -> None:
    payload = b"#!/bin/sh\n" + body
    first, _ = parts_of(augment(payload, KEY))
    assert first.get_payload(decode=True) == payload
