"""``server-api promote`` as an operator runs it, over an embedded Kubernetes API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server_api import promote_app
from server_api.cli import main
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers.model import Server
from server_api.servers.naming import server_id
from server_api.servers.ports import ServerSelector, Unavailable
from server_api.store import kinds, labels
from server_api.store.client import KubernetesClient
from server_api.store.promotions import PromotableServerStore
from tests.api.conftest import Api
from tests.api.world import (
    FLAVOR,
    IDENTITY,
    IMAGE,
    NAMESPACE,
    NETWORK,
    ORGANIZATION,
    PROJECT,
    REGION,
    SECOND_NETWORK,
    SECURITY_GROUP,
    World,
    create_body,
)

OLD = "abcdef01-2345-4678-9abc-def012345678"
OLDER = "bbcdef01-2345-4678-9abc-def012345678"


def leave(world: World, id_: str = OLD, name: str = "old", **spec: Any) -> None:
    """Store a server as v1 left it."""
    its_labels = {
        labels.NAME: name,
        labels.ORGANIZATION: ORGANIZATION,
        labels.PROJECT: PROJECT,
        labels.REGION_ID: REGION,
        labels.IDENTITY_ID: IDENTITY,
    }
    whole = {"networks": [{"id": NETWORK}], "flavorID": FLAVOR, "image": {"id": IMAGE}} | spec
    world.add(kinds.SERVER, id_, its_labels, whole)


@pytest.fixture
def promote(
    world: World,
    kubernetes: tuple[EmbeddedKubernetes, KubernetesClient],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    kubeconfig = tmp_path / "kubeconfig"
    kubernetes[0].kubeconfig(kubeconfig, NAMESPACE)
    monkeypatch.setenv("SERVER_API_KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("SERVER_API_NAMESPACE", NAMESPACE)
    monkeypatch.setattr(promote_app, "OpenStackCloud", lambda credentials, settings: world.cloud)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["promote", *arguments])

    return invoke


def test_a_promoted_server_is_there_for_clients_of_v2(promote: Any, world: World, user: Api) -> None:
    leave(world, securityGroups=[{"id": SECURITY_GROUP}], userData="ZWNobyBoZWxsbwo=")
    assert user.get(f"/api/v2/servers/{OLD}").status_code == 404
    result = promote("--all")
    assert result.exit_code == 0
    assert "1 of 1 servers: 1 promoted" in result.stdout
    document = user.get(f"/api/v2/servers/{OLD}").get_json()
    assert document["metadata"]["name"] == "old"
    assert document["status"]["sshInjection"] == "identityKeypair"
    assert document["status"]["networkId"] == NETWORK
    (listed,) = user.get(f"/api/v2/servers?networkID={NETWORK}").get_json()
    assert listed == document
    body = {"metadata": {"name": "old"}, "spec": document["spec"]}
    assert user.put(f"/api/v2/servers/{OLD}", body).status_code == 202


def test_deleting_the_network_deletes_a_promoted_server(promote: Any, world: World) -> None:
    leave(world)
    assert promote("--all").exit_code == 0
    world.remove(kinds.NETWORK, NETWORK)
    assert world.servers.list(ServerSelector()) == []


def test_only_the_named_servers_are_promoted(promote: Any, world: World) -> None:
    leave(world, OLD, "old")
    leave(world, OLDER, "older")
    assert promote(OLDER, OLDER).exit_code == 0
    assert world.stored(OLD).metadata.api_version is None
    assert world.stored(OLDER).metadata.api_version == "2"


def test_a_namesake_counts_though_it_was_not_named(promote: Any, world: World) -> None:
    leave(world, OLD, "same")
    leave(world, OLDER, "same")
    result = promote(OLD)
    assert result.exit_code == 3
    assert f"name-taken: of the same name on the same network: {OLDER}" in result.stdout


def test_a_plan_writes_nothing(promote: Any, world: World) -> None:
    leave(world)
    before = world.stored(OLD).stored
    result = promote("--all", "--plan")
    assert result.exit_code == 0
    assert "promotable" in result.stdout
    assert "nothing was written" in result.stdout
    assert world.stored(OLD).stored == before


def test_json_on_standard_output_and_progress_on_standard_error(promote: Any, world: World) -> None:
    leave(world, OLD, "old")
    leave(world, OLDER, "older", networks=[{"id": NETWORK}, {"id": SECOND_NETWORK}])
    result = promote("--all", "-o", "json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert [(server["id"], server["verdict"]) for server in document["servers"]] == [
        (OLD, "promoted"),
        (OLDER, "refused"),
    ]
    assert result.stderr.splitlines() == ["2 of 2 servers: 1 promoted, 1 refused"]


@pytest.mark.parametrize("arguments", [(), ("--all", OLD)])
def test_what_to_promote_has_to_be_said_once(promote: Any, world: World, arguments: tuple[str, ...]) -> None:
    leave(world)
    result = promote(*arguments)
    assert result.exit_code == 2
    assert "name servers, or say --all" in result.stderr
    assert world.stored(OLD).metadata.api_version is None


def test_an_unknown_server_is_named_before_anything_is_done(promote: Any, world: World) -> None:
    leave(world)
    result = promote(OLD, OLDER)
    assert result.exit_code == 1
    assert f"there is no server {OLDER}" in result.stderr
    assert world.stored(OLD).metadata.api_version is None


def test_a_store_that_cannot_be_read_is_said(promote: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SERVER_API_NAMESPACE", "elsewhere")
    monkeypatch.setattr(PromotableServerStore, "list", failing(Unavailable("kubernetes", "list servers: down")))
    result = promote("--all")
    assert result.exit_code == 1
    assert "list servers: down" in result.stderr


@pytest.mark.parametrize(
    ("end", "said"), [(Unavailable("kubernetes", "patch servers: down"), "down"), (KeyboardInterrupt(), "interrupted")]
)
def test_a_run_that_ends_early_reports_what_was_done_and_can_be_run_again(
    promote: Any, world: World, monkeypatch: pytest.MonkeyPatch, end: BaseException, said: str
) -> None:
    leave(world, OLD, "old")
    leave(world, OLDER, "older")
    write = PromotableServerStore.promote

    def once(store: PromotableServerStore, before: Server, after: Server) -> Server:
        if before.id != OLD:
            raise end
        return write(store, before, after)

    with monkeypatch.context() as patch:
        patch.setattr(PromotableServerStore, "promote", once)
        result = promote("--all")
    assert result.exit_code == 1
    assert "1 of 2 servers: 1 promoted" in result.stdout
    assert said in result.stdout.splitlines()[-1]
    again = promote("--all")
    assert again.exit_code == 0
    assert "2 of 2 servers: 1 promoted, 1 already-v2" in again.stdout


def test_a_server_that_an_older_v1_stripped_of_its_labels_is_promoted_again(promote: Any, world: World) -> None:
    """The region service's own v1 update drops what v2 has put there (contract 1.4)."""
    leave(world)
    promote("--all")
    dropped = {labels.API_VERSION: None, labels.NETWORK_ID: None}
    world.patch(OLD, metadata={"labels": dropped}, spec={"sshInjection": None})
    assert promote("--all").exit_code == 0
    assert world.stored(OLD).metadata.network_id == NETWORK
    assert world.stored(OLD).spec.ssh_injection == "identityKeypair"


def test_a_promoted_name_is_not_covered_by_the_detection_of_duplicates(promote: Any, world: World, user: Api) -> None:
    """What the behaviour text says of random IDs; the two are told apart in the cloud by their server ID."""
    leave(world, name="web-0")
    promote("--all")
    second = user.create(create_body("web-0"))
    assert second == server_id(NETWORK, "web-0")
    assert second != OLD
    again = promote("--all")
    assert again.exit_code == 0, "a server that is one of v2 is not judged again"


def failing(error: Exception) -> Any:
    def fail(*arguments: Any) -> Any:
        raise error

    return fail
