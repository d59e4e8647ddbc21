"""Processes are recognised by identity, stopped exactly, and explained when they do not start."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server_api.sandbox.errors import StepFailed
from server_api.sandbox.processes import Process, Processes, free_port, free_ports, is_free

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)",
]
HTTP_SERVER = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    yield processes
    processes.stop(grace=0)


def await_that(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_another_instance_sees_and_stops_what_was_started(processes: Processes, tmp_path: Path) -> None:
    started = processes.start("sleeper", SLEEP)
    other = Processes(tmp_path)
    assert other.find("sleeper") == started
    assert other.stop() == ["sleeper"]
    assert not processes.alive("sleeper")
    assert processes.names() == []


def test_starting_what_runs_leaves_it_alone(processes: Processes) -> None:
    assert processes.start("sleeper", SLEEP) == processes.start("sleeper", SLEEP)


def test_a_process_that_got_the_pid_of_ours_is_neither_ours_nor_stopped(processes: Processes, tmp_path: Path) -> None:
    started = processes.start("sleeper", SLEEP)
    (tmp_path / "pid" / "stranger").write_text(f"{started.pid} {int(started.started) + 1}")
    assert not processes.alive("stranger")
    assert processes.stop(["stranger"]) == []
    assert processes.alive("sleeper")


def test_stop_ends_only_the_named(processes: Processes) -> None:
    processes.start("one", SLEEP)
    processes.start("two", SLEEP)
    assert processes.stop(["one"]) == ["one"]
    assert processes.alive("two")


def test_a_process_that_ignores_the_polite_signal_is_killed_after_the_grace(processes: Processes) -> None:
    started = processes.start("stubborn", STUBBORN)
    await_that(lambda: "ready" in processes.log_path("stubborn").read_text())
    processes.stop(grace=0.05)
    assert not started.alive()


def test_a_dead_child_is_not_alive(processes: Processes) -> None:
    started = processes.start("short", [sys.executable, "-c", ""])
    await_that(lambda: not started.alive())
    assert not processes.alive("short")
    assert processes.stop(["short"]) == []


def test_a_process_leads_a_session_of_its_own(processes: Processes) -> None:
    started = processes.start("sleeper", SLEEP)
    assert os.getsid(started.pid) == started.pid


def test_environment_and_working_directory_are_the_given_ones(processes: Processes, tmp_path: Path) -> None:
    program = "import os; print(os.getcwd(), os.environ.get('HOME'), os.environ['WORD'])"
    started = processes.start("teller", [sys.executable, "-c", program], env={"WORD": "w"}, cwd=tmp_path)
    await_that(lambda: not started.alive())
    assert processes.log_path("teller").read_text() == f"{tmp_path} None w\n"


def test_a_program_that_is_not_there_is_a_failed_step(processes: Processes, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="nothing did not start"):
        processes.start("nothing", [tmp_path / "absent"])


def test_waiting_ends_when_all_answer(processes: Processes) -> None:
    port = free_port()
    processes.start("web", [*HTTP_SERVER, str(port)])
    processes.wait_until_answering({"web": f"http://127.0.0.1:{port}/"}, timeout=20)
    assert not is_free(port)


def test_one_that_dies_while_awaited_is_named_with_its_log_and_the_end_of_it(processes: Processes) -> None:
    processes.start("web", [sys.executable, "-c", "raise SystemExit('the very cause')"])
    with pytest.raises(StepFailed) as failure:
        processes.wait_until_answering({"web": f"http://127.0.0.1:{free_port()}/"})
    log = processes.log_path("web")
    assert failure.value.log == log
    assert f"web did not start; read {log}" in str(failure.value)
    assert "the very cause" in str(failure.value)


def test_an_answer_of_a_stranger_on_its_port_does_not_pass_for_a_dead_process(processes: Processes) -> None:
    port = free_port()
    processes.start("stranger", [*HTTP_SERVER, str(port)])
    url = f"http://127.0.0.1:{port}/"
    processes.wait_until_answering({"stranger": url}, timeout=20)
    dead = processes.start("ours", [sys.executable, "-c", ""])
    await_that(lambda: not dead.alive())
    with pytest.raises(StepFailed, match="ours did not start"):
        processes.wait_until_answering({"ours": url})


def test_one_that_does_not_answer_in_time_is_a_failed_step(processes: Processes) -> None:
    processes.start("mute", SLEEP)
    with pytest.raises(StepFailed, match="mute did not start"):
        processes.wait_until_answering({"mute": f"http://127.0.0.1:{free_port()}/"}, timeout=0)


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert all(map(is_free, ports))


def test_the_preferred_port_is_taken_only_if_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) != port
    assert free_port(port) == port


def test_the_identity_of_a_zombie_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        assert not Process(child.pid, stat[19]).alive()
