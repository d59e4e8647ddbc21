"""Everything the controller counts and measures."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from server_api.cloud_metrics import CloudMetrics
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
        self.cloud = CloudMetrics(registry)
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
        self.queue_wait_seconds = Histogram(
            _PREFIX + "queue_wait_seconds",
            "From when a server was due for a pass until a worker took it.",
            buckets=(0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
            registry=registry,
        )
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
        self.events_dropped = Counter(
            _PREFIX + "events_dropped", "Events given up because too many waited to be written.", registry=registry
        )

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Show ``value`` as a gauge of that name, asked for whenever the metrics are read."""
        Gauge(_PREFIX + name, meaning, registry=self.registry).set_function(value)
