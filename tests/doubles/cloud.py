"""A cloud in memory, for the tests of HTTP: one region's catalogue and the instances of one project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from server_api.servers.cloud_model import (
    Flavor,
    FloatingIP,
    Image,
    ImageState,
    Instance,
    InstanceOrder,
    Port,
    PortOrder,
    PowerState,
    ResourceProvider,
)
from server_api.servers.ports import Missing, Tenancy
from server_api.servers.surroundings import Region

CONSOLE_OUTPUT = "booting\nready\nlogin: "
CONSOLE_URL = "http://console.invalid/vnc_lite.html?path=%3Ftoken%3Dsecret"
CREATED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class CloudDouble:
    """``ports.Cloud`` over what a test puts into ``offered_flavors``, ``offered_images`` and ``held``.

    ``calls`` has the names of the methods in the order they were called, actions with the instance's or the image's
    ID. ``fail`` makes a method raise whenever it is called. ``unpublished`` maps the IDs of images that were created
    and neither published nor deleted to their names.
    """

    def __init__(self) -> None:
        self.offered_flavors: list[Flavor] = []
        self.offered_images: list[Image] = []
        self.held: dict[str, Instance] = {}
        self.unpublished: dict[str, str] = {}
        self.calls: list[str] = []
        self._failures: dict[str, Exception] = {}
        self._ids = count(1)

    def fail(self, method: str, error: Exception) -> None:
        """Let every later call of ``method`` raise ``error``."""
        self._failures[method] = error

    def note(self, method: str, argument: str = "") -> None:
        """Record a call and fail it if it is to fail."""
        self.calls.append(f"{method} {argument}".strip())
        if method in self._failures:
            raise self._failures[method]

    def hold(self, server_id: str, name: str, status: str = "ACTIVE") -> Instance:
        """Put our instance of a server into the project."""
        instance = Instance(
            id=self.new_id(),
            name=name,
            status=status,
            server_id=server_id,
            power_state=PowerState.RUNNING if status == "ACTIVE" else PowerState.SHUTDOWN,
        )
        self.held[instance.id] = instance
        return instance

    def new_id(self) -> str:
        """Return an ID that nothing else in this cloud has."""
        return f"00000000-0000-4000-8000-{next(self._ids):012d}"

    def catalogue(self, region: Region) -> CatalogueDouble:
        """Return what the region exports."""
        self.note("catalogue")
        return CatalogueDouble(self)

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        """Return the one project there is."""
        self.note("tenancy")
        return Tenancy(
            compute=ComputeDouble(self),
            networking=NetworkingDouble(self),
            images=ImagesDouble(self),
            placement=PlacementDouble(self),
            baremetal=BaremetalDouble(self),
            ssh_key_name="key",
        )


class CatalogueDouble:
    """``ports.Catalogue``."""

    def __init__(self, cloud: CloudDouble) -> None:
        self._cloud = cloud

    def flavors(self) -> Sequence[Flavor]:
        self._cloud.note("flavors")
        return self._cloud.offered_flavors

    def images(self) -> Sequence[Image]:
        self._cloud.note("images")
        return self._cloud.offered_images

    def add_image(self, image: Image) -> None:
        self._cloud.note("add_image", image.id)
        if all(image.id != known.id for known in self._cloud.offered_images):
            self._cloud.offered_images.append(image)


class ComputeDouble:
    """``ports.Compute``. Power verbs and rebuilds take effect at once."""

    def __init__(self, cloud: CloudDouble) -> None:
        self._cloud = cloud

    def find(self, name: str, server_id: str) -> Instance | None:
        self._cloud.note("find")
        return next((i for i in self._cloud.held.values() if i.name == name and i.server_id == server_id), None)

    def get(self, instance_id: str) -> Instance | None:
        self._cloud.note("get", instance_id)
        return self._cloud.held.get(instance_id)

    def last_rebuild(self, instance_id: str) -> str:
        self._cloud.note("last_rebuild", instance_id)
        return ""

    def instances(self) -> Sequence[Instance]:
        self._cloud.note("instances")
        return list(self._cloud.held.values())

    def create(self, order: InstanceOrder) -> Instance:
        self._cloud.note("create")
        return self._cloud.hold(order.metadata["serverID"], order.name)

    def delete(self, instance_id: str) -> None:
        self._cloud.note("delete", instance_id)
        self._cloud.held.pop(instance_id, None)

    def start(self, instance_id: str) -> None:
        self._become("start", instance_id, "ACTIVE", PowerState.RUNNING)

    def stop(self, instance_id: str) -> None:
        self._become("stop", instance_id, "SHUTOFF", PowerState.SHUTDOWN)

    def soft_reboot(self, instance_id: str) -> None:
        self._become("soft_reboot", instance_id, "ACTIVE", PowerState.RUNNING)

    def hard_reboot(self, instance_id: str) -> None:
        self._become("hard_reboot", instance_id, "ACTIVE", PowerState.RUNNING)

    def rebuild(self, instance_id: str, image_id: str) -> None:
        instance = self._instance("rebuild", instance_id)
        self._cloud.held[instance_id] = replace(instance, image_id=image_id)

    def console_output(self, instance_id: str, lines: int | None) -> str:
        self._instance("console_output", instance_id)
        log = CONSOLE_OUTPUT.splitlines(keepends=True)
        return "".join(log[-lines:] if lines else log)

    def console_url(self, instance_id: str) -> str:
        self._instance("console_url", instance_id)
        return f"{CONSOLE_URL}-{instance_id}"

    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        self._instance("create_image", instance_id)
        image_id = self._cloud.new_id()
        self._cloud.unpublished[image_id] = name
        return image_id

    def _instance(self, method: str, instance_id: str) -> Instance:
        self._cloud.note(method, instance_id)
        if instance_id not in self._cloud.held:
            raise Missing("nova", "no such instance")
        return self._cloud.held[instance_id]

    def _become(self, method: str, instance_id: str, status: str, power_state: PowerState) -> None:
        instance = self._instance(method, instance_id)
        self._cloud.held[instance_id] = replace(instance, status=status, power_state=power_state)


class ImagesDouble:
    """``ports.TenancyImages``: an image that was created is public and pending once it is published."""

    def __init__(self, cloud: CloudDouble) -> None:
        self._cloud = cloud

    def publish(self, image_id: str, properties: Mapping[str, str]) -> Image:
        self._cloud.note("publish", image_id)
        if image_id not in self._cloud.unpublished:
            raise Missing("glance", "no such image")
        return Image(
            id=image_id,
            name=self._cloud.unpublished.pop(image_id),
            state=ImageState.PENDING,
            size_gib=0,
            created_at=CREATED_AT,
            architecture=properties.get("architecture"),
            virtualization=properties.get("unikorn:virtualization"),
            organization_id=properties.get("unikorn:organization:id"),
            properties={name: value for name, value in properties.items() if name.startswith("unikorn:")},
        )

    def delete(self, image_id: str) -> None:
        self._cloud.note("delete_image", image_id)
        self._cloud.unpublished.pop(image_id, None)


class PlacementDouble:
    """``ports.Placement`` without a host."""

    def __init__(self, cloud: CloudDouble) -> None:
        self._cloud = cloud

    def providers(self, resource_class: str, traits: Sequence[str]) -> Sequence[ResourceProvider]:
        self._cloud.note("providers", resource_class)
        return ()


class BaremetalDouble:
    """``ports.Baremetal`` without a node."""

    def __init__(self, cloud: CloudDouble) -> None:
        self._cloud = cloud

    def provision_state(self, instance_id: str) -> str | None:
        self._cloud.note("provision_state", instance_id)
        return None


class NetworkingDouble:
    """``ports.Networking`` without anything in it: nothing that HTTP does touches ports."""

    def __init__(self, cloud: CloudDouble) -> None:
        self._cloud = cloud

    def network_id(self, name: str) -> str:
        raise Missing("neutron", "no such network")

    def security_group_id(self, name: str) -> str:
        raise Missing("neutron", "no such group")

    def ports_named(self, name: str) -> Sequence[Port]:
        return ()

    def create_port(self, order: PortOrder) -> Port:
        raise Missing("neutron", "no such network")

    def update_port(self, port_id: str, order: PortOrder) -> Port:
        raise Missing("neutron", "no such port")

    def delete_port(self, port_id: str) -> None:
        return None

    def floating_ips(self, port_id: str) -> Sequence[FloatingIP]:
        return ()

    def create_floating_ip(self, port_id: str) -> FloatingIP:
        raise Missing("neutron", "no external network")

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        return None
