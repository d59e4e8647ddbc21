"""A server as v1 shows it (contract 2.2 and 2.3)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from server_api.http.rendering import NIL_ID
from server_api.http.v1.rendering import server_document
from server_api.servers.model import AddressPair, Metadata, NetworkAttachment, Server, ServerSpec, ServerStatus

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
METADATA = Metadata(name="web", organization_id="o", project_id="p", created_at=AT)


def shown(spec: ServerSpec | None = None, status: ServerStatus | None = None) -> dict[str, object]:
    spec = spec or ServerSpec(flavor_id="f", image_id="i", networks=(NetworkAttachment("n"),))
    return server_document(Server("a" * 8, METADATA, spec, status or ServerStatus()))


def test_what_is_not_stored_is_left_out() -> None:
    assert shown() == {
        "metadata": {
            "id": "a" * 8,
            "name": "web",
            "creationTime": AT,
            "organizationId": "o",
            "projectId": "p",
            "provisioningStatus": "pending",
            "healthStatus": "unknown",
        },
        "spec": {"flavorId": "f", "imageId": "i", "networks": [{"id": "n"}]},
        "status": {},
    }


def test_what_is_stored_as_nothing_is_shown_as_nothing() -> None:
    network = NetworkAttachment("n", allowed_address_pairs=())
    spec = ServerSpec("f", "i", (network,), security_group_ids=(), public_ip=False, user_data=b"")
    assert shown(spec)["spec"] == {
        "flavorId": "f",
        "imageId": "i",
        "networks": [{"id": "n", "allowedAddressPairs": []}],
        "publicIPAllocation": {"enabled": False},
        "securityGroups": [],
    }


def test_pairs_are_shown_one_by_one_and_masked() -> None:
    pairs = (AddressPair("10.0.0.5/24", "fa:16:3e:00:00:01"), AddressPair("10.0.0.0/24"), AddressPair("nonsense"))
    spec = ServerSpec("f", "i", (NetworkAttachment("n", pairs), NetworkAttachment("second")))
    assert shown(spec)["spec"] == {
        "flavorId": "f",
        "imageId": "i",
        "networks": [
            {
                "id": "n",
                "allowedAddressPairs": [
                    {"cidr": "10.0.0.0/24", "macAddress": "fa:16:3e:00:00:01"},
                    {"cidr": "10.0.0.0/24"},
                    {"cidr": "nonsense"},
                ],
            }
        ],
    }


@pytest.mark.parametrize(("phase", "expected"), [("Running", {"phase": "Running"}), ("", {}), ("Levitating", {})])
def test_only_a_known_phase_is_shown(phase: str, expected: dict[str, str]) -> None:
    assert shown(status=ServerStatus(phase=phase))["status"] == expected


def test_what_stands_for_nothing() -> None:
    assert shown(ServerSpec(flavor_id="", image_id=None))["spec"] == {
        "flavorId": NIL_ID,
        "imageId": NIL_ID,
        "networks": [{"id": NIL_ID}],
    }
