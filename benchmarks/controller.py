"""What the controller costs, and how soon stored servers say what Nova says, with a double for OpenStack.

    python -m benchmarks.controller [--sizes 1 100 1000] [--settled 10000] [--projects 10]

Each part starts processes of its own: the embedded Kubernetes API, the double, and `server-api controller`.
"""

import argparse
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from types import FrameType

from benchmarks.idle import SWEEPS, Idle, measure_idle
from benchmarks.passes import Deed, measure_passes
from benchmarks.settling import Settling, measure_settling
from server_api.sandbox.progress import Progress


def main() -> None:
    """Measure, and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 100, 1000], help="servers that settle together")
    parser.add_argument("--settled", type=int, default=10_000, help="servers that have settled; 0 leaves it out")
    parser.add_argument("--projects", type=int, default=10, help="cloud projects, at most")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    progress = Progress(lambda line: print(line, file=sys.stderr, flush=True))
    print(f"at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    _print_passes(measure_passes(progress))
    settlings = [each for size in arguments.sizes for each in measure_settling(size, arguments.projects, progress)]
    if settlings:
        _print_settlings(settlings)
    if arguments.settled:
        _print_idle(measure_idle(arguments.settled, arguments.projects, progress))


def _end(_number: int, _frame: FrameType | None) -> None:
    # An exception, so that the processes of the stage are stopped; a second one would leave some behind.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def _print_passes(deeds: Sequence[Deed]) -> None:
    print("\nwhat one server asks of the cloud, the monitor's lists left out")
    for deed in deeds:
        print(f"  {deed.what}: {deed.passes} passes, {deed.calls.total()} calls")
        _print_calls(deed.calls)


def _print_calls(calls: Counter[str]) -> None:
    for operation, count in sorted(calls.items()):
        print(f"{count:>10} {operation}")


def _print_settlings(settlings: Sequence[Settling]) -> None:
    print("\nfrom Nova settled to API settled, in seconds")
    print(f"{'':<16}{'servers':>8}{'rounds':>8}{'p50':>8}{'p95':>8}{'max':>8}")
    for each in settlings:
        p50, p95 = _quantile(each.seconds, 0.5), _quantile(each.seconds, 0.95)
        print(f"{each.kind:<16}{each.servers:>8}{each.rounds:>8}{p50:>8.1f}{p95:>8.1f}{each.seconds[-1]:>8.1f}")


def _quantile(ascending: Sequence[float], part: float) -> float:
    # The value that this part of all values does not exceed: a few values are not interpolated.
    return ascending[max(0, -int(-part * len(ascending) // 1) - 1)]


def _print_idle(idle: Idle) -> None:
    print(f"\n{idle.servers} settled servers in {idle.projects} projects")
    print(f"  synced {idle.synced_after:.1f} s after the start, {idle.memory_synced:.0f} MiB")
    print(
        f"  {idle.passes} first passes done {idle.passes_done_after:.0f} s after the start: "
        f"{1000 * idle.cpu_of_passes / idle.passes:.1f} ms of CPU and "
        f"{idle.calls_of_passes.total() / idle.passes:.2f} calls a pass, sweeps meanwhile included"
    )
    print(f"  {idle.memory_swept:.0f} MiB after that and {SWEEPS} sweeps")
    print(f"  writes to Kubernetes in {SWEEPS} sweeps: {dict(idle.writes)}")
    print(f"  calls to the cloud in {SWEEPS} sweeps:")
    _print_calls(idle.calls)
    print(f"{'':<46}{'seconds':>9}{'CPU s':>9}{'x bare':>9}")
    bare = f"the same lists by requests and orjson ({idle.bare_calls} calls)"
    print(f"{bare:<46}{idle.bare_seconds:>9.3f}{idle.bare_cpu:>9.3f}{1:>9}")
    ratio = idle.cpu_per_sweep / idle.bare_cpu
    print(f"{'the controller, a sweep':<46}{idle.sweep_seconds:>9.3f}{idle.cpu_per_sweep:>9.3f}{ratio:>9.3g}")


if __name__ == "__main__":
    main()
