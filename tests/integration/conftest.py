"""One sandbox for the whole run, in a directory of its own, stopped at the end whatever happens."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_api.sandbox.layout import REPOSITORY, Layout
from server_api.sandbox.openstack import write_rules
from server_api.sandbox.processes import free_ports
from server_api.sandbox.progress import Progress
from server_api.sandbox.region import Region
from server_api.sandbox.services import PREFERRED_PORTS, Choices
from tests.integration.harness import Sandbox

# the same code at a pace that lets a test wait for it
PACE = {
    "SERVER_API_REQUEST_DEADLINE": "6",
    "SERVER_API_READ_TIMEOUT": "5",
    "SERVER_API_MONITOR_SECONDS": "1.5",
    "SERVER_API_RETRY_SECONDS": "1.5",
    "SERVER_API_FLAVOR_CACHE_SECONDS": "0.1",
    "SERVER_API_IMAGE_CACHE_SECONDS": "0.1",
    "SERVER_API_DRAIN_SECONDS": "2",
    "SERVER_API_LEASE_SECONDS": "4",
    "SERVER_API_LEASE_RENEW_SECONDS": "3",
    "SERVER_API_LEASE_RETRY_SECONDS": "0.5",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def whole_region(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Region]:
    base = REPOSITORY / ".sandbox"
    cache = os.environ.get("SERVER_API_SANDBOX_CACHE", str(base / "cache"))
    layout = Layout.at(base / f"tests-{os.getpid()}", Path(cache))
    # not the preferred ports: they are for the person who works beside
    ports = dict(zip(PREFERRED_PORTS, free_ports(len(PREFERRED_PORTS)), strict=True))
    Choices(ports).remember(layout)
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def show(line: str) -> None:
        with capture.global_and_fixture_disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    region = Region(layout, Progress(show))
    # a job that is ended from outside must not leave eight processes behind
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PACE.items():
            patch.setenv(name, value)
        try:
            region.up()
            yield region
        finally:
            region.down()
            signal.signal(signal.SIGTERM, before)
    if not request.session.testsfailed:
        shutil.rmtree(layout.directory)


@pytest.fixture(scope="session")
def sandbox(whole_region: Region) -> Sandbox:
    return Sandbox(whole_region)


@pytest.fixture
def region(sandbox: Sandbox) -> Iterator[Sandbox]:
    """The running sandbox, with everything up and no faults, whatever the test before did to it."""
    if sandbox.region.running() != sandbox.names:
        sandbox.region.up()
    yield sandbox
    write_rules(sandbox.region.openstack.rules, [])
