"""Names: of the stored object and of everything in the cloud (contract 4.6 and 6.2)."""

from __future__ import annotations

from hashlib import sha1
from uuid import UUID, uuid5

SSH_KEY_NAME = "unikorn-openstack-provider"
"""Name of an identity's key pair in Nova."""


def server_id(network_id: str, name: str) -> str:
    """Return the ID of the v2 server of that name on that network.

    The same two always give the same ID, so that a second create of a name collides in the store without anybody
    having to look first. The result begins with a letter, which Kubernetes asks of some names.
    """
    result = uuid5(UUID(network_id), name)
    while str(result)[0].isdigit():
        result = _uuid5_of_bytes(UUID(network_id), result.bytes)
    return str(result)


def _uuid5_of_bytes(namespace: UUID, name: bytes) -> UUID:
    # The standard library took only text as a name until Python 3.12.
    digest = sha1(namespace.bytes + name, usedforsecurity=False).digest()
    return UUID(bytes=digest[:16], version=5)


def cloud_network(network_id: str) -> str:
    """Return the Neutron name of a network."""
    return f"network-{network_id}"


def cloud_security_group(group_id: str) -> str:
    """Return the Neutron name of a security group."""
    return f"securitygroup-{group_id}"


def cloud_port(server_id: str) -> str:
    """Return the Neutron name of a server's port."""
    return f"server-{server_id}"
