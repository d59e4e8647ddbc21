"""What the rules need from outside, and the few errors an adapter may raise.

Adapters translate every exception of their libraries into a ``PortError``; nothing else of theirs travels upward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from server_api.servers.cloud_model import (
    Flavor,
    FloatingIP,
    Image,
    Instance,
    InstanceOrder,
    Port,
    PortOrder,
    ResourceProvider,
)
from server_api.servers.model import Server
from server_api.servers.surroundings import (
    Identity,
    IdentityCredentials,
    Network,
    Region,
    SecurityGroup,
    ServiceAccount,
    SSHCertificateAuthority,
)


class PortError(Exception):
    """A dependency did not do what it was asked.

    ``dependency`` names it (kubernetes, keystone, nova, glance, neutron). ``detail`` is fit for logs and conditions:
    no secrets. ``retry_after`` is what the dependency asked for, verbatim, if it did.
    """

    def __init__(self, dependency: str, detail: str, retry_after: str | None = None) -> None:
        super().__init__(f"{dependency}: {detail}")
        self.dependency = dependency
        self.detail = detail
        self.retry_after = retry_after


class Missing(PortError):
    """A definite "does not exist" (404). Never raised for a failed look-up."""


class AlreadyExists(PortError):
    """An object of that name is there already."""


class StateConflict(PortError):
    """The object changed since it was read, or its state does not allow this (409, 412)."""


class Refused(PortError):
    """The dependency understood and will not do it (400, 413, 422 and other 4xx): asking again is pointless."""


class Denied(PortError):
    """The dependency does not accept our credentials or rights (401, 403)."""


class Unavailable(PortError):
    """The dependency is down, overloaded (429) or answers nonsense (5xx, broken JSON, connection lost)."""


class TimedOut(Unavailable):
    """The dependency did not answer in time."""


class Ambiguous(PortError):
    """Several instances carry the name and the ``serverID`` of one server: acting on either could be wrong."""


class Expired(PortError):
    """A watch asked for a version that is no longer kept (410): list again."""


class Clock(Protocol):
    """The time, in UTC and aware."""

    def now(self) -> datetime:
        """Return the present moment."""


@dataclass(frozen=True, slots=True)
class ServerSelector:
    """Which servers to list: OR within a field, AND across fields; an empty field does not restrict."""

    organization_ids: frozenset[str] = frozenset()
    project_ids: frozenset[str] = frozenset()
    region_ids: frozenset[str] = frozenset()
    network_ids: frozenset[str] = frozenset()
    api_version: str | None = None


class ServerStore(Protocol):
    """The stored servers. Every method may raise Denied, Unavailable and TimedOut besides what it names."""

    def get(self, server_id: str) -> Server:
        """Return one server. Raises Missing."""

    def list(self, selector: ServerSelector) -> Sequence[Server]:
        """Return the selected servers by ascending ID."""

    def create(self, server: Server) -> Server:
        """Store a new server and return it as stored. Raises AlreadyExists, Refused (the stored schema)."""

    def update(self, server: Server) -> Server:
        """Write metadata and spec if nobody wrote since ``server`` was read.

        What the model cannot express is kept from ``server.stored``; status is not written.
        Raises StateConflict, Missing, Refused.
        """

    def patch_status(self, before: Server, after: Server) -> Server:
        """Write what differs in ``after.status`` if nobody wrote since ``before`` was read.

        Writes nothing, and returns ``before``, when nothing differs. Raises StateConflict, Missing, Refused.
        """

    def delete(self, server_id: str) -> None:
        """Ask for deletion; accepted again while it is under way. Raises Missing."""


class Directory(Protocol):
    """The other stored objects. Every method may raise Denied, Unavailable and TimedOut besides Missing."""

    def network(self, network_id: str) -> Network:
        """Return one network. Raises Missing."""

    def security_group(self, group_id: str) -> SecurityGroup:
        """Return one security group. Raises Missing."""

    def ssh_certificate_authority(self, authority_id: str) -> SSHCertificateAuthority:
        """Return one certificate authority. Raises Missing."""

    def identity(self, identity_id: str) -> Identity:
        """Return one identity. Raises Missing."""

    def region(self, region_id: str) -> Region:
        """Return one region. Raises Missing."""


class Credentials(Protocol):
    """The secrets the cloud is reached with: read when needed, kept by nobody (contract 6.1)."""

    def identity_credentials(self, identity_id: str) -> IdentityCredentials:
        """Return an identity's cloud credentials. Raises Missing when there are none, or no project yet."""

    def service_account(self, region: Region) -> ServiceAccount:
        """Return a region's own cloud credentials. Raises Missing."""


