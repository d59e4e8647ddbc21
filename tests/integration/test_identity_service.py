"""Another API beside the sandbox's own, whose callers come from the stand-in for the identity service."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests
import yaml

from server_api.access.digests import token_digest
from server_api.sandbox import services
from server_api.sandbox.layout import REPOSITORY, write_private
from server_api.sandbox.processes import Processes, free_ports
from server_api.sandbox.seed import write_identity
from server_api.sandbox.services import API, IDENTITY
from tests.integration.harness import Sandbox


@pytest.fixture
def url(region: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("SERVER_API_ACL_CACHE_SECONDS", "0")
    layout, choices = region.region.layout, region.region.choices
    ports = dict(choices.ports) | dict(zip((IDENTITY, API), free_ports(2), strict=True))
    choices = replace(choices, ports=ports, identity_service=True)
    processes = Processes(tmp_path)
    try:
        for name in (IDENTITY, API):
            command = services.command(name, layout, choices)
            processes.start(name, command, env=services.environment(layout, choices), cwd=REPOSITORY)
            processes.wait_until_answering({name: choices.ready_url(name)})
        yield choices.url(API)
    finally:
        processes.stop()
        write_identity(layout.identity, region.region.world)


def test_a_server_is_created_read_and_deleted_and_a_withdrawn_token_does_nothing_more(
    region: Sandbox, url: str
) -> None:
    token = region.environment["SERVER_API_TOKEN_USER"]
    servers, bearer = f"{url}/api/v2/servers", {"Authorization": f"Bearer {token}"}

    created = requests.post(servers, json=region.body(), headers=bearer, timeout=10)
    assert created.status_code == 201, created.text
    id_ = created.json()["metadata"]["id"]
    region.running(id_)
    assert requests.get(f"{servers}/{id_}", headers=bearer, timeout=10).json()["metadata"]["id"] == id_

    identity = region.region.layout.identity
    known = yaml.safe_load(identity.read_text())
    write_private(identity, yaml.safe_dump(known | {"revoked": [token_digest(token)]}))
    assert requests.delete(f"{servers}/{id_}", headers=bearer, timeout=10).status_code == 401

    write_private(identity, yaml.safe_dump(known))
    assert requests.delete(f"{servers}/{id_}", headers=bearer, timeout=10).status_code == 202
    region.gone(id_)
