from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from server_api.http.rendering import NIL_ID
from server_api.http.v2.rendering import UnreadableServer, server_document
from server_api.servers.model import (
    AddressPair,
    Condition,
    GateStatus,
    Metadata,
    NetworkAttachment,
    Server,
    ServerSpec,
    ServerStatus,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SERVER = Server(
    id="a" * 8,
    metadata=Metadata(name="web", organization_id="o", project_id="p", region_id="r", created_at=AT),
    spec=ServerSpec(flavor_id="f", image_id="i", networks=(NetworkAttachment("n"),)),
)


def with_spec(**members: Any) -> Server:
    return replace(SERVER, spec=replace(SERVER.spec, **members))


def with_status(**members: Any) -> Server:
    return replace(SERVER, status=ServerStatus(**members))


def test_what_is_not_set_is_left_out() -> None:
    assert server_document(SERVER) == {
        "metadata": {
            "id": SERVER.id,
            "name": "web",
            "creationTime": AT,
            "organizationId": "o",
            "projectId": "p",
            "provisioningStatus": "pending",
            "healthStatus": "unknown",
        },
        "spec": {"flavorId": "f", "imageId": "i"},
        "status": {"regionId": "r", "networkId": "n", "sshInjection": "identityKeypair"},
    }


@pytest.mark.parametrize(
    "members",
    [
        {"security_group_ids": (), "public_ip": False, "user_data": b""},
        {"networks": (NetworkAttachment("n", allowed_address_pairs=()),)},
        {"infrastructure_ref": "", "ssh_certificate_authority_id": ""},
    ],
)
def test_what_is_empty_is_left_out(members: dict[str, Any]) -> None:
    assert server_document(with_spec(**members)) == server_document(SERVER)


def test_networking_shows_prefixes_only() -> None:
    pairs = (AddressPair("10.0.0.0/24", "fa:16:3e:00:00:01"),)
    shown = server_document(
        with_spec(security_group_ids=("g",), public_ip=True, networks=(NetworkAttachment("n", pairs),))
    )["spec"]["networking"]
    assert shown == {"securityGroups": ("g",), "publicIP": True, "allowedSourceAddresses": ["10.0.0.0/24"]}


def test_remaining_gates_are_shown_once_any_was_configured() -> None:
    satisfied = GateStatus("a", "True", AT, "actor", "Reason", "")
    server = replace(
        with_spec(provider_create_gates=("a", "b")), status=ServerStatus(provider_create_gates=(satisfied,))
    )
    assert server_document(server)["status"]["remainingProviderCreateGates"] == ("b",)


@pytest.mark.parametrize(("phase", "shown"), [("Running", "Running"), ("", None), (None, None), ("Levitating", None)])
def test_r20_only_a_known_phase_is_shown(phase: str | None, shown: str | None) -> None:
    assert server_document(with_status(phase=phase))["status"].get("powerState") == shown


def test_details_have_only_reasons_that_are_documented() -> None:
    conditions = (Condition("Available", "False", "Novel", "m"), Condition("Healthy", "False", "Errored", "m"))
    metadata = server_document(with_status(conditions=conditions))["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("provisioning", "error")
    assert not {"provisioningStatusDetail", "healthStatusDetail"} & metadata.keys()


def test_a_server_without_an_image_cannot_be_shown() -> None:
    with pytest.raises(UnreadableServer, match=SERVER.id):
        server_document(with_spec(image_id=None))


def test_a_server_with_nothing_but_an_image_is_shown_with_what_stands_for_nothing() -> None:
    nothing = Metadata(name="", organization_id="", project_id="")
    document = server_document(Server("a" * 8, nothing, ServerSpec(flavor_id="", image_id="i")))
    assert document["metadata"]["name"] == "a" * 8
    assert document["metadata"]["creationTime"] == datetime(1970, 1, 1, tzinfo=UTC)
    assert document["spec"] == {"flavorId": NIL_ID, "imageId": "i"}
    assert document["status"] == {"regionId": NIL_ID, "networkId": NIL_ID, "sshInjection": "identityKeypair"}


def test_a_server_without_an_attachment_shows_the_network_it_is_labelled_with() -> None:
    server = replace(with_spec(networks=()), metadata=replace(SERVER.metadata, network_id="n"))
    assert server_document(server)["status"]["networkId"] == "n"


def test_prefixes_are_shown_masked_and_once() -> None:
    pairs = (AddressPair("10.0.0.5/24", "fa:16:3e:00:00:01"), AddressPair("10.0.0.0/24"), AddressPair("10.1.0.0/16"))
    document = server_document(with_spec(networks=(NetworkAttachment("n", allowed_address_pairs=pairs),)))
    assert document["spec"]["networking"] == {"allowedSourceAddresses": ["10.0.0.0/24", "10.1.0.0/16"]}
