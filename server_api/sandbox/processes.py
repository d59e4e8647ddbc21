"""Background processes that outlive the command that started them, and can be stopped by another.

A process is recognised by its pid together with the kernel's start time of it, both kept in a pid file: a pid
alone may have been given to a stranger meanwhile, and a command line or an environment can be overwritten by
the process (Neutron's setproctitle does). Reads /proc, hence Linux only.
"""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from server_api.sandbox.errors import StepFailed, tail

LOOPBACK = "127.0.0.1"
POLL_INTERVAL = 0.1
# a person who waits wants to see at least this often that something goes on
PROGRESS_INTERVAL = 10.0


@dataclass(frozen=True)
class Process:
    """The identity of one process: `started` is in clock ticks since boot, as the kernel keeps it."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Tell whether it still runs; one that died and was not reaped does not."""
        return _start_time(self.pid) == self.started


class Processes:
    """The processes whose pid files lie in `directory`/pid and whose logs lie in `directory`/log.

    Every instance on the same directory, in any command, sees the same processes.
    """

    def __init__(self, directory: Path) -> None:
        self._pids = directory / "pid"
        self._logs = directory / "log"
        # kept so that our own dead children are reaped instead of staying behind as zombies
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def log_path(self, name: str) -> Path:
        """Return the file that `start` sends the output of `name` to, unless told another."""
        return self._logs / f"{name}.log"

    def names(self) -> list[str]:
        """Return the names of all that was started here and not stopped since, alive or not."""
        try:
            return sorted(entry.name for entry in self._pids.iterdir() if entry.suffix != ".new")
        except FileNotFoundError:
            return []

    def find(self, name: str) -> Process | None:
        """Return the process `name` if it is alive."""
        process = self._recorded(name)
        return process if process and process.alive() else None

    def alive(self, name: str) -> bool:
        """Tell whether the process `name` runs."""
        return self.find(name) is not None

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
        cwd: Path | None = None,
    ) -> Process:
        """Start `argv` in a session of its own, so that a Ctrl-C at our terminal does not reach it.

        `env` is the whole environment (default: ours); its output is appended to `log`. One that is alive
        under this name is returned as it is. Raises StepFailed if the program cannot be executed.
        """
        running = self.find(name)
        if running:
            return running
        log = log or self.log_path(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        self._pids.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            try:
                child = subprocess.Popen(
                    [os.fspath(word) for word in argv],
                    env=dict(env) if env is not None else None,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise StepFailed(f"{name} did not start: {error}", log) from error
        self._children[name] = child
        process = Process(child.pid, _start_time(child.pid, dead_too=True) or "")
        # a half-written pid file would make us forget the process
        part = self._pids / f"{name}.new"
        part.write_text(f"{process.pid} {process.started}\n")
        part.replace(self._pids / name)
        return process

    def stop(self, names: Iterable[str] | None = None, grace: float = 10.0) -> list[str]:
        """Stop the named processes (default: all), and return the names of those that were alive.

        SIGTERM to all at once; after `grace` seconds SIGKILL to what is left, children included.
        """
        wanted = self.names() if names is None else list(names)
        left = {name: process for name in wanted if (process := self.find(name))}
        stopped = list(left)
        for process in left.values():
            _signal(os.kill, process, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while left := {name: process for name, process in left.items() if process.alive()}:
            if time.monotonic() > deadline:
                for process in left.values():
                    _signal(os.killpg, process, signal.SIGKILL)
            time.sleep(POLL_INTERVAL / 2)
        for name in wanted:
            (self._pids / name).unlink(missing_ok=True)
            if child := self._children.pop(name, None):
                child.wait()
        return stopped

    def wait_until_answering(
        self, urls: Mapping[str, str], timeout: float = 90.0, report: Callable[[str], None] = lambda _: None
    ) -> None:
        """Wait until each process (name -> URL) answers HTTP with anything below 500.

        Raises StepFailed, carrying the end of its log, as soon as one has died, or after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        left = dict(urls)
        for seconds in pace():
            # first, for a stranger may answer on the port that ours could not get
            dead = [name for name in left if not self.alive(name)]
            left = {name: url for name, url in left.items() if name in dead or not answers(url)}
            if not left:
                return
            if dead or time.monotonic() > deadline:
                raise self.failure(min(dead or left))
            if seconds:
                report(f"waiting for {', '.join(sorted(left))} ({seconds} s)")

    def failure(self, name: str, log: Path | None = None) -> StepFailed:
        """Return the error that says that `name` did not start, with the end of its log."""
        log = log or self.log_path(name)
        return StepFailed(f"{name} did not start; read {log}\n{tail(log)}".rstrip(), log)

    def _recorded(self, name: str) -> Process | None:
        try:
            pid, started = (self._pids / name).read_text().split()
            return Process(int(pid), started)
        except (OSError, ValueError):
            return None


def pace() -> Iterator[int]:
    """Yield every POLL_INTERVAL for ever: the seconds gone by every PROGRESS_INTERVAL, and 0 between."""
    began = told = time.monotonic()
    yield 0
    while True:
        time.sleep(POLL_INTERVAL)
        now = time.monotonic()
        if now - told < PROGRESS_INTERVAL:
            yield 0
        else:
            told = now
            yield round(now - began)


def answers(url: str) -> bool:
    """Tell whether `url` answers HTTP with a status below 500; proxies of the environment are not used."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Return different TCP ports that were free on the loopback address a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def free_port(preferred: int | None = None) -> int:
    """Return `preferred` if it is free on the loopback address, else any free port."""
    return preferred if preferred and is_free(preferred) else free_ports(1)[0]


def is_free(port: int) -> bool:
    """Tell whether a server could listen on `port` of the loopback address now."""
    with socket.socket() as probe:
        # a port whose last connections are in TIME_WAIT can be listened on, as servers do
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def _start_time(pid: int, dead_too: bool = False) -> str | None:
    """Return the start time of a live process; with `dead_too` also of one that was not reaped yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # the second field is the program's name in parentheses, and may hold blanks and parentheses itself
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" and not dead_too else fields[19]


def _signal(send: Callable[[int, int], None], process: Process, number: int) -> None:
    try:
        if process.alive():
            send(process.pid, number)
    except ProcessLookupError:
        pass  # it died between the look and the signal
