"""Timing of requests over one kept connection, and memory of processes."""

import http.client
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Target:
    """One request and where it goes. The headers may carry a token."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    expected: int = 200


@dataclass(frozen=True)
class Timing:
    """What a number of requests took, in milliseconds, and the bytes of the last answer."""

    count: int
    median: float
    p95: float
    size: int


def measure(target: Target, bodies: Iterable[bytes | None], warm_up: int = 5) -> Timing:
    """Send one request for each body, one after the other, and leave the first `warm_up` out.

    Raises RuntimeError for an answer of another status than expected: a refusal is quick, and no measurement.
    """
    url = urlsplit(target.url)
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=60)
    path = f"{url.path}?{url.query}" if url.query else url.path
    took = []
    size = 0
    try:
        for body in bodies:
            began = time.perf_counter()
            connection.request(target.method, path, body=body, headers=dict(target.headers))
            answer = connection.getresponse()
            content = answer.read()
            took.append(1000 * (time.perf_counter() - began))
            if answer.status != target.expected:
                raise RuntimeError(f"{target.method} {target.url}: {answer.status}: {content[:300]!r}")
            size = len(content)
    finally:
        connection.close()
    counted = took[warm_up:]
    return Timing(len(counted), statistics.median(counted), statistics.quantiles(counted, n=20)[-1], size)


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no resident memory")


def children(pid: int) -> list[int]:
    """Return the processes that a process has forked."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
