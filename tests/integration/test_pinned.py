"""Servers that are pinned to a host, with Placement asked before they are created."""

from __future__ import annotations

import pytest

from server_api.sandbox.openstack.configuration import FLAVOR_TRAIT, HOST_RESOURCE_CLASS, HOST_TRAIT
from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.seed_openstack import SERVICE_ACCOUNT
from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Item, Sandbox

HOSTS = ("fake1", "fake2")


def operator(region: Sandbox) -> OpenStackUser:
    """Return the service account on the first tenant's project."""
    tenant, openstack = region.world.first, region.region.openstack
    return OpenStackUser(openstack.auth_url, SERVICE_ACCOUNT, region.world.service_password, tenant.cloud_name)


def provider_of(user: OpenStackUser, host: str) -> str:
    found = user.placement.get("/resource_providers", params={"name": host}).json()["resource_providers"]
    return str(found[0]["uuid"])


def pinned(region: Sandbox, host: str) -> Item:
    return region.body(infrastructureRef=host, sshInjection="none", flavorId=region.world.flavors["pinned"].id)


@pytest.mark.parametrize("host", HOSTS)
def test_k18_k21_a_pinned_server_is_on_its_host_and_has_what_placement_was_asked_for(
    region: Sandbox, host: str
) -> None:
    user = operator(region)
    provider = provider_of(user, host)
    body = pinned(region, host)
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]

    assert region.running(id_)["status"]["infrastructureRef"] == host
    (instance,) = region.cloud.instances(name)
    shown = user.compute.get(f"/servers/{instance['id']}").json()["server"]
    assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == host
    allocations = user.placement.get(f"/allocations/{instance['id']}").json()["allocations"]
    assert allocations[provider]["resources"][HOST_RESOURCE_CLASS] == 1
    region.remove(id_)


def test_k20_a_server_pinned_to_a_host_that_does_not_exist_waits_and_nothing_is_created(region: Sandbox) -> None:
    body = pinned(region, "fake3")
    id_, name = region.create(body)["metadata"]["id"], body["metadata"]["name"]

    wait_for("the pass waits", lambda: "fake3" in region.condition(id_).get("message", ""))
    assert region.read(id_)["metadata"]["provisioningStatus"] == "provisioning"
    assert region.cloud.instances(name) == []
    region.remove(id_)
    assert region.cloud.port(id_) is None


@pytest.mark.parametrize("trait", [HOST_TRAIT, FLAVOR_TRAIT])
def test_k20_a_host_that_lost_a_required_trait_is_waited_for_and_used_when_it_has_it_again(
    region: Sandbox, trait: str
) -> None:
    user = operator(region)
    path = f"/resource_providers/{provider_of(user, 'fake2')}/traits"
    before = user.placement.get(path).json()
    without = [other for other in before["traits"] if other != trait]
    assert len(without) < len(before["traits"])

    def set_traits(traits: list[str]) -> None:
        generation = user.placement.get(path).json()["resource_provider_generation"]
        user.placement.put(path, json={"traits": traits, "resource_provider_generation": generation})

    set_traits(without)
    try:
        body = pinned(region, "fake2")
        id_ = region.create(body)["metadata"]["id"]
        wait_for("the pass waits", lambda: "fake2" in region.condition(id_).get("message", ""))
        assert region.cloud.instances(body["metadata"]["name"]) == []
    finally:
        set_traits(before["traits"])
    region.running(id_)
    (instance,) = region.cloud.instances(body["metadata"]["name"])
    shown = user.compute.get(f"/servers/{instance['id']}").json()["server"]
    assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "fake2"
    region.remove(id_)
