"""The virtual environment is keyed by its versions, and counts only when it is whole and where it was made."""

import subprocess
import sys
from pathlib import Path

import pytest

from server_api.sandbox.errors import StepFailed
from server_api.sandbox.openstack.virtualenv import CONSTRAINTS, VirtualEnvironment, cache_key, locked, run


def environment(folder: Path) -> VirtualEnvironment:
    made = VirtualEnvironment(folder, lambda _: None)
    made.python.parent.mkdir(parents=True)
    made.python.symlink_to(sys.executable)
    (folder / "venv.complete").write_text(str(made.path))
    return made


def test_another_version_of_any_package_is_another_key(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("nova==34.0.0\n")
    two.write_text("nova==34.0.1\n")
    assert cache_key(one) != cache_key(two)
    assert cache_key(one) == cache_key(one)


def test_another_python_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_key()
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    assert cache_key() != before


def test_everything_that_is_installed_by_name_is_pinned() -> None:
    pinned = {line.partition("==")[0].lower() for line in CONSTRAINTS.read_text().splitlines()}
    assert {"keystone", "glance", "openstack-placement", "neutron", "nova", "waitress", "uv"} <= pinned


def test_a_whole_environment_is_complete(tmp_path: Path) -> None:
    assert environment(tmp_path).complete()


def test_one_without_marker_is_not_complete(tmp_path: Path) -> None:
    made = environment(tmp_path)
    (tmp_path / "venv.complete").unlink()
    assert not made.complete()


def test_one_that_was_moved_is_not_complete(tmp_path: Path) -> None:
    environment(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    assert not VirtualEnvironment(tmp_path / "after", lambda _: None).complete()


def test_one_whose_python_has_gone_is_not_complete(tmp_path: Path) -> None:
    made = environment(tmp_path)
    made.python.unlink()
    made.python.symlink_to(tmp_path / "uninstalled")
    assert not made.complete()


def test_a_command_that_fails_is_told_with_its_log_and_the_end_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(StepFailed, match=r"baking failed; read .*\n(.*\n)*the very cause") as failure:
        run([sys.executable, "-c", "raise SystemExit('the very cause')"], "baking", log, lambda _: None)
    assert failure.value.log == log


def test_a_long_command_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server_api.sandbox.openstack.virtualenv.PROGRESS_INTERVAL", 0.02)
    told: list[str] = []
    run([sys.executable, "-c", "import time; time.sleep(0.2)"], "baking", tmp_path / "log", told.append)
    assert "still baking (0 s)" in told


def test_a_lock_is_held_against_other_processes_and_freed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    attempt = [
        sys.executable,
        "-c",
        f"import fcntl; fcntl.flock(open({str(lock)!r}, 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)",
    ]
    with locked(lock, lambda _: None, "busy"):
        assert subprocess.run(attempt, stderr=subprocess.PIPE, check=False).returncode != 0
    assert subprocess.run(attempt, stderr=subprocess.PIPE, check=False).returncode == 0
