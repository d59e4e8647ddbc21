"""Counts and durations of requests for Prometheus, of all worker processes together."""

from __future__ import annotations

import os
import time

from flask import Blueprint, Flask, Response, g
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    multiprocess,
)

from server_api.cloud_metrics import CloudMetrics
from server_api.http import authentication
from server_api.http.routes import method_name, route_template

REQUESTS = Counter("server_api_http_requests_total", "Requests answered.", ["method", "route", "status"])
DURATION = Histogram(
    "server_api_http_request_duration_seconds",
    "Seconds until a request was answered.",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
)
CLOUD = CloudMetrics(REGISTRY)

blueprint = Blueprint("metrics", __name__)


def install(app: Flask) -> None:
    """Measure the application's requests and serve ``/metrics``."""
    app.after_request(_measure)
    app.register_blueprint(blueprint)


@blueprint.get("/metrics")
@authentication.not_required
def metrics() -> Response:
    """Return the metrics in Prometheus' text format."""
    registry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        # Each worker writes files of its own there; any of them can answer for all.
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _measure(response: Response) -> Response:
    method, route = method_name(), route_template()
    REQUESTS.labels(method, route, str(response.status_code)).inc()
    DURATION.labels(method, route).observe(time.perf_counter() - g.started_at)
    return response
