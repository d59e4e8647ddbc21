"""What the views need from the rest of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from flask import Flask, current_app

from server_api.access.authentication import Authenticator
from server_api.servers.console import Console
from server_api.servers.lifecycle import Lifecycle
from server_api.servers.ports import Clock, Cloud, Directory, ServerStore
from server_api.servers.power import Power
from server_api.servers.provider_create_gates import ProviderCreateGates
from server_api.servers.snapshots import Snapshots
from server_api.servers.ssh_key import SSHKeys

_EXTENSION = "server-api"


@dataclass(frozen=True, slots=True)
class Ports:
    """What a generation of the API that is on its way out makes its own use cases of."""

    servers: ServerStore
    directory: Directory
    cloud: Cloud
    clock: Clock


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases, what others can be made of, and what tells callers apart.

    ``readiness`` returns when the store can be reached and raises, anything, when it cannot.
    """

    lifecycle: Lifecycle
    power: Power
    console: Console
    ssh_keys: SSHKeys
    snapshots: Snapshots
    provider_create_gates: ProviderCreateGates
    ports: Ports
    authenticator: Authenticator
    readiness: Callable[[], None]


def install(app: Flask, services: Services) -> None:
    """Make the services available to the application's views."""
    app.extensions[_EXTENSION] = services


def services() -> Services:
    """Return the services of the application whose request is in hand."""
    return cast(Services, current_app.extensions[_EXTENSION])
