from __future__ import annotations

from prometheus_client import CollectorRegistry

from server_api.cloud_metrics import CloudMetrics
from server_api.controller.metrics import Metrics

NAME = "server_api_cloud_request_duration_seconds"


def test_requests_are_counted_by_service_method_and_outcome() -> None:
    registry = CollectorRegistry()
    metrics = CloudMetrics(registry)
    metrics.observe("nova", "GET", "2xx", 0.25)
    metrics.observe("nova", "GET", "2xx", 0.5)
    metrics.observe("nova", "POST", "timeout", 10)
    answered = {"service": "nova", "method": "GET", "outcome": "2xx"}
    assert registry.get_sample_value(f"{NAME}_count", answered) == 2
    assert registry.get_sample_value(f"{NAME}_sum", answered) == 0.75
    late = {"service": "nova", "method": "POST", "outcome": "timeout"}
    assert registry.get_sample_value(f"{NAME}_count", late) == 1


def test_the_controller_shows_them_among_its_own() -> None:
    metrics = Metrics()
    metrics.cloud.observe("neutron", "GET", "5xx", 1)
    labels = {"service": "neutron", "method": "GET", "outcome": "5xx"}
    assert metrics.registry.get_sample_value(f"{NAME}_count", labels) == 1
