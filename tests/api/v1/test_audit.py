"""What the audit log says of v1, whose paths hold organization, project and identity (contract 5.8)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings
from tests.api.conftest import Api, checked_client
from tests.api.v1.legacy import created, id_of
from tests.api.world import IDENTITY, ORGANIZATION, PROJECT


def test_it_has_the_parameters_of_the_path(services: Services, settings: Settings, tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    user = Api(checked_client(build_app(services, replace(settings, audit_log=str(audit)))), "USER")
    path = created(user)
    user.delete(path)
    create, delete = (json.loads(line) for line in audit.read_text().splitlines())
    scope = {"organizationID": ORGANIZATION, "projectID": PROJECT, "identityID": IDENTITY}
    assert create["operation"]["id"] == "createServerV1"
    assert create["scope"] == scope
    assert create["resource"] == delete["resource"] == {"type": "servers", "id": id_of(path)}
    assert create["tenant"] == delete["tenant"] == {"organizationId": ORGANIZATION, "projectId": PROJECT}
    assert delete["scope"] == scope | {"serverID": id_of(path)}
