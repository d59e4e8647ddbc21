"""The controller as a whole: its parts, how they start, and how they stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog

from server_api.controller.backoff import Backoff
from server_api.controller.election import Elector, Term
from server_api.controller.event_queue import EventQueue
from server_api.controller.fencing import Fence
from server_api.controller.informer import Informer
from server_api.controller.lanes import Lanes
from server_api.controller.metrics import Metrics
from server_api.controller.monitor import Monitor
from server_api.controller.probes import ProbeServer
from server_api.controller.reconciler import Pass, Reconciler
from server_api.controller.threads import Crew, ThreadDied, join_all
from server_api.controller.work_queue import WorkQueue
from server_api.controller.worker import Worker
from server_api.servers.deprovisioning import Deprovisioner
from server_api.servers.ports import Clock, Cloud, Directory, Events, References, ServerStore
from server_api.servers.provisioning import Provisioner
from server_api.servers.replica_ports import Leases, ServerFeed
from server_api.settings import Settings

STOP_SECONDS = 25.0
"""How long running passes may take to finish on a stop: Kubernetes kills a pod 30 seconds after SIGTERM."""

EVENTS_SECONDS = 2.0
"""How long the last events may take to be written on a stop, after the passes."""

SILENCE_GRACE_SECONDS = 60.0
"""A quiet watch is renewed after ``watch_seconds``; silence beyond that and this much more is a dead one."""

_RETRY = Backoff(base=1.0, limit=300.0)
"""Of a deletion that failed or a pass that crashed: whoever mends the cause waits five minutes at most."""

_UNREACHABLE = Backoff(base=1.0, limit=60.0)
"""Of a project that cannot be reached: one pass a minute finds out soon enough that it can."""

_RECONNECT = Backoff(base=1.0, limit=30.0)
"""Of the informer: a store that comes back is seen within half a minute."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the controller works with. ``identity`` is this process among its replicas, and must be unique."""

    servers: ServerStore
    directory: Directory
    references: References
    cloud: Cloud
    events: Events
    feed: ServerFeed
    leases: Leases
    clock: Clock
    identity: str


ProvisionerFactory = Callable[[ServerStore, Directory, References, Cloud], Pass]
DeprovisionerFactory = Callable[[ServerStore, Directory, References, Cloud], Pass]


