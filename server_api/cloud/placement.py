"""The hosts of a region as Placement knows them (contract 6.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from server_api.cloud.errors import translated
from server_api.cloud.sessions import CloudClients
from server_api.servers.cloud_model import ResourceProvider

MICROVERSION = "1.22"


class PlacementHosts:
    """The port ``Placement``. ``region_clients`` logs in with the region's rights on a tenant's project."""

    def __init__(self, region_clients: Callable[[], CloudClients]) -> None:
        self._region_clients = region_clients

    def providers(self, resource_class: str, traits: Sequence[str]) -> Sequence[ResourceProvider]:
        """Return the hosts that have one of the resource class left, and the traits (``!NAME``: not that one)."""
        clients = self._region_clients()
        query = {"resources": f"{resource_class}:1"} | ({"required": ",".join(traits)} if traits else {})
        with translated("placement"):
            answer = clients.adapter("placement", MICROVERSION).get("/resource_providers", params=query).json()
            return [
                ResourceProvider(id=str(found["uuid"]), name=str(found["name"]))
                for found in answer["resource_providers"]
            ]
