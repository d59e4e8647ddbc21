"""Probes: ``/healthz`` says that the process answers, ``/readyz`` that it should get requests."""

from __future__ import annotations

import structlog
from flask import Blueprint, Response

from server_api import deadline
from server_api.http import authentication, draining, responses
from server_api.http.errors import envelope
from server_api.http.services import services

PROBE_SECONDS = 2.0
"""How long the store may take to answer a probe. Kubernetes waits one second unless told otherwise."""

blueprint = Blueprint("health", __name__)

_log = structlog.get_logger(__name__)
_NO_CACHE = {"Cache-Control": "no-cache"}


@blueprint.get("/healthz")
@authentication.not_required
def healthz() -> Response:
    """Return 200: the process answers."""
    return responses.json(200, {"status": "ok"}, _NO_CACHE)


@blueprint.get("/readyz")
@authentication.not_required
def readyz() -> Response:
    """Return 200 when the store can be reached and the process is not about to stop, else 503."""
    if draining.is_announced():
        return envelope(503, "the process is about to stop")
    try:
        with deadline.within(PROBE_SECONDS):
            services().readiness()
    except Exception as failure:  # noqa: BLE001  whatever it is, this process is not ready
        _log.warning("not ready", kind=type(failure).__name__, detail=str(failure))
        return envelope(503, "the object store cannot be reached")
    return responses.json(200, {"status": "ok"}, _NO_CACHE)
