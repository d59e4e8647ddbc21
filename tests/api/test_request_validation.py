"""What a body or a query may look like, and that what is refused is named by place and never echoed."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.api.errors import assert_error
from tests.api.world import IMAGE, NETWORK, World, create_body, update_body

SERVERS = "/api/v2/servers"


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return a full create request with one member, named by a JSON pointer, set to a value."""
    body = create_body(
        networking={"securityGroups": [], "publicIP": True, "allowedSourceAddresses": []},
        providerCreateGates=[{"conditionType": "example.com/ready"}],
    )
    body["metadata"] |= {"description": "", "tags": [{"name": "a", "value": "b"}]}
    body = copy.deepcopy(body)
    *parents, last = path.split("/")[1:]
    place: Any = body
    for name in parents:
        place = place[int(name)] if isinstance(place, list) else place[name]
    if isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return body


@pytest.mark.parametrize(
    "path", ["/metadata", "/spec", "/metadata/name", "/spec/networkId", "/spec/flavorId", "/spec/imageId"]
)
def test_t16_required_member_missing(user: Api, path: str) -> None:
    body = changed(path, None)
    *parents, last = path.split("/")[1:]
    place = body
    for name in parents:
        place = place[name]
    del place[last]
    assert f"{path}: " in assert_error(user.post(SERVERS, body), 400, "invalid_request")


@pytest.mark.parametrize(
    "name",
    ["", "a" * 64, "web-", "-web", "web 0", "wéb", "web\n", "web-0\n", "web/0", "_web", "٣", 7, True, ["web"]],
)
def test_t17_name_that_is_no_label_value(user: Api, name: Any) -> None:
    assert "/metadata/name" in assert_error(user.post(SERVERS, changed("/metadata/name", name)), 400, "invalid_request")


@pytest.mark.parametrize("name", ["a", "A", "0", "a" * 63, "web_0.prod-1"])
def test_t18_name_of_legal_shape(user: Api, name: str) -> None:
    assert user.post(SERVERS, create_body(name)).status_code == 201


@pytest.mark.parametrize("path", ["/spec/networkId", "/spec/flavorId", "/spec/imageId"])
@pytest.mark.parametrize(
    "value", ["abc", "", 7, None, f"{NETWORK}0", "../x", f"http://nova/{NETWORK}", "-" * 36, [NETWORK]]
)
def test_t19_b24_malformed_id(user: Api, world: World, path: str, value: Any) -> None:
    assert f"{path}: " in assert_error(user.post(SERVERS, changed(path, value)), 400, "invalid_request")
    assert world.cloud.calls == []


def test_b24_ids_are_forwarded_in_canonical_form(user: Api) -> None:
    response = user.post(SERVERS, create_body(imageId=IMAGE.upper(), networkId=f"{{{NETWORK}}}"))
    assert response.status_code == 201
    assert response.get_json()["spec"]["imageId"] == IMAGE
    assert response.get_json()["status"]["networkId"] == NETWORK


@pytest.mark.parametrize("mode", ["password", "CA", "", 1])
def test_t20_unknown_ssh_mode(user: Api, mode: Any) -> None:
    assert "/spec/sshInjection" in assert_error(
        user.post(SERVERS, create_body(sshInjection=mode)), 400, "invalid_request"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/metadata",
        "/metadata/description",
        "/metadata/tags",
        "/metadata/tags/0",
        "/metadata/tags/0/value",
        "/spec",
        "/spec/networking",
        "/spec/networking/publicIP",
        "/spec/networking/securityGroups",
        "/spec/networking/allowedSourceAddresses",
        "/spec/userData",
        "/spec/sshCertificateAuthorityId",
        "/spec/infrastructureRef",
        "/spec/providerCreateGates",
        "/spec/providerCreateGates/0",
    ],
)
def test_t21_null_is_no_value(user: Api, path: str) -> None:
    assert f"{path}: " in assert_error(user.post(SERVERS, changed(path, None)), 400, "invalid_request")


@pytest.mark.parametrize(
    "path", ["/colour", "/metadata/colour", "/spec/colour", "/spec/networking/colour", "/metadata/tags/0/colour"]
)
def test_t22_b48_b49_unknown_members_are_ignored_at_every_level(user: Api, path: str) -> None:
    body = changed(path, {"red": None})
    del body["spec"]["providerCreateGates"]
    assert user.post(SERVERS, body).status_code == 201


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/spec/networking/publicIP", "yes"),
        ("/spec/networking/publicIP", "true"),
        ("/spec/networking/publicIP", 1),
        ("/spec/networking/publicIP", 0),
        ("/metadata/description", 1),
        ("/metadata/description", True),
        ("/metadata/tags", {}),
        ("/metadata/tags", "a=b"),
        ("/metadata/tags/0", "a=b"),
        ("/metadata/tags/0", {"name": "a"}),
        ("/metadata/tags/0/name", 1),
        ("/spec/networking", []),
        ("/spec/networking", "x"),
        ("/spec/networking/securityGroups", "x"),
        ("/spec/networking/allowedSourceAddresses", "10.0.0.0/8"),
        ("/spec/networking/allowedSourceAddresses", [10]),
        ("/spec/sshCertificateAuthorityId", 1),
        ("/spec/infrastructureRef", ""),
        ("/spec/providerCreateGates", [{"conditionType": "a"}] * 17),
        ("/spec/providerCreateGates/0", {}),
        ("/spec/providerCreateGates/0/conditionType", "a/b/c"),
        ("/spec/providerCreateGates/0/conditionType", "ready\n"),
    ],
)
def test_b53_types_are_strict(user: Api, path: str, value: Any) -> None:
    assert f"{path}" in assert_error(user.post(SERVERS, changed(path, value)), 400, "invalid_request")