class Controller:
    """One replica of the controller.

    Every replica follows the servers; only the elected one acts. ``provisioner`` and ``deprovisioner`` make
    the rules of the two kinds of pass from fenced ports; by default they are those of ``servers``. Raises ValueError
    for settings that do not fit together, OSError when the address of the probes is taken.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        settings: Settings,
        metrics: Metrics | None = None,
        *,
        provisioner: ProvisionerFactory | None = None,
        deprovisioner: DeprovisionerFactory = Deprovisioner,
    ) -> None:
        self._settings = settings
        self.metrics = metrics or Metrics()
        self._events = EventQueue(dependencies.events, self.metrics.events_dropped.inc)
        self._queue = self._new_queue()
        self._informer = Informer(dependencies.feed, self._queue.add, _RECONNECT)
        self._elector = Elector(
            dependencies.leases,
            settings.lease_name,
            dependencies.identity,
            Term(settings.lease_seconds, settings.lease_renew_seconds, settings.lease_retry_seconds),
            dependencies.clock,
            on_elected=self._begin_leading,
            on_lost=self._queue.hold,
        )
        fence = Fence(self._elector)
        servers = fence.servers(dependencies.servers)
        cloud = fence.cloud(dependencies.cloud)
        references = fence.references(dependencies.references)
        provisioner = provisioner or partial(
            Provisioner, create_attempts=settings.create_attempts, clock=dependencies.clock
        )
        self._reconciler = Reconciler(
            servers,
            provisioner(servers, dependencies.directory, references, cloud),
            deprovisioner(servers, dependencies.directory, references, cloud),
            self._events,
            dependencies.clock,
            self.metrics,
            settings.retry_seconds,
        )
        self._monitor = Monitor(
            self._informer.servers,
            self._queue.add,
            servers,
            dependencies.directory,
            cloud,
            self._events,
            dependencies.clock,
            self.metrics,
        )
        self._show_gauges()
        self._crew = Crew(threading.Event())
        self.probes = ProbeServer(settings.controller_bind, self.unhealthy, self.unready, self.metrics.registry)

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set, then end cleanly.

        No new pass begins after ``stop``; running ones finish, at most STOP_SECONDS long; then the lease is
        given back. Raises ThreadDied when a thread ended before its time, after stopping the rest; ``stop``
        is set then.
        """
        crew = self._crew = Crew(stop)
        retired = threading.Event()
        probes = crew.start("probes", self.probes.run)
        events = crew.start("events", self._events.run)
        crew.start("informer", lambda: self._informer.run(stop))
        elector = crew.start("elector", lambda: self._stand_for_election(stop, retired))
        monitor = crew.start(
            "monitor",
            lambda: self._monitor.run(stop, self._settings.monitor_seconds, self._elector.is_leading),
        )
        worker = Worker(self._queue, self._reconciler)
        workers = [
            crew.start(f"worker-{number}", lambda: worker.run(stop))
            for number in range(self._settings.controller_workers)
        ]

        stop.wait()
        _log.info("stopping")
        self._queue.close()
        # The elector renews until the last effect is done: a pass that outlived the lease would be cut off
        # half way.
        finished = join_all([*workers, monitor], STOP_SECONDS)
        retired.set()
        join_all([elector], self._settings.lease_renew_seconds)
        if finished:
            self._elector.release()
        else:
            _log.warning("passes are still running; the lease is left to run out")
        self._events.close()
        join_all([events], EVENTS_SECONDS)
        self.probes.close()
        join_all([probes], 1.0)
        if crew.dead():
            raise ThreadDied(f"ended before their time: {', '.join(crew.dead())}")

    def unhealthy(self) -> list[str]:
        """Return what makes this process useless, for /healthz."""
        return [f"the thread {name} died" for name in self._crew.dead()]

    def unready(self) -> list[str]:
        """Return what keeps this replica from acting on what is stored, for /readyz. It need not lead."""
        if not self._informer.synced.is_set():
            return ["the servers are not listed yet"]
        if self._informer.failing:
            return ["following the servers fails"]
        silence = self._informer.silent_seconds()
        if silence > self._settings.watch_seconds + SILENCE_GRACE_SECONDS:
            return [f"the server feed has been silent for {silence:.0f} s"]
        return []

    def _new_queue(self) -> WorkQueue:
        # Half of the workers, so that a project whose calls hang leaves the other half to everybody else.
        share = max(1, self._settings.controller_workers // 2)
        return WorkQueue(
            _RETRY,
            lanes=Lanes(lambda key: self._informer.project_of(key), share, _UNREACHABLE),
            held=True,
            on_retry=self.metrics.retries.inc,
            on_taken=self.metrics.queue_wait_seconds.observe,
        )

    def _show_gauges(self) -> None:
        show, queue, informer = self.metrics.watch, self._queue, self._informer
        show("queue_depth", "Servers waiting for a pass that is due.", queue.depth)
        show("in_work", "Servers a worker is at.", queue.in_work)
        show(
            "projects_backing_off",
            "Projects whose servers wait because they cannot be reached.",
            queue.projects_backing_off,
        )
        show("paused_servers", "Servers that are left alone because their spec says so.", informer.paused)
        show("leading", "1 while this replica leads.", self._elector.is_leading)
        show("feed_silence_seconds", "Seconds since the server feed's last sign of life.", informer.silent_seconds)

    def _begin_leading(self) -> None:
        self._informer.wake_all()
        self._queue.resume()

    def _stand_for_election(self, stop: threading.Event, retired: threading.Event) -> None:
        # Who sees nothing must not lead: it would keep those from it who do.
        while not self._informer.synced.wait(0.5):
            if stop.is_set():
                return
        self._elector.run(retired)
