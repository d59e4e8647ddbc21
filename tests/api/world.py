"""The region that the tests of HTTP find: its objects, offers and callers, and how to put more into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from server_api.servers.cloud_model import Flavor, Image, ImageState
from server_api.servers.model import Server
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient
from server_api.store.kinds import Kind
from server_api.store.servers import KubernetesServerStore
from tests.doubles.cloud import CloudDouble

NAMESPACE = "unikorn-region"

ORGANIZATION = "10000000-0000-4000-8000-000000000001"
OTHER_ORGANIZATION = "10000000-0000-4000-8000-000000000002"
PROJECT = "20000000-0000-4000-8000-000000000001"
SECOND_PROJECT = "20000000-0000-4000-8000-000000000002"
OTHER_PROJECT = "20000000-0000-4000-8000-000000000003"
REGION = "30000000-0000-4000-8000-000000000001"
IDENTITY = "40000000-0000-4000-8000-000000000001"
NETWORK = "aaaabbbb-1234-4678-9abc-def012345678"
SECOND_NETWORK = "aaaabbbb-1234-4678-9abc-def012345679"
OTHER_NETWORK = "bbbbcccc-1234-4678-9abc-def012345678"
SECURITY_GROUP = "50000000-0000-4000-8000-000000000001"
GROUP_ON_SECOND_NETWORK = "50000000-0000-4000-8000-000000000002"
AUTHORITY = "60000000-0000-4000-8000-000000000001"
AUTHORITY_OF_SECOND_PROJECT = "60000000-0000-4000-8000-000000000002"
FLAVOR = "70000000-0000-4000-8000-000000000001"
IMAGE = "80000000-0000-4000-8000-000000000001"
SECOND_IMAGE = "80000000-0000-4000-8000-000000000003"
FOREIGN_IMAGE = "80000000-0000-4000-8000-000000000002"
NOWHERE = "90000000-0000-4000-8000-000000000009"

SERVERS = "region:servers"
IMAGES = "region:images"
GATES = "region:servers:v2/provider-create-gates"
REFERENCES = ("region:networks:v2", "region:securitygroups:v2", "region:sshcertificateauthorities:v2")
EVERYTHING = ("create", "read", "update", "delete")

Grants = Mapping[str, tuple[str, ...]]
_READ_REFERENCES: Grants = dict.fromkeys(REFERENCES, ("read",))
_USER: Grants = {SERVERS: EVERYTHING, **_READ_REFERENCES}
_ADMIN: Grants = {**_USER, IMAGES: ("create",), GATES: ("update",)}


@dataclass(frozen=True)
class Person:
    """A caller: its token and the document of its rights (contract 5.3)."""

    token: str
    acl: Mapping[str, Any]
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", {"Authorization": f"Bearer {self.token}"})

    @property
    def subject(self) -> str:
        return f"{self.token}@example.com"


def endpoints(grants: Grants) -> list[dict[str, Any]]:
    """Return grants as an ACL document has them."""
    return [{"name": name, "operations": list(operations)} for name, operations in grants.items()]


def in_project(organization: str, project: str, grants: Grants) -> dict[str, Any]:
    """Return the ACL of somebody with rights in one project."""
    projects = [{"id": project, "endpoints": endpoints(grants)}]
    return {"organizations": [{"id": organization, "projects": projects}]}


PEOPLE = {
    # Everything in the first organization, in whatever project.
    "ADMIN": Person("admin", {"organizations": [{"id": ORGANIZATION, "endpoints": endpoints(_ADMIN)}]}),
    "USER": Person("user", in_project(ORGANIZATION, PROJECT, _USER)),
    "READER": Person("reader", in_project(ORGANIZATION, PROJECT, {SERVERS: ("read",), **_READ_REFERENCES})),
    "OTHER": Person("other", in_project(OTHER_ORGANIZATION, OTHER_PROJECT, _USER)),
    "NOBODY": Person("nobody", {}),
    # Known to the organization, and no rights in it.
    "GUEST": Person("guest", {"organizations": [{"id": ORGANIZATION}]}),
    "OPERATOR": Person("operator", {"global": endpoints(_USER)}),
    # All rights on servers and none to read networks.
    "BLIND": Person("blind", in_project(ORGANIZATION, PROJECT, {SERVERS: EVERYTHING})),
    # One right each, and none to read servers.
    "IMAGER": Person(
        "imager", {"organizations": [{"id": ORGANIZATION, "endpoints": endpoints({IMAGES: ("create",)})}]}
    ),
    "GATEKEEPER": Person("gatekeeper", in_project(ORGANIZATION, PROJECT, {GATES: ("update",)})),
    # What v1 asks for one by one.
    "UPDATER": Person("updater", in_project(ORGANIZATION, PROJECT, {SERVERS: ("update",)})),
    "CREATOR": Person("creator", in_project(ORGANIZATION, PROJECT, {SERVERS: ("create",)})),
    # What a service that satisfies gates needs, and nothing else.
    "SERVICE": Person("service", in_project(ORGANIZATION, PROJECT, {SERVERS: ("read",), GATES: ("update",)})),
}


class World:
    """What is stored and what the cloud offers, with ways to change both behind the API's back."""

    def __init__(self, client: KubernetesClient, cloud: CloudDouble) -> None:
        self.client = client
        self.cloud = cloud
        self.servers = KubernetesServerStore(client, NAMESPACE)

    def seed(self) -> None:
        """Put everything there that the constants of this module name."""
        self.add(kinds.REGION, REGION, {labels.NAME: "region"}, _REGION_SPEC)
        self.add(kinds.IDENTITY, IDENTITY, _placed(ORGANIZATION, PROJECT), {"provider": "openstack"})
        self.network(NETWORK)
        self.network(SECOND_NETWORK)
        self.network(OTHER_NETWORK, organization=OTHER_ORGANIZATION, project=OTHER_PROJECT)
        self.group(SECURITY_GROUP, NETWORK)
        self.group(GROUP_ON_SECOND_NETWORK, SECOND_NETWORK)
        self.authority(AUTHORITY, PROJECT)
        self.authority(AUTHORITY_OF_SECOND_PROJECT, SECOND_PROJECT)
        self.cloud.offered_flavors.append(Flavor(FLAVOR, "small", 1, 1024, 20, architecture="x86_64"))
        self.cloud.offered_images.extend(
            (
                Image(IMAGE, "ubuntu", ImageState.READY, 5, architecture="x86_64", virtualization="virtualized"),
                Image(FOREIGN_IMAGE, "secret", ImageState.READY, 5, organization_id=OTHER_ORGANIZATION),
            )
        )

    def network(
        self, id_: str, *, organization: str = ORGANIZATION, project: str = PROJECT, version: str | None = "2"
    ) -> None:
        """Store a network."""
        its_labels = _placed(organization, project) | {labels.IDENTITY_ID: IDENTITY}
        if version is not None:
            its_labels[labels.API_VERSION] = version
        self.add(kinds.NETWORK, id_, its_labels, {"provider": "openstack"})

    def group(self, id_: str, network: str) -> None:
        """Store a security group on a network."""
        its_labels = _placed(ORGANIZATION, PROJECT) | {labels.NETWORK_ID: network, labels.API_VERSION: "2"}
        self.add(kinds.SECURITY_GROUP, id_, its_labels, {"provider": "openstack"})

    def authority(self, id_: str, project: str) -> None:
        """Store a certificate authority in a project."""
        its_labels = _placed(ORGANIZATION, project) | {labels.API_VERSION: "2"}
        self.add(kinds.SSH_CERTIFICATE_AUTHORITY, id_, its_labels, {"publicKey": "ssh-ed25519 AAAA ca"})

    def key_pair(self, private_key: str) -> None:
        """Store the cloud credentials of the identity, with that private key."""
        secrets = {"userID": "u", "password": "hush", "projectID": "p", "sshKeyName": "k"}
        spec = secrets | {"sshPrivateKey": private_key}
        self.add(kinds.OPENSTACK_IDENTITY, IDENTITY, _placed(ORGANIZATION, PROJECT), spec)

    def bare_server(self, id_: str, name: str = "some-name", **spec: Any) -> None:
        """Store a server as an older version, or somebody's hand, may have left it."""
        its_labels = {
            labels.NAME: name,
            labels.ORGANIZATION: ORGANIZATION,
            labels.PROJECT: PROJECT,
            labels.REGION_ID: REGION,
            labels.IDENTITY_ID: IDENTITY,
            labels.NETWORK_ID: NETWORK,
            labels.API_VERSION: "2",
        }
        whole = {"networks": [{"id": NETWORK}], "flavorID": FLAVOR, "image": {"id": IMAGE}} | spec
        self.add(kinds.SERVER, id_, its_labels, whole)

    def add(self, kind: Kind, id_: str, its_labels: Mapping[str, str], spec: Mapping[str, Any]) -> None:
        """Store an object."""
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"name": id_, "namespace": NAMESPACE, "labels": {labels.NAME: "some-name", **its_labels}},
            "spec": dict(spec),
        }
        self.client.create(kind, NAMESPACE, body)

    def image(self, id_: str, **changes: Any) -> None:
        """Offer an image like the seeded one but for some of its fields."""
        like = next(image for image in self.cloud.offered_images if image.id == IMAGE)
        self.cloud.offered_images.append(replace(like, id=id_, **changes))

    def flavor(self, id_: str, **changes: Any) -> None:
        """Offer a flavor like the seeded one but for some of its fields."""
        like = next(flavor for flavor in self.cloud.offered_flavors if flavor.id == FLAVOR)
        self.cloud.offered_flavors.append(replace(like, id=id_, **changes))

    def retire(self, flavor_id: str) -> None:
        """Offer a flavor no longer."""
        self.cloud.offered_flavors = [flavor for flavor in self.cloud.offered_flavors if flavor.id != flavor_id]

    def stored(self, server_id: str) -> Server:
        """Return a server as it is stored."""
        return self.servers.get(server_id)

    def patch(self, server_id: str, **members: Any) -> None:
        """Change members of a stored server, as an operator with kubectl would."""
        self.client.patch(kinds.SERVER, NAMESPACE, server_id, members)

    def set_status(self, server_id: str, **members: Any) -> None:
        """Change members of a stored server's status, as the controller would."""
        version = self.stored(server_id).metadata.resource_version
        self.client.patch_status(kinds.SERVER, NAMESPACE, server_id, members, version)

    def remove(self, kind: Kind, id_: str) -> None:
        """Remove an object."""
        self.client.delete(kind, NAMESPACE, id_)


_REGION_SPEC = {
    "provider": "openstack",
    "openstack": {"endpoint": "http://127.0.0.1:1", "serviceAccountSecret": {"namespace": NAMESPACE, "name": "none"}},
}


def _placed(organization: str, project: str) -> dict[str, str]:
    return {labels.ORGANIZATION: organization, labels.PROJECT: project, labels.REGION_ID: REGION}


def condition(type_: str, status: str, reason: str) -> dict[str, str]:
    """Return a condition as it is stored."""
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": f"because {reason}",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }


def create_body(name: str = "web-0", **spec: Any) -> dict[str, Any]:
    """Return a minimal create request; members of the spec as arguments, None leaves one out."""
    whole = {"networkId": NETWORK, "flavorId": FLAVOR, "imageId": IMAGE} | spec
    return {"metadata": {"name": name}, "spec": {key: value for key, value in whole.items() if value is not None}}


def update_body(name: str = "web-0", metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a minimal update request."""
    return {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"flavorId": FLAVOR, "imageId": IMAGE, **spec},
    }
