"""The API over the real OpenStack adapter and a local server that plays Nova and Glance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from server_api.cloud import OpenStackCloud
from server_api.http.services import Services
from server_api.servers.console import Console
from server_api.servers.lifecycle import Lifecycle
from server_api.servers.power import Power
from server_api.servers.snapshots import Snapshots
from server_api.store import kinds
from server_api.store.directory import KubernetesDirectory
from tests.api.world import FLAVOR, IMAGE, NAMESPACE, REGION, SECOND_IMAGE, World
from tests.doubles.clock import FixedClock
from tests.unit.cloud.conftest import Answer, Request, Wire

SERVER = "00000000-0000-4000-8000-00000000cafe"
INSTANCE = "00000000-0000-4000-8000-00000000abcd"
NEW_IMAGE = "00000000-0000-4000-8000-00000000beef"

FLAVORS = "GET /compute/v2.1/flavors/detail"
INSTANCES = "GET /compute/v2.1/servers/detail"
ACTION = f"POST /compute/v2.1/servers/{INSTANCE}/action"
CONSOLE = f"POST /compute/v2.1/servers/{INSTANCE}/remote-consoles"
IMAGES = "GET /image/v2/images"
NEW_IMAGE_READ = f"GET /image/v2/images/{NEW_IMAGE}"
NEW_IMAGE_CHANGE = f"PATCH /image/v2/images/{NEW_IMAGE}"
DELETE_NEW_IMAGE = f"DELETE /image/v2/images/{NEW_IMAGE}"

Answers = dict[str, Answer | Callable[[Request], Answer]]


@contextmanager
def playing(world: World) -> Iterator[Wire]:
    """Let the world's region be in a cloud on the wire, in which everything works, with an instance of ``SERVER``."""
    wire = Wire()
    wire.answers |= well()
    spec = {"openstack": {"endpoint": f"{wire.url}/identity"}}
    world.client.patch(kinds.REGION, NAMESPACE, REGION, {"spec": spec})
    with pytest.MonkeyPatch.context() as patch:
        # Some machines have a proxy for everything.
        patch.setenv("NO_PROXY", "*")
        yield wire
    wire.close()


def services_over(cloud: OpenStackCloud, services: Services, world: World, clock: FixedClock) -> Services:
    """Return the services with the real adapter in place of the double."""
    directory = KubernetesDirectory(world.client, NAMESPACE)
    return replace(
        services,
        lifecycle=Lifecycle(world.servers, directory, cloud, clock),
        power=Power(world.servers, directory, cloud),
        console=Console(world.servers, directory, cloud),
        snapshots=Snapshots(world.servers, directory, cloud),
    )


def well() -> Answers:
    """Return what a cloud in which everything works answers."""
    flavor = {"id": FLAVOR, "name": "small", "vcpus": 1, "ram": 1024, "disk": 20, "os-flavor-access:is_public": True}
    instance = {"id": INSTANCE, "name": "web-0", "status": "ACTIVE", "metadata": {"serverID": SERVER}}

    def page(name: str, item: dict[str, Any]) -> Callable[[Request], Answer]:
        return lambda request: Answer(body={name: [] if "marker" in request.query else [item]})

    def act(request: Request) -> Answer:
        if "createImage" in request.body:
            return Answer(202, {"image_id": NEW_IMAGE})
        return Answer(200, {"output": "login:"}) if "os-getConsoleOutput" in request.body else Answer(202, "")

    return {
        FLAVORS: page("flavors", flavor),
        INSTANCES: page("servers", instance),
        ACTION: act,
        CONSOLE: Answer(body={"remote_console": {"protocol": "vnc", "type": "novnc", "url": "http://console.invalid"}}),
        IMAGES: Answer(body={"images": [image(IMAGE), image(SECOND_IMAGE)]}),
        NEW_IMAGE_READ: Answer(body=image(NEW_IMAGE)),
        NEW_IMAGE_CHANGE: Answer(body=image(NEW_IMAGE)),
        DELETE_NEW_IMAGE: Answer(204, ""),
    }


def image(id_: str) -> dict[str, Any]:
    return {
        "id": id_,
        "name": "ubuntu",
        "status": "active",
        "visibility": "public",
        "min_disk": 5,
        "created_at": "2026-01-02T03:04:05Z",
        "unikorn:os:kernel": "linux",
        "unikorn:os:family": "debian",
        "unikorn:os:distro": "ubuntu",
        "unikorn:os:version": "24.04",
        "unikorn:virtualization": "any",
    }
