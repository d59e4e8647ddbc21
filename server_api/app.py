"""The API's composition root: adapters of Kubernetes and OpenStack behind the Flask application."""

from __future__ import annotations

from flask import Flask

from server_api import logs
from server_api.access.sources import authenticator
from server_api.clock import SystemClock
from server_api.cloud import OpenStackCloud
from server_api.http.application import build_app
from server_api.http.metrics import CLOUD
from server_api.http.services import Ports, Services
from server_api.servers.console import Console
from server_api.servers.lifecycle import Lifecycle
from server_api.servers.power import Power
from server_api.servers.provider_create_gates import ProviderCreateGates
from server_api.servers.snapshots import Snapshots
from server_api.servers.ssh_key import SSHKeys
from server_api.settings import Settings
from server_api.store.client import KubernetesClient
from server_api.store.credentials import KubernetesCredentials
from server_api.store.directory import KubernetesDirectory
from server_api.store.servers import KubernetesServerStore


def create_app(settings: Settings | None = None) -> Flask:
    """Return the API as a WSGI application; without settings, those of the environment.

    To be called in the process that serves, after any fork: the clients it makes connect when first used. Raises
    ValueError for settings that cannot be understood, or when no file of tokens is named or it cannot be used.
    """
    settings = settings or Settings.from_environment()
    logs.configure(settings.log_level)
    return build_app(services(settings), settings)


def services(settings: Settings) -> Services:
    """Return the use cases over real adapters. Raises ValueError when no caller could be told from another."""
    client, namespace = KubernetesClient.from_settings(settings), settings.namespace
    servers = KubernetesServerStore(client, namespace)
    directory = KubernetesDirectory(client, namespace)
    credentials = KubernetesCredentials(client, namespace)
    cloud, clock = OpenStackCloud(credentials, settings, CLOUD.observe), SystemClock()
    return Services(
        lifecycle=Lifecycle(servers, directory, cloud, clock),
        power=Power(servers, directory, cloud),
        console=Console(servers, directory, cloud),
        ssh_keys=SSHKeys(servers, directory, credentials),
        snapshots=Snapshots(servers, directory, cloud),
        provider_create_gates=ProviderCreateGates(servers, clock),
        ports=Ports(servers, directory, cloud, clock),
        authenticator=authenticator(settings, CLOUD.observe),
        readiness=client.ping,
    )
