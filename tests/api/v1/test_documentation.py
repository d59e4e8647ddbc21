"""v1 in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient

ERRORS = {"400", "401", "403", "404", "410", "429", "500", "502", "504"}
BODY = {"413", "415", "422", "409"}
SERVERS = "/api/v1/organizations/{organizationID}/projects/{projectID}/identities/{identityID}/servers"
ONE = f"{SERVERS}/{{serverID}}"


def operations(client: FlaskClient) -> dict[str, dict[str, Any]]:
    paths = client.get("/openapi.json").get_json()["paths"]
    return {
        f"{method.upper()} {path}": operation
        for path, methods in paths.items()
        for method, operation in methods.items()
        if method != "parameters" and path.startswith("/api/v1/")
    }


def test_operations_document_the_statuses_of_the_contract(client: FlaskClient) -> None:
    assert {name: set(operation["responses"]) for name, operation in operations(client).items()} == {
        "GET /api/v1/organizations/{organizationID}/servers": (ERRORS - {"404"}) | {"200"},
        f"POST {SERVERS}": ERRORS | BODY | {"201"},
        f"GET {ONE}": ERRORS | {"200"},
        f"PUT {ONE}": ERRORS | BODY | {"202"},
        f"DELETE {ONE}": ERRORS | {"202"},
        f"POST {ONE}/start": ERRORS | {"202"},
        f"POST {ONE}/stop": ERRORS | {"202"},
        f"POST {ONE}/softreboot": ERRORS | {"202"},
        f"POST {ONE}/hardreboot": ERRORS | {"202"},
        f"GET {ONE}/consoleoutput": ERRORS | {"200"},
        f"GET {ONE}/consolesessions": ERRORS | {"200"},
    }


def test_operations_have_names_of_their_own(client: FlaskClient) -> None:
    assert [operation["operationId"] for operation in operations(client).values()] == [
        "listServersV1",
        "createServerV1",
        "getServerV1",
        "updateServerV1",
        "deleteServerV1",
        "startServerV1",
        "stopServerV1",
        "softRebootServerV1",
        "hardRebootServerV1",
        "getConsoleOutputV1",
        "getConsoleSessionV1",
    ]


def test_every_operation_is_deprecated_and_no_other(client: FlaskClient) -> None:
    assert all(operation["deprecated"] is True for operation in operations(client).values())
    assert client.get("/openapi.json").text.count('"deprecated":true') == len(operations(client))


def test_headers_are_documented(client: FlaskClient) -> None:
    for name, operation in operations(client).items():
        [success] = [response for status, response in operation["responses"].items() if status.startswith("2")]
        assert set(success["headers"]) == {"Deprecation", "Sunset", "Link"}, name


def test_update_says_that_the_image_is_ignored(client: FlaskClient) -> None:
    assert "image is ignored" in operations(client)[f"PUT {ONE}"]["description"]


def test_component_names_are_chosen(client: FlaskClient) -> None:
    names = client.get("/openapi.json").get_json()["components"]["schemas"]
    assert {name for name in names if name.startswith("ServerV1")} == {
        "ServerV1AddressPair",
        "ServerV1Network",
        "ServerV1PublicIPAllocation",
        "ServerV1Read",
        "ServerV1SecurityGroup",
        "ServerV1Spec",
        "ServerV1Status",
        "ServerV1Write",
    }
