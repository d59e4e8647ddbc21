"""What is read off while the controller works: its metrics, its process, and what was written to Kubernetes."""

import os
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import requests
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.measure import resident
from benchmarks.stage import Stage
from server_api.sandbox.errors import StepFailed
from server_api.sandbox.services import NAMESPACE
from server_api.servers.model import Server
from server_api.servers.ports import PortError
from server_api.store.feed import KubernetesServerFeed

_TICKS = os.sysconf("SC_CLK_TCK")
_PREFIX = "server_api_controller_"
LOOK_AGAIN = 0.05


@dataclass(frozen=True)
class Reading:
    """Everything about the controller at one moment. Times are in seconds, memory in MiB."""

    sweeps: int
    sweep_seconds: float
    passes: int
    cpu_seconds: float
    memory: float
    calls: Counter[str]
    writes: Counter[str]


class Instruments:
    """Reads the controller with that pid on the stage."""

    def __init__(self, stage: Stage, pid: int) -> None:
        self._stage = stage
        self._pid = pid
        self._revision = 0
        self._revision, _ = self._writes()

    def read(self) -> Reading:
        """Return everything. Writes are counted since these instruments were made."""
        metrics = self.metrics()
        return Reading(
            sweeps=int(metrics["monitor_poll_duration_seconds_count"]),
            sweep_seconds=metrics["monitor_poll_duration_seconds_sum"],
            passes=int(metrics["passes_total"]),
            cpu_seconds=cpu_seconds(self._pid),
            memory=resident(self._pid),
            calls=self._stage.calls(),
            writes=self._writes()[1],
        )

    def metrics(self) -> Mapping[str, float]:
        """Return the controller's own metrics without their prefix, each summed over its labels."""
        text = requests.get(f"{self._stage.controller}/metrics", timeout=60).text
        sums: defaultdict[str, float] = defaultdict(float)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name.removeprefix(_PREFIX)] += sample.value
        return sums

    def wait_idle(self, timeout: float = 3600) -> None:
        """Return once no server is wanted or in work, at two looks a second apart."""
        looks = 0
        ends_at = time.monotonic() + timeout
        while looks < 2:
            metrics = self.metrics()
            busy = metrics["queue_depth"] + metrics["in_work"] > 0 or not metrics["leading"]
            looks = 0 if busy else looks + 1
            if time.monotonic() > ends_at:
                raise StepFailed(f"the controller is not idle within {timeout} s")
            time.sleep(1)

    def wait_for_sweeps(self, count: int, timeout: float = 600) -> None:
        """Return as soon as that many more sweeps have ended."""
        wanted = self._sweeps() + count
        ends_at = time.monotonic() + timeout
        while self._sweeps() < wanted:
            if time.monotonic() > ends_at:
                raise StepFailed(f"no {count} sweeps within {timeout} s")
            time.sleep(LOOK_AGAIN)

    def _sweeps(self) -> int:
        return int(self.metrics()["monitor_poll_duration_seconds_count"])

    def _writes(self) -> tuple[int, Counter[str]]:
        """Return the revision and how many writes there were to each kind of object since the instruments were made."""
        uri = f"file:{self._stage.database}?mode=ro"
        query = "SELECT plural, COUNT(*), MAX(revision) FROM log WHERE revision > ? GROUP BY plural"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            rows = connection.execute(query, (self._revision,)).fetchall()
        return max((row[2] for row in rows), default=0), Counter({row[0]: row[1] for row in rows})


class Onlooker:
    """Follows the stored servers and notes when each first says what is waited for, until it is closed."""

    def __init__(self, stage: Stage) -> None:
        self._feed = KubernetesServerFeed(stage.kubernetes, NAMESPACE)
        self._condition = threading.Condition()
        self._holds: Callable[[Server], bool] = lambda _: False
        self._reached: dict[str, float] = {}
        self._closed = False
        _, version = self._feed.snapshot()
        threading.Thread(target=self._follow, args=(version,), daemon=True).start()

    def begin(self, holds: Callable[[Server], bool]) -> None:
        """Forget everything, and note from now on the first change after which ``holds`` is true of a server."""
        with self._condition:
            self._holds, self._reached = holds, {}

    def wait(self, count: int, timeout: float) -> Mapping[str, float]:
        """Wait for so many servers and return the moment of each on the monotonic clock. Raises StepFailed."""
        with self._condition:
            if not self._condition.wait_for(lambda: len(self._reached) >= count, timeout):
                raise StepFailed(f"{len(self._reached)} of {count} servers within {timeout} s")
            return dict(self._reached)

    def close(self) -> None:
        """Do not mind that Kubernetes goes away."""
        self._closed = True

    def _follow(self, version: str) -> None:
        try:
            while not self._closed:
                for change in self._feed.changes(version):
                    version = change.version
                    if change.server is not None:
                        self._note(change.server, time.monotonic())
        except PortError:
            if not self._closed:
                raise

    def _note(self, server: Server, now: float) -> None:
        with self._condition:
            if server.id not in self._reached and self._holds(server):
                self._reached[server.id] = now
                self._condition.notify_all()


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, in user and in kernel mode."""
    # The second field is the program's name in parentheses, which may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
