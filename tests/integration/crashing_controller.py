"""A real controller whose every effect is written down, and which dies or stands still at a chosen one.

``run`` is the whole life of such a process, to be forked with nothing connected yet. An effect is a call that changes
something: of Nova, of Neutron, or of the store. The ports are wrapped below the controller's fence, so that what is
written down is what really leaves the process.
"""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from server_api import logs
from server_api.controller.process import Controller, Dependencies
from server_api.controller_app import dependencies
from server_api.servers import cloud_requests
from server_api.servers.finalizers import FINALIZER
from server_api.servers.model import ConditionType, Server
from server_api.servers.ports import Cloud, Tenancy
from server_api.servers.replica_ports import Change, ServerFeed
from server_api.servers.surroundings import Region
from server_api.settings import Settings

FLIGHT_SECONDS = 1.0
"""How long a request is under way before its sender dies. Whoever uses it delays the answer by more."""

_EFFECTS = {
    "store": {"update", "patch_status"},
    "references": {"hold", "release"},
    "nova": {"create", "rebuild", "delete"},
    "neutron": {"create_port", "update_port", "delete_port", "create_floating_ip", "delete_floating_ip"},
}


class Moment(StrEnum):
    """When, seen from the call."""

    BEFORE = "before"
    """Nothing is sent yet."""

    DURING = "during"
    """The request is under way, and whoever got it goes on with it."""

    AFTER = "after"
    """It has taken effect, and the controller does not get to know."""


@dataclass(frozen=True)
class Crash:
    """The call, as the journal names it, and what happens to the process then: it is killed, or stopped by SIGSTOP."""

    call: str
    moment: Moment = Moment.AFTER
    signal: int = signal.SIGKILL

    def __str__(self) -> str:
        return f"{self.moment} {self.call}"


@dataclass(frozen=True)
class Plan:
    """What one controller is to be.

    ``environment`` is the whole of it. ``only`` is the one server it sees, None for all. ``late_seconds`` takes the
    place of ``cloud_requests.LATE_SECONDS``: nobody can wait two minutes for every crash point, and the sandbox is not
    that slow.
    """

    environment: Mapping[str, str]
    journal: Path
    log: Path
    late_seconds: float
    only: str | None = None
    crash: Crash | None = None
    identity: str | None = None


class Journal:
    """The effects of one process in their order, each with what became of it: a file that outlives a SIGKILL."""

    def __init__(self, path: Path, crash: Crash | None = None) -> None:
        self._path = path
        self._crash = crash
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def effect(self, call: str, send: Callable[[], Any], arguments: Sequence[Any]) -> Any:
        """Send a call that changes something, unless the process is to die before."""
        # A sweep goes on beside the passes: its calls must not be counted among theirs.
        name = f"monitor: {call}" if threading.current_thread().name.startswith("monitor") else call
        with self._lock:
            count = self._counts[name] + 1
        if count > 1:
            name = f"{name} #{count}"
        self._write(name, "begun")
        self._die_if(name, Moment.BEFORE)
        if self._is_due(name, Moment.DURING):
            threading.Thread(target=self._die_soon, args=(name,), name="executioner").start()
        try:
            answer = send()
        except Exception as error:
            # What was refused has no effect to die after.
            self._write(name, f"failed: {type(error).__name__}")
            raise
        if any(answer is argument for argument in arguments):
            # What the store gives back as it was handed over was not written: nothing differed.
            self._write(name, "void")
            return answer
        self._write(name, "done")
        self._die_if(name, Moment.AFTER)
        with self._lock:
            self._counts[name.partition(" #")[0]] += 1
        return answer

    def _is_due(self, name: str, moment: Moment) -> bool:
        return self._crash is not None and (self._crash.call, self._crash.moment) == (name, moment)

    def _die_if(self, name: str, moment: Moment) -> None:
        if self._crash is not None and self._is_due(name, moment):
            self._write(name, "crash")
            # To this very thread: sent to the process, SIGSTOP may leave it the time to go on a little.
            signal.pthread_kill(threading.get_ident(), self._crash.signal)

    def _die_soon(self, name: str) -> None:
        time.sleep(FLIGHT_SECONDS)
        self._die_if(name, Moment.DURING)

    def _write(self, name: str, what: str) -> None:
        line = json.dumps({"call": name, "what": what})
        with self._path.open("a") as file:
            file.write(f"{line}\n")


