"""Everything the controller counts and measures."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from server_api.controller.census import StateCensus

_PREFIX = "server_api_controller_"


class Metrics:
    """The controller's metrics, in a registry of their own.

    Names beginning with ``unikorn_region_`` are the contract's (7.8) and the same as the existing service's.
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.census = StateCensus()
        registry.register(self.census)
        self.provision_seconds = Histogram(
            "unikorn_region_server_provision_duration_seconds",
            "From a server's creation to its first launch.",
            buckets=(5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600),
            registry=registry,
        )
        self.scheduling_seconds = Histogram(
            "unikorn_region_server_scheduling_duration_seconds",
            "From a server's creation to that of its instance.",
            buckets=(1, 5, 10, 30, 60, 120, 300),
            registry=registry,
        )
        self.passes = Counter(
            _PREFIX + "passes",
            "Passes by operation and outcome.",
            ["operation", "outcome"],
            registry=registry,
        )
        self.pass_seconds = Histogram(
            _PREFIX + "pass_duration_seconds", "Duration of a pass.", ["operation"], registry=registry
        )
        self.conflicts = Counter(
            _PREFIX + "write_conflicts", "Writes that lost against another's.", ["writer"], registry=registry
        )
        self.retries = Counter(_PREFIX + "queue_retries", "Rate-limited requeues.", registry=registry)
        self.poll_seconds = Histogram(
            _PREFIX + "monitor_poll_duration_seconds",
            "Duration of one poll of the monitor.",
            registry=registry,
        )
        self.poll_failures = Counter(
            _PREFIX + "monitor_project_failures",
            "Projects that a poll of the monitor could not read.",
            registry=registry,
        )
        self._queue_depth = Gauge(_PREFIX + "queue_depth", "Keys waiting to be worked on.", registry=registry)
        self._leading = Gauge(_PREFIX + "leading", "1 while this replica leads.", registry=registry)
        self._feed_silence = Gauge(
            _PREFIX + "feed_silence_seconds",
            "Seconds since the server feed's last sign of life.",
            registry=registry,
        )

    def watch(
        self,
        queue_depth: Callable[[], float],
        leading: Callable[[], float],
        feed_silence: Callable[[], float],
    ) -> None:
        """Ask these whenever the metrics are read."""
        self._queue_depth.set_function(queue_depth)
        self._leading.set_function(leading)
        self._feed_silence.set_function(feed_silence)
