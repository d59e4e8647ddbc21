"""The main job, through every door a user has."""

import os
import subprocess
from typing import Any

import pytest

from server_api.sandbox import hints, seed_objects
from server_api.sandbox.demo import Demo
from server_api.sandbox.seed_openstack import OpenStackSeed
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.sandbox.world import SERVERS, Tenant
from server_api.servers.naming import server_id
from server_api.store import kinds
from tests.integration.harness import Sandbox


def kubectl(region: Sandbox, *words: str) -> str:
    environment = {**os.environ, "KUBECONFIG": region.environment["KUBECONFIG"]}
    result = subprocess.run(["kubectl", *words], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_demo_walks_one_server_through_its_whole_life(region: Sandbox) -> None:
    lines: list[str] = []
    Demo(region.region, lines.append).run()
    assert "every step held" in lines[-1]


def test_the_printed_curl_lines_work_when_pasted(region: Sandbox) -> None:
    def paste(line: str) -> tuple[str, str]:
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        body, _, status = result.stdout.rstrip("\n").rpartition("\n")
        return status, body

    create, list_, get, stop, delete = hints.curl_lines(region.environment)
    id_ = server_id(region.world.first.network_id, hints.SERVER_NAME)
    status, body = paste(create)
    assert status == "201", body
    status, body = paste(list_)
    assert status == "200"
    assert id_ in body
    region.running(id_)
    status, body = paste(get)
    assert status == "200"
    assert "Running" in body
    assert paste(stop)[0] == "202"
    region.in_power_state(id_, "Stopped")
    assert paste(delete)[0] == "202"
    region.gone(id_)


def test_the_environment_file_can_be_sourced_and_says_exactly_what_design_section_5_names(region: Sandbox) -> None:
    file = region.region.layout.environment
    names = subprocess.run(
        ["env", "-i", "bash", "-c", '. "$1"; compgen -e', "bash", str(file)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    ids = {"ORGANIZATION", "PROJECT", "REGION", "IDENTITY", "NETWORK", "SECURITY_GROUP", "SSH_CA", "FLAVOR", "IMAGE"}
    expected = {
        "SERVER_API_URL",
        *(f"SERVER_API_TOKEN_{role}" for role in ("ADMIN", "USER", "READER", "OTHER")),
        *(f"SERVER_API_SERVICE_{what}" for what in ("CERT", "KEY")),
        *(f"SERVER_API_{name}_ID" for name in ids | {"IMAGE_2"}),
        "KUBECONFIG",
        "OS_CLIENT_CONFIG_FILE",
        "SANDBOX_OPENSTACK_RULES",
    }
    assert set(names) - {"PWD", "SHLVL", "_", "OLDPWD"} == expected
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_server_deleted_by_kubectl_is_deleted_in_the_cloud(region: Sandbox) -> None:
    server = region.create(region.body(public=True))
    id_, name = server["metadata"]["id"], server["metadata"]["name"]
    address = region.running(id_)["status"]["publicIP"]
    row = kubectl(region, "get", "servers", id_)
    for column in ("STATUS", "POWER", "IMAGE", "FLAVOR", "PRIVATE IP", "PUBLIC IP", "AGE", "Provisioned", address):
        assert column in row
    assert f"Name:         {id_}" in kubectl(region, "describe", "server", id_)
    kubectl(region, "delete", "server", id_, "--timeout=60s")
    assert region.api().get(id_).status_code == 404
    wait_for("the instance is gone", lambda: not region.cloud.instances(name))
    assert region.cloud.port(id_) is None
    assert region.cloud.floating_ips(address) == []


def test_deleting_a_network_deletes_its_servers_first(region: Sandbox) -> None:
    network_id = add_network(region, region.world.first)
    servers = [region.create(region.body(networkId=network_id, networking={})) for _ in range(2)]
    for server in servers:
        region.running(server["metadata"]["id"])
    kubectl(region, "delete", "network", network_id, "--cascade=foreground", "--timeout=60s")
    for server in servers:
        assert region.api().get(server["metadata"]["id"]).status_code == 404
    names = {server["metadata"]["name"] for server in servers}
    wait_for("Nova has none of them", lambda: not names & {item["name"] for item in region.cloud.instances()})


def add_network(region: Sandbox, tenant: Tenant) -> str:
    network_id = "f0000000-0000-4000-8000-00000000c0de"
    prefix = "192.168.77.0/24"
    openstack = region.region.openstack
    seed = OpenStackSeed(openstack.auth_url, openstack.admin_password)
    seed.network(region.user_of(tenant), network_id, prefix)
    body = seed_objects.network(NAMESPACE, region.world, tenant, network_id, prefix)
    region.kubernetes.create(kinds.NETWORK, NAMESPACE, body)
    return network_id


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Any:
    id_ = sandbox.create()["metadata"]["id"]
    yield sandbox.running(id_)
    sandbox.remove(id_)


@pytest.mark.parametrize(
    ("role", "read", "act", "create", "listed"),
    [
        ("ADMIN", 200, 202, 201, True),
        ("USER", 200, 202, 201, True),
        ("READER", 200, 403, 403, True),
        ("OTHER", 403, 403, 403, False),
    ],
)
def test_each_role_may_do_what_design_section_5_says(
    region: Sandbox, server: dict[str, Any], role: str, read: int, act: int, create: int, listed: bool
) -> None:
    api, id_ = region.api(role), server["metadata"]["id"]
    assert api.get(id_).status_code == read
    ids = [item["metadata"]["id"] for item in api.list().json()]
    assert (id_ in ids) == listed
    assert api.act(id_, "hardreboot").status_code == act
    answer = api.create(region.body())
    assert answer.status_code == create, answer.text
    if create == 201:
        region.remove(answer.json()["metadata"]["id"])


def test_the_second_organization_runs_servers_of_its_own(region: Sandbox) -> None:
    second = region.world.second
    answer = region.api("OTHER").create(region.body(tenant=second))
    assert answer.status_code == 201, answer.text
    id_, name = answer.json()["metadata"]["id"], answer.json()["metadata"]["name"]
    wait_for("it runs", lambda: region.api("OTHER").get(id_).json()["status"].get("powerState") == "Running")
    assert region.api("USER").get(id_).status_code == 403
    assert region.cloud_of(second).instance(name)
    assert region.cloud.instance(name) is None
    assert region.api("OTHER").delete(id_).status_code == 202
    wait_for("it is gone", lambda: region.api("OTHER").get(id_).status_code == 404)


def test_only_the_admin_holds_gates_and_image_creation(region: Sandbox) -> None:
    rights = {role: dict(caller.grants) for role, caller in region.world.callers.items()}
    assert [role for role, grants in rights.items() if "region:images" in grants] == ["ADMIN"]
    assert [role for role, grants in rights.items() if f"{SERVERS}:v2/provider-create-gates" in grants] == ["ADMIN"]
