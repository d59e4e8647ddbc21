"""What makes a server of v1 one of v2 where it stands, and what stands in the way (docs/v1-to-v2.md).

Only stored metadata and one field of the spec change, and nothing of them reaches the cloud: the name and thereby the
instance, the port, the flavor and the image stay what they are. A random ID stays too; IDs never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from server_api.servers import ssh_access
from server_api.servers.cloud_model import Instance
from server_api.servers.errors import Unprocessable
from server_api.servers.model import API_VERSION_2, Server, SSHInjection
from server_api.servers.surroundings import Network, Region, SecurityGroup, SSHCertificateAuthority


class RefusalReason(StrEnum):
    """Why a server cannot be one of v2, in words that a script can compare."""

    BEING_DELETED = "being-deleted"
    UNKNOWN_API_VERSION = "unknown-api-version"
    MISSING_LABEL = "missing-label"
    INCOMPLETE_SPEC = "incomplete-spec"
    REGION_WITHOUT_SERVERS = "region-without-servers"
    NOT_ONE_NETWORK = "not-one-network"
    NETWORK_MISSING = "network-missing"
    NETWORK_NOT_V2 = "network-not-v2"
    NETWORK_OF_ANOTHER_PROJECT = "network-of-another-project"
    NETWORK_OF_ANOTHER_IDENTITY = "network-of-another-identity"
    NETWORK_CHANGED = "network-changed"
    NAME_TAKEN = "name-taken"
    GROUP_MISSING = "security-group-missing"
    GROUP_NOT_V2 = "security-group-not-v2"
    GROUP_OF_ANOTHER_NETWORK = "security-group-of-another-network"
    SSH_ACCESS = "ssh-access"
    IMAGE_DIFFERS = "image-differs"
    STORED_SCHEMA = "stored-schema"


@dataclass(frozen=True, slots=True)
class Promotion:
    """The server as it is to be stored, what of it is new, for a report, and the region that its instance is in."""

    server: Server
    changes: tuple[str, ...]
    region: Region


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a server stays one of v1. ``detail`` is for an operator and names what to look at."""

    reason: RefusalReason
    detail: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the decision about one server needs besides the server. Absent from it: what does not exist.

    ``namesakes`` are the IDs of other servers with its name on its network, of either version.
    """

    region: Region | None = None
    network: Network | None = None
    groups: Mapping[str, SecurityGroup] = field(default_factory=dict)
    authority: SSHCertificateAuthority | None = None
    namesakes: tuple[str, ...] = ()


class _Refused(Exception):
    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(detail)
        self.refusal = Refusal(reason, detail)


def is_done(server: Server) -> bool:
    """Say whether nothing is left to be done: v2 may address the server, and its network owns it."""
    metadata = server.metadata
    return metadata.api_version == API_VERSION_2 and None not in (metadata.network_id, metadata.owner_uid)


def network_of(server: Server) -> str | None:
    """Return the ID of the one network a server is on, None if it names none or several."""
    networks = server.spec.networks
    return networks[0].id or None if len(networks) == 1 else None


def plan(server: Server, surroundings: Surroundings) -> Promotion | Refusal:
    """Return what is to be stored of a server that is not done, or the first thing that stands in the way.

    What v2 would have refused to create is refused here too, except for what it never checks again: user data, and
    whether flavor and image are still offered.
    """
    try:
        _check_itself(server)
        region = _checked_region(surroundings.region)
        network = _checked_network(server, surroundings.network)
        _check_name(surroundings.namesakes)
        _check_groups(server.spec.security_group_ids or (), surroundings.groups, network)
        mode = _checked_ssh_mode(server, surroundings.authority, network)
    except _Refused as refused:
        return refused.refusal
    return _promotion(server, region, network, mode)


def image_refusal(server: Server, instance: Instance | None) -> Refusal | None:
    """Return a refusal when the server's instance in the cloud runs another image than is stored.

    Before v1 learned to ignore the image of an update, it stored it and nothing came of it. A v2 server's image is what
    runs, or is about to: left as it is, such a difference reads as a rebuild that is wanted, which wipes the disk.
    """
    if instance is None or not instance.image_id or server.status.rebuild is not None:
        return None
    if instance.image_id == server.spec.image_id:
        return None
    detail = f"its instance runs image {instance.image_id}, and {server.spec.image_id} is stored"
    return Refusal(RefusalReason.IMAGE_DIFFERS, detail)


def _promotion(server: Server, region: Region, network: Network, mode: SSHInjection) -> Promotion:
    before = server.metadata
    changes = {
        "api-version label": before.api_version != API_VERSION_2,
        "network-id label": before.network_id is None,
        "owner reference": before.owner_uid is None,
        f"sshInjection: {mode}": server.spec.ssh_injection is None,
    }
    metadata = replace(before, api_version=API_VERSION_2, network_id=network.id, owner_uid=network.uid)
    promoted = replace(server, metadata=metadata, spec=replace(server.spec, ssh_injection=mode))
    return Promotion(promoted, tuple(change for change, made in changes.items() if made), region)


def _check_itself(server: Server) -> None:
    metadata, spec = server.metadata, server.spec
    if metadata.deleted_at is not None:
        raise _Refused(RefusalReason.BEING_DELETED, "it is being deleted")
    if metadata.api_version not in (None, API_VERSION_2):
        raise _Refused(RefusalReason.UNKNOWN_API_VERSION, "it carries an API version that is not known here")
    # A text that Kubernetes takes as a label's value is a name that v2 takes, so presence is all there is to check.
    needed = {
        "name": metadata.name,
        "organization": metadata.organization_id,
        "project": metadata.project_id,
        "region-id": metadata.region_id,
        "identity-id": metadata.identity_id,
    }
    missing = [label for label, value in needed.items() if not value]
    if missing:
        raise _Refused(RefusalReason.MISSING_LABEL, f"it lacks labels: {', '.join(missing)}")
    absent = [field for field, value in (("flavor", spec.flavor_id), ("image", spec.image_id)) if not value]
    if absent:
        raise _Refused(RefusalReason.INCOMPLETE_SPEC, f"it names no {' and no '.join(absent)}")


def _checked_region(region: Region | None) -> Region:
    if region is None or region.provider != "openstack":
        raise _Refused(RefusalReason.REGION_WITHOUT_SERVERS, "its region does not exist, or has no servers in v2")
    return region


def _checked_network(server: Server, network: Network | None) -> Network:
    metadata = server.metadata
    network_id = network_of(server)
    if network_id is None:
        count = len(server.spec.networks)
        raise _Refused(RefusalReason.NOT_ONE_NETWORK, f"it names {count} networks, and v2 knows servers with one")
    if metadata.network_id not in (None, network_id):
        raise _Refused(RefusalReason.NETWORK_CHANGED, f"it is labelled with another network than {network_id}")
    if network is None:
        raise _Refused(RefusalReason.NETWORK_MISSING, f"network {network_id} does not exist")
    if not network.is_v2:
        raise _Refused(RefusalReason.NETWORK_NOT_V2, f"network {network_id} is not one of v2")
    if (network.organization_id, network.project_id) != (metadata.organization_id, metadata.project_id):
        raise _Refused(RefusalReason.NETWORK_OF_ANOTHER_PROJECT, f"network {network_id} belongs to another project")
    if (network.region_id, network.identity_id) != (metadata.region_id, metadata.identity_id):
        detail = f"network {network_id} is in another region or cloud project"
        raise _Refused(RefusalReason.NETWORK_OF_ANOTHER_IDENTITY, detail)
    if metadata.owner_uid not in (None, network.uid):
        # Where the owner and the spec disagree, v1 was used to move it; its port is where it was.
        detail = f"it is owned by another network than {network_id}, where it was created"
        raise _Refused(RefusalReason.NETWORK_CHANGED, detail)
    return network


def _check_name(namesakes: tuple[str, ...]) -> None:
    if namesakes:
        raise _Refused(RefusalReason.NAME_TAKEN, f"of the same name on the same network: {', '.join(namesakes)}")


def _check_groups(wanted: Iterable[str], groups: Mapping[str, SecurityGroup], network: Network) -> None:
    for group_id in wanted:
        group = groups.get(group_id)
        if group is None:
            raise _Refused(RefusalReason.GROUP_MISSING, f"security group {group_id} does not exist")
        if group.api_version != API_VERSION_2:
            raise _Refused(RefusalReason.GROUP_NOT_V2, f"security group {group_id} is not one of v2")
        if group.network_id != network.id:
            detail = f"security group {group_id} belongs to another network"
            raise _Refused(RefusalReason.GROUP_OF_ANOTHER_NETWORK, detail)


def _checked_ssh_mode(server: Server, authority: SSHCertificateAuthority | None, network: Network) -> SSHInjection:
    spec = server.spec
    try:
        mode = ssh_access.resolved_mode(spec)
        ssh_access.check(mode, spec.ssh_certificate_authority_id, spec.infrastructure_ref)
    except ValueError:
        raise _Refused(RefusalReason.SSH_ACCESS, "its sshInjection is not one that is known here") from None
    except Unprocessable as error:
        raise _Refused(RefusalReason.SSH_ACCESS, error.reason) from None
    if spec.ssh_certificate_authority_id:
        if authority is None or authority.api_version != API_VERSION_2:
            raise _Refused(RefusalReason.SSH_ACCESS, "its SSH certificate authority does not exist in v2")
        if (authority.organization_id, authority.project_id) != (network.organization_id, network.project_id):
            raise _Refused(RefusalReason.SSH_ACCESS, "its SSH certificate authority belongs to another project")
    return mode
