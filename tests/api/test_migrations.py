"""Migrations: planned, run once, in order, by one process at a time, and what they leave in the API."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.settings import Settings
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.migration import MigrationFailed, Migrator, migrate, steps

NAMESPACE = "unikorn-region"
SERVER = "aaaabbbb-1234-5678-9abc-def012345678"
Write = Callable[[str, str], None]


@pytest.fixture
def kubernetes() -> Iterator[EmbeddedKubernetes]:
    with EmbeddedKubernetes() as empty:
        yield empty


@pytest.fixture
def settings(kubernetes: EmbeddedKubernetes, tmp_path: Path) -> Settings:
    path = tmp_path / "kubeconfig"
    kubernetes.kubeconfig(path, NAMESPACE)
    return Settings(kubeconfig=path, namespace=NAMESPACE)


@pytest.fixture
def client(settings: Settings) -> KubernetesClient:
    return KubernetesClient.from_settings(settings)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a step that creates a ConfigMap named by its body's placeholder."""

    def write(name: str, body: str) -> None:
        head = f"""
            TITLE = "{name}"
            from server_api.store import kinds

            def plan(kubernetes):
                return ["create configmap {name[:4]}"]

            def create(kubernetes, name):
                body = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": name}}}}
                kubernetes.client.create(kinds.CONFIG_MAP, kubernetes.namespace, body)

            def apply(kubernetes):
        """
        text = textwrap.dedent(head) + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
        directory = tmp_path / "migrations"
        directory.mkdir(exist_ok=True)
        (directory / f"{name}.py").write_text(text)

    return write


def migrator(client: KubernetesClient, tmp_path: Path, said: list[str] | None = None, **options: Any) -> Migrator:
    say = (lambda line: None) if said is None else said.append
    return Migrator(client, NAMESPACE, directory=tmp_path / "migrations", say=say, **options)


def config_maps(client: KubernetesClient) -> set[str]:
    return {item["metadata"]["name"] for item in client.list(kinds.CONFIG_MAP, NAMESPACE).items}


def test_a_plan_says_what_would_be_done_and_writes_nothing(client: KubernetesClient, settings: Settings) -> None:
    said: list[str] = []
    migrate(settings, plan=True, say=said.append)
    assert said[0] == f"create namespace {NAMESPACE}"
    assert "  create customresourcedefinition servers.region.unikorn-cloud.org" in said
    assert client.list(kinds.CUSTOM_RESOURCE_DEFINITION, "").items == []
    assert client.list(kinds.NAMESPACE, "").items == [
        item for item in client.list(kinds.NAMESPACE, "").items if item["metadata"]["name"] != NAMESPACE
    ]


def test_every_kind_is_served_and_recorded_and_a_second_run_does_nothing(
    client: KubernetesClient, settings: Settings
) -> None:
    migrate(settings, say=lambda line: None)
    for kind in (
        kinds.SERVER,
        kinds.NETWORK,
        kinds.SECURITY_GROUP,
        kinds.SSH_CERTIFICATE_AUTHORITY,
        kinds.IDENTITY,
        kinds.OPENSTACK_IDENTITY,
        kinds.REGION,
    ):
        assert client.list(kind, NAMESPACE).items == []
    record = client.get(kinds.CONFIG_MAP, NAMESPACE, "server-api-migrations")["data"]
    assert list(record) == list(steps())
    assert json.loads(record["0001_custom_resource_definitions"]).keys() == {"title", "at", "by"}
    said: list[str] = []
    migrate(settings, plan=True, say=said.append)
    assert said == ["nothing to do"]
    migrate(settings, say=lambda line: None)
    assert client.get(kinds.CONFIG_MAP, NAMESPACE, "server-api-migrations")["data"] == record


