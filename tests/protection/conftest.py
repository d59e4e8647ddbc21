"""The application and its world are those of the tests of HTTP."""

from tests.api.conftest import clock, kubernetes, services, settings, tokens, world

__all__ = ["clock", "kubernetes", "services", "settings", "tokens", "world"]
