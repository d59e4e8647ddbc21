"""Contract 8.5 against its only judge: cloud-init's own user-data processor reads what ``augment`` writes.

PyPI does not have cloud-init, and a machine that is no guest should not have it installed: it would set the machine up
at the next boot. So its Python modules are taken from where ``.ci/run`` unpacks Debian's package, or from Debian's own
place, and these tests are skipped where neither is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml

from server_api.servers.user_data import SinglePart, parse
from server_api.servers.user_data_augmentation import augment

ROOT = Path(__file__).parents[3]
PLACES = [
    ROOT / ".tox" / "cloud-init" / "usr" / "lib" / "python3" / "dist-packages",
    Path("/usr/lib/python3/dist-packages"),
]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ca@example"

OUR_FILES = ["/etc/ssh/trusted-user-ca-keys.pub", "/etc/ssh/sshd_config.d/90-unikorn-trusted-user-ca.conf"]
CONFIG = b"""#cloud-config
packages: [vim]
write_files:
- {path: /etc/motd, content: welcome}
runcmd:
- [echo, mine]
"""
SCRIPT = b"#!/bin/sh\necho mine\n"
BOTH = (
    b'Content-Type: multipart/mixed; boundary="b"\r\nMIME-Version: 1.0\r\n\r\n'
    b"--b\r\nContent-Type: text/x-shellscript\r\n\r\n" + SCRIPT + b"\r\n"
    b"--b\r\nContent-Type: text/cloud-config\r\n\r\n" + CONFIG + b"\r\n--b--\r\n"
)
ARCHIVE = b"#cloud-config-archive\n- {type: text/x-shellscript, content: '#!/bin/sh'}\n- {content: '#cloud-config'}\n"

HEADERS = [
    b"#cloud-config",
    b"#cloud-config-archive",
    b"#cloud-config-jsonp",
    b"#cloud-boothook",
    b"#include",
    b"#include-once",
    b"#part-handler",
    b"#!/bin/sh",
    b"## template: jinja",
]
"""A first line of every format of contract 8.1, and of the two that design section 4 adds."""


@dataclass
class Guest:
    """What cloud-init made of one payload: the configuration, the scripts and the parts, by content type."""

    config: dict[str, Any]
    scripts: list[bytes]
    content_types: list[str]
    unhandled: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        return [file["path"] for file in self.config["write_files"]]

    @property
    def commands(self) -> list[Any]:
        return list(self.config["runcmd"])


@pytest.fixture(scope="module", autouse=True)
def _cloud_init(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make ``cloudinit``, and nothing else of Debian's, importable."""
    place = next((place for place in PLACES if (place / "cloudinit").is_dir()), None)
    if place is None:
        pytest.skip("cloud-init is not on this machine: .ci/run unpacks it")
    only = tmp_path_factory.mktemp("only-cloud-init")
    (only / "cloudinit").symlink_to(place / "cloudinit")
    sys.path.insert(0, str(only))
    yield
    sys.path.remove(str(only))


@pytest.fixture
def guest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Any:
    """Return what boots a guest with a payload, as far as user data goes."""

    def boot(payload: bytes) -> Guest:
        # cloud-init is not there when this module is imported.
        from cloudinit import handlers, helpers, settings, user_data
        from cloudinit.handlers.cloud_config import CloudConfigPartHandler
        from cloudinit.handlers.shell_script import ShellScriptPartHandler

        class DataSource:
            def get_instance_id(self) -> str:
                return "guest"

        paths = helpers.Paths({"cloud_dir": str(tmp_path), "run_dir": str(tmp_path)}, ds=DataSource())
        message: Message = user_data.UserDataProcessor(paths).process(payload)
        known = helpers.ContentHandlers()
        ours = [CloudConfigPartHandler(paths), ShellScriptPartHandler(paths)]
        for handler in ours:
            known.register(handler)
            handlers.call_begin(handler, None, settings.PER_ALWAYS)
        data = {
            "handlers": known,
            "handlerdir": str(tmp_path),
            "data": None,
            "frequency": settings.PER_ALWAYS,
            "handlercount": 0,
            "excluded": [],
        }
        handlers.walk(message, handlers.walker_callback, data)
        for handler in ours:
            handlers.call_end(handler, None, settings.PER_ALWAYS)
        written = Path(paths.get_ipath("cloud_config")).read_text()
        scripts = sorted(Path(paths.get_ipath_cur("scripts")).glob("*"))
        return Guest(
            config=yaml.safe_load(written) or {},
            scripts=[script.read_bytes() for script in scripts],
            content_types=[part.get_content_type() for part in message.walk() if not part.is_multipart()],
            unhandled=[record.getMessage() for record in caplog.records if record.levelname in {"WARNING", "ERROR"}],
        )

    return boot


