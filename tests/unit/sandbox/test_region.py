import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server_api.sandbox import region as region_module
from server_api.sandbox import services
from server_api.sandbox.errors import StepFailed
from server_api.sandbox.layout import Layout
from server_api.sandbox.region import Region


class NoOpenStack:
    """Stands where OpenStack would, and starts nothing."""

    def __init__(self, state: Path, cache: Path, **options: Any) -> None: ...

    def install(self) -> None: ...

    def start(self) -> None: ...

    def status(self) -> dict[str, bool]:
        return {}


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Region]:
    """A sandbox whose Kubernetes is any HTTP server, and whose migrations fail."""

    def command(name: str, layout: Layout, choices: services.Choices) -> list[str]:
        port = str(choices.ports[name])
        return [sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", str(tmp_path)]

    monkeypatch.setattr(region_module, "OpenStack", NoOpenStack)
    monkeypatch.setattr(services, "command", command)
    monkeypatch.setattr(services, "own_command", lambda *words: ["sh", "-c", "echo no such cluster; exit 3"])
    region = Region(Layout.at(tmp_path / "sandbox"))
    yield region
    region.down()


def test_a_failed_step_names_the_log_and_stops_what_was_started(region: Region) -> None:
    with pytest.raises(StepFailed) as failure:
        region.up()
    log = region.layout.directory / "log" / "migrate.log"
    assert failure.value.log == log
    assert f"the migrations failed; read {log}" in str(failure.value)
    assert "no such cluster" in str(failure.value)
    assert region.running() == set()


def test_a_failed_step_leaves_alone_what_ran_before(region: Region) -> None:
    region.processes.start("controller", ["sleep", "60"])
    with pytest.raises(StepFailed):
        region.up()
    assert region.running() == {"controller"}


def test_the_directory_is_closed_to_others(region: Region) -> None:
    with pytest.raises(StepFailed):
        region.up()
    assert region.layout.directory.stat().st_mode & 0o077 == 0


def test_its_own_embedded_api_is_no_existing_cluster(region: Region) -> None:
    with pytest.raises(StepFailed, match="own Kubernetes API"):
        region.up(str(region.layout.kubeconfig))


def test_without_a_start_there_is_no_status(region: Region) -> None:
    with pytest.raises(StepFailed, match="run server-api sandbox up"):
        region.status()
