"""The nodes of a region as Ironic knows them (contract 6.12)."""

from __future__ import annotations

from collections.abc import Callable

from server_api.cloud.errors import translated
from server_api.cloud.sessions import CloudClients
from server_api.servers.ports import Ambiguous

MICROVERSION = "1.11"
"""Sent with every request: without one Ironic leaves the provision state out of older answers."""


class IronicNodes:
    """The port ``Baremetal``. ``region_clients`` logs in with the region's rights on a tenant's project."""

    def __init__(self, region_clients: Callable[[], CloudClients]) -> None:
        self._region_clients = region_clients

    def provision_state(self, instance_id: str) -> str | None:
        """Return the provision state of the node an instance is on, None if there is none.

        A node that Ironic gives no state has the empty one, so that it is not taken for no node.
        Raises Ambiguous when several nodes claim the instance.
        """
        clients = self._region_clients()
        with translated("ironic"):
            adapter = clients.adapter("baremetal", MICROVERSION)
            # A catalogue may name Ironic with or without its version.
            versioned = (adapter.get_endpoint() or "").rstrip("/").endswith("/v1")
            path = "/nodes" if versioned else "/v1/nodes"
            nodes = adapter.get(path, params={"instance_uuid": instance_id}).json()["nodes"]
            states = [str(node["provision_state"] or "") for node in nodes]
        if len(states) > 1:
            raise Ambiguous("ironic", f"several nodes have the instance {instance_id}")
        return states[0] if states else None