class ReferentKind(StrEnum):
    """The kinds a server can hold on to (contract 4.10), by plural."""

    NETWORK = "networks"
    SECURITY_GROUP = "securitygroups"
    SSH_CERTIFICATE_AUTHORITY = "sshcertificateauthorities"


@dataclass(frozen=True, slots=True)
class Referent:
    """An object a server may hold on to, with the finalizers it had when it was read."""

    kind: ReferentKind
    id: str
    finalizers: tuple[str, ...]
    resource_version: str


class References(Protocol):
    """Reference edges: finalizers on the objects a server uses (contract 4.10)."""

    def of_identity(self, identity_id: str) -> Sequence[Referent]:
        """Return every network and security group labelled with the identity."""

    def ssh_certificate_authority(self, authority_id: str) -> Referent:
        """Return the certificate authority as a referent. Raises Missing."""

    def hold(self, referent: Referent, edge: str) -> None:
        """Add the edge. Raises StateConflict when the object changed, Missing when it went away."""

    def release(self, referent: Referent, edge: str) -> None:
        """Remove the edge. Raises StateConflict when the object changed; a vanished object is no error."""


class Catalogue(Protocol):
    """What a region exports. Answers may be some time old (contract 6.7 and 6.10)."""

    def flavors(self) -> Sequence[Flavor]:
        """Return the exported flavors by name."""

    def images(self) -> Sequence[Image]:
        """Return the exported images of every owner, by creation time."""

    def add_image(self, image: Image) -> None:
        """Let a new image be found at once, unless it is known already."""


class Compute(Protocol):
    """The instances in one identity's cloud project."""

    def find(self, name: str, server_id: str) -> Instance | None:
        """Return our instance: exact name and our ``serverID`` metadata; None only if definitely absent.

        Raises Ambiguous when there are several.
        """

    def get(self, instance_id: str) -> Instance | None:
        """Return the instance of that ID, whosever it is; None only if definitely absent."""

    def instances(self) -> Sequence[Instance]:
        """Return every instance of the project, in one bulk list."""

    def create(self, order: InstanceOrder) -> Instance:
        """Create an instance. Raises StateConflict, Refused."""

    def delete(self, instance_id: str) -> None:
        """Ask for deletion; an instance already gone is no error."""

    def start(self, instance_id: str) -> None:
        """Start. Raises Missing, StateConflict."""

    def stop(self, instance_id: str) -> None:
        """Stop. Raises Missing, StateConflict."""

    def soft_reboot(self, instance_id: str) -> None:
        """Reboot through the guest. Raises Missing, StateConflict."""

    def hard_reboot(self, instance_id: str) -> None:
        """Reboot by power cycle. Raises Missing, StateConflict."""

    def rebuild(self, instance_id: str, image_id: str) -> None:
        """Rebuild the root disk from an image, and nothing else. Raises Missing, StateConflict, Refused."""

    def last_rebuild(self, instance_id: str) -> str:
        """Return the cloud's ID of the last rebuild of an instance that it has taken from us, empty if it took none.

        Those of other users do not count. Raises Missing.
        """

    def console_output(self, instance_id: str, lines: int | None) -> str:
        """Return the last lines of the console, the cloud's own choice of them for None. Raises as ``start``."""

    def console_url(self, instance_id: str) -> str:
        """Open a console and return its URL, which is a secret. Raises Missing, StateConflict."""

    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        """Begin an image of the instance and return the image's ID. Raises Missing, StateConflict."""


