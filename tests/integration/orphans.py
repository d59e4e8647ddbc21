"""What nobody owns any more: the count that must be 0 whatever went wrong before."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.tenancy import Tenancy
from server_api.servers.finalizers import reference_edge
from server_api.servers.naming import cloud_port
from server_api.store import kinds

if TYPE_CHECKING:
    from tests.integration.harness import Sandbox

Item = dict[str, Any]

_REFERENTS = (kinds.NETWORK, kinds.SECURITY_GROUP, kinds.SSH_CERTIFICATE_AUTHORITY)


def orphans(sandbox: "Sandbox") -> list[str]:
    """Return what is left in both projects and in Kubernetes of servers that are not stored, or is there twice.

    A server that is being deleted is left over too: whoever asks has waited for deletions to end.
    """
    stored = {item["metadata"]["name"]: item for item in sandbox.kubernetes.list(kinds.SERVER, NAMESPACE).items}
    found = [
        f"server {id_} keeps {item['metadata'].get('finalizers')}"
        for id_, item in stored.items()
        if item["metadata"].get("deletionTimestamp")
    ]
    for tenant in sandbox.world.tenants:
        found += _in_project(sandbox.cloud_of(tenant), set(stored))
    return found + [edge for edge in edges(sandbox) if not any(edge.endswith(reference_edge(id_)) for id_ in stored)]


def edges(sandbox: "Sandbox", server_id: str = "") -> list[str]:
    """Return what networks, groups and authorities are held for, of one server or of all, as "kind: edge"."""
    return [
        f"{kind.plural}: {edge}"
        for kind in _REFERENTS
        for item in sandbox.kubernetes.list(kind, NAMESPACE).items
        for edge in item["metadata"].get("finalizers", [])
        if edge.startswith(reference_edge(server_id))
    ]


def _in_project(cloud: Tenancy, stored: set[str]) -> Iterator[str]:
    ports = cloud.ports()
    yield from _unowned(
        "instance", [item["metadata"].get("serverID", item["name"]) for item in cloud.instances()], stored
    )
    yield from _unowned("port", [item["name"].removeprefix(cloud_port("")) for item in ports], stored)
    owner_of_port = {item["id"]: item["name"].removeprefix(cloud_port("")) for item in ports}
    floating_ips = [owner_of_port.get(item["port_id"], "nobody") for item in cloud.floating_ips()]
    yield from _unowned("floating IP", floating_ips, stored)


def _unowned(kind: str, owners: list[str], stored: set[str]) -> Iterator[str]:
    for owner, count in Counter(owners).items():
        if owner not in stored:
            yield f"{count} × {kind} of {owner}, which is not stored"
        elif count > 1:
            yield f"{count} × {kind} of {owner}"
