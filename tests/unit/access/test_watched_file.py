"""A file that is read again when it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from server_api.access.watched_file import BROKEN, UnusableFile, WatchedFile


def parse(document: object) -> str:
    if not isinstance(document, dict) or "word" not in document:
        raise ValueError("word: a text is required")
    return str(document["word"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.yaml"
    write(path, "word: first")
    return path


def write(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace the file, as an editor or a mounted Secret does."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)


def broken() -> float:
    return float(BROKEN.labels("test")._value.get())


def test_a_change_is_seen_by_the_next_look(path: Path) -> None:
    file = WatchedFile(path, "test", parse)
    assert file.content == "first"

    write(path, "word: second")

    assert file.content == "second"


def test_a_change_in_place_is_seen_too(path: Path) -> None:
    file = WatchedFile(path, "test", parse)

    path.write_text("word: 2nd!!")

    assert file.content == "2nd!!"


def test_a_file_that_stays_as_it_is_is_read_once(path: Path) -> None:
    read: list[object] = []
    file = WatchedFile(path, "test", read.append)

    for _ in range(5):
        assert file.content is None

    assert len(read) == 1


@pytest.mark.parametrize("text", ["word: [", "other: x", "[]", "word: 2026-13-01", "word: a\nword: b"])
def test_a_version_that_cannot_be_used_leaves_the_old_in_force_and_says_so(path: Path, text: str) -> None:
    file = WatchedFile(path, "test", parse)
    write(path, text)

    with capture_logs() as logs:
        assert [file.content, file.content] == ["first", "first"]

    assert [entry["log_level"] for entry in logs] == ["error"]
    assert str(path) in logs[0]["detail"]
    assert broken() == 1.0

    write(path, "word: third")
    assert file.content == "third"
    assert broken() == 0.0


def test_a_file_that_is_taken_away_leaves_the_old_in_force(path: Path) -> None:
    file = WatchedFile(path, "test", parse)
    path.unlink()

    assert file.content == "first"
    assert broken() == 1.0

    write(path, "word: back")
    assert file.content == "back"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o660])
def test_a_file_that_others_may_write_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)

    with pytest.raises(UnusableFile, match="others than its owner may write it"):
        WatchedFile(path, "test", parse)


def test_a_file_that_others_may_write_from_now_on_is_not_read_again(path: Path) -> None:
    file = WatchedFile(path, "test", parse)

    write(path, "word: mallory", mode=0o666)

    assert file.content == "first"
    assert broken() == 1.0


@pytest.mark.parametrize(("mode", "warnings"), [(0o600, 0), (0o400, 0), (0o640, 0), (0o644, 1), (0o444, 1)])
def test_a_file_that_everybody_may_read_is_warned_of(path: Path, mode: int, warnings: int) -> None:
    path.chmod(mode)

    with capture_logs() as logs:
        assert WatchedFile(path, "test", parse).content == "first"

    assert [entry["log_level"] for entry in logs] == ["warning"] * warnings


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)

    with pytest.raises(UnusableFile, match="not a regular file"):
        WatchedFile(pipe, "test", parse)


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    """Kubernetes mounts a Secret as links to a directory, which it exchanges."""
    link = tmp_path / "link"
    link.symlink_to(path)
    file = WatchedFile(link, "test", parse)
    other = tmp_path / "other.yaml"
    write(other, "word: other")

    link.unlink()
    link.symlink_to(other)

    assert file.content == "other"


@pytest.mark.parametrize("text", ["word: {hunter2", "word: hunter2\nword: hunter2", "when: 2026-13-01", "hunter2: 1"])
def test_what_is_wrong_with_a_file_is_said_without_quoting_it(path: Path, text: str) -> None:
    write(path, text)

    with pytest.raises(UnusableFile) as refusal:
        WatchedFile(path, "test", parse)

    assert str(path) in str(refusal.value)
    assert "hunter2" not in str(refusal.value)
    assert "13" not in str(refusal.value).removeprefix(str(path))
