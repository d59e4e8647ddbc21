"""What the cloud holds and is asked for, as typed, immutable values (contract section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from server_api.servers.model import AddressPair


class PowerState(IntEnum):
    """Nova's power states."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7


@dataclass(frozen=True, slots=True)
class Instance:
    """A Nova server as one read showed it.

    ``status`` is Nova's word (ACTIVE, BUILD, ERROR, REBUILD, SHUTOFF …). ``server_id`` is our own metadata entry,
    None on an instance that is not ours. ``image_id`` is None when Nova's reference is missing or is not a UUID.
    ``mac_addresses`` maps a cloud network's name to the first non-empty MAC address on it. ``fault`` is Nova's fault
    text, if there is one.
    """

    id: str
    name: str
    status: str
    server_id: str | None = None
    task_state: str | None = None
    power_state: int = PowerState.NOSTATE
    image_id: str | None = None
    flavor_id: str | None = None
    created_at: datetime | None = None
    launched_at: datetime | None = None
    mac_addresses: Mapping[str, str] = field(default_factory=dict)
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class InstanceOrder:
    """An instance to create (contract 6.3).

    ``user_data`` is raw bytes, encoded by the adapter. ``hypervisor_hostname`` pins the instance to that host, which
    takes the region's rights (contract 6.6).
    """

    name: str
    image_id: str
    flavor_id: str
    port_id: str
    metadata: Mapping[str, str]
    user_data: bytes | None = field(default=None, repr=False)
    key_name: str | None = None
    hypervisor_hostname: str | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """A Neutron port. ``private_ip`` is its first fixed address, ``instance_id`` the instance it is bound to."""

    id: str
    name: str
    private_ip: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class PortOrder:
    """A port to create or bring up to date (contract 6.5). Groups and pairs may be explicitly empty."""

    name: str
    network_id: str
    security_group_ids: tuple[str, ...] = ()
    allowed_address_pairs: tuple[AddressPair, ...] = ()


@dataclass(frozen=True, slots=True)
class FloatingIP:
    """A floating IP bound to a port."""

    id: str
    address: str


@dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A host as Placement knows it."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor that a region exports (contract 6.7). Memory in MiB, disk in decimal GB; None disk: Nova names none.

    ``extra_specs`` are Nova's own.
    """

    id: str
    name: str
    cpus: int
    memory_mib: int
    disk_gb: int | None
    architecture: str | None = None
    baremetal: bool = False
    pinned_only: bool = False
    cpu_family: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict, compare=False)


class ImageState(StrEnum):
    """State of an image (contract 6.10)."""

    PENDING = "pending"
    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Image:
    """An image that a region exports (contract 6.9). ``organization_id`` None: public to all."""

    id: str
    name: str
    state: ImageState
    size_gib: int
    created_at: datetime | None = None
    architecture: str | None = None
    virtualization: str | None = None
    organization_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
