"""What the requests to the cloud's services cost, counted alike by the API and by the controller."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class CloudMetrics:
    """The histogram ``server_api_cloud_request_duration_seconds`` in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "server_api_cloud_request_duration_seconds",
            "Seconds until a service of the cloud answered, or did not.",
            ["service", "method", "outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )

    def observe(self, service: str, method: str, outcome: str, seconds: float) -> None:
        """Count one request: ``service`` by its project's name (nova), ``outcome`` as 2xx to 5xx or what went wrong."""
        self._seconds.labels(service, method, outcome).observe(seconds)
