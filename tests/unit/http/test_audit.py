"""What an audit event says a request was about (contract 5.8)."""

from __future__ import annotations

import pytest

from server_api.http.audit import outcome, resource

V2 = "/api/v2/servers"
V1 = "/api/v1/organizations/<organization_id:organizationID>/projects/<project_id:projectID>/servers"


@pytest.mark.parametrize(
    ("rule", "created", "about"),
    [
        (f"{V2}/<server_id:serverID>", None, {"type": "servers", "id": "s"}),
        (f"{V2}/<server_id:serverID>/start", None, {"type": "servers", "id": "s"}),
        (f"{V2}/<server_id:serverID>/snapshot", "i", {"type": "snapshot", "id": "i"}),
        (V2, "n", {"type": "servers", "id": "n"}),
        (V2, None, {"type": "servers"}),
        (f"{V1}/<server_id:serverID>", None, {"type": "servers", "id": "s"}),
        (V1, "n", {"type": "servers", "id": "n"}),
        (V1, None, {"type": "servers"}),
        ("/api/version", None, {"type": "version"}),
    ],
)
def test_the_resource_follows_from_the_route_and_what_was_created(
    rule: str, created: str | None, about: dict[str, str]
) -> None:
    values = {"serverID": "s", "organizationID": "o", "projectID": "p"}
    assert resource(rule, values, created) == about


@pytest.mark.parametrize(
    ("status", "word"),
    [(200, "success"), (202, "success"), (401, "denied"), (403, "denied"), (409, "refused"), (502, "failed")],
)
def test_the_outcome_in_a_word(status: int, word: str) -> None:
    assert outcome(status) == word