@pytest.mark.parametrize("header", HEADERS)
def test_a_document_is_labelled_as_cloud_init_would_label_it(header: bytes) -> None:
    from cloudinit.handlers import type_from_starts_with

    payload = header + b"\n"
    document = parse(payload, managed=True)
    assert isinstance(document, SinglePart)
    assert document.content_type == type_from_starts_with(payload)


def test_the_authoritys_configuration_alone_is_understood(guest: Any) -> None:
    booted = guest(augment(None, KEY))
    assert booted.files == OUR_FILES
    assert booted.config["write_files"][0]["content"] == KEY
    assert booted.commands[0][:2] == ["sh", "-c"]
    assert booted.unhandled == []


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_configuration_keeps_all_it_asks_for_and_gets_ours_besides(guest: Any, line_end: bytes) -> None:
    booted = guest(augment(CONFIG.replace(b"\n", line_end), KEY))
    assert booted.content_types == ["text/cloud-config", "text/cloud-config"]
    assert booted.config["packages"] == ["vim"]
    assert booted.files == ["/etc/motd", *OUR_FILES]
    assert booted.commands[0] == ["echo", "mine"]
    assert booted.commands[1][:2] == ["sh", "-c"]
    assert booted.unhandled == []


@pytest.mark.parametrize("how", ["list(replace)+dict(replace)", "dict(no_replace)+list(no_replace)"])
def test_how_the_configuration_wants_to_be_merged_does_not_undo_ours(guest: Any, how: str) -> None:
    booted = guest(augment(CONFIG + f"merge_how: {how}\n".encode(), KEY))
    assert booted.files == ["/etc/motd", *OUR_FILES]
    assert len(booted.commands) == 2


def test_a_script_runs_as_it_was_sent_beside_our_configuration(guest: Any) -> None:
    booted = guest(augment(SCRIPT, KEY))
    assert booted.scripts == [SCRIPT]
    assert booted.files == OUR_FILES
    assert booted.unhandled == []


def test_every_part_of_a_multipart_is_recognised_and_ours_comes_last(guest: Any) -> None:
    booted = guest(augment(BOTH, KEY))
    assert booted.content_types == ["text/x-shellscript", "text/cloud-config", "text/cloud-config"]
    assert booted.scripts == [SCRIPT]
    assert booted.files == ["/etc/motd", *OUR_FILES]
    assert len(booted.commands) == 2
    assert booted.unhandled == []


def test_an_archive_is_unpacked_beside_our_configuration(guest: Any) -> None:
    booted = guest(augment(ARCHIVE, KEY))
    assert booted.content_types == ["text/x-shellscript", "text/cloud-config", "text/cloud-config"]
    assert booted.scripts == [b"#!/bin/sh"]
    assert booted.files == OUR_FILES


@pytest.mark.parametrize("script", ["#!/bin/sh\necho Grüße\n", "#!/bin/sh\necho 日本 ✓\n"], ids=["latin", "wide"])
def test_a_script_with_more_than_ascii_runs_as_it_was_sent(guest: Any, script: str) -> None:
    assert guest(augment(script.encode(), KEY)).scripts == [script.encode()]


def test_a_configuration_with_more_than_ascii_says_what_it_said(guest: Any) -> None:
    booted = guest(augment(CONFIG.replace(b"welcome", "Grüße aus 日本".encode()), KEY))
    assert booted.config["write_files"][0]["content"] == "Grüße aus 日本"
    assert booted.files == ["/etc/motd", *OUR_FILES]


def test_a_script_that_is_no_text_does_not_cost_the_guest_our_configuration(guest: Any) -> None:
    assert guest(augment(b"#!/bin/sh\necho \xff\n", KEY)).files == OUR_FILES
