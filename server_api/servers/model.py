"""A server, its spec, status and conditions as typed, immutable values (contract sections 2.8 and 4.2 to 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

API_VERSION_2 = "2"
"""Value of the api-version label that every v2 object carries."""


class Phase(StrEnum):
    """Live lifecycle phase of a server (contract 2.8)."""

    PENDING = "Pending"
    QUEUED = "Queued"
    BUILDING = "Building"
    RUNNING = "Running"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class SSHInjection(StrEnum):
    """How a server lets its first user in (contract 1.7)."""

    CA = "ca"
    IDENTITY_KEYPAIR = "identityKeypair"
    NONE = "none"


class ConditionType(StrEnum):
    """The two conditions a server has (contract 4.5)."""

    AVAILABLE = "Available"
    HEALTHY = "Healthy"


class ConditionStatus(StrEnum):
    """Value of a condition, as Kubernetes writes it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its value (contract 4.5)."""

    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    ERRORED = "Errored"
    DEPROVISIONING = "Deprovisioning"
    DEPROVISIONED = "Deprovisioned"
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a server's status.

    ``reason`` is text, not ``Reason``: newer controllers write reasons this version does not know, and a read has to
    survive them (contract 4.7, row 7).
    """

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tag:
    """A name and a value that the caller attached to a server. Names may repeat."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class AddressPair:
    """Source addresses a port may send from: an IPv4 prefix, and optionally one MAC address."""

    cidr: str
    mac_address: str = ""


@dataclass(frozen=True, slots=True)
class NetworkAttachment:
    """A network the server is attached to. The API stores exactly one."""

    id: str
    allowed_address_pairs: tuple[AddressPair, ...] | None = None


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What was asked for (contract 4.3). ``None`` means the stored object does not have the field."""

    flavor_id: str
    image_id: str | None
    networks: tuple[NetworkAttachment, ...] = ()
    tags: tuple[Tag, ...] = ()
    security_group_ids: tuple[str, ...] | None = None
    public_ip: bool | None = None
    user_data: bytes | None = field(default=None, repr=False)
    ssh_certificate_authority_id: str | None = None
    ssh_injection: str | None = None
    infrastructure_ref: str | None = None
    provider_create_gates: tuple[str, ...] | None = None
    pause: bool = False


@dataclass(frozen=True, slots=True)
class GateStatus:
    """What was recorded of one provider-create gate (contract 4.4)."""

    condition_type: str
    status: str
    last_transition_time: datetime | None
    actor: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RebuildMarker:
    """The write-ahead record of an image rebuild (contract 7.6). ``state`` may be one this version does not know."""

    target_image_id: str
    state: str


class CloudRequestKind(StrEnum):
    """What the cloud must not be asked for twice, or by a controller that has been overtaken."""

    CREATE_PORT = "create-port"
    CREATE_FLOATING_IP = "create-floating-ip"
    CREATE = "create"
    REBUILD = "rebuild"
    REMOVE = "remove"
    """The removal of an instance that failed, before the next attempt."""


@dataclass(frozen=True, slots=True)
class CloudRequest:
    """The write-ahead record of a request to the cloud that must not be repeated.

    It is stored before the request is sent, so that whoever comes after a crash or a lost answer knows that the cloud
    may have been asked. ``image_id`` is the image that a rebuild asks for. ``before`` is Nova's ID of the last rebuild
    it had recorded until then, empty if there was none: another one later tells that this request was taken.
    """

    kind: CloudRequestKind
    sent_at: datetime
    image_id: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What was observed and done (contract 4.4)."""

    conditions: tuple[Condition, ...] = ()
    phase: str | None = None
    private_ip: str | None = None
    public_ip: str | None = None
    mac_address: str | None = None
    launched_at: datetime | None = None
    scheduled_at: datetime | None = None
    provisioned_at: datetime | None = None
    provider_create_failures: int = 0
    provider_create_retrying: bool = False
    rebuild: RebuildMarker | None = None
    provider_create_gates: tuple[GateStatus, ...] = ()

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type, or None when it was never written."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Everything of a server that is neither spec nor status (contract 4.2).

    ``name`` is the display name, which is also the Nova instance's name. ``network_id`` and ``api_version`` are the
    labels that only v2 objects carry. ``owner_uid`` is the uid of the owning Network, written once at creation.
    ``cloud_request`` belongs to the controller.
    """

    name: str
    organization_id: str
    project_id: str
    region_id: str | None = None
    identity_id: str | None = None
    network_id: str | None = None
    api_version: str | None = None
    description: str | None = None
    creator: str | None = None
    principal_creator: str | None = None
    principal_organization_id: str | None = None
    principal_project_id: str | None = None
    modifier: str | None = None
    principal_modifier: str | None = None
    modified_at: datetime | None = None
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    finalizers: tuple[str, ...] = ()
    owner_uid: str | None = None
    cloud_request: CloudRequest | None = None
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """One server as it is stored.

    ``stored`` belongs to the store adapter: the object as it was read, so that a write keeps what this version
    cannot express (volumes, unknown labels). Rules neither read nor compare it.
    """

    id: str
    metadata: Metadata
    spec: ServerSpec
    status: ServerStatus = ServerStatus()
    stored: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
