"""Ports that act only while this replica leads.

Every method that changes something asks first; reads pass. Nothing else in the controller gets hold of an
unfenced port that writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from server_api import deadline
from server_api.controller.election import Elector
from server_api.servers.cloud_model import FloatingIP, Image, Instance, InstanceOrder, Port, PortOrder
from server_api.servers.model import Server
from server_api.servers.ports import (
    Catalogue,
    Cloud,
    Compute,
    Networking,
    References,
    Referent,
    ServerSelector,
    ServerStore,
    Tenancy,
    TenancyImages,
    TimedOut,
)
from server_api.servers.surroundings import Region


@dataclass(frozen=True, slots=True)
class Fence:
    """Lets effects through while ``elector`` says that this replica leads."""

    elector: Elector

    @contextmanager
    def effect(self) -> Iterator[None]:
        """Let the block do one outgoing call that changes something.

        The call gets no more time than until another replica may lead: an answer that takes longer could be
        that of a change made beside the new leader's. Raises LostLeadership, and TimedOut when the pass's own
        time is spent.
        """
        self.elector.assert_leading()
        try:
            seconds = deadline.remaining(self.elector.exclusive_seconds())
        except TimeoutError:
            raise TimedOut("controller", "the pass took too long") from None
        with deadline.within(seconds):
            yield

    def servers(self, inner: ServerStore) -> ServerStore:
        """Return the stored servers, written only while leading."""
        return _FencedServerStore(inner, self)

    def references(self, inner: References) -> References:
        """Return the reference edges, changed only while leading."""
        return _FencedReferences(inner, self)

    def cloud(self, inner: Cloud) -> Cloud:
        """Return the cloud, changed only while leading."""
        return _FencedCloud(inner, self)


@dataclass(frozen=True, slots=True)
class _FencedServerStore(ServerStore):
    inner: ServerStore
    fence: Fence

    def get(self, server_id: str) -> Server:
        return self.inner.get(server_id)

    def list(self, selector: ServerSelector) -> Sequence[Server]:
        return self.inner.list(selector)

    def create(self, server: Server) -> Server:
        with self.fence.effect():
            return self.inner.create(server)

    def update(self, server: Server) -> Server:
        with self.fence.effect():
            return self.inner.update(server)

    def patch_status(self, before: Server, after: Server) -> Server:
        with self.fence.effect():
            return self.inner.patch_status(before, after)

    def delete(self, server_id: str) -> None:
        with self.fence.effect():
            self.inner.delete(server_id)


@dataclass(frozen=True, slots=True)
class _FencedReferences(References):
    inner: References
    fence: Fence

    def of_identity(self, identity_id: str) -> Sequence[Referent]:
        return self.inner.of_identity(identity_id)

    def ssh_certificate_authority(self, authority_id: str) -> Referent:
        return self.inner.ssh_certificate_authority(authority_id)

    def hold(self, referent: Referent, edge: str) -> None:
        with self.fence.effect():
            self.inner.hold(referent, edge)

    def release(self, referent: Referent, edge: str) -> None:
        with self.fence.effect():
            self.inner.release(referent, edge)


@dataclass(frozen=True, slots=True)
class _FencedCompute(Compute):
    inner: Compute
    fence: Fence

    def find(self, name: str, server_id: str) -> Instance | None:
        return self.inner.find(name, server_id)

    def get(self, instance_id: str) -> Instance | None:
        return self.inner.get(instance_id)

    def instances(self) -> Sequence[Instance]:
        return self.inner.instances()

    def create(self, order: InstanceOrder) -> Instance:
        with self.fence.effect():
            return self.inner.create(order)

    def delete(self, instance_id: str) -> None:
        with self.fence.effect():
            self.inner.delete(instance_id)

    def start(self, instance_id: str) -> None:
        with self.fence.effect():
            self.inner.start(instance_id)

    def stop(self, instance_id: str) -> None:
        with self.fence.effect():
            self.inner.stop(instance_id)

    def soft_reboot(self, instance_id: str) -> None:
        with self.fence.effect():
            self.inner.soft_reboot(instance_id)

    def hard_reboot(self, instance_id: str) -> None:
        with self.fence.effect():
            self.inner.hard_reboot(instance_id)

    def rebuild(self, instance_id: str, image_id: str) -> None:
        with self.fence.effect():
            self.inner.rebuild(instance_id, image_id)

    def last_rebuild(self, instance_id: str) -> str:
        return self.inner.last_rebuild(instance_id)

    def console_output(self, instance_id: str, lines: int | None) -> str:
        return self.inner.console_output(instance_id, lines)

    def console_url(self, instance_id: str) -> str:
        with self.fence.effect():
            return self.inner.console_url(instance_id)

    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        with self.fence.effect():
            return self.inner.create_image(instance_id, name, properties)


@dataclass(frozen=True, slots=True)
class _FencedNetworking(Networking):
    inner: Networking
    fence: Fence

    def network_id(self, name: str) -> str:
        return self.inner.network_id(name)

    def security_group_id(self, name: str) -> str:
        return self.inner.security_group_id(name)

    def ports_named(self, name: str) -> Sequence[Port]:
        return self.inner.ports_named(name)

    def create_port(self, order: PortOrder) -> Port:
        with self.fence.effect():
            return self.inner.create_port(order)

    def update_port(self, port_id: str, order: PortOrder) -> Port:
        with self.fence.effect():
            return self.inner.update_port(port_id, order)

    def delete_port(self, port_id: str) -> None:
        with self.fence.effect():
            self.inner.delete_port(port_id)

    def floating_ips(self, port_id: str) -> Sequence[FloatingIP]:
        return self.inner.floating_ips(port_id)

    def create_floating_ip(self, port_id: str) -> FloatingIP:
        with self.fence.effect():
            return self.inner.create_floating_ip(port_id)

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        with self.fence.effect():
            self.inner.delete_floating_ip(floating_ip_id)


@dataclass(frozen=True, slots=True)
class _FencedTenancyImages(TenancyImages):
    inner: TenancyImages
    fence: Fence

    def publish(self, image_id: str, properties: Mapping[str, str]) -> Image:
        with self.fence.effect():
            return self.inner.publish(image_id, properties)

    def delete(self, image_id: str) -> None:
        with self.fence.effect():
            self.inner.delete(image_id)


@dataclass(frozen=True, slots=True)
class _FencedCloud(Cloud):
    inner: Cloud
    fence: Fence

    def catalogue(self, region: Region) -> Catalogue:
        return self.inner.catalogue(region)

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        tenancy = self.inner.tenancy(region, identity_id)
        return replace(
            tenancy,
            compute=_FencedCompute(tenancy.compute, self.fence),
            networking=_FencedNetworking(tenancy.networking, self.fence),
            images=_FencedTenancyImages(tenancy.images, self.fence),
        )
