"""A cloud that goes on by itself, on a clock of its own, and can fail at any call in any way."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any, cast

from server_api.servers.cloud_model import Flavor, Image, ImageState, ResourceProvider
from server_api.servers.ports import (
    Baremetal,
    Catalogue,
    Cloud,
    Compute,
    Missing,
    Networking,
    Placement,
    PortError,
    Tenancy,
    TenancyImages,
)
from server_api.servers.surroundings import Region
from tests.doubles.clock import FixedClock
from tests.doubles.fault_plan import FaultPlan, Planned
from tests.doubles.programmable_neutron import Neutron
from tests.doubles.programmable_nova import Ending, Nova

_EFFECTS: dict[str, frozenset[str]] = {
    "compute": frozenset(
        {"create", "delete", "start", "stop", "soft_reboot", "hard_reboot", "rebuild", "create_image"}
    ),
    "networking": frozenset({"create_port", "update_port", "delete_port", "create_floating_ip", "delete_floating_ip"}),
    "images": frozenset({"publish", "delete"}),
    "catalogue": frozenset(),
}


class ProgrammableCloud:
    """One region with one project, as it really is; ``seen_through`` a plan it is ``ports.Cloud``.

    Time passes only by ``pass_time``, and what is under way ends only when it is told to: by ``nova.finish`` or
    ``finish_everything``.
    """

    def __init__(self, clock: FixedClock, flavors: Sequence[Flavor], images: Sequence[Image]) -> None:
        self.clock = clock
        self.flavors = list(flavors)
        self.images = list(images)
        self.neutron = Neutron()
        self.nova = Nova(clock, self.neutron, lambda: [image.id for image in self.images])
        self._numbers = count()
        self._late: list[tuple[datetime, int, Callable[[], object]]] = []

    def plan(self) -> FaultPlan:
        """Return a plan for the calls of one process, without a fault so far."""
        return FaultPlan(self._later)

    def seen_through(self, plan: FaultPlan) -> Cloud:
        """Return the cloud as a process reaches it."""
        return cast(Cloud, _SeenCloud(self, plan))

    def pass_time(self, seconds: float) -> None:
        """Move the clock; what is late and due by then takes effect, each at its own time."""
        end = self.clock.now() + timedelta(seconds=seconds)
        while self._late and self._late[0][0] <= end:
            due, _, effect = heapq.heappop(self._late)
            self.clock.advance((due - self.clock.now()).total_seconds())
            with suppress(PortError):  # Nobody reads the answer any more.
                effect()
        self.clock.advance((end - self.clock.now()).total_seconds())

    def finish_everything(self) -> None:
        """Bring whatever is under way to a good end."""
        for machine in self.nova.busy():
            self.nova.finish(machine, Ending.WELL)

    @property
    def is_still(self) -> bool:
        """Whether nothing is under way."""
        return not self._late and not self.nova.busy()

    def _later(self, seconds: float, effect: Callable[[], object]) -> None:
        heapq.heappush(self._late, (self.clock.now() + timedelta(seconds=seconds), next(self._numbers), effect))


class _SeenCloud:
    def __init__(self, cloud: ProgrammableCloud, plan: FaultPlan) -> None:
        self._cloud = cloud
        self._plan = plan

    def catalogue(self, region: Region) -> Catalogue:
        return cast(Catalogue, self._planned(_Offers(self._cloud), "catalogue", "nova"))

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        return self._plan.run("keystone", "cloud.tenancy", self._tenancy, effect=False)

    def _tenancy(self) -> Tenancy:
        return Tenancy(
            compute=cast(Compute, self._planned(self._cloud.nova, "compute", "nova")),
            networking=cast(Networking, self._planned(self._cloud.neutron, "networking", "neutron")),
            images=cast(TenancyImages, self._planned(_Snapshots(self._cloud), "images", "glance")),
            placement=cast(Placement, _Hosts()),
            baremetal=cast(Baremetal, _Nodes()),
            ssh_key_name="key",
        )

    def _planned(self, port: Any, name: str, dependency: str) -> Planned:
        return Planned(port, self._plan, name, dependency, _EFFECTS[name])


@dataclass(frozen=True)
class _Offers:
    """``ports.Catalogue``."""

    cloud: ProgrammableCloud

    def flavors(self) -> Sequence[Flavor]:
        return self.cloud.flavors

    def images(self) -> Sequence[Image]:
        return self.cloud.images

    def add_image(self, image: Image) -> None:
        self.cloud.images.append(image)


@dataclass(frozen=True)
class _Snapshots:
    """``ports.TenancyImages`` over the snapshots that Nova has begun."""

    cloud: ProgrammableCloud

    def publish(self, image_id: str, properties: Mapping[str, str]) -> Image:
        if image_id not in self.cloud.nova.snapshots:
            raise Missing("glance", "no such image")
        return Image(
            id=image_id,
            name=self.cloud.nova.snapshots[image_id],
            state=ImageState.PENDING,
            size_gib=0,
            created_at=self.cloud.clock.now(),
            architecture=properties.get("architecture"),
            organization_id=properties.get("unikorn:organization:id"),
            properties=dict(properties),
        )

    def delete(self, image_id: str) -> None:
        self.cloud.nova.snapshots.pop(image_id, None)


class _Hosts:
    """``ports.Placement`` without a host."""

    def providers(self, resource_class: str, traits: Sequence[str]) -> Sequence[ResourceProvider]:
        return ()


class _Nodes:
    """``ports.Baremetal`` without a node."""

    def provision_state(self, instance_id: str) -> str | None:
        return None
