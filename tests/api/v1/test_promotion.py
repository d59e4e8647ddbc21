"""What clients of v1 see of a server that was promoted: the same as before, and what v2 fixes is fixed."""

from __future__ import annotations

from server_api.servers.promoter import Promoter, Verdict
from server_api.store import kinds
from server_api.store.directory import KubernetesDirectory
from server_api.store.promotions import PromotableServerStore
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.v1.legacy import LEGACY, leave
from tests.api.world import NAMESPACE, NOWHERE, SECOND_NETWORK, SECURITY_GROUP, World


def promote(world: World) -> None:
    directory = KubernetesDirectory(world.client, NAMESPACE)
    promoter = Promoter(PromotableServerStore(world.client, NAMESPACE), directory, world.cloud)
    assert [promoter.promote(server_id).verdict for server_id in promoter.survey()] == [Verdict.PROMOTED]


def test_a_promoted_server_reads_the_same_in_v1_and_can_be_put_back(user: Api, world: World) -> None:
    path = leave(
        world,
        securityGroups=[{"id": SECURITY_GROUP}],
        publicIPAllocation={"enabled": False},
        userData="ZWNobyBoZWxsbwo=",
    )
    before = user.get(path).get_json()
    promote(world)
    assert user.get(path).get_json() == before
    response = user.put(path, before)
    assert response.status_code == 202
    assert response.get_json()["spec"] == before["spec"]
    stored = world.stored(LEGACY)
    assert (stored.metadata.api_version, stored.spec.ssh_injection) == ("2", "identityKeypair")


def test_flavor_and_network_of_a_promoted_server_are_fixed_in_v1_too(user: Api, world: World) -> None:
    path = leave(world)
    body = user.get(path).get_json()
    promote(world)
    flavor = body | {"spec": body["spec"] | {"flavorId": NOWHERE}}
    assert_error(user.put(path, flavor), 422, "unprocessable_content")
    network = body | {"spec": body["spec"] | {"networks": [{"id": SECOND_NETWORK}]}}
    assert_error(user.put(path, network), 422, "unprocessable_content")


def test_a_promoted_server_can_be_deleted_through_v1(user: Api, world: World) -> None:
    path = leave(world)
    promote(world)
    assert user.delete(path).status_code == 202
    assert world.client.list(kinds.SERVER, NAMESPACE).items == []