@pytest.mark.parametrize("text", ["I2Nsb3Vk-_", "QQ", "QQ=", "QQ==\n", "Q Q=", "=", "%%%%", "QQ==QQ==", "é", 5])
def test_user_data_is_padded_standard_base64(user: Api, text: Any) -> None:
    assert "/spec/userData" in assert_error(user.post(SERVERS, create_body(userData=text)), 400, "invalid_request")


def test_refused_values_are_not_echoed(user: Api) -> None:
    secret = "hunter2hunter2"
    body = create_body(networkId=secret, userData=secret + "-", sshInjection=secret)
    assert secret not in assert_error(user.post(SERVERS, body), 400, "invalid_request")


def test_b60_a_thousand_faults_are_told_briefly(user: Api) -> None:
    tags = [{"name": 1, "value": "x" * 90} for _ in range(1000)]
    description = assert_error(user.post(SERVERS, changed("/metadata/tags", tags)), 400, "invalid_request")
    assert "/metadata/tags/0/name" in description
    assert "995 more" in description


def test_update_is_validated_too(user: Api) -> None:
    server_id = user.create(create_body())
    for body, place in (
        ({}, "/metadata"),
        (update_body(imageId="x"), "/spec/imageId"),
        (update_body(networking=None), "/spec/networking"),
        (update_body(userData="!"), "/spec/userData"),
    ):
        assert place in assert_error(user.put(f"{SERVERS}/{server_id}", body), 400, "invalid_request")


def test_b46_long_texts_are_stored_outside_of_labels(user: Api) -> None:
    body = create_body("n" * 63)
    body["metadata"] |= {"description": "d" * 4096, "tags": [{"name": "t/ x", "value": "ä/ " * 100}]}
    server_id = user.create(body)
    metadata = user.get(f"{SERVERS}/{server_id}").get_json()["metadata"]
    assert metadata["description"] == "d" * 4096
    assert metadata["tags"] == body["metadata"]["tags"]


@pytest.mark.parametrize("name", ["networkid", "tags", "limit", "organizationId", "x" * 5000, "%00", "%F0%9F%92%A9"])
def test_b48_unknown_query_parameter(user: Api, name: str) -> None:
    description = assert_error(user.get(f"{SERVERS}?regionID=x&{name}=1"), 400, "invalid_request")
    assert len(description) < 200
    if name.isalpha():
        assert name[:60] in description


@pytest.mark.parametrize("name", ["x", "tag", "Length", "x" * 5000, "%00", ""])
def test_b48_operations_without_query_parameters_refuse_any(user: Api, world: World, name: str) -> None:
    server_id = user.create(create_body())
    world.cloud.hold(server_id, "web-0")
    world.cloud.calls.clear()
    one = f"{SERVERS}/{server_id}"
    operations = [("POST", SERVERS), ("GET", one), ("PUT", one), ("DELETE", one)]
    operations += [("POST", f"{one}/{verb}") for verb in ("start", "stop", "softreboot", "hardreboot")]
    operations += [("POST", f"{one}/{verb}") for verb in ("snapshot", "provider-create-gates")]
    operations += [("GET", f"{one}/{verb}") for verb in ("sshkey", "consolesessions")]
    for method, path in operations:
        description = assert_error(user.request(method, f"{path}?{name}=1"), 400, "invalid_request")
        assert "query" in description
        assert len(description) < 200
        if name.isalpha():
            assert name[:60] in description
    assert world.cloud.calls == []
    assert user.get(one).get_json()["metadata"]["provisioningStatus"] == "pending"


@pytest.mark.parametrize("name", ["organizationID", "projectID", "regionID", "networkID"])
@pytest.mark.parametrize("value", ["", "a b", "a,b", "-a", "a" * 64, "%00", "%ff", "é", "a%0A"])
def test_query_id_that_no_label_can_have(user: Api, name: str, value: str) -> None:
    assert_error(user.get(f"{SERVERS}?{name}={value}"), 400, "invalid_request")


def test_parameters_are_checked_after_authentication(client: Any) -> None:
    assert_error(client.get(f"{SERVERS}?limit=1"), 401, "access_denied")
    assert_error(client.get(f"{SERVERS}/{NETWORK}?x=1"), 401, "access_denied")
    assert_error(client.post(f"{SERVERS}?x=1"), 401, "access_denied")


def test_b72_largest_user_data_survives(user: Api) -> None:
    text = "#cloud-config\n#" + 'é%\\"' * 5000
    encoded = base64.b64encode(text.encode()).decode()
    server_id = user.create(create_body(userData=encoded))
    assert user.get(f"{SERVERS}/{server_id}").get_json()["spec"]["userData"] == encoded
