"""A typed client, generated from the OpenAPI document, does the main job: the document says enough, and the truth."""

from __future__ import annotations

import importlib
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Sandbox

PACKAGE = "generated_server_api_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Callable[[str], Any]]:
    """Return what imports a module of a client generated from the running API's document."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "config.yaml").write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    where = ["--url", f"{sandbox.environment['SERVER_API_URL']}/openapi.json", "--output-path", str(folder / PACKAGE)]
    done = subprocess.run(
        [*command, *where, "--config", str(folder / "config.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in Path(folder / PACKAGE / "models").glob("server_v2_*.py")} >= {
        "server_v2_create.py",
        "server_v2_read.py",
    }
    sys.path.insert(0, str(folder))
    try:
        yield lambda module: importlib.import_module(f"{PACKAGE}.{module}")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]


def test_the_main_job_through_the_generated_client(generated: Callable[[str], Any], sandbox: Sandbox) -> None:
    models = generated("models")
    client = generated("client").AuthenticatedClient(
        base_url=sandbox.environment["SERVER_API_URL"],
        token=sandbox.environment["SERVER_API_TOKEN_USER"],
        httpx_args={"trust_env": False},
    )
    request = models.ServerV2Create.from_dict(sandbox.body(f"typed-{secrets.token_hex(3)}"))

    server = generated("api.servers.create_server").sync(client=client, body=request)

    assert isinstance(server, models.ServerV2Read)
    id_ = server.metadata.id
    assert server.status.network_id == UUID(sandbox.world.first.network_id)

    def running() -> Any:
        seen = generated("api.servers.get_server").sync(client=client, server_id=UUID(str(id_)))
        return seen if seen.status.power_state == models.ServerV2StatusPowerState.RUNNING else None

    wait_for("the server is Running", running)
    stopped = generated("api.power.stop_server").sync_detailed(client=client, server_id=UUID(str(id_)))
    assert stopped.status_code == 202
    listed = generated("api.servers.list_servers").sync(client=client, tag=[])
    assert str(id_) in {str(item.metadata.id) for item in listed}
    missing = generated("api.servers.get_server").sync(client=client, server_id=UUID(int=0))
    assert isinstance(missing, models.Error)
    deleted = generated("api.servers.delete_server").sync_detailed(client=client, server_id=UUID(str(id_)))
    assert deleted.status_code == 202
    sandbox.gone(str(id_))
