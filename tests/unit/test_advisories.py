"""The check for known vulnerabilities in CI: that it does not pass where nobody tells of any without saying so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci/advisories"
VULNERABLE = (
    """{"dependencies": [{"name": "requests", "vulns": [{"id": "CVE-2018-18074", "fix_versions": ["2.20.0"]}]}]}"""
)
SKIPPED = """{"dependencies": [{"name": "requests", "skip_reason": "not found"}]}"""


def run(directory: Path, probe: str, finding: int) -> subprocess.CompletedProcess[str]:
    """Run it with a pip-audit that answers the probe with a text, and the real question with a status."""
    fake = directory / "pip-audit"
    fake.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *constraints/server-api.txt*) echo real; exit {finding};; esac\n'
        f"echo '{probe}'\n"
        "exit 1\n"
    )
    fake.chmod(0o755)
    environment = os.environ | {"PATH": f"{directory}:{os.environ['PATH']}"}
    return subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("status", [0, 1])
def test_where_advisories_are_served_they_decide(tmp_path: Path, status: int) -> None:
    done = run(tmp_path, VULNERABLE, status)
    assert done.returncode == status
    assert done.stdout == "real\n"


@pytest.mark.parametrize("probe", [SKIPPED, ""])
def test_where_none_are_served_it_says_so_and_fails_nothing(tmp_path: Path, probe: str) -> None:
    done = run(tmp_path, probe, 1)
    assert done.returncode == 0
    assert "NOTHING WAS CHECKED" in done.stdout
