"""The controller's passes over the servers of the world, one at a time and without its threads."""

from __future__ import annotations

from dataclasses import replace

from server_api.controller.metrics import Metrics
from server_api.controller.reconciler import Reconciler
from server_api.servers.deprovisioning import Deprovisioner
from server_api.servers.ports import Clock, Cloud, Tenancy
from server_api.servers.provisioning import Provisioner
from server_api.servers.surroundings import Region
from server_api.store import kinds
from server_api.store.directory import KubernetesDirectory
from server_api.store.events import KubernetesEvents
from server_api.store.references import KubernetesReferences
from tests.api.world import IDENTITY, NAMESPACE, World, condition
from tests.doubles.tenancy import JournaledNetworking

RETRY_SECONDS = 10.0


class WithNetworks:
    """A cloud with the networks of a double in place of its own."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.catalogue = cloud.catalogue
        self.networking = JournaledNetworking([])

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        """Return the identity's project."""
        return replace(self._cloud.tenancy(region, identity_id), networking=self.networking)


def reconciler(world: World, cloud: Cloud, clock: Clock) -> Reconciler:
    """Return what the controller does with one server. The world's identity is made ready for it."""
    version = world.client.get(kinds.IDENTITY, NAMESPACE, IDENTITY)["metadata"]["resourceVersion"]
    status = {"conditions": [condition("Available", "True", "Provisioned")]}
    world.client.patch_status(kinds.IDENTITY, NAMESPACE, IDENTITY, status, version)
    parts = (
        KubernetesDirectory(world.client, NAMESPACE),
        KubernetesReferences(world.client, NAMESPACE),
        WithNetworks(cloud),
    )
    events = KubernetesEvents(world.client, NAMESPACE)
    return Reconciler(
        world.servers,
        Provisioner(world.servers, *parts),
        Deprovisioner(world.servers, *parts),
        events,
        clock,
        Metrics(),
        RETRY_SECONDS,
    )
