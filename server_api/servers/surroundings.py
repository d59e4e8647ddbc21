"""What a server stands on: its region, identity, network, groups and certificate authority (contract 4.9)."""

from __future__ import annotations

from dataclasses import dataclass, field

from server_api.servers.model import API_VERSION_2


@dataclass(frozen=True, slots=True)
class Network:
    """A tenant network. It fixes region, identity, organization and project of the servers on it."""

    id: str
    uid: str
    name: str
    organization_id: str | None
    project_id: str | None
    region_id: str | None
    identity_id: str | None
    api_version: str | None

    @property
    def is_v2(self) -> bool:
        """Whether the v2 API may address this network."""
        return self.api_version == API_VERSION_2


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group, bound to one network in v2."""

    id: str
    organization_id: str | None
    project_id: str | None
    network_id: str | None
    api_version: str | None


@dataclass(frozen=True, slots=True)
class SSHCertificateAuthority:
    """A certificate authority whose signatures a server's SSH daemon may trust."""

    id: str
    organization_id: str | None
    project_id: str | None
    api_version: str | None
    public_key: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The anchor of a tenant's cloud credentials. ``ready``: its Available condition has reason Provisioned."""

    id: str
    organization_id: str | None
    project_id: str | None
    region_id: str | None
    ready: bool


@dataclass(frozen=True, slots=True)
class IdentityCredentials:
    """The cloud user and project of an identity (kind OpenstackIdentity)."""

    user_id: str
    password: str = field(repr=False)
    project_id: str
    ssh_key_name: str | None = None
    ssh_private_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The cloud user that a region's own work is done with (a Secret named by the region)."""

    domain_id: str
    user_id: str
    password: str = field(repr=False)
    project_id: str


@dataclass(frozen=True, slots=True)
class FlavorMetadata:
    """What a region's configuration says of one flavor beyond what Nova knows (contract 4.9 and 6.7)."""

    id: str
    baremetal: bool = False
    pinned_only: bool = False
    architecture: str | None = None
    cpu_count: int | None = None
    cpu_family: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PlacementPreflight:
    """That Placement is to be asked before a pinned server is created, and the traits a host must have besides the
    flavor's (contract 4.9 and 6.6).
    """

    required_traits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """One region and how its OpenStack is configured.

    ``flavor_ids`` None: every public flavor is exported. ``image_signing_key`` is a PEM public key, or None.
    ``secret_namespace`` and ``secret_name`` say where the service account's Secret is. ``placement_preflight`` None:
    pinned servers are created without asking Placement first.
    """

    id: str
    name: str
    provider: str
    endpoint: str
    secret_namespace: str
    secret_name: str
    flavor_ids: frozenset[str] | None = None
    flavor_metadata: tuple[FlavorMetadata, ...] = ()
    image_signing_key: str | None = None
    external_network_ids: frozenset[str] = frozenset()
    external_network_tags: frozenset[str] = frozenset()
    placement_preflight: PlacementPreflight | None = None
