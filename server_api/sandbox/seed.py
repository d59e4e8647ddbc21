"""The seed: what makes an empty region one that a server can be created in. Design section 5 lists it.

Every run makes sure of everything and changes nothing that is right already, so that a start after an interrupted
start ends in the same state.
"""

from pathlib import Path
from typing import Any

import yaml

from server_api.access.digests import token_digest
from server_api.sandbox import seed_objects
from server_api.sandbox.layout import write_private
from server_api.sandbox.seed_openstack import Account, OpenStackSeed
from server_api.sandbox.world import SERVICE, SERVICE_GRANTS, Tenant, World, endpoints
from server_api.servers.ports import Missing
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.kinds import Kind

_KINDS = {
    kind.name: kind
    for kind in (
        kinds.SECRET,
        kinds.REGION,
        kinds.IDENTITY,
        kinds.OPENSTACK_IDENTITY,
        kinds.NETWORK,
        kinds.SECURITY_GROUP,
        kinds.SSH_CERTIFICATE_AUTHORITY,
    )
}
# these have a status subresource, and something that waits for it or shows it (contract 4.1)
_WITH_CONDITIONS = (kinds.REGION, kinds.IDENTITY, kinds.NETWORK, kinds.SECURITY_GROUP)


class Seed:
    """Seeds one OpenStack and one namespace of one Kubernetes."""

    def __init__(self, world: World, openstack: OpenStackSeed, kubernetes: KubernetesClient, namespace: str) -> None:
        self._world = world
        self._openstack = openstack
        self._kubernetes = kubernetes
        self._namespace = namespace

    def run(self, auth_url: str) -> None:
        """Make sure of everything in both. Raises PortError or keystoneauth1's exceptions."""
        service_account = self._openstack.service_account(self._world.service_password)
        for flavor in self._world.flavors.values():
            self._openstack.flavor(flavor)
        for image in self._world.images.values():
            self._openstack.image(image)
        self._store(seed_objects.secret(self._namespace, service_account))
        self._store(seed_objects.region(self._namespace, self._world, auth_url))
        for tenant in self._world.tenants:
            self._tenant(tenant, self._openstack.tenant(tenant, service_account))

    def _tenant(self, tenant: Tenant, account: Account) -> None:
        for body in seed_objects.tenant_objects(self._namespace, self._world, tenant, account):
            self._store(body)

    def _store(self, body: dict[str, Any]) -> None:
        """Make sure that the object is stored with these labels, this spec or data, and a good condition."""
        kind = _KINDS[body["kind"]]
        name = body["metadata"]["name"]
        try:
            stored = self._kubernetes.get(kind, self._namespace, name)
        except Missing:
            stored = self._kubernetes.create(kind, self._namespace, body)
        wanted: dict[str, Any] = {member: body[member] for member in ("spec", "data") if member in body}
        labels = body["metadata"].get("labels", {})
        patch: dict[str, Any] = {}
        if any(not _holds(stored.get(member), value) for member, value in wanted.items()):
            patch |= wanted
        if not _holds(stored["metadata"].get("labels", {}), labels):
            patch["metadata"] = {"labels": labels}
        if patch:
            stored = self._kubernetes.patch(kind, self._namespace, name, patch)
        self._mark_provisioned(kind, stored)

    def _mark_provisioned(self, kind: Kind, stored: dict[str, Any]) -> None:
        if kind not in _WITH_CONDITIONS:
            return
        before = stored.get("status") or {}
        after = seed_objects.provisioned(before)
        if after != before:
            metadata = stored["metadata"]
            self._kubernetes.patch_status(kind, self._namespace, metadata["name"], after, metadata["resourceVersion"])


def write_tokens(path: Path, world: World) -> None:
    """Write the file that the API reads its tokens from, digests only, and the rights of the service."""
    write_private(path, yaml.safe_dump(_callers(world), sort_keys=False))


def write_identity(path: Path, world: World) -> None:
    """Write what the stand-in identity service knows: the same callers, and which projects there are."""
    organizations = [{"id": tenant.organization_id, "projects": [tenant.project_id]} for tenant in world.tenants]
    document = {**_callers(world), "organizations": organizations, "revoked": [], "rules": []}
    write_private(path, yaml.safe_dump(document, sort_keys=False))


def _callers(world: World) -> dict[str, Any]:
    tokens = [
        {
            "sha256": token_digest(caller.token),
            "subject": f"{caller.role.lower()}@sandbox",
            "accountType": "user",
            "acl": caller.acl,
        }
        for caller in world.callers.values()
    ]
    return {"tokens": tokens, "services": [{"commonName": SERVICE, "acl": {"global": endpoints(SERVICE_GRANTS)}}]}


def _holds(stored: Any, wanted: Any) -> bool:
    """Tell whether `stored` is `wanted`, or has it among members that defaulting and others added."""
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return all(name in stored and _holds(stored[name], value) for name, value in wanted.items())
    return bool(stored == wanted)
