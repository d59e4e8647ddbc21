"""The OpenAPI document and the page that shows it."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV30SpecValidator

from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.openapi import Document

GOLDEN = Path(__file__).parents[2] / "docs" / "openapi.json"
ERRORS = {"400", "401", "403", "404", "429", "500", "502", "504"}
BODY = {"413", "415", "422", "409"}


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    response = client.get("/openapi.json")
    assert response.mimetype == "application/json"
    body: dict[str, Any] = response.get_json()
    return body


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


def lasting_operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the operations but for those of v1, which ``v1/test_documentation.py`` is about."""
    return {name: operation for name, operation in operations(document).items() if not operation.get("deprecated")}


def test_document_is_valid(document: dict[str, Any]) -> None:
    OpenAPIV30SpecValidator(document).validate()


def test_b58_component_names_are_chosen(document: dict[str, Any]) -> None:
    names = {name for name in document["components"]["schemas"] if not name.startswith("ServerV1")}
    assert names == {
        "Error",
        "ConsoleOutput",
        "ConsoleSession",
        "Gate",
        "GateAction",
        "HealthStatusDetail",
        "Image",
        "ImageGPU",
        "ImageOperatingSystem",
        "ImageSpec",
        "ImageStatus",
        "ProjectScopedResourceReadMetadata",
        "ProtectedResource",
        "ProvisioningStatusDetail",
        "ResourceWriteMetadata",
        "SSHKey",
        "ServerV2Create",
        "ServerV2CreateSpec",
        "ServerV2Networking",
        "ServerV2Read",
        "ServerV2Spec",
        "ServerV2Status",
        "ServerV2Update",
        "ServiceVersion",
        "SnapshotCreate",
        "SnapshotCreateSpec",
        "StaticResourceReadMetadata",
        "Tag",
    }


def test_b58_generating_the_document_warns_of_nothing(services: Services, settings: Settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_app(services, settings)


def test_operations_document_the_statuses_of_the_contract(document: dict[str, Any]) -> None:
    statuses = {name: set(operation["responses"]) for name, operation in lasting_operations(document).items()}
    one = "/api/v2/servers/{serverID}"
    assert statuses == {
        "GET /.well-known/openid-protected-resource": {"200", "429", "500"},
        "GET /api/version": (ERRORS - {"404"}) | {"200"},
        "GET /api/v2/servers": (ERRORS - {"404"}) | {"200"},
        "POST /api/v2/servers": ERRORS | BODY | {"201"},
        f"GET {one}": ERRORS | {"200"},
        f"PUT {one}": ERRORS | BODY | {"202"},
        f"DELETE {one}": ERRORS | {"202"},
        f"POST {one}/start": ERRORS | {"202"},
        f"POST {one}/stop": ERRORS | {"202"},
        f"POST {one}/softreboot": ERRORS | {"202"},
        f"POST {one}/hardreboot": ERRORS | {"202"},
        f"GET {one}/consoleoutput": ERRORS | {"200"},
        f"GET {one}/consolesessions": ERRORS | {"200"},
        f"GET {one}/sshkey": ERRORS | {"200"},
        f"POST {one}/snapshot": ERRORS | {"201", "413", "415", "422"},
        f"POST {one}/provider-create-gates": ERRORS | BODY | {"202"},
    }


def test_operations_have_names_of_their_own(document: dict[str, Any]) -> None:
    assert {operation["operationId"] for operation in lasting_operations(document).values()} == {
        "getProtectedResource",
        "getVersion",
        "listServers",
        "createServer",
        "getServer",
        "updateServer",
        "deleteServer",
        "startServer",
        "stopServer",
        "softRebootServer",
        "hardRebootServer",
        "getConsoleOutput",
        "getConsoleSession",
        "getSshKey",
        "createSnapshot",
        "satisfyProviderCreateGate",
    }


def test_everything_is_described(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        assert operation["summary"], name
        assert all(parameter["description"] for parameter in operation.get("parameters", ())), name
        for status, response in operation["responses"].items():
            assert "$ref" in response or response["description"], (name, status)
    for path, item in document["paths"].items():
        assert all(parameter["description"] for parameter in item.get("parameters", ())), path
    components = document["components"]
    assert all(response["description"] for response in components["responses"].values())
    for name, schema in components["schemas"].items():
        assert schema["description"], name
        for member, described in schema["properties"].items():
            assert "$ref" in described or described["description"], (name, member)


def test_b20_update_says_that_another_image_is_destructive(document: dict[str, Any]) -> None:
    description = document["paths"]["/api/v2/servers/{serverID}"]["put"]["description"]
    assert "Another image is destructive" in description
    assert "root disk is rebuilt" in description
    assert "lost" in description


def test_length_of_console_output_is_bounded(document: dict[str, Any]) -> None:
    [length] = document["paths"]["/api/v2/servers/{serverID}/consoleoutput"]["get"]["parameters"]
    assert not length["required"]
    schema = {name: length["schema"][name] for name in ("type", "minimum", "maximum")}
    assert schema == {"type": "integer", "minimum": 0, "maximum": 100_000}


def test_b58_document_is_the_one_that_is_checked_in(document: dict[str, Any]) -> None:
    """Clients are generated from it, so no change may slip in.

    To change it on purpose: ``SERVER_API_WRITE_OPENAPI=1 pytest tests/api/test_documentation.py``, and read the diff.
    """
    # The version changes with every release and says nothing of the API.
    document["info"]["version"] = "0.0.0"
    if os.environ.get("SERVER_API_WRITE_OPENAPI"):
        GOLDEN.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    assert json.loads(GOLDEN.read_text()) == document, (
        "the document differs from docs/openapi.json; if that is meant, write it anew: "
        "SERVER_API_WRITE_OPENAPI=1 pytest tests/api/test_documentation.py"
    )


def test_operations_need_a_token(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearer": []}]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_examples_are_valid(document: dict[str, Any]) -> None:
    checker = Document(document)
    found = 0

    def visit(node: Any, pointer: str) -> None:
        nonlocal found
        if not isinstance(node, dict):
            return
        if "schema" in node and "example" in node:
            checker.check_schema(f"{pointer}/schema", node["example"])
            found += 1
        for name, child in node.items():
            visit(child, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")

    visit(document, "")
    assert found >= 25


def test_query_parameters_are_repeatable(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/v2/servers"]["get"]["parameters"]
    assert [parameter["name"] for parameter in parameters] == [
        "tag",
        "organizationID",
        "projectID",
        "regionID",
        "networkID",
    ]
    assert all((parameter["style"], parameter["explode"]) == ("form", True) for parameter in parameters)


def test_page_and_its_assets_come_from_here(client: FlaskClient) -> None:
    page = client.get("/docs")
    assert page.mimetype == "text/html"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "http" not in page.text
    references = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(references) == 4
    for reference in references:
        response = client.get(f"/{reference}")
        assert response.status_code == 200, reference
        assert response.data


@pytest.mark.parametrize("name", ["index.html", "..%2Fopenapi.json", "swagger-ui.js", "__init__.py"])
def test_nothing_else_of_the_package_is_served(client: FlaskClient, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404
