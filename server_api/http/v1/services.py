"""The use cases that v1's views call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from flask import Flask, current_app

from server_api.http.services import Ports
from server_api.servers.v1.lifecycle import LifecycleV1
from server_api.servers.v1.operations import OperationsV1

_EXTENSION = "server-api-v1"


@dataclass(frozen=True, slots=True)
class ServicesV1:
    """The use cases of v1."""

    lifecycle: LifecycleV1
    operations: OperationsV1


def install(app: Flask, ports: Ports) -> None:
    """Make the use cases available to the application's views."""
    app.extensions[_EXTENSION] = ServicesV1(
        lifecycle=LifecycleV1(ports.servers, ports.directory, ports.cloud, ports.clock),
        operations=OperationsV1(ports.servers, ports.directory, ports.cloud),
    )


def services() -> ServicesV1:
    """Return the use cases of the application whose request is in hand."""
    return cast(ServicesV1, current_app.extensions[_EXTENSION])
