"""The adapter as a whole: whose credentials are used for what, and when they are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_api.servers.ports import Denied, Missing, Refused
from server_api.servers.surroundings import ServiceAccount

FLAVOR = {"id": "1", "name": "small", "vcpus": 1, "ram": 1024, "disk": 5, "os-flavor-access:is_public": True}
IMAGE = {
    "id": "1",
    "name": "ubuntu",
    "status": "active",
    "visibility": "public",
    "min_disk": 1,
    "created_at": "2026-01-02T03:04:05Z",
    "unikorn:os:kernel": "linux",
    "unikorn:os:family": "debian",
    "unikorn:os:distro": "ubuntu",
    "unikorn:os:version": "24.04",
    "unikorn:virtualization": "any",
}


def users(wire):
    log_ins = wire.seen("POST", "/identity/v3/auth/tokens")
    return [request.body["auth"]["identity"]["password"]["user"]["id"] for request in log_ins]


@pytest.fixture
def nova_holds_flavors(wire, answer):
    def page(request):
        return answer(body={"flavors": [] if "marker" in request.query else [FLAVOR]})

    wire.answers["GET /compute/v2.1/flavors/detail"] = page


@pytest.fixture
def glance_holds_images(wire, answer):
    def page(request):
        if "marker" in request.query:
            return answer(body={"images": [IMAGE | {"id": "2"}]})
        return answer(body={"images": [IMAGE], "next": "/v2/images?marker=1"})

    wire.answers["GET /image/v2/images"] = page


def test_flavors_are_listed_by_the_regions_service_account(cloud, region, wire, nova_holds_flavors):
    assert [flavor.id for flavor in cloud.catalogue(region).flavors()] == ["1"]
    assert users(wire) == ["service"]


def test_images_are_listed_through_every_page_and_only_public_ones(cloud, region, wire, glance_holds_images):
    assert [image.id for image in cloud.catalogue(region).images()] == ["1", "2"]
    assert users(wire) == ["service"]
    assert wire.seen("GET", "/image/v2/images")[0].query["visibility"] == ["public"]


def test_a_catalogue_shares_what_another_one_of_its_region_loaded(cloud, region, wire, nova_holds_flavors):
    cloud.catalogue(region).flavors()
    asked = len(wire.requests)

    cloud.catalogue(replace(region)).flavors()

    assert len(wire.requests) == asked


def test_a_catalogue_reads_the_secret_only_to_load(cloud, region, credentials, nova_holds_flavors):
    catalogue = cloud.catalogue(region)
    assert credentials.account_reads == 0

    catalogue.flavors()
    catalogue.flavors()

    assert credentials.account_reads == 1


def test_a_changed_secret_is_noticed_at_the_next_loading(
    cloud, region, wire, credentials, nova_holds_flavors, glance_holds_images
):
    cloud.catalogue(region).flavors()
    credentials.account = ServiceAccount("default", "service-2", "new", "region-project")

    cloud.catalogue(region).images()

    assert users(wire) == ["service", "service-2"]


def test_a_tenancy_works_as_the_identitys_own_user(cloud, region, wire, answer):
    wire.answers["GET /compute/v2.1/servers/detail"] = answer(body={"servers": []})
    tenancy = cloud.tenancy(region, "identity")

    assert wire.requests == []
    tenancy.compute.instances()

    assert users(wire) == ["user"]
    assert tenancy.ssh_key_name == "key"


def test_a_changed_password_is_used_by_the_next_tenancy(cloud, region, wire, answer, credentials):
    wire.answers["GET /compute/v2.1/servers/detail"] = answer(body={"servers": []})
    cloud.tenancy(region, "identity").compute.instances()
    cloud.tenancy(region, "identity").compute.instances()
    credentials.identities["identity"] = replace(credentials.identities["identity"], password="rotated")

    cloud.tenancy(region, "identity").compute.instances()

    passwords = [
        request.body["auth"]["identity"]["password"]["user"]["password"]
        for request in wire.seen("POST", "/identity/v3/auth/tokens")
    ]
    assert passwords == ["s3cret-pass-phrase", "rotated"]


def test_an_identity_without_credentials_is_missing(cloud, region):
    with pytest.raises(Missing):
        cloud.tenancy(region, "new")


def test_external_networks_are_looked_up_by_the_service_account(cloud, region, wire, answer):
    wire.answers["GET /network/v2.0/networks"] = answer(body={"networks": []})

    with pytest.raises(Missing, match="no external network is exported by the region"):
        cloud.tenancy(region, "identity").networking.create_floating_ip("port")

    assert users(wire) == ["service"]


def test_images_are_changed_by_the_service_account_on_the_tenants_project(cloud, region, wire, answer, credentials):
    wire.answers["DELETE /image/v2/images/1"] = answer(204, "")
    tenancy = cloud.tenancy(region, "identity")
    assert credentials.account_reads == 0

    tenancy.images.delete("1")

    assert users(wire) == ["service"]
    log_in = wire.seen("POST", "/identity/v3/auth/tokens")[0].body["auth"]
    assert log_in["scope"] == {"project": {"id": "project"}}


def test_a_new_image_is_found_by_every_catalogue_of_the_region_at_once(cloud, region, wire, glance_holds_images):
    known = cloud.catalogue(region).images()[0]
    asked = len(wire.requests)

    cloud.catalogue(region).add_image(replace(known, id="new"))
    cloud.catalogue(region).add_image(replace(known, name="known already"))

    assert [(image.id, image.name) for image in cloud.catalogue(replace(region)).images()] == [
        ("1", "ubuntu"),
        ("2", "ubuntu"),
        ("new", "ubuntu"),
    ]
    assert len(wire.requests) == asked


def test_a_refused_service_account_is_denied(cloud, region, wire, answer):
    wire.answers["POST /identity/v3/auth/tokens"] = answer(401, {"error": {"message": "no", "code": 401}})

    with pytest.raises(Denied, match="keystone"):
        cloud.catalogue(region).flavors()


def test_another_provider_is_refused(cloud, region):
    other = replace(region, provider="kubernetes")

    with pytest.raises(Refused, match="provider"):
        cloud.catalogue(other)
    with pytest.raises(Refused, match="provider"):
        cloud.tenancy(other, "identity")
