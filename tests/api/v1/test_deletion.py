"""v1 can be deleted: the directories that are v1, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
V1 = (
    "server_api/http/v1",
    "server_api/servers/v1",
    "tests/api/v1",
    "tests/unit/http/v1",
    "tests/unit/servers/v1",
    "tests/integration/test_v1_surface.py",
)
REST = (
    "server_api",
    "migrations",
    "tests",
    "benchmarks",
    "setup.cfg",
    "setup.py",
    "wsgi.py",
    "docs",
    "README.md",
    "deploy",
)
REPRESENTATIVE = (
    "tests/api/test_create.py",
    "tests/api/test_read.py",
    "tests/api/test_update.py",
    "tests/api/test_power.py",
    "tests/unit/http/v2",
)
BUILDS = """
from server_api.http.application import build_app
from server_api.settings import Settings
rules = [rule.rule for rule in build_app(None, Settings()).url_map.iter_rules()]
assert "/api/v2/servers" in rules
assert not [rule for rule in rules if "v1" in rule]
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree without v1."""
    copy = tmp_path_factory.mktemp("without-v1")
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in REST:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignored)
        else:
            shutil.copy(source, copy / name)
    for name in V1:
        path = copy / name
        assert path.exists(), name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return copy


def run(tree: Path, *arguments: str) -> str:
    """Run Python in the tree and return what it wrote; it has to succeed."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_the_application_is_built_without_v1(tree: Path) -> None:
    run(tree, "-c", BUILDS)


def test_the_other_tests_are_collected_and_those_of_v2_pass(tree: Path) -> None:
    quiet = ("-q", "-p", "no:cacheprovider")
    assert "error" not in run(tree, "-m", "pytest", *quiet, "--collect-only", "tests").splitlines()[-1]
    assert "passed" in run(tree, "-m", "pytest", *quiet, *REPRESENTATIVE)
