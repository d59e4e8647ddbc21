"""One project of a cloud in memory, for the unit tests of the rules: every call and its order is in a journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from server_api.servers.cloud_model import (
    Flavor,
    FloatingIP,
    Image,
    ImageState,
    Instance,
    InstanceOrder,
    Port,
    PortOrder,
    ResourceProvider,
)
from server_api.servers.ports import Missing, PortError, Tenancy
from server_api.servers.surroundings import Region


class _Journaled:
    def __init__(self, journal: list[str]) -> None:
        self.journal = journal
        self._failures: dict[str, PortError] = {}

    def fail(self, method: str, error: PortError) -> None:
        """Let every call of that method raise, after it was written to the journal."""
        self._failures[method] = error

    def _called(self, method: str, argument: str) -> None:
        self.journal.append(f"{method} {argument}".strip())
        if method in self._failures:
            raise self._failures[method]


class JournaledCompute(_Journaled):
    """``ports.Compute`` over ``held``. ``dies`` says what a deleted instance becomes: None, or itself with a status.

    ``born`` says what a created instance looks like, ``taken_rebuild`` is the last rebuild that the cloud has recorded.
    """

    def __init__(self, journal: list[str], *instances: Instance) -> None:
        super().__init__(journal)
        self.held: list[Instance] = list(instances)
        self.orders: list[InstanceOrder] = []
        self.born: Callable[[Instance], Instance] = lambda instance: instance
        self.dies: Callable[[Instance], Instance | None] = lambda _: None
        self.taken_rebuild = ""

    def find(self, name: str, server_id: str) -> Instance | None:
        self._called("find", name)
        found = (instance for instance in self.held if (instance.name, instance.server_id) == (name, server_id))
        return next(found, None)

    def get(self, instance_id: str) -> Instance | None:
        self._called("get", instance_id)
        return next((instance for instance in self.held if instance.id == instance_id), None)

    def last_rebuild(self, instance_id: str) -> str:
        self._called("last_rebuild", instance_id)
        return self.taken_rebuild

    def instances(self) -> Sequence[Instance]:
        self._called("instances", "")
        return list(self.held)

    def create(self, order: InstanceOrder) -> Instance:
        self._called("create", order.name)
        self.orders.append(order)
        instance = Instance(
            id=f"instance-of-{order.name}",
            name=order.name,
            status="BUILD",
            server_id=order.metadata["serverID"],
            image_id=order.image_id,
            flavor_id=order.flavor_id,
        )
        self.held.append(self.born(instance))
        return self.held[-1]

    def delete(self, instance_id: str) -> None:
        self._called("delete", instance_id)
        survivors = [self.dies(instance) if instance.id == instance_id else instance for instance in self.held]
        self.held = [instance for instance in survivors if instance is not None]

    def start(self, instance_id: str) -> None:
        self._called("start", instance_id)

    def stop(self, instance_id: str) -> None:
        self._called("stop", instance_id)

    def soft_reboot(self, instance_id: str) -> None:
        self._called("soft_reboot", instance_id)

    def hard_reboot(self, instance_id: str) -> None:
        self._called("hard_reboot", instance_id)

    def rebuild(self, instance_id: str, image_id: str) -> None:
        self._called("rebuild", f"{instance_id} {image_id}")

    def console_output(self, instance_id: str, lines: int | None) -> str:
        self._called("console_output", f"{instance_id} {lines}")
        return "login:"

    def console_url(self, instance_id: str) -> str:
        self._called("console_url", instance_id)
        return f"http://console.invalid/{instance_id}"

    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        self._called("create_image", f"{instance_id} {name}")
        return f"image-of-{instance_id}"


class JournaledNetworking(_Journaled):
    """``ports.Networking``: every network and group of the right form of name exists, with the ID ``cloud-NAME``."""

    def __init__(self, journal: list[str]) -> None:
        super().__init__(journal)
        self.ports: list[Port] = []
        self.orders: list[PortOrder] = []
        self.bound: dict[str, list[FloatingIP]] = {}

    def network_id(self, name: str) -> str:
        self._called("network_id", name)
        return f"cloud-{name}"

    def security_group_id(self, name: str) -> str:
        self._called("security_group_id", name)
        return f"cloud-{name}"

    def ports_named(self, name: str) -> Sequence[Port]:
        self._called("ports_named", name)
        return [port for port in self.ports if port.name == name]

    def create_port(self, order: PortOrder) -> Port:
        self._called("create_port", order.name)
        self.orders.append(order)
        self.ports.append(Port(id=f"port-{len(self.ports)}", name=order.name, private_ip="192.168.0.7"))
        return self.ports[-1]

    def update_port(self, port_id: str, order: PortOrder) -> Port:
        self._called("update_port", port_id)
        self.orders.append(order)
        return next(port for port in self.ports if port.id == port_id)

    def delete_port(self, port_id: str) -> None:
        self._called("delete_port", port_id)
        self.ports = [port for port in self.ports if port.id != port_id]

    def floating_ips(self, port_id: str) -> Sequence[FloatingIP]:
        self._called("floating_ips", port_id)
        return list(self.bound.get(port_id, []))

    def create_floating_ip(self, port_id: str) -> FloatingIP:
        self._called("create_floating_ip", port_id)
        floating_ip = FloatingIP(id=f"floating-ip-of-{port_id}", address="203.0.113.9")
        self.bound.setdefault(port_id, []).append(floating_ip)
        return floating_ip

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        self._called("delete_floating_ip", floating_ip_id)
        for port_id, bound in self.bound.items():
            self.bound[port_id] = [floating_ip for floating_ip in bound if floating_ip.id != floating_ip_id]


class JournaledCatalogue(_Journaled):
    """``ports.Catalogue`` of the given flavors and images."""

    def __init__(self, journal: list[str]) -> None:
        super().__init__(journal)
        self.exported_flavors: list[Flavor] = []
        self.exported_images: list[Image] = []

    def flavors(self) -> Sequence[Flavor]:
        self._called("flavors", "")
        return self.exported_flavors

    def images(self) -> Sequence[Image]:
        self._called("images", "")
        return self.exported_images

    def add_image(self, image: Image) -> None:
        self._called("add_image", image.id)
        if all(image.id != known.id for known in self.exported_images):
            self.exported_images.append(image)


class JournaledImages(_Journaled):
    """``ports.TenancyImages``: whatever is published shows as pending, with the properties it was given."""

    def publish(self, image_id: str, properties: Mapping[str, str]) -> Image:
        self._called("publish", image_id)
        return Image(id=image_id, name=image_id, state=ImageState.PENDING, size_gib=0, properties=dict(properties))

    def delete(self, image_id: str) -> None:
        self._called("delete_image", image_id)


class JournaledPlacement(_Journaled):
    """``ports.Placement`` with these hosts, whatever is asked for. The questions are in ``queries``."""

    def __init__(self, journal: list[str]) -> None:
        super().__init__(journal)
        self.hosts: list[ResourceProvider] = []
        self.queries: list[tuple[str, tuple[str, ...]]] = []

    def providers(self, resource_class: str, traits: Sequence[str]) -> Sequence[ResourceProvider]:
        self._called("providers", resource_class)
        self.queries.append((resource_class, tuple(traits)))
        return self.hosts


class JournaledBaremetal(_Journaled):
    """``ports.Baremetal`` with one node in ``state``; None: without a node."""

    def __init__(self, journal: list[str]) -> None:
        super().__init__(journal)
        self.state: str | None = None

    def provision_state(self, instance_id: str) -> str | None:
        self._called("provision_state", instance_id)
        return self.state


@dataclass
class OneProjectCloud:
    """``ports.Cloud`` with one project for every identity. ``journal`` holds the calls to all of its parts."""

    journal: list[str] = field(default_factory=list)
    ssh_key_name: str | None = "unikorn-openstack-provider"
    without_credentials: bool = False

    def __post_init__(self) -> None:
        self.compute = JournaledCompute(self.journal)
        self.networking = JournaledNetworking(self.journal)
        self.offers = JournaledCatalogue(self.journal)
        self.images = JournaledImages(self.journal)
        self.placement = JournaledPlacement(self.journal)
        self.baremetal = JournaledBaremetal(self.journal)
        self.asked_for: list[tuple[str, str]] = []

    def catalogue(self, region: Region) -> JournaledCatalogue:
        return self.offers

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        self.asked_for.append((region.id, identity_id))
        if self.without_credentials:
            raise Missing("kubernetes", "openstackidentities not found")
        return Tenancy(self.compute, self.networking, self.images, self.placement, self.baremetal, self.ssh_key_name)


def with_status(status: str) -> Callable[[Instance], Instance]:
    """Return what makes an instance show that Nova status."""
    return lambda instance: replace(instance, status=status)
