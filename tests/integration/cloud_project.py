"""What the tests of the OpenStack adapter put into the tenant's project."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.seed_openstack import SERVICE_ACCOUNT
from server_api.sandbox.waiting import wait_for
from server_api.servers.cloud_model import Instance, InstanceOrder, PortOrder
from server_api.servers.naming import cloud_network, cloud_port
from server_api.servers.ports import Tenancy
from server_api.servers.surroundings import IdentityCredentials, Region, ServiceAccount
from tests.integration.harness import Sandbox

USER_DATA = b"#!/bin/sh\n"


class SeededCredentials:
    """The port ``Credentials`` over what the seed made up."""

    def __init__(self, sandbox: Sandbox) -> None:
        tenant, password = sandbox.world.first, sandbox.world.service_password
        user = sandbox.user_of(tenant)
        service = OpenStackUser(sandbox.region.openstack.auth_url, SERVICE_ACCOUNT, password, SERVICE_ACCOUNT)
        self.identity = IdentityCredentials(user.user_id, tenant.password, user.project_id, "unused")
        self.account = ServiceAccount("default", service.user_id, password, service.project_id)

    def identity_credentials(self, identity_id: str) -> IdentityCredentials:
        return self.identity

    def service_account(self, region: Region) -> ServiceAccount:
        return self.account


@dataclass
class Servers:
    """Creates ports and instances in the tenant's project, and removes them at the end."""

    sandbox: Sandbox
    tenancy: Tenancy
    ports: list[str] = field(default_factory=list)
    instances: list[str] = field(default_factory=list)

    def port(self, **more: object) -> str:
        networking, tenant = self.tenancy.networking, self.sandbox.world.first
        network_id = networking.network_id(cloud_network(tenant.network_id))
        port = networking.create_port(PortOrder(cloud_port(str(uuid4())), network_id, **more))
        self.ports.append(port.id)
        return port.id

    def instance(self, name: str, metadata: dict[str, str], **more: Any) -> Instance:
        world = self.sandbox.world
        image_id = more.pop("image_id", world.images["ready"].id)
        order = InstanceOrder(
            name, image_id, world.flavors["virtual"].id, self.port(), metadata, user_data=USER_DATA, **more
        )
        instance = self.tenancy.compute.create(order)
        self.instances.append(instance.id)
        return instance

    def active(self, name: str, server_id: str) -> Instance:
        def look() -> Instance | None:
            instance = self.tenancy.compute.find(name, server_id)
            return instance if instance and (instance.status, instance.task_state) == ("ACTIVE", None) else None

        return wait_for(f"{name} is ACTIVE", look)

    def remove(self) -> None:
        for instance_id in self.instances:
            self.tenancy.compute.delete(instance_id)
        left = set(self.instances)
        wait_for("the instances are gone", lambda: not left & {one.id for one in self.tenancy.compute.instances()})
        for port_id in self.ports:
            self.tenancy.networking.delete_port(port_id)


def unique(name: str = "web") -> str:
    return f"{name}-{secrets.token_hex(3)}"
