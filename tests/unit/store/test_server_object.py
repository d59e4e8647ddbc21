"""A stored server read and written."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from server_api.servers.model import (
    AddressPair,
    CloudRequest,
    CloudRequestKind,
    Metadata,
    NetworkAttachment,
    Server,
    ServerSpec,
    Tag,
)
from server_api.store import labels
from server_api.store.server_object import from_object, to_object

Stored = dict[str, Any]


def test_everything_the_model_knows_is_read(stored_server: Stored) -> None:
    server = from_object(stored_server)
    network_id = stored_server["spec"]["networks"][0]["id"]
    assert server.metadata == Metadata(
        name="web-0",
        organization_id="organization-1",
        project_id="project-1",
        region_id="region-1",
        identity_id="identity-1",
        network_id=network_id,
        api_version="2",
        description="the first",
        creator="alice",
        principal_creator="bob",
        created_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        finalizers=("unikorn",),
        owner_uid="5f3c8f0e-0000-4000-8000-000000000002",
        uid="5f3c8f0e-0000-4000-8000-000000000001",
        generation=3,
        resource_version="41",
    )
    assert server.spec == ServerSpec(
        flavor_id=stored_server["spec"]["flavorID"],
        image_id=stored_server["spec"]["image"]["id"],
        networks=(NetworkAttachment(network_id, (AddressPair("10.0.0.0/24"),)),),
        tags=(Tag("tier", "front"),),
        security_group_ids=(network_id,),
        public_ip=True,
        user_data=b"#cloud-config\n",
    )
    assert server.status.phase == "Running"
    assert server.status.private_ip == "10.0.0.5"


def test_an_unchanged_server_is_written_as_it_was_read(stored_server: Stored) -> None:
    assert to_object(from_object(copy.deepcopy(stored_server))) == stored_server


def test_a_change_keeps_what_the_model_cannot_express(stored_server: Stored) -> None:
    server = from_object(copy.deepcopy(stored_server))
    network_id = server.spec.networks[0].id
    changed = replace(
        server,
        metadata=replace(server.metadata, description="the second", modifier="carol"),
        spec=replace(
            server.spec,
            image_id="33333333-1234-4678-9abc-def012345678",
            tags=(),
            networks=(NetworkAttachment(network_id, (AddressPair("10.1.0.0/24", "fa:16:3e:00:00:01"),)),),
            security_group_ids=(*(server.spec.security_group_ids or ()), "group-2"),
            user_data=None,
        ),
    )
    expected = copy.deepcopy(stored_server)
    expected["metadata"]["annotations"] |= {
        "unikorn-cloud.org/description": "the second",
        "unikorn-cloud.org/modifier": "carol",
    }
    expected["spec"]["image"]["id"] = "33333333-1234-4678-9abc-def012345678"
    expected["spec"]["networks"][0]["allowedAddressPairs"] = [
        {"cidr": "10.1.0.0/24", "macAddress": "fa:16:3e:00:00:01"}
    ]
    expected["spec"]["securityGroups"].append({"id": "group-2"})
    del expected["spec"]["tags"], expected["spec"]["userData"]
    assert to_object(changed) == expected


def test_what_was_read_is_not_changed_by_writing(stored_server: Stored) -> None:
    original = copy.deepcopy(stored_server)
    server = from_object(stored_server)
    to_object(replace(server, metadata=replace(server.metadata, description="other", finalizers=())))
    assert stored_server == original


REQUESTS = [
    CloudRequest(CloudRequestKind.CREATE_PORT, datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
    CloudRequest(CloudRequestKind.CREATE, datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
    CloudRequest(CloudRequestKind.REBUILD, datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC), "image-2", before="req-1"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.kind.value)
def test_the_record_of_a_request_to_the_cloud_is_kept_as_an_annotation(
    stored_server: Stored, request_: CloudRequest
) -> None:
    server = from_object(stored_server)

    written = to_object(replace(server, metadata=replace(server.metadata, cloud_request=request_)))
    recorded = from_object(written)

    assert recorded.metadata.cloud_request == request_
    assert written["metadata"]["annotations"].keys() - stored_server["metadata"]["annotations"].keys() == {
        "server-api.unikorn-cloud.org/cloud-request"
    }
    assert to_object(replace(recorded, metadata=replace(recorded.metadata, cloud_request=None))) == stored_server


@pytest.mark.parametrize(
    "text",
    ["", "create", "[]", "null", '{"kind": "create"}', '{"kind": "wish", "sentAt": "2026-03-04T05:06:07Z"}', "{", 7],
)
def test_an_annotation_edited_beyond_recognition_is_no_record(stored_server: Stored, text: Any) -> None:
    stored_server["metadata"]["annotations"][labels.CLOUD_REQUEST] = text

    assert from_object(stored_server).metadata.cloud_request is None


def test_a_cleared_description_leaves_no_annotation(stored_server: Stored) -> None:
    server = from_object(stored_server)
    written = to_object(replace(server, metadata=replace(server.metadata, description=None)))
    assert "unikorn-cloud.org/description" not in written["metadata"]["annotations"]


def test_a_new_v2_server_has_labels_annotations_and_its_network_as_owner() -> None:
    server = Server(
        id="a-server",
        metadata=Metadata(
            name="web-0",
            organization_id="organization-1",
            project_id="project-1",
            region_id="region-1",
            identity_id="identity-1",
            network_id="network-1",
            api_version="2",
            creator="alice",
            principal_creator="bob",
            principal_organization_id="organization-2",
            principal_project_id="project-2",
            owner_uid="uid-1",
        ),
        spec=ServerSpec(
            flavor_id="flavor-1",
            image_id="image-1",
            networks=(NetworkAttachment("network-1"),),
            user_data=b"\x00\xff",
            public_ip=True,
            ssh_injection="ca",
            ssh_certificate_authority_id="ca-1",
            infrastructure_ref="host-1",
            provider_create_gates=("example.com/ready",),
        ),
    )
    assert to_object(server) == {
        "apiVersion": "region.unikorn-cloud.org/v1alpha1",
        "kind": "Server",
        "metadata": {
            "name": "a-server",
            "labels": {
                "unikorn-cloud.org/name": "web-0",
                "unikorn-cloud.org/organization": "organization-1",
                "unikorn-cloud.org/project": "project-1",
                "regions.unikorn-cloud.org/region-id": "region-1",
                "regions.unikorn-cloud.org/identity-id": "identity-1",
                "regions.unikorn-cloud.org/network-id": "network-1",
                "resource.unikorn-cloud.org/api-version": "2",
                "principal.unikorn-cloud.org/organization": "organization-2",
                "principal.unikorn-cloud.org/project": "project-2",
            },
            "annotations": {
                "unikorn-cloud.org/creator": "alice",
                "principal.unikorn-cloud.org/creator": "bob",
            },
            "finalizers": [],
            "ownerReferences": [
                {
                    "apiVersion": "region.unikorn-cloud.org/v1alpha1",
                    "kind": "Network",
                    "name": "network-1",
                    "uid": "uid-1",
                    "controller": False,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "flavorID": "flavor-1",
            "image": {"id": "image-1"},
            "networks": [{"id": "network-1"}],
            "publicIPAllocation": {"enabled": True},
            "userData": "AP8=",
            "sshInjection": "ca",
            "sshCertificateAuthorityID": "ca-1",
            "infrastructureRef": "host-1",
            "providerCreateGates": [{"conditionType": "example.com/ready"}],
        },
    }


def test_times_are_written_in_utc_to_the_second(stored_server: Stored) -> None:
    server = from_object(stored_server)
    moment = datetime.fromisoformat("2026-05-06T09:08:09.987654+02:00")
    written = to_object(replace(server, metadata=replace(server.metadata, modified_at=moment)))
    assert written["metadata"]["annotations"]["unikorn-cloud.org/modifiedTimestamp"] == "2026-05-06T07:08:09Z"


@pytest.mark.parametrize("part", ["labels", "annotations", "finalizers", "ownerReferences"])
@pytest.mark.parametrize("value", [None, "absent"])
def test_b41_missing_metadata_reads_as_absent(stored_server: Stored, part: str, value: str | None) -> None:
    if value is None:
        stored_server["metadata"][part] = None
    else:
        del stored_server["metadata"][part]
    metadata = from_object(stored_server).metadata
    assert metadata.uid == "5f3c8f0e-0000-4000-8000-000000000001"
    assert {
        "labels": (metadata.name, metadata.network_id) == ("", None),
        "annotations": metadata.description is None,
        "finalizers": metadata.finalizers == (),
        "ownerReferences": metadata.owner_uid is None,
    }[part]


@pytest.mark.parametrize("part", ["tags", "networks", "securityGroups", "image", "publicIPAllocation", "userData"])
def test_b41_nulls_in_the_spec_read_as_absent(stored_server: Stored, part: str) -> None:
    stored_server["spec"][part] = None
    spec = from_object(stored_server).spec
    assert {
        "tags": spec.tags == (),
        "networks": spec.networks == (),
        "securityGroups": spec.security_group_ids is None,
        "image": spec.image_id is None,
        "publicIPAllocation": spec.public_ip is None,
        "userData": spec.user_data is None,
    }[part]


@pytest.mark.parametrize("part", ["metadata", "spec", "status"])
def test_b41_a_null_part_of_the_object_can_be_read(stored_server: Stored, part: str) -> None:
    stored_server[part] = None
    server = from_object(stored_server)
    assert (server.id == "", server.spec.flavor_id == "", server.status.phase is None) == (
        part == "metadata",
        part == "spec",
        part == "status",
    )


def test_an_empty_list_is_told_from_an_absent_one(stored_server: Stored) -> None:
    stored_server["spec"]["securityGroups"] = []
    stored_server["spec"]["networks"][0]["allowedAddressPairs"] = []
    spec = from_object(stored_server).spec
    assert spec.security_group_ids == ()
    assert spec.networks[0].allowed_address_pairs == ()


@pytest.mark.parametrize(
    ("written", "read"),
    [("yes", True), ("True", True), (1, True), ("no", False), (0, False), ("perhaps", None), ([], None), (True, True)],
)
def test_b53_a_truth_value_edited_by_hand_is_still_one(stored_server: Stored, written: Any, read: bool | None) -> None:
    stored_server["spec"]["publicIPAllocation"] = {"enabled": written}
    stored_server["spec"]["pause"] = written
    spec = from_object(stored_server).spec
    assert spec.public_ip is read
    assert spec.pause is bool(read)


def test_what_cannot_be_read_survives_a_write_of_something_else(stored_server: Stored) -> None:
    stored_server["spec"]["userData"] = "no base64!"
    stored_server["spec"]["publicIPAllocation"] = {"enabled": "perhaps"}
    server = from_object(stored_server)
    written = to_object(replace(server, metadata=replace(server.metadata, description="other")))
    assert written["spec"]["userData"] == "no base64!"
    assert written["spec"]["publicIPAllocation"] == {"enabled": "perhaps"}


def test_secrets_are_in_no_representation(stored_server: Stored) -> None:
    server = from_object(stored_server)
    assert server.spec.user_data == b"#cloud-config\n"
    assert "cloud-config" not in repr(server)
    assert stored_server["spec"]["userData"] not in repr(server)


def test_a_thousand_servers_are_read_in_well_under_a_second(stored_server: Stored) -> None:
    began = time.process_time()
    for _ in range(1000):
        from_object(stored_server)
    # Aim: 50 ms. The bound only catches a conversion of another order of magnitude on a busy machine.
    assert time.process_time() - began < 0.5