def test_the_definitions_have_the_category_and_the_status_subresources_of_the_contract(
    client: KubernetesClient, settings: Settings
) -> None:
    migrate(settings, say=lambda line: None)
    definitions = client.list(kinds.CUSTOM_RESOURCE_DEFINITION, "").items
    assert all(item["spec"]["names"]["categories"] == ["unikorn"] for item in definitions)
    assert all(item["spec"]["scope"] == "Namespaced" for item in definitions)
    without = {
        item["spec"]["names"]["plural"]
        for item in definitions
        if "status" not in (item["spec"]["versions"][0].get("subresources") or {})
    }
    assert without == {"sshcertificateauthorities", "openstackidentities"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_shows_the_columns_of_a_server(client: KubernetesClient, settings: Settings) -> None:
    migrate(settings, say=lambda line: None)
    body = {
        "apiVersion": kinds.SERVER.api_version,
        "kind": "Server",
        "metadata": {"name": SERVER},
        "spec": {"flavorID": SERVER, "image": {"id": SERVER}, "networks": [{"id": SERVER}]},
    }
    version = client.create(kinds.SERVER, NAMESPACE, body)["metadata"]["resourceVersion"]
    condition = {
        "type": "Available",
        "status": "True",
        "reason": "Provisioned",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    status = {
        "phase": "Running",
        "privateIP": "10.0.0.5",
        "publicIP": "203.0.113.5",
        "conditions": [condition],
        "rebuild": {"targetImageID": SERVER, "state": "Rebuilding"},
    }
    client.patch_status(kinds.SERVER, NAMESPACE, SERVER, status, version)

    def columns(*arguments: str) -> list[list[str]]:
        command = ["kubectl", "--kubeconfig", str(settings.kubeconfig), *arguments]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [
            line.replace("PRIVATE IP", "PRIVATE_IP").replace("PUBLIC IP", "PUBLIC_IP").split()
            for line in output.splitlines()
        ]

    head, row = columns("get", "servers", "-o", "wide")
    assert head == ["NAME", "STATUS", "POWER", "IMAGE", "FLAVOR", "PRIVATE_IP", "PUBLIC_IP", "REBUILD", "AGE"]
    assert row[:-1] == [SERVER, "Provisioned", "Running", SERVER, SERVER, "10.0.0.5", "203.0.113.5", "Rebuilding"]
    assert "REBUILD" not in columns("get", "servers")[0]
    assert columns("get", "unikorn")[1][1] == "Provisioned"


def test_steps_run_in_order_and_only_the_new_ones(client: KubernetesClient, tmp_path: Path, write: Write) -> None:
    write("0002_second", "kubernetes.client.get(kinds.CONFIG_MAP, kubernetes.namespace, 'first')")
    write("0001_first", "create(kubernetes, 'first')")
    assert migrator(client, tmp_path).run() == ["0001_first", "0002_second"]
    write("0003_third", "create(kubernetes, 'third')")
    assert migrator(client, tmp_path).run() == ["0003_third"]
    assert {"first", "third"} <= config_maps(client)


def test_a_step_that_fails_is_named_and_tried_again(client: KubernetesClient, tmp_path: Path, write: Write) -> None:
    write("0001_first", "create(kubernetes, 'first')")
    write("0002_second", "kubernetes.client.get(kinds.CONFIG_MAP, kubernetes.namespace, 'absent')")
    write("0003_third", "create(kubernetes, 'third')")
    with pytest.raises(MigrationFailed, match="0002_second failed: kubernetes: get configmaps/absent"):
        migrator(client, tmp_path).run()
    assert "third" not in config_maps(client)
    write("0002_second", "create(kubernetes, 'second')")
    assert migrator(client, tmp_path).run() == ["0002_second", "0003_third"]


def test_two_processes_at_once_run_every_step_once(client: KubernetesClient, tmp_path: Path, write: Write) -> None:
    # A second apply would fail, since the names are taken then.
    write("0001_first", "create(kubernetes, 'first')")
    write("0002_second", "create(kubernetes, 'second')")
    ran: list[str] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ran.extend(migrator(client, tmp_path).run())
        except MigrationFailed as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert sorted(ran) == ["0001_first", "0002_second"]


def test_a_crashed_run_does_not_block_for_ever(client: KubernetesClient, tmp_path: Path, write: Write) -> None:
    write("0001_first", "create(kubernetes, 'first')")
    client.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    lease = {
        "apiVersion": kinds.LEASE.api_version,
        "kind": "Lease",
        "metadata": {"name": "server-api-migrations"},
        "spec": {"holderIdentity": "crashed", "leaseDurationSeconds": 1, "leaseTransitions": 0},
    }
    client.create(kinds.LEASE, NAMESPACE, lease)
    said: list[str] = []
    assert migrator(client, tmp_path, said).run() == ["0001_first"]
    assert "waiting for crashed, which is migrating" in said


def test_a_step_of_a_newer_version_is_mentioned_and_left_alone(
    client: KubernetesClient, tmp_path: Path, write: Write
) -> None:
    write("0001_first", "create(kubernetes, 'first')")
    write("0002_second", "create(kubernetes, 'second')")
    migrator(client, tmp_path).run()
    (tmp_path / "migrations" / "0002_second.py").unlink()
    said: list[str] = []
    assert migrator(client, tmp_path, said).run() == []
    assert "0002_second was run by another version of server-api" in said


def test_an_api_that_is_down_is_told_in_one_line(settings: Settings, kubernetes: EmbeddedKubernetes) -> None:
    kubernetes.close()
    with pytest.raises(MigrationFailed, match="kubernetes: get namespaces/unikorn-region"):
        migrate(settings, say=lambda line: None)


@pytest.mark.parametrize("names", [[], ["0001_one", "0001_two"]])
def test_a_directory_without_steps_or_with_two_of_one_number_is_refused(
    tmp_path: Path, write: Write, names: list[str]
) -> None:
    for name in names:
        write(name, "pass")
    with pytest.raises(MigrationFailed):
        steps(tmp_path / "migrations")
