"""Gates that hold servers back from being created in the cloud (contract 1.11 and 9.6)."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from server_api.servers.ports import PortError, Refused, StateConflict
from server_api.store import labels
from server_api.store.servers import KubernetesServerStore
from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import NOWHERE, PEOPLE, World, create_body, update_body
from tests.doubles.clock import FixedClock

SERVERS = "/api/v2/servers"
GATE = "example.unikorn-cloud.org/pre-create-ready"
SECOND_GATE = "second"
LONGEST_GATE = f"{'a' * 252}/{'b' * 63}"


def gates(*condition_types: str) -> list[dict[str, str]]:
    return [{"conditionType": condition_type} for condition_type in condition_types]


def action(condition_type: str = GATE, reason: str = "Ready", message: str = "all set") -> dict[str, str]:
    return {"conditionType": condition_type, "reason": reason, "message": message}


@pytest.fixture
def server_id(user: Api) -> str:
    return user.create(create_body(providerCreateGates=gates(GATE, SECOND_GATE)))


@pytest.fixture
def path(server_id: str) -> str:
    return f"{SERVERS}/{server_id}/provider-create-gates"


@pytest.fixture
def service(client: FlaskClient) -> Api:
    return Api(client, "SERVICE")


def remaining(api: Api, server_id: str) -> Any:
    return api.get(f"{SERVERS}/{server_id}").get_json()["status"].get("remainingProviderCreateGates")


def test_g01_gates_remain_in_the_order_of_the_create(user: Api) -> None:
    response = user.post(SERVERS, create_body(providerCreateGates=gates(SECOND_GATE, GATE)))
    assert response.status_code == 201
    assert response.get_json()["status"]["remainingProviderCreateGates"] == [SECOND_GATE, GATE]
    server_id = response.get_json()["metadata"]["id"]
    assert remaining(user, server_id) == [SECOND_GATE, GATE]
    assert "providerCreateGates" not in user.get(f"{SERVERS}/{server_id}").get_json()["spec"]


def test_g03_gate_is_satisfied_by_the_authenticated_subject(
    user: Api, service: Api, world: World, server_id: str, path: str, clock: FixedClock
) -> None:
    response = service.post(path, action() | {"actor": "somebody else"}, headers={"X-Principal": "somebody else"})
    assert (response.status_code, response.data) == (202, b"")
    assert "Content-Type" not in response.headers
    assert remaining(user, server_id) == [SECOND_GATE]
    [stored] = world.stored(server_id).status.provider_create_gates
    assert (stored.condition_type, stored.status) == (GATE, "True")
    assert (stored.actor, stored.reason, stored.message) == (PEOPLE["SERVICE"].subject, "Ready", "all set")
    assert stored.last_transition_time == clock.now().replace(microsecond=0)
    assert service.post(path, action(SECOND_GATE)).status_code == 202
    assert remaining(user, server_id) == []


def test_g05_satisfying_again_refreshes_all_but_the_transition_time(
    admin: Api, service: Api, world: World, server_id: str, path: str, clock: FixedClock
) -> None:
    service.post(path, action())
    since = clock.now().replace(microsecond=0)
    clock.advance(60)
    assert admin.post(path, action(reason="Again", message="")).status_code == 202
    [stored] = world.stored(server_id).status.provider_create_gates
    assert (stored.actor, stored.reason, stored.message) == (PEOPLE["ADMIN"].subject, "Again", "")
    assert stored.last_transition_time == since


def test_g06_gate_the_server_does_not_have(service: Api, user: Api, path: str) -> None:
    assert "/conditionType" in assert_error(service.post(path, action("other")), 422, "unprocessable_content")
    plain = f"{SERVERS}/{user.create(create_body('plain'))}/provider-create-gates"
    assert_error(service.post(plain, action()), 422, "unprocessable_content")


@pytest.mark.parametrize(
    "who", [pytest.param("GATEKEEPER", id="g07"), pytest.param("READER", id="g08"), pytest.param("USER", id="g08-user")]
)
def test_g07_g08_either_right_alone_is_not_enough(
    client: FlaskClient, world: World, server_id: str, path: str, who: str
) -> None:
    assert_error(Api(client, who).post(path, action()), 403, "forbidden")
    assert world.stored(server_id).status.provider_create_gates == ()


def test_g09_missing_server(service: Api) -> None:
    assert_error(service.post(f"{SERVERS}/{NOWHERE}/provider-create-gates", action()), 404, "not_found")


@pytest.mark.parametrize("version", [None, "1"])
def test_g09_server_of_another_api_version(
    service: Api, world: World, server_id: str, path: str, version: str | None
) -> None:
    world.patch(server_id, metadata={"labels": {labels.API_VERSION: version}})
    assert_error(service.post(path, action()), 404, "not_found")


@pytest.mark.parametrize("member", ["conditionType", "reason", "message"])
def test_g10_every_member_is_required(service: Api, path: str, member: str) -> None:
    incomplete = {name: value for name, value in action().items() if name != member}
    assert f"/{member}: " in assert_error(service.post(path, incomplete), 400, "invalid_request")
    assert f"/{member}: " in assert_error(service.post(path, action() | {member: None}), 400, "invalid_request")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("conditionType", ""),
        ("conditionType", "a" * 317),
        ("conditionType", f"A/{GATE}"),
        ("conditionType", f"Example.com/{SECOND_GATE}"),
        ("conditionType", "-a"),
        ("conditionType", "a/"),
        ("conditionType", "/a"),
        ("conditionType", f"{GATE}\n"),
        ("conditionType", 1),
        ("reason", ""),
        ("reason", "R" * 1025),
        ("reason", "1Ready"),
        ("reason", "Ready,"),
        ("reason", "not ready"),
        ("reason", "Ready\n"),
        ("reason", "Réady"),
        ("message", "m" * 32_769),
        ("message", 1),
    ],
)
def test_action_of_no_legal_shape(
    service: Api, world: World, server_id: str, path: str, member: str, value: Any
) -> None:
    description = assert_error(service.post(path, action() | {member: value}), 400, "invalid_request")
    assert description.startswith(f"/{member}: ")
    assert world.stored(server_id).status.provider_create_gates == ()


def test_longest_action(user: Api, service: Api, world: World) -> None:
    server_id = user.create(create_body(providerCreateGates=gates(LONGEST_GATE)))
    request = action(LONGEST_GATE, "R" * 1024, "é" * 32_768)
    assert service.post(f"{SERVERS}/{server_id}/provider-create-gates", request).status_code == 202
    [stored] = world.stored(server_id).status.provider_create_gates
    assert (stored.condition_type, stored.reason, stored.message) == tuple(request.values())


@pytest.mark.parametrize("reason", ["R", "A_", "A:b,c_1"])
def test_reasons_of_legal_shape(service: Api, path: str, reason: str) -> None:
    assert service.post(path, action(reason=reason)).status_code == 202


def test_action_on_a_server_being_deleted(user: Api, service: Api, world: World, server_id: str, path: str) -> None:
    world.patch(server_id, metadata={"finalizers": ["unikorn"]})
    user.delete(f"{SERVERS}/{server_id}")
    assert_error(service.post(path, action()), 400, "invalid_request")


def test_g12_updates_touch_neither_gates_nor_what_is_recorded_of_them(
    user: Api, service: Api, world: World, server_id: str, path: str
) -> None:
    service.post(path, action())
    before = world.stored(server_id)
    request = update_body(metadata={"description": "after"}, providerCreateGates=gates("other"))
    assert user.put(f"{SERVERS}/{server_id}", request).status_code == 202
    after = world.stored(server_id)
    assert after.spec.provider_create_gates == before.spec.provider_create_gates == (GATE, SECOND_GATE)
    assert after.status == before.status


@pytest.mark.parametrize("edited", [None, [], gates(GATE), gates(SECOND_GATE, GATE)])
def test_g13_stored_gates_are_immutable(world: World, server_id: str, edited: Any) -> None:
    with pytest.raises(Refused):
        world.patch(server_id, spec={"providerCreateGates": edited})
    assert world.stored(server_id).spec.provider_create_gates == (GATE, SECOND_GATE)


def test_g13_gates_cannot_be_added_later(user: Api, world: World) -> None:
    plain = user.create(create_body())
    with pytest.raises(Refused):
        world.patch(plain, spec={"providerCreateGates": gates(GATE)})


def test_g16_server_without_gates(user: Api) -> None:
    assert remaining(user, user.create(create_body())) is None


def test_g17_gate_listed_twice(user: Api) -> None:
    response = user.post(SERVERS, create_body(providerCreateGates=gates(GATE, SECOND_GATE, GATE)))
    assert "/spec/providerCreateGates" in assert_error(response, 422, "unprocessable_content")


def test_most_and_longest_gates_of_a_create(user: Api) -> None:
    names = [f"gate-{number}" for number in range(15)] + [LONGEST_GATE]
    assert remaining(user, user.create(create_body(providerCreateGates=gates(*names)))) == names
    response = user.post(SERVERS, create_body("other", providerCreateGates=gates(*names, "one-more")))
    assert "/spec/providerCreateGates: " in assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize(
    "condition_type",
    ["", "a" * 317, f"{LONGEST_GATE}b", "a/b/c", "A.b/c", "a_b/c", "a b", "a-", ".a", "a.", "é", "a\n", 1],
)
def test_gate_of_no_legal_shape(user: Api, condition_type: Any) -> None:
    response = user.post(SERVERS, create_body(providerCreateGates=gates(condition_type)))
    assert "/spec/providerCreateGates/0/conditionType" in assert_error(response, 400, "invalid_request")


@pytest.mark.parametrize(("lost", "status"), [(1, 202), (3, 202), (4, 409)])
def test_lost_races_are_tried_again_three_times(
    service: Api, path: str, monkeypatch: pytest.MonkeyPatch, lost: int, status: int
) -> None:
    races: list[PortError] = [StateConflict("kubernetes", "the object has been modified")] * lost
    original = KubernetesServerStore.patch_status

    def patch_status(*arguments: Any) -> Any:
        if races:
            raise races.pop()
        return original(*arguments)

    monkeypatch.setattr(KubernetesServerStore, "patch_status", patch_status)
    response = service.post(path, action())
    assert response.status_code == status
    if status == 409:
        assert_error(response, 409, "conflict")
