"""The API with callers from the stand-in identity service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import Flask

from server_api.access.sources import authenticator
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.service_caller import COMPUTE
from tests.api.world import (
    EVERYTHING,
    ORGANIZATION,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PEOPLE,
    PROJECT,
    REFERENCES,
    SERVERS,
    endpoints,
)
from tests.doubles.identity import known, person

_GRANTS = {SERVERS: EVERYTHING, **dict.fromkeys(REFERENCES, ("read",))}


def document(**more: Any) -> dict[str, Any]:
    """Return what the stand-in knows: everybody in ``PEOPLE``, one service, and one project in each organization."""
    return known(
        *(person(who.token, who.acl, who.subject) for who in PEOPLE.values()),
        services={COMPUTE: {"global": endpoints(_GRANTS)}},
        projects={ORGANIZATION: [PROJECT], OTHER_ORGANIZATION: [OTHER_PROJECT]},
        **more,
    )


def misbehaving(*rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same with rules of misbehaviour."""
    return document(rules=[dict(rule) for rule in rules])


def app_over(url: str, services: Services, settings: Settings) -> Flask:
    """Return the application with the identity service at that URL, which believes a proxy on this machine."""
    chosen = replace(
        settings, identity_source="identity-service", identity_url=url, trusted_proxies="127.0.0.1", read_timeout=2.0
    )
    return build_app(replace(services, authenticator=authenticator(chosen)), chosen)
