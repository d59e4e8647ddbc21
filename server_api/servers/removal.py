"""Taking away what a server has in the cloud (contract 6.13)."""

from __future__ import annotations

from collections.abc import Iterable

from server_api.servers.cloud_model import Instance, Port
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.ports import Compute, Networking

GONE_SOON_SECONDS = 2.0
"""When to look again for an instance that Nova was asked to delete: it usually takes a second or two."""

_GONE = frozenset({"DELETED", "SOFT_DELETED"})
"""Nova statuses of an instance that is as good as deleted: with soft delete on, it may never answer 404."""


def remove_instance(compute: Compute, instance: Instance) -> None:
    """Delete an instance as it was just seen. Raises Stop until it is gone.

    Forgetting it earlier would leave it running unseen should Nova fail to delete it.
    """
    if instance.status in _GONE:
        return
    compute.delete(instance.id)
    # By its ID, and not in a list, which may be a little old.
    left = compute.get(instance.id)
    if left is not None and left.status not in _GONE:
        raise Stop(Outcome.YIELD, "waiting for the cloud to delete the instance", again_in=GONE_SOON_SECONDS)


def remove_ports(networking: Networking, ports: Iterable[Port]) -> None:
    """Delete ports as they were just seen, and before each what would outlive it: its floating IPs."""
    for port in ports:
        for floating_ip in networking.floating_ips(port.id):
            networking.delete_floating_ip(floating_ip.id)
        networking.delete_port(port.id)
