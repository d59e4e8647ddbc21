"""`server-api sandbox` as a user runs it, on the sandbox of the tests."""

import os
import subprocess
import sys
from pathlib import Path

from server_api.sandbox.layout import REPOSITORY
from server_api.sandbox.services import API, CONTROLLER
from tests.integration.harness import Sandbox


def sandbox(region: Sandbox, *words: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    layout = region.region.layout
    command = [sys.executable, "-m", "server_api.cli", "sandbox"]
    options = ["--directory", str(directory or layout.directory), "--cache", str(layout.cache)]
    return subprocess.run(
        [*command, *options, *words],
        cwd=REPOSITORY,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def pids(region: Sandbox) -> dict[str, int]:
    return {row.name: row.pid for row in region.region.status() if row.pid}


def test_up_on_a_running_sandbox_says_so_restarts_nothing_and_writes_the_environment_anew(region: Sandbox) -> None:
    before = pids(region)
    file = region.region.layout.environment
    content = file.read_text()
    file.unlink()
    result = sandbox(region, "up")
    assert result.returncode == 0, result.stderr
    assert "already running" in result.stdout
    assert pids(region) == before
    assert file.read_text() == content


def test_status_shows_every_process_and_exits_with_1_if_one_is_down(region: Sandbox) -> None:
    result = sandbox(region, "status")
    assert result.returncode == 0, result.stdout
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert set(rows) == region.names
    assert all(row[0] == "up" for row in rows.values())
    assert rows[API][1:] == [str(pids(region)[API]), region.environment["SERVER_API_URL"]]

    region.kill(CONTROLLER)
    result = sandbox(region, "status")
    assert result.returncode == 1
    assert [line.split()[:2] for line in result.stdout.splitlines() if "up" not in line] == [[CONTROLLER, "down"]]

    before = pids(region)
    assert sandbox(region, "up", "--detach").returncode == 0
    after = pids(region)
    assert {name: pid for name, pid in after.items() if name != CONTROLLER} == before
    assert CONTROLLER in after


def test_the_demo_command_exits_with_1_and_says_what_failed(region: Sandbox) -> None:
    with region.rules({"service": "glance", "path": "/v2/images*", "status": 503}):
        result = sandbox(region, "demo")
    assert result.returncode == 1
    assert "create: 502 instead of 201" in result.stderr


def test_where_nothing_was_started_status_and_demo_fail_and_down_does_not(region: Sandbox, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    for command in ("status", "demo"):
        result = sandbox(region, command, directory=empty)
        assert result.returncode == 1
        assert "run server-api sandbox up" in result.stderr
    assert sandbox(region, "down", directory=empty).returncode == 0
