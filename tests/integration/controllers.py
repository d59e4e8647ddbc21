"""Controllers that a test starts for itself, each a process that can be killed, stopped and looked into."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from server_api.sandbox import services
from server_api.sandbox.waiting import wait_for
from server_api.settings import PREFIX
from tests.integration.crashing_controller import Crash, Entry, Plan, entries, run
from tests.integration.harness import Sandbox

LATE_SECONDS = 12.0
"""How long these controllers wait for a request whose answer was lost, instead of ``cloud_requests.LATE_SECONDS``."""

# Forked from a process that has everything imported: a controller is there in a tenth of a second, and not in three.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["__main__", "server_api.controller_app"])


@dataclass(frozen=True)
class Running:
    """One such controller."""

    process: BaseProcess
    journal: Path
    log: Path

    def entries(self) -> list[Entry]:
        """Return the effects it has written down so far."""
        return entries(self.journal)

    def done(self) -> list[str]:
        """Return the effects that it knows to have come about."""
        return [entry.call for entry in self.entries() if entry.what == "done"]

    def has_begun(self, call: str) -> bool:
        """Say whether it ever made that call."""
        return Entry(call, "begun") in self.entries()

    def crashed(self) -> bool:
        """Say whether it came to its crash."""
        return any(entry.what == "crash" for entry in self.entries())

    def wait_for_crash(self, timeout: float = 30.0) -> None:
        """Wait until it has come to its crash, and is dead or stands still."""
        wait_for(f"{self.log.stem} crashes", self.crashed, timeout)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        if self.process.pid and self.process.is_alive():
            os.kill(self.process.pid, number)

    def stop(self) -> None:
        """Let it end cleanly; one that does not is killed."""
        self.signal(signal.SIGTERM)
        self.process.join(10)
        self.kill()

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.signal(signal.SIGKILL)
        self.process.join(10)


class Controllers:
    """Starts them in a sandbox whose own controller is stopped, and ends them all. Files go to ``directory``."""

    def __init__(self, sandbox: Sandbox, directory: Path) -> None:
        self._sandbox = sandbox
        self._directory = directory
        self._started: list[Running] = []

    def start(
        self,
        name: str = "ordinary",
        *,
        crash: Crash | None = None,
        only: str | None = None,
        identity: str | None = None,
        late_seconds: float = LATE_SECONDS,
        **settings: object,
    ) -> Running:
        """Start a controller; ``settings`` are those of ``Settings``.

        One that sees a single server (``only``) has a Lease of its own: it is no rival of anybody.
        """
        region = self._sandbox.region
        serial = len(self._started)
        settings = {
            "controller_bind": "127.0.0.1:0",
            "lease_name": f"only-{only}" if only else "tests",
            "retry_seconds": 1,
            **settings,
        }
        environment = services.environment(region.layout, region.choices) | {
            PREFIX + setting.upper(): str(value) for setting, value in settings.items()
        }
        plan = Plan(
            environment,
            journal=self._directory / f"{serial}-{name}.jsonl",
            log=self._directory / f"{serial}-{name}.log",
            late_seconds=late_seconds,
            only=only,
            crash=crash,
            identity=identity,
        )
        process = _context.Process(target=run, args=(plan,), name=name, daemon=True)
        process.start()
        running = Running(process, plan.journal, plan.log)
        self._started.append(running)
        return running

    def end(self) -> None:
        """End every controller that was started here."""
        for running in self._started:
            running.kill()


@contextmanager
def controllers_of_our_own(sandbox: Sandbox, directory: Path) -> Iterator[Controllers]:
    """Stop the sandbox's own controller inside of the block, where others can be started."""
    controllers = Controllers(sandbox, directory)
    with sandbox.without_controller():
        try:
            yield controllers
        finally:
            controllers.end()
