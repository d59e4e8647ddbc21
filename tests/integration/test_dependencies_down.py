"""Kubernetes, Nova or Keystone gone for a while, and the controller's way back: everything wanted meanwhile is done."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
import requests

from server_api.sandbox.kubernetes.server import write_kubeconfig
from server_api.sandbox.services import CONTROLLER, KUBERNETES, NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.sandbox.world import Tenant
from server_api.store import kinds
from tests.integration.controllers import controllers_of_our_own
from tests.integration.harness import Item, Sandbox
from tests.integration.silent_proxy import silent_proxy

NOVA = "openstack/nova"
LEADING = "server_api_controller_leading"


@pytest.fixture
def settled(region: Sandbox) -> Iterator[Item]:
    """A server that runs, and at whose end nothing is left."""
    id_ = region.create()["metadata"]["id"]
    yield region.running(id_)
    region.remove(id_)
    region.assert_no_orphans()


def gone(region: Sandbox, how: str, name: str) -> AbstractContextManager[None]:
    return region.without(name) if how == "stopped" else region.standing_still(name)


def leads(region: Sandbox) -> bool:
    metrics = requests.get(f"{region.region.choices.url(CONTROLLER)}/metrics", timeout=5).text
    (value,) = [line.split()[1] for line in metrics.splitlines() if line.startswith(f"{LEADING} ")]
    return float(value) == 1


@pytest.mark.parametrize("how", ["stopped", "standing still"])
def test_b39_while_kubernetes_is_gone_nobody_leads_and_afterwards_everything_is_done(
    region: Sandbox, settled: Item, how: str
) -> None:
    going = region.create(region.body(public=True))["metadata"]["id"]
    region.running(going)
    coming = region.create(region.body(public=True))["metadata"]["id"]
    assert region.api().delete(going).status_code == 202
    with gone(region, how, KUBERNETES):
        wait_for("the controller does not lead any more", lambda: not leads(region))
    region.running(coming)
    region.gone(going)
    assert region.api().act(settled["metadata"]["id"], "stop").status_code == 202
    region.in_power_state(settled["metadata"]["id"], "Stopped")
    region.remove(coming)


def test_b39_a_watch_that_goes_silent_is_noticed_and_nothing_is_missed(region: Sandbox, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with (
        silent_proxy(region.region.choices.ports[KUBERNETES]) as proxy,
        controllers_of_our_own(region, tmp_path) as controllers,
    ):
        write_kubeconfig(kubeconfig, f"http://127.0.0.1:{proxy.port}", namespace=NAMESPACE)
        # a watch is taken for dead when it is silent for longer than it was to last and a time-out more: 7 s here
        controllers.start(kubeconfig=kubeconfig, watch_seconds=2)
        first = region.create()["metadata"]["id"]
        region.running(first)
        assert proxy.silence() > 0
        assert region.api().delete(first).status_code == 202
        second = region.create()["metadata"]["id"]
        region.running(second)
        region.gone(first)
        region.remove(second)
    region.assert_no_orphans()


@pytest.mark.parametrize("how", ["stopped", "standing still"])
def test_what_is_wanted_while_nova_is_gone_is_told_and_done_when_it_is_back(
    region: Sandbox, settled: Item, how: str
) -> None:
    going = region.create(region.body(public=True))["metadata"]["id"]
    region.running(going)
    with ExitStack() as stack:
        # the API asks Nova for the flavors before it accepts a server, so Nova goes after that
        with region.without_controller():
            server = region.create(region.body(public=True))
            coming = server["metadata"]["id"]
            assert region.api().delete(going).status_code == 202
            stack.enter_context(gone(region, how, NOVA))
        for id_ in (coming, going):
            wait_for("it is told", partial(tells, region, id_, "nova: "))
        assert region.read(settled["metadata"]["id"])["status"]["powerState"] == "Running"
        assert region.read(coming)["metadata"]["provisioningStatus"] != "provisioned"
        assert region.stored(going)
    region.running(coming, 120)
    region.gone(going, 120)
    assert len(region.instances_ever(server["metadata"]["name"])) == 1
    region.remove(coming)


def test_b80_tokens_revoked_under_the_running_controller_are_replaced(region: Sandbox, settled: Item) -> None:
    tenant = region.world.first
    token = log_in(region, tenant)
    assert accepted(region, token)
    # Keystone revokes the tokens of whoever is disabled
    with disabled(region, tenant):
        pass
    assert not accepted(region, token)
    server = region.create(region.body(public=True))["metadata"]["id"]
    region.running(server)
    # behind the API's back: only the monitor can see it
    region.instance_action(settled["metadata"]["name"], {"os-stop": None})
    region.in_power_state(settled["metadata"]["id"], "Stopped")
    region.remove(server)


def test_b32_a_deletion_whose_credentials_are_broken_says_so_keeps_the_finalizer_and_ends_once_they_are_mended(
    region: Sandbox,
) -> None:
    id_ = region.create(region.body(public=True))["metadata"]["id"]
    region.running(id_)
    with wrong_password(region, region.world.first):
        assert region.api().delete(id_).status_code == 202
        wait_for("it is told", partial(tells, region, id_, "keystone: "))
        stored = region.stored(id_)
        assert stored
        assert "unikorn" in stored["metadata"]["finalizers"]
        assert region.condition(id_)["reason"] == "Errored"
    region.gone(id_, 90)
    region.assert_no_orphans()


def tells(region: Sandbox, server_id: str, words: str) -> bool:
    return words in region.condition(server_id).get("message", "")


def log_in(region: Sandbox, tenant: Tenant) -> str:
    user = region.user_of(tenant)
    identity = {"methods": ["password"], "password": {"user": {"id": user.user_id, "password": tenant.password}}}
    auth = {"identity": identity, "scope": {"project": {"id": user.project_id}}}
    answer = requests.post(f"{region.region.openstack.auth_url}/auth/tokens", json={"auth": auth}, timeout=10)
    assert answer.status_code == 201, answer.text
    return answer.headers["X-Subject-Token"]


def accepted(region: Sandbox, token: str) -> bool:
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    answer = requests.get(f"{region.region.openstack.auth_url}/auth/tokens", headers=headers, timeout=10)
    return answer.status_code == 200


@contextmanager
def disabled(region: Sandbox, tenant: Tenant) -> Iterator[None]:
    """Have Keystone refuse a tenant inside of the block, and its tokens from before for ever."""
    identity, path = region.admin().identity, f"/users/{region.user_of(tenant).user_id}"
    identity.patch(path, json={"user": {"enabled": False}})
    try:
        yield
    finally:
        identity.patch(path, json={"user": {"enabled": True}})


@contextmanager
def wrong_password(region: Sandbox, tenant: Tenant) -> Iterator[None]:
    """Have us know a password, inside of the block, that Keystone does not."""

    def store(password: str) -> None:
        region.kubernetes.patch(
            kinds.OPENSTACK_IDENTITY, NAMESPACE, tenant.identity_id, {"spec": {"password": password}}
        )

    store("not-the-password")
    try:
        yield
    finally:
        store(tenant.password)