@dataclass(frozen=True)
class Entry:
    """A line of a journal: ``what`` is begun, done, void (it changed nothing), crash or failed."""

    call: str
    what: str


def entries(path: Path) -> list[Entry]:
    """Return what a process has written so far."""
    if not path.exists():
        return []
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()]


def run(plan: Plan) -> None:
    """Be the controller until SIGTERM, or until the crash."""
    os.environ.clear()
    os.environ.update(plan.environment)
    output = os.open(plan.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    cloud_requests.LATE_SECONDS = plan.late_seconds
    settings = Settings.from_environment()
    logs.configure(settings.log_level)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    Controller(watched(dependencies(settings), plan), settings).run(stop)


def watched(made: Dependencies, plan: Plan) -> Dependencies:
    """Return the dependencies with every effect going through the plan's journal."""
    journal = Journal(plan.journal, plan.crash)
    watch: Callable[[str, Any], Any] = partial(_Watched, journal)
    cloud: Any = _Cloud(made.cloud, watch)
    return replace(
        made,
        servers=watch("store", made.servers),
        references=watch("references", made.references),
        cloud=cloud,
        feed=_OneServer(made.feed, plan.only) if plan.only else made.feed,
        identity=plan.identity or made.identity,
    )


class _Watched:
    """A port all of whose effects go through a journal."""

    def __init__(self, journal: Journal, kind: str, inner: Any) -> None:
        self._journal = journal
        self._kind = kind
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in _EFFECTS[self._kind]:
            return method

        def call(*args: Any) -> Any:
            describe: Callable[..., str] = _DETAILS.get(name, _nothing)
            detail = describe(*args)
            label = f"{self._kind} {name}{f' ({detail})' if detail else ''}"
            return self._journal.effect(label, partial(method, *args), args)

        return call


@dataclass(frozen=True)
class _Cloud:
    inner: Cloud
    watch: Callable[[str, Any], Any] = field(repr=False)

    def catalogue(self, region: Region) -> Any:
        return self.inner.catalogue(region)

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        tenancy = self.inner.tenancy(region, identity_id)
        return replace(
            tenancy,
            compute=self.watch("nova", tenancy.compute),
            networking=self.watch("neutron", tenancy.networking),
        )


@dataclass(frozen=True)
class _OneServer:
    """A feed that shows one server only, so that many such controllers work side by side, each on its own."""

    inner: ServerFeed
    server_id: str

    def snapshot(self) -> tuple[Sequence[Server], str]:
        servers, version = self.inner.snapshot()
        return [server for server in servers if server.id == self.server_id], version

    def changes(self, version: str) -> Iterator[Change]:
        for change in self.inner.changes(version):
            if change.server is None or change.server.id == self.server_id:
                yield change


def _of_status(_: Server, after: Server) -> str:
    """Name a status by what the next pass decides from, so that a name means the same in every run."""
    available, marker = after.status.condition(ConditionType.AVAILABLE), after.status.rebuild
    parts = [available.reason] if available else []
    return ", ".join([*parts, f"rebuild {marker.state}"] if marker else parts)


def _of_metadata(server: Server) -> str:
    if server.metadata.deleted_at is not None:
        return "finalizer removed"
    request = server.metadata.cloud_request
    held = "finalizer" if FINALIZER in server.metadata.finalizers else ""
    return f"{held}, {request.kind} recorded" if request else f"{held}, nothing recorded"


def _nothing(*_: object) -> str:
    return ""


_DETAILS: dict[str, Callable[..., str]] = {
    "patch_status": _of_status,
    "update": _of_metadata,
    "hold": lambda referent, _: str(referent.kind),
    "release": lambda referent, _: str(referent.kind),
}
