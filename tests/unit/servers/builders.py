"""A small region with one server on one network, to change at will."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from server_api.servers import naming
from server_api.servers.cloud_model import Flavor, Image, ImageState, Instance, PowerState
from server_api.servers.model import (
    Condition,
    ConditionType,
    Metadata,
    NetworkAttachment,
    Server,
    ServerSpec,
    ServerStatus,
)
from server_api.servers.requests import ServerCreate, ServerUpdate
from server_api.servers.surroundings import Identity, Network, Region, SecurityGroup, SSHCertificateAuthority

ORGANIZATION = "0b3b0c1e-0000-4000-8000-000000000001"
PROJECT = "0b3b0c1e-0000-4000-8000-000000000002"
OTHER_ORGANIZATION = "0b3b0c1e-0000-4000-8000-00000000000f"
OTHER_PROJECT = "0b3b0c1e-0000-4000-8000-00000000000e"
REGION = "0b3b0c1e-0000-4000-8000-000000000003"
IDENTITY = "0b3b0c1e-0000-4000-8000-000000000004"
NETWORK = "aaaabbbb-1234-5678-9abc-def012345678"
OTHER_NETWORK = "bbbbcccc-1234-5678-9abc-def012345678"
GROUP = "0b3b0c1e-0000-4000-8000-000000000005"
GROUP_2 = "0b3b0c1e-0000-4000-8000-000000000006"
AUTHORITY = "0b3b0c1e-0000-4000-8000-000000000007"
FLAVOR = "0b3b0c1e-0000-4000-8000-000000000008"
IMAGE = "0b3b0c1e-0000-4000-8000-000000000009"
OTHER_ID = "0b3b0c1e-0000-4000-8000-0000000000ff"

NAME = "test-server"
SERVER = naming.server_id(NETWORK, NAME)

EARLIER = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
NOW = datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=UTC)
NOW_IN_SECONDS = NOW.replace(microsecond=0)


def network(**changes: Any) -> Network:
    made = Network(
        id=NETWORK,
        uid="uid-of-network",
        name="a-network",
        organization_id=ORGANIZATION,
        project_id=PROJECT,
        region_id=REGION,
        identity_id=IDENTITY,
        api_version="2",
    )
    return replace(made, **changes)


def group(**changes: Any) -> SecurityGroup:
    made = SecurityGroup(
        id=GROUP, organization_id=ORGANIZATION, project_id=PROJECT, network_id=NETWORK, api_version="2"
    )
    return replace(made, **changes)


def authority(**changes: Any) -> SSHCertificateAuthority:
    made = SSHCertificateAuthority(
        id=AUTHORITY, organization_id=ORGANIZATION, project_id=PROJECT, api_version="2", public_key="ssh-ed25519 AAAA"
    )
    return replace(made, **changes)


def identity(**changes: Any) -> Identity:
    made = Identity(id=IDENTITY, organization_id=ORGANIZATION, project_id=PROJECT, region_id=REGION, ready=True)
    return replace(made, **changes)


def region(**changes: Any) -> Region:
    made = Region(
        id=REGION,
        name="a-region",
        provider="openstack",
        endpoint="http://keystone.invalid",
        secret_namespace="unikorn-region",
        secret_name="a-region",
    )
    return replace(made, **changes)


def flavor(**changes: Any) -> Flavor:
    return replace(Flavor(id=FLAVOR, name="small", cpus=1, memory_mib=1024, disk_gb=20), **changes)


def image(**changes: Any) -> Image:
    return replace(Image(id=IMAGE, name="debian", state=ImageState.READY, size_gib=2), **changes)


def metadata(**changes: Any) -> Metadata:
    made = Metadata(
        name=NAME,
        organization_id=ORGANIZATION,
        project_id=PROJECT,
        region_id=REGION,
        identity_id=IDENTITY,
        network_id=NETWORK,
        api_version="2",
        creator="alice",
        principal_creator="alice-herself",
        principal_organization_id=ORGANIZATION,
        principal_project_id=PROJECT,
        created_at=EARLIER,
        finalizers=("unikorn",),
        owner_uid="uid-of-network",
    )
    return replace(made, **changes)


def spec(**changes: Any) -> ServerSpec:
    made = ServerSpec(
        flavor_id=FLAVOR,
        image_id=IMAGE,
        networks=(NetworkAttachment(NETWORK),),
        ssh_injection="identityKeypair",
    )
    return replace(made, **changes)


def server(
    of_spec: ServerSpec | None = None, status: ServerStatus | None = None, server_id: str = SERVER, **changes: Any
) -> Server:
    """Return the server; further arguments change its metadata."""
    return Server(id=server_id, metadata=metadata(**changes), spec=of_spec or spec(), status=status or ServerStatus())


def condition(type_: ConditionType, status: str, reason: str, message: str = "") -> Condition:
    return Condition(type_, status, reason, message, last_transition_time=EARLIER)


def instance(**changes: Any) -> Instance:
    made = Instance(
        id="instance-1",
        name=NAME,
        status="ACTIVE",
        server_id=SERVER,
        power_state=PowerState.RUNNING,
        image_id=IMAGE,
        flavor_id=FLAVOR,
    )
    return replace(made, **changes)


def create_request(**changes: Any) -> ServerCreate:
    return replace(ServerCreate(name=NAME, network_id=NETWORK, flavor_id=FLAVOR, image_id=IMAGE), **changes)


def update_request(**changes: Any) -> ServerUpdate:
    return replace(ServerUpdate(name=NAME, flavor_id=FLAVOR, image_id=IMAGE), **changes)
