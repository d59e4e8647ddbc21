"""The role of the API allows what v1 does (``tests/api/test_kubernetes_roles.py`` says the rest)."""

from __future__ import annotations

from pathlib import Path

from server_api.app import create_app
from tests.api.conftest import Api, checked_client
from tests.api.roles_bench import API, furnished, installed, keep_a_server, settings_of
from tests.api.v1.legacy import LIST, SERVERS, body
from tests.api.wired_cloud import SERVER, playing
from tests.api.world import AUTHORITY, SECURITY_GROUP

ONE = f"{SERVERS}/{SERVER}"


def test_every_operation(tokens: Path, tmp_path: Path) -> None:
    with installed(tmp_path) as (cluster, admin):
        world = furnished(cluster, admin)
        keep_a_server(world)
        with playing(world):
            client = checked_client(create_app(settings_of(cluster, API, tmp_path, tokens)))
            api = Api(client, "ADMIN")
            whole = body("old", securityGroups=[{"id": SECURITY_GROUP}], sshCertificateAuthorityId=AUTHORITY)
            statuses = {
                "createServerV1": api.post(SERVERS, whole).status_code,
                "listServersV1": api.get(LIST).status_code,
                "getServerV1": api.get(ONE).status_code,
                "updateServerV1": api.put(ONE, body(metadata={"description": "d"})).status_code,
                "startServerV1": api.post(f"{ONE}/start").status_code,
                "stopServerV1": api.post(f"{ONE}/stop").status_code,
                "softRebootServerV1": api.post(f"{ONE}/softreboot").status_code,
                "hardRebootServerV1": api.post(f"{ONE}/hardreboot").status_code,
                "getConsoleOutputV1": api.get(f"{ONE}/consoleoutput").status_code,
                "getConsoleSessionV1": api.get(f"{ONE}/consolesessions").status_code,
                "deleteServerV1": api.delete(ONE).status_code,
            }
        paths = client.get("/openapi.json").get_json()["paths"].values()
        operations = [item for path in paths for item in path.values() if "operationId" in item]
        assert set(statuses) == {item["operationId"] for item in operations if item.get("deprecated")}
        assert max(statuses.values()) < 300, statuses
        assert cluster.refused[API] == set()
