"""What a long-lived API process keeps open (known failure B-75)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from server_api.cloud import OpenStackCloud
from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from server_api.store.credentials import KubernetesCredentials
from tests.api.conftest import Api, checked_client
from tests.api.secret_bench import store_service_account
from tests.api.wired_cloud import SERVER, playing, services_over
from tests.api.world import NAMESPACE, World, create_body
from tests.doubles.clock import FixedClock

SERVERS = "/api/v2/servers"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_b75_file_descriptors_stay_as_many_as_they_were(
    world: World, services: Services, settings: Settings, clock: FixedClock
) -> None:
    world.key_pair("")
    store_service_account(world)
    world.bare_server(SERVER, name="web-0")
    settings = replace(settings, flavor_cache_seconds=0.0, image_cache_seconds=0.0)
    cloud = OpenStackCloud(KubernetesCredentials(world.client, NAMESPACE), settings)
    with playing(world):
        user = Api(checked_client(build_app(services_over(cloud, services, world, clock), settings)), "USER")

        def work(name: str) -> None:
            server_id = user.create(create_body(name))
            assert user.post(f"{SERVERS}/{SERVER}/start").status_code == 202
            assert user.delete(f"{SERVERS}/{server_id}").status_code == 202

        for number in range(5):
            work(f"warm-{number}")
        before = open_descriptors()
        for number in range(40):
            work(f"web-{number}")
        assert open_descriptors() <= before + 2