class Networking(Protocol):
    """Ports and floating IPs in one identity's cloud project."""

    def network_id(self, name: str) -> str:
        """Return the ID of the cloud network with exactly that name. Raises Missing, Ambiguous."""

    def security_group_id(self, name: str) -> str:
        """Return the ID of the cloud security group with exactly that name. Raises Missing, Ambiguous."""

    def ports_named(self, name: str) -> Sequence[Port]:
        """Return the ports with exactly that name, by ID. There are several when a create took effect late."""

    def create_port(self, order: PortOrder) -> Port:
        """Create a port."""

    def update_port(self, port_id: str, order: PortOrder) -> Port:
        """Bring groups and address pairs of a port up to date. Raises Missing."""

    def delete_port(self, port_id: str) -> None:
        """Delete a port, also from an instance that is said to be on it; one already gone is no error."""

    def floating_ips(self, port_id: str) -> Sequence[FloatingIP]:
        """Return the floating IPs bound to a port."""

    def create_floating_ip(self, port_id: str) -> FloatingIP:
        """Create a floating IP on the first exported external network. Raises Missing when none is exported."""

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP; one already gone is no error."""


class TenancyImages(Protocol):
    """Images that live in one identity's project, changed with the region's rights (contract 6.11)."""

    def publish(self, image_id: str, properties: Mapping[str, str]) -> Image:
        """Let everybody see the image, and return it.

        ``properties`` are all of ours it shall have: others, inherited from the image it was made from, are removed.
        Raises Missing.
        """

    def delete(self, image_id: str) -> None:
        """Delete the image; one already gone is no error."""


class Placement(Protocol):
    """The hosts of the region, asked with the region's rights on the identity's project (contract 6.6)."""

    def providers(self, resource_class: str, traits: Sequence[str]) -> Sequence[ResourceProvider]:
        """Return the hosts that have one of the resource class left, and the traits (``!NAME``: not that one)."""


class Baremetal(Protocol):
    """The nodes of the region, asked with the region's rights on the identity's project (contract 6.12)."""

    def provision_state(self, instance_id: str) -> str | None:
        """Return the provision state of the node an instance is on, None if there is none. Raises Ambiguous."""


@dataclass(frozen=True, slots=True)
class Tenancy:
    """One identity's project in the cloud, with the identity's own credentials unless said otherwise."""

    compute: Compute
    networking: Networking
    images: TenancyImages
    placement: Placement
    baremetal: Baremetal
    ssh_key_name: str | None


class Cloud(Protocol):
    """The cloud of every region."""

    def catalogue(self, region: Region) -> Catalogue:
        """Return what the region exports."""

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        """Return the identity's project. Raises Missing when the identity has no credentials or project yet."""


class EventType(StrEnum):
    """Severity of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Events(Protocol):
    """Where operators read what happened to a server."""

    def record(self, server: Server, type_: EventType, reason: str, message: str) -> None:
        """Record an event; never raises, since what it tells of has happened already."""


class GrantScope(StrEnum):
    """How wide a right was granted (contract 5.3)."""

    GLOBAL = "global"
    ORGANIZATION = "organization"
    PROJECT = "project"


class Caller(Protocol):
    """Who asks, and what they may do (contract section 5)."""

    @property
    def subject(self) -> str:
        """The authenticated subject."""

    @property
    def actor(self) -> str:
        """The principal's actor: on whose behalf; the subject itself for a bearer token."""

    @property
    def attribution(self) -> tuple[str | None, str | None]:
        """Organization and project of the principal: what the call is made for, as far as the request says."""

    @property
    def organization_ids(self) -> frozenset[str]:
        """Organizations the ACL names; empty for a caller whose rights are global (contract 5.6)."""

    def may(self, permission: str, operation: str, organization_id: str, project_id: str | None = None) -> bool:
        """Say whether the operation is allowed at that project, or at that organization without a project."""

    def granted_at(
        self, permission: str, operation: str, organization_id: str, project_id: str
    ) -> frozenset[GrantScope]:
        """Return every scope at which the operation is granted that covers the project."""

    def check_project(self, organization_id: str, project_id: str) -> None:
        """Return if the project exists, where the caller's identity comes from. Raises Missing, or another PortError.

        What keeps no list of projects returns for any.
        """
