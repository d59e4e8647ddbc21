"""Everything of v1, put together for the application."""

from __future__ import annotations

from flask import Flask

from server_api.http.documentation import DocumentedApi
from server_api.http.services import Services
from server_api.http.v1 import console, deprecation, lifecycle, power
from server_api.http.v1 import services as wiring
from server_api.settings import Settings


def install(app: Flask, services: Services, settings: Settings) -> None:
    """Let the application's requests for v1 be answered as the deprecated surface that it is."""
    wiring.install(app, services.ports)
    deprecation.install(app, settings)


def register(app: Flask, api: DocumentedApi, settings: Settings) -> None:
    """Serve and document v1. Raises ValueError when the settings turn off what it does not have."""
    for views in (lifecycle, power, console):
        api.register_blueprint(views.blueprint)
    deprecation.disable(app, settings.v1_disabled)
