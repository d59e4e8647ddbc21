"""The application with the identity service as its source, over two tenants' objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from flask import Flask

from server_api.http.services import Services
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.settings import Settings
from tests.api.conftest import clock, kubernetes, services, settings, tokens, world
from tests.api.identity import app_over
from tests.api.world import World
from tests.protection.tenants import document, store_servers

__all__ = ["clock", "kubernetes", "services", "settings", "tokens", "world"]


@pytest.fixture(scope="session")
def server() -> Iterator[StandInIdentityService]:
    with StandInIdentityService(document()) as server:
        yield server


@pytest.fixture
def identity(server: StandInIdentityService) -> StandInIdentityService:
    """The stand-in, which knows everybody of the matrix."""
    server.know(document())
    server.app.calls.clear()
    return server


@pytest.fixture
def make_app(
    identity: StandInIdentityService, services: Services, settings: Settings, world: World
) -> Callable[[float], Flask]:
    """Return what makes an application that keeps lists of rights for some seconds."""
    store_servers(world)
    return lambda seconds: app_over(identity.url, services, replace(settings, acl_cache_seconds=seconds))


@pytest.fixture
def app(make_app: Callable[[float], Flask]) -> Flask:
    return make_app(60.0)
