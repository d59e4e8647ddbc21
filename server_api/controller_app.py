"""The controller's composition root: adapters, logs and signals around ``controller.process``."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
from types import FrameType

from server_api import logs
from server_api.clock import SystemClock
from server_api.cloud import OpenStackCloud
from server_api.cloud.sessions import CallObserver, unobserved
from server_api.controller.metrics import Metrics
from server_api.controller.process import Controller, Dependencies
from server_api.settings import Settings
from server_api.store.client import KubernetesClient
from server_api.store.credentials import KubernetesCredentials
from server_api.store.directory import KubernetesDirectory
from server_api.store.events import KubernetesEvents
from server_api.store.feed import KubernetesServerFeed
from server_api.store.leases import KubernetesLeases
from server_api.store.references import KubernetesReferences
from server_api.store.servers import KubernetesServerStore


def run_controller(settings: Settings) -> None:
    """Run the controller until SIGTERM or SIGINT, and stop cleanly then.

    To be called from the main thread. Raises ThreadDied when a part of it died, ValueError for settings that do not
    fit together, OSError when the address of the probes is taken: the process is to end non-zero then.
    """
    logs.configure(settings.log_level)
    stop = threading.Event()

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    metrics = Metrics()
    controller = Controller(dependencies(settings, metrics.cloud.observe), settings, metrics)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    controller.run(stop)


def dependencies(settings: Settings, observe_call: CallObserver = unobserved) -> Dependencies:
    """Return the adapters of Kubernetes and OpenStack. Nothing is connected before it is used.

    ``observe_call`` is told of every request to the cloud.
    """
    client, namespace = KubernetesClient.from_settings(settings), settings.namespace
    return Dependencies(
        servers=KubernetesServerStore(client, namespace),
        directory=KubernetesDirectory(client, namespace),
        references=KubernetesReferences(client, namespace),
        cloud=OpenStackCloud(KubernetesCredentials(client, namespace), settings, observe_call),
        events=KubernetesEvents(client, namespace),
        feed=KubernetesServerFeed(client, namespace),
        leases=KubernetesLeases(client, namespace),
        clock=SystemClock(),
        identity=_identity(),
    )


def _identity() -> str:
    # The random part tells a restarted process from the one before it, whose host and number may be the same.
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
