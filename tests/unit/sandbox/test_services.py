import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_api.sandbox import services
from server_api.sandbox.errors import StepFailed
from server_api.sandbox.layout import Layout
from server_api.sandbox.processes import Processes
from server_api.sandbox.services import API, CONTROLLER, IDENTITY, KUBERNETES, Choices, choose


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.at(tmp_path)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_that_is_asked_for_and_taken_is_refused_by_name(layout: Layout, taken: int) -> None:
    with pytest.raises(StepFailed, match=f"port {taken} cannot be had: it is taken"):
        choose(layout, Processes(layout.directory), None, taken)


def test_what_is_remembered_is_used_again_where_it_is_free_and_replaced_where_not(layout: Layout, taken: int) -> None:
    processes = Processes(layout.directory)
    first = choose(layout, processes, None, None)
    Choices({**first.ports, API: taken}).remember(layout)
    second = choose(layout, processes, None, None)
    assert second.ports[KUBERNETES] == first.ports[KUBERNETES]
    assert second.ports[API] != taken


def test_no_two_processes_get_one_port(layout: Layout) -> None:
    processes = Processes(layout.directory)
    port = choose(layout, processes, None, None).ports[CONTROLLER]
    Choices({KUBERNETES: port, API: port, CONTROLLER: port}).remember(layout)
    ports = choose(layout, processes, None, None).ports
    assert len(set(ports.values())) == 3


def test_an_existing_cluster_is_used_instead_of_the_embedded_one(layout: Layout) -> None:
    choices = choose(layout, Processes(layout.directory), "/home/me/one:/home/me/two", None)
    assert choices.names == (API, CONTROLLER)
    assert services.environment(layout, choices)["KUBECONFIG"] == "/home/me/one:/home/me/two"
    choices.remember(layout)
    assert Choices.remembered(layout) == choices


def test_what_runs_is_not_moved_to_another_kubernetes(layout: Layout) -> None:
    processes = Processes(layout.directory)
    choose(layout, processes, None, None).remember(layout)
    processes.start(API, ["sleep", "60"])
    try:
        with pytest.raises(StepFailed, match="api runs with another Kubernetes"):
            choose(layout, processes, "/home/me/config", None)
    finally:
        processes.stop()


def test_a_setting_of_the_user_reaches_the_processes(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_API_MONITOR_SECONDS", "3")
    monkeypatch.setenv("SERVER_API_BIND", "0.0.0.0:80")
    choices = choose(layout, Processes(layout.directory), None, None)
    environment = services.environment(layout, choices)
    assert environment["SERVER_API_MONITOR_SECONDS"] == "3"
    assert environment["SERVER_API_BIND"] == f"127.0.0.1:{choices.ports[API]}"


def test_callers_come_from_a_file_unless_the_identity_service_is_asked_for(layout: Layout) -> None:
    processes = Processes(layout.directory)
    by_file = choose(layout, processes, None, None)
    by_service = choose(layout, processes, None, None, identity_service=True)

    assert IDENTITY not in by_file.names
    assert "SERVER_API_IDENTITY_URL" not in services.environment(layout, by_file)
    assert by_service.names == (KUBERNETES, IDENTITY, API, CONTROLLER)
    environment = services.environment(layout, by_service)
    assert environment["SERVER_API_IDENTITY_SOURCE"] == "identity-service"
    assert environment["SERVER_API_IDENTITY_URL"] == by_service.url(IDENTITY)
    by_service.remember(layout)
    assert Choices.remembered(layout) == by_service


def test_what_runs_is_not_given_other_callers(layout: Layout) -> None:
    processes = Processes(layout.directory)
    choose(layout, processes, None, None).remember(layout)
    processes.start(API, ["sleep", "60"])
    try:
        with pytest.raises(StepFailed, match="api runs with callers from elsewhere"):
            choose(layout, processes, None, None, identity_service=True)
    finally:
        processes.stop()
