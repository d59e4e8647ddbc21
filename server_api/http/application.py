"""The Flask application: every cross-cutting concern and every blueprint, put together."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from flask import Flask

from server_api import audit_log
from server_api.http import (
    access_log,
    audit,
    authentication,
    authorization_check,
    binding,
    client_address,
    cors,
    documentation,
    health,
    limits,
    metrics,
    security_headers,
    version,
    well_known,
)
from server_api.http import services as wiring
from server_api.http.path_parameters import CONVERTERS
from server_api.http.services import Services
from server_api.http.tracing import RequestScope
from server_api.http.v2 import console, lifecycle, power, provider_create_gates, snapshot, ssh_key
from server_api.settings import Settings


def build_app(services: Services, settings: Settings) -> Flask:
    """Return the application over the given services."""
    app = Flask(__name__, static_folder=None)
    # One more than allowed, so that a body cut off there is seen to have been longer (``parsing``).
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes + 1
    # A path is what it says: neither a trailing nor a doubled slash is redirected.
    app.url_map.merge_slashes = False
    app.url_map.converters.update(CONVERTERS)
    app.config[well_known.IDENTITY_URL] = settings.identity_url
    client_address.install(app, settings.trusted_proxies)
    wiring.install(app, services)

    # What runs before a view runs in this order, and what runs after it in the reverse of it.
    access_log.install(app)
    metrics.install(app)
    audit.install(app, audit_log.from_settings(settings))
    security_headers.install(app)
    cors.install(app, settings.cors_origin)
    limits.install_for_peers(app, settings)
    v1 = _v1()
    if v1 is not None:
        v1.install(app, services, settings)
    binding.install(app)
    audit.expect_caller(app)
    authentication.install(app)
    limits.install_for_callers(app, settings)
    authorization_check.install(app, strict=settings.strict_authorization)

    app.register_blueprint(health.blueprint)
    api = documentation.build_api(app)
    for views in (well_known, version, lifecycle, power, console, ssh_key, snapshot, provider_create_gates):
        api.register_blueprint(views.blueprint)
    if v1 is not None:
        v1.register(app, api, settings)
    documentation.publish(app, api)

    app.wsgi_app = RequestScope(app.wsgi_app, settings.request_deadline)  # type: ignore[method-assign]
    return app


def _v1() -> ModuleType | None:
    """Return the surface of v1, None once its package is deleted: nothing else of the program knows of it."""
    package = "server_api.http.v1"
    return import_module(f"{package}.surface") if find_spec(package) else None
