"""The roles in ``deploy/kubernetes`` allow what each process does, and nothing else.

Each process runs as its service account, against an embedded API that refuses what the manifests do not grant: a
missing verb fails what needs it, and a superfluous one is left over in the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from server_api.app import create_app
from server_api.controller.process import Controller
from server_api.controller_app import dependencies
from server_api.servers.model import ConditionType, Reason
from server_api.servers.ports import Denied, EventType, Missing
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source
from tests.api.conftest import Api, checked_client
from tests.api.passes import WithNetworks
from tests.api.roles_bench import API, CONTROLLER, MIGRATOR, furnished, installed, keep_a_server, settings_of
from tests.api.wired_cloud import INSTANCES, SERVER, playing
from tests.api.world import (
    AUTHORITY,
    IDENTITY,
    NAMESPACE,
    NETWORK,
    SECOND_IMAGE,
    SECURITY_GROUP,
    World,
    create_body,
    update_body,
)
from tests.doubles.authorizing_kubernetes import AuthorizingKubernetes
from tests.unit.cloud.conftest import Answer

SERVERS = "/api/v2/servers"


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[AuthorizingKubernetes, KubernetesClient]]:
    with installed(tmp_path_factory.mktemp("roles")) as installation:
        yield installation


@pytest.fixture
def cluster(installation: tuple[AuthorizingKubernetes, KubernetesClient]) -> AuthorizingKubernetes:
    return installation[0]


@pytest.fixture
def world(installation: tuple[AuthorizingKubernetes, KubernetesClient]) -> World:
    return furnished(*installation)


def await_true(condition: Callable[[], bool]) -> None:
    """Return when the condition holds. Fails when it does not in time."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_migrations(cluster: AuthorizingKubernetes) -> None:
    assert cluster.refused[MIGRATOR] == set()
    assert cluster.superfluous(MIGRATOR) == set()


def test_what_is_not_granted_is_refused(cluster: AuthorizingKubernetes, world: World, tmp_path: Path) -> None:
    for account in (API, CONTROLLER, MIGRATOR):
        source = configuration_source(cluster.kubeconfig(tmp_path / account, account))
        client = KubernetesClient(source, namespace=NAMESPACE)
        for attempt in (
            lambda client=client: client.delete(kinds.NETWORK, NAMESPACE, NETWORK),
            lambda client=client: client.get(kinds.SECRET, NAMESPACE, "account"),
            lambda client=client: client.list(kinds.OPENSTACK_IDENTITY, NAMESPACE),
            lambda client=client: client.get(kinds.SERVER, "kube-system", SERVER),
        ):
            with pytest.raises(Denied):
                attempt()
        assert len(cluster.refused.pop(account)) == 4


def use_every_operation(client: FlaskClient) -> dict[str, int]:
    """Call every operation there is, in a way that succeeds; return the statuses by operation."""
    api, one = Api(client, "ADMIN"), f"{SERVERS}/{SERVER}"
    whole = create_body("new", sshCertificateAuthorityId=AUTHORITY, networking={"securityGroups": [SECURITY_GROUP]})
    action = {"conditionType": "gate", "reason": "Ready", "message": "fine"}
    verbs = ("start", "stop", "softReboot", "hardReboot")
    calls: list[tuple[str, str, str, Any]] = [
        ("getProtectedResource", "GET", "/.well-known/openid-protected-resource", None),
        ("getVersion", "GET", "/api/version", None),
        ("createServer", "POST", SERVERS, whole),
        ("listServers", "GET", SERVERS, None),
        ("getServer", "GET", one, None),
        ("updateServer", "PUT", one, update_body(imageId=SECOND_IMAGE)),
        *((f"{verb}Server", "POST", f"{one}/{verb.lower()}", None) for verb in verbs),
        ("getSshKey", "GET", f"{one}/sshkey", None),
        ("getConsoleOutput", "GET", f"{one}/consoleoutput", None),
        ("getConsoleSession", "GET", f"{one}/consolesessions", None),
        ("createSnapshot", "POST", f"{one}/snapshot", {"metadata": {"name": "s"}, "spec": {}}),
        ("satisfyProviderCreateGate", "POST", f"{one}/provider-create-gates", action),
        ("deleteServer", "DELETE", one, None),
    ]
    return {name: api.request(method, path, json=body).status_code for name, method, path, body in calls}


def test_api(cluster: AuthorizingKubernetes, world: World, tokens: Path, tmp_path: Path) -> None:
    """Every operation but those of v1, for which ``v1/test_kubernetes_roles.py`` sees to it."""
    keep_a_server(world)
    with playing(world):
        client = checked_client(create_app(settings_of(cluster, API, tmp_path, tokens)))
        statuses = use_every_operation(client)
        assert client.get("/readyz").status_code == 200
    assert max(statuses.values()) < 300, statuses
    paths = client.get("/openapi.json").get_json()["paths"].values()
    operations = [item for path in paths for item in path.values() if "operationId" in item]
    assert set(statuses) == {item["operationId"] for item in operations if not item.get("deprecated")}
    assert cluster.refused[API] == set()
    assert cluster.superfluous(API) == set()


def test_controller(cluster: AuthorizingKubernetes, world: World, tokens: Path, tmp_path: Path) -> None:
    """A server with everything it can refer to, from its create to its deletion; and the monitor, meanwhile."""
    settings = settings_of(cluster, CONTROLLER, tmp_path, tokens)
    world.bare_server(
        SERVER, name="web-0", securityGroups=[{"id": SECURITY_GROUP}], sshCertificateAuthorityID=AUTHORITY
    )
    ours = {"metadata": {"labels": {labels.IDENTITY_ID: IDENTITY}}}
    world.client.patch(kinds.SECURITY_GROUP, NAMESPACE, SECURITY_GROUP, ours)
    stop = threading.Event()
    with playing(world) as wire:
        real = dependencies(settings)
        controller = Controller(replace(real, cloud=WithNetworks(real.cloud)), settings)
        thread = threading.Thread(target=controller.run, args=(stop,))
        thread.start()
        try:
            # With everything held; the instance that the cloud tells of does not say what its image is.
            await_true(lambda: _reason(world) == Reason.PROVISIONING)
            # The monitor looks at the flavors of regions, with their own credentials.
            await_true(lambda: "secrets" in {right.resource for right in set(cluster.used[CONTROLLER])})
            event = (world.stored(SERVER), EventType.NORMAL, "Provisioned", "told twice")
            real.events.record(*event)
            real.events.record(*event)
            world.servers.delete(SERVER)
            wire.answers[INSTANCES] = Answer(body={"servers": []})
            await_true(lambda: _is_gone(world))
        finally:
            stop.set()
            thread.join(20)
    assert cluster.refused[CONTROLLER] == set()
    assert cluster.superfluous(CONTROLLER) == set()


def _reason(world: World) -> str | None:
    available = world.stored(SERVER).status.condition(ConditionType.AVAILABLE)
    return None if available is None else available.reason


def _is_gone(world: World) -> bool:
    try:
        world.stored(SERVER)
    except Missing:
        return True
    return False
