import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from server_api.cli import main
from server_api.settings import Settings


def test_help_loads_nothing_that_it_does_not_need() -> None:
    script = (
        "import sys; from server_api.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*sorted(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "controller" in shown
    loaded = set(shown.splitlines()[-1].split())
    assert loaded.isdisjoint({"flask", "kubernetes", "openstack", "novaclient", "server_api.sandbox.region"})


def test_hash_token_prints_the_digest_of_the_first_line() -> None:
    result = CliRunner().invoke(main, ["hash-token"], input="secret\n")
    assert result.output.strip() == hashlib.sha256(b"secret").hexdigest()


def test_hash_token_refuses_to_hash_nothing() -> None:
    result = CliRunner().invoke(main, ["hash-token"], input="\n")
    assert result.exit_code == 1
    assert "no token" in result.output


def test_settings_shows_every_setting() -> None:
    output = CliRunner().invoke(main, ["settings"]).output
    assert [line.split()[0] for line in output.splitlines()] == [row[0] for row in Settings.table()]


def test_a_setting_that_cannot_be_understood_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_API_THREADS", "many-threads")
    result = CliRunner().invoke(main, ["migrate"])
    assert result.exit_code == 1
    assert "SERVER_API_THREADS" in result.output
    assert "many-threads" not in result.output


def test_an_existing_cluster_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    command = ["sandbox", "--directory", str(tmp_path), "up", "--kubernetes", "existing"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "KUBECONFIG" in result.output
