"""Where audit events go: a file that workers share and that is rotated, and the log."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from server_api import audit_log, logs
from server_api.audit_log import AuditFile
from server_api.settings import Settings


def events(*paths: Path) -> list[dict[str, Any]]:
    """Return the events in files; every line has to be one."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def test_an_event_is_a_line_with_its_time(path: Path) -> None:
    AuditFile(path, 0, 1).write({"actor": {"subject": "alice\nmallory"}, "trace_id": "t"})
    [event] = events(path)
    assert event.pop("timestamp").endswith("+00:00")
    assert event == {"event": "audit", "actor": {"subject": "alice\nmallory"}, "trace_id": "t"}


def test_the_file_is_not_for_everybody_to_read(path: Path) -> None:
    AuditFile(path, 0, 1)
    assert stat.S_IMODE(path.stat().st_mode) & 0o007 == 0


def test_secrets_are_redacted(path: Path) -> None:
    AuditFile(path, 0, 1).write({"actor": {"token": "hush"}, "peer": "Bearer hush"})
    assert "hush" not in path.read_text()


def test_a_name_that_is_no_text_does_not_cost_the_event(path: Path) -> None:
    AuditFile(path, 0, 1).write({"actor": "\ud800"})
    assert events(path)[0]["actor"] == "\ud800"


def test_it_is_rotated_before_it_grows_too_large_and_the_oldest_goes(path: Path, tmp_path: Path) -> None:
    log = AuditFile(path, 200, 2)
    for number in range(12):
        log.write({"number": number, "filler": "x" * 20})
    files = [tmp_path / name for name in ("audit.log.2", "audit.log.1", "audit.log")]
    assert all(file.stat().st_size <= 200 for file in files)
    assert not (tmp_path / "audit.log.3").exists()
    numbers = [event["number"] for event in events(*files)]
    assert numbers == list(range(12 - len(numbers), 12))


def test_processes_that_rotate_the_same_file_lose_nothing(path: Path, tmp_path: Path) -> None:
    children = []
    for worker in range(4):
        child = os.fork()
        if child == 0:
            log = AuditFile(path, 2_000, 1_000)
            for number in range(100):
                log.write({"worker": worker, "number": number})
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    files = [file for file in tmp_path.iterdir() if file.suffix != ".lock"]
    assert len(files) > 5
    written = sorted((event["worker"], event["number"]) for event in events(*files))
    assert written == [(worker, number) for worker in range(4) for number in range(100)]


def test_a_file_that_was_moved_away_is_opened_anew(path: Path, tmp_path: Path) -> None:
    log = AuditFile(path, 0, 1)
    log.write({"number": 1})
    path.rename(tmp_path / "moved")
    log.write({"number": 2})
    assert [event["number"] for event in events(tmp_path / "moved", path)] == [1, 2]


def test_an_event_that_cannot_be_written_is_logged_and_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Mapping[str, Any]] = []
    monkeypatch.setattr(audit_log.StandardOutput, "write", lambda _self, event: logged.append(event))
    log = AuditFile(path, 0, 1)
    before = audit_log.FAILURES._value.get()

    def full(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audit_log.os, "write", full)
    log.write({"number": 1})
    assert logged == [{"number": 1}]
    assert audit_log.FAILURES._value.get() == before + 1


def test_the_log_has_it_whatever_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("error")
    audit_log.StandardOutput().write({"actor": {"subject": "alice"}})
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["event"] == "audit"
    assert json.loads(line)["actor"] == {"subject": "alice"}


def test_the_settings_decide(path: Path) -> None:
    assert isinstance(audit_log.from_settings(Settings()), audit_log.StandardOutput)
    assert isinstance(audit_log.from_settings(Settings(audit_log="off")), audit_log.NoAudit)
    assert isinstance(audit_log.from_settings(Settings(audit_log=str(path))), AuditFile)


def test_a_file_that_cannot_be_opened_is_found_at_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SERVER_API_AUDIT_LOG"):
        audit_log.from_settings(Settings(audit_log=str(tmp_path / "missing" / "audit.log")))
