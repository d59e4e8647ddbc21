"""What the controller costs while nothing happens: many servers, all settled."""

import statistics
import time
from collections import Counter
from dataclasses import dataclass

import orjson
import requests

from benchmarks.fleet import PASSWORD, Fleet, cloud_project
from benchmarks.openstack_double import COMPUTE
from benchmarks.readings import Instruments, Reading
from benchmarks.stage import Stage, stage
from server_api.sandbox.progress import Progress
from server_api.sandbox.rest import MICROVERSION

SWEEPS = 5
_PAGE_TIMEOUT = 60


@dataclass(frozen=True)
class Idle:
    """Seconds and MiB. ``calls`` and ``writes`` are those of all ``SWEEPS``; the bare figures are of one reading."""

    servers: int
    projects: int
    synced_after: float
    passes_done_after: float
    cpu_of_passes: float
    passes: int
    calls_of_passes: Counter[str]
    memory_synced: float
    memory_swept: float
    sweep_seconds: float
    cpu_per_sweep: float
    calls: Counter[str]
    writes: Counter[str]
    bare_seconds: float
    bare_cpu: float
    bare_calls: int


def measure_idle(servers: int, projects: int, progress: Progress) -> Idle:
    """Start the controller on that many settled servers, let it finish its passes, and look on for some sweeps."""
    with stage(projects, servers) as it:
        progress(f"{servers} servers are stored")
        began = time.monotonic()
        pid = it.start_controller()
        synced_after = time.monotonic() - began
        instruments = Instruments(it, pid)
        synced = instruments.read()
        progress(f"synced after {synced_after:.1f} s; every server gets its first pass")
        instruments.wait_idle()
        passes_done_after = time.monotonic() - began
        passed = instruments.read()
        progress(f"{passed.passes} passes after {passes_done_after:.1f} s")
        before, after = _window(instruments)
        progress(f"{SWEEPS} sweeps are measured")
        bare = [_read_bare(it) for _ in range(SWEEPS)]
        count = after.sweeps - before.sweeps
        return Idle(
            servers=servers,
            projects=projects,
            synced_after=synced_after,
            passes_done_after=passes_done_after,
            cpu_of_passes=passed.cpu_seconds - synced.cpu_seconds,
            passes=passed.passes,
            calls_of_passes=passed.calls,
            memory_synced=synced.memory,
            memory_swept=after.memory,
            sweep_seconds=(after.sweep_seconds - before.sweep_seconds) / count,
            cpu_per_sweep=(after.cpu_seconds - before.cpu_seconds) / count,
            calls=after.calls - before.calls,
            writes=after.writes - before.writes,
            bare_seconds=statistics.median(one.seconds for one in bare),
            bare_cpu=statistics.median(one.cpu for one in bare),
            bare_calls=bare[0].calls,
        )


def _window(instruments: Instruments) -> tuple[Reading, Reading]:
    # From the end of one sweep to the end of another, without a wait for anything else between.
    instruments.wait_for_sweeps(2)
    before = instruments.read()
    instruments.wait_for_sweeps(SWEEPS)
    return before, instruments.read()


@dataclass(frozen=True)
class _Bare:
    seconds: float
    cpu: float
    calls: int


def _read_bare(it: Stage) -> _Bare:
    """Fetch and parse the same lists with nothing around: what a sweep could cost at the least in this language."""
    session = requests.Session()
    tokens = [_log_in(session, it, project_id) for project_id in _cloud_projects(it.fleet)]
    began, cpu, calls = time.monotonic(), time.process_time(), 0
    for token in tokens:
        headers = {"X-Auth-Token": token, "OpenStack-API-Version": f"compute {MICROVERSION}"}
        url = first = f"{it.openstack}{COMPUTE}/servers/detail"
        while url:
            answer = session.get(url, headers=headers, timeout=_PAGE_TIMEOUT)
            calls += 1
            page: list[dict[str, str]] = orjson.loads(answer.content)["servers"]
            url = f"{first}?marker={page[-1]['id']}" if page else ""
    return _Bare(time.monotonic() - began, time.process_time() - cpu, calls)


def _cloud_projects(fleet: Fleet) -> list[str]:
    return [cloud_project(tenant) for tenant in fleet.tenants]


def _log_in(session: requests.Session, it: Stage, project_id: str) -> str:
    user = {"id": "benchmark", "password": PASSWORD}
    auth = {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"id": project_id}},
    }
    answer = session.post(f"{it.openstack}/identity/v3/auth/tokens", json={"auth": auth}, timeout=_PAGE_TIMEOUT)
    return answer.headers["X-Subject-Token"]
