"""How a server ended: what a test compares after whatever went wrong before."""

from tests.integration.harness import Item, Sandbox
from tests.integration.orphans import edges


def end_of(region: Sandbox, server_id: str, name: str) -> Item:
    """Return all that counts of how a server ended, without what differs from one server to the next."""
    cloud = region.cloud
    stored = region.stored(server_id)
    instances = cloud.instances(name)
    ports = [port for port in cloud.ports() if port["name"].endswith(server_id)]
    bound = [port["device_id"] == instance["id"] for port in ports for instance in instances]
    floating_ips = [ip for ip in cloud.floating_ips() if ip["port_id"] in {port["id"] for port in ports}]
    status = (stored or {}).get("status", {})
    addresses = {port["fixed_ips"][0]["ip_address"] for port in ports}
    return {
        "stored": stored is not None,
        "available": [
            condition["reason"] for condition in status.get("conditions", ()) if condition["type"] == "Available"
        ],
        "phase": status.get("phase"),
        "rebuild": status.get("rebuild"),
        "finalizers": (stored or {}).get("metadata", {}).get("finalizers"),
        "edges": sorted(edge.partition(":")[0] for edge in edges(region, server_id)),
        "instances": [
            {
                "status": instance["status"],
                "image": instance["image"]["id"],
                "creates": len(cloud.actions(instance["id"], "create")),
                "rebuilds": len(cloud.actions(instance["id"], "rebuild")),
            }
            for instance in instances
        ],
        "ports bound to the instance": bound,
        "floating IPs": len(floating_ips),
        "private address is the port's": {status.get("privateIP")} == addresses if stored else None,
        "public address is the floating IP's": (
            [status.get("publicIP")] == [ip["floating_ip_address"] for ip in floating_ips] if stored else None
        ),
    }


def runs(stored: Item) -> bool:
    """Say whether a stored server has everything that was asked for, and the monitor has seen it run."""
    status = stored.get("status") or {}
    reasons = {condition["type"]: condition["reason"] for condition in status.get("conditions", ())}
    settled = reasons.get("Available") == "Provisioned" and status.get("phase") == "Running"
    return settled and not status.get("rebuild") and status.get("launchedAt") is not None
