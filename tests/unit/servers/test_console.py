"""Console output and sessions (contract 6.8, V05, V06, V08 and V09)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server_api.servers.console import Console
from server_api.servers.errors import Forbidden, InvalidRequest, NotFound, Rejection
from server_api.servers.model import Server
from server_api.servers.ports import (
    Ambiguous,
    Denied,
    Missing,
    PortError,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)
from tests.doubles.caller import Check, StubCaller
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import IDENTITY, NAME, ORGANIZATION, PROJECT, REGION, SERVER, instance, region, server

Use = Callable[[Console, StubCaller], str]

USES: dict[str, Use] = {
    "console_output": lambda console, caller: console.output(caller, SERVER, 50),
    "console_url": lambda console, caller: console.session(caller, SERVER),
}
both = pytest.mark.parametrize("use", list(USES))


class World:
    """A server with its instance in the cloud."""

    def __init__(self, *stored: Server) -> None:
        self.store = InMemoryServerStore(*stored)
        self.directory = InMemoryDirectory(region())
        self.cloud = OneProjectCloud()
        self.cloud.compute.held.append(instance())
        self.console = Console(self.store, self.directory, self.cloud)

    def use(self, use: str, caller: StubCaller | None = None) -> str:
        return USES[use](self.console, caller or StubCaller())


@pytest.mark.parametrize(
    ("asked", "passed_on"),
    [
        pytest.param(50, "50", id="v09"),
        pytest.param(1, "1", id="one"),
        pytest.param(0, "None", id="none of them is the cloud's choice"),
        pytest.param(None, "None", id="unsaid is the cloud's choice"),
    ],
)
def test_v09_the_number_of_lines_is_passed_on(asked: int | None, passed_on: str) -> None:
    world = World(server())

    assert world.console.output(StubCaller(), SERVER, asked) == "login:"
    assert world.cloud.journal == [f"find {NAME}", f"console_output instance-1 {passed_on}"]


def test_v08_a_session_is_the_url_the_cloud_opened() -> None:
    world = World(server())

    assert world.use("console_url") == "http://console.invalid/instance-1"
    assert world.cloud.journal == [f"find {NAME}", "console_url instance-1"]
    assert world.cloud.asked_for == [(REGION, IDENTITY)]


@both
def test_reading_the_server_is_right_enough(use: str) -> None:
    caller = StubCaller()

    World(server()).use(use, caller)

    assert caller.checks == [Check("region:servers", "read", ORGANIZATION, PROJECT)]


@both
def test_nothing_stored_changes(use: str) -> None:
    world = World(server())

    world.use(use)

    assert world.store.writes == []


@both
@pytest.mark.parametrize(
    ("stored", "refused", "rejection"),
    [
        pytest.param((), [], NotFound, id="no server"),
        pytest.param((server(),), ["region:servers read"], Forbidden, id="unreadable"),
        pytest.param((server(api_version=None),), [], NotFound, id="another generation"),
        pytest.param((server(region_id="elsewhere"),), [], NotFound, id="no region"),
    ],
)
def test_what_is_refused_is_refused_before_the_cloud_is_asked(
    use: str, stored: tuple[Server, ...], refused: list[str], rejection: type[Rejection]
) -> None:
    world = World(*stored)

    with pytest.raises(rejection):
        world.use(use, StubCaller(refused=refused))
    assert (world.cloud.journal, world.cloud.asked_for) == ([], [])


@both
def test_a_region_without_servers_has_no_consoles(use: str) -> None:
    world = World(server())
    world.directory.put(region(provider="kubernetes"))

    with pytest.raises(InvalidRequest):
        world.use(use)


@both
def test_an_identity_without_a_project_has_no_consoles(use: str) -> None:
    world = World(server())
    world.cloud.without_credentials = True

    with pytest.raises(NotFound):
        world.use(use)


@both
@pytest.mark.parametrize("others", [(), (instance(name=f"{NAME}-1"),), (instance(server_id="another"),)])
def test_v05_b05_without_an_instance_of_ours_there_is_no_console_and_no_strangers_is_opened(
    use: str, others: tuple[object, ...]
) -> None:
    world = World(server())
    world.cloud.compute.held[:] = others  # type: ignore[assignment]

    with pytest.raises(NotFound, match="no instance"):
        world.use(use)
    assert world.cloud.journal == [f"find {NAME}", f"ports_named server-{SERVER}"]


@both
@pytest.mark.parametrize(
    ("error", "rejection"),
    [(Missing("nova", "it is gone"), NotFound), (StateConflict("nova", "it is building"), InvalidRequest)],
)
def test_v04_v05_the_clouds_no_is_the_callers_to_handle(use: str, error: PortError, rejection: type[Rejection]) -> None:
    world = World(server())
    world.cloud.compute.fail(use, error)

    with pytest.raises(rejection) as refusal:
        world.use(use)
    assert error.detail not in str(refusal.value)


@both
@pytest.mark.parametrize("method", ["find", "the call itself"])
@pytest.mark.parametrize(
    "error",
    [
        Ambiguous("nova", "two of them"),
        Unavailable("nova", "503"),
        TimedOut("nova", "no answer"),
        Denied("nova", "401"),
        Refused("nova", "400"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_v06_b37_a_failure_of_the_cloud_stays_one(use: str, method: str, error: PortError) -> None:
    world = World(server())
    world.cloud.compute.fail("find" if method == "find" else use, error)

    with pytest.raises(PortError) as raised:
        world.use(use)
    assert raised.value is error
