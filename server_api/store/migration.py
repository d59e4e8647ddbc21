"""Migrations: ordered, recorded steps that bring the Kubernetes API up to this version (docs/migrations.md)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

import click
import orjson

import server_api
from server_api.servers.ports import AlreadyExists, Missing, PortError
from server_api.settings import Settings
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.leases import KubernetesLeases
from server_api.store.migration_claim import NAME, Claim, ClaimLost
from server_api.store.tolerant import mapping, timestamp

DIRECTORY = Path(server_api.__file__).parent.parent / "migrations"
"""Beside the package, in a checkout as well as where it is installed."""

_STEP = re.compile(r"\d{4}_[a-z0-9_]+\.py")

Say = Callable[[str], None]


class MigrationFailed(click.ClickException):
    """A step could not be done. It is not recorded, and the next run tries it again."""


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """What a step works on."""

    client: KubernetesClient
    namespace: str


class Step(Protocol):
    """A module in the migrations directory."""

    TITLE: str

    def plan(self, kubernetes: Kubernetes) -> list[str]:
        """Return a line for everything ``apply`` would change now. Writes nothing."""

    def apply(self, kubernetes: Kubernetes) -> None:
        """Do it. May run again after it was interrupted anywhere, or done in part by hand."""


def steps(directory: Path = DIRECTORY) -> Mapping[str, Step]:
    """Return the steps by name in their order. Raises MigrationFailed when there are none, or two of one number."""
    paths = sorted(path for path in directory.glob("*.py") if _STEP.fullmatch(path.name))
    numbers = [path.name[:4] for path in paths]
    if not paths or len(set(numbers)) < len(numbers):
        raise MigrationFailed(f"{directory} holds no migrations, or two with one number")
    return {path.stem: _load(path) for path in paths}


def migrate(settings: Settings, *, plan: bool = False, say: Say = click.echo) -> None:
    """Run the steps that are not recorded yet, or with ``plan`` only say what they would do.

    Raises MigrationFailed, with a text for the operator.
    """
    migrator = Migrator(KubernetesClient.from_settings(settings), settings.namespace, say=say)
    migrator.plan() if plan else migrator.run()


class Migrator:
    """Runs steps against one namespace and remembers them there in the ConfigMap ``server-api-migrations``."""

    def __init__(
        self,
        client: KubernetesClient,
        namespace: str,
        *,
        directory: Path = DIRECTORY,
        say: Say = click.echo,
        claim_seconds: float = 60.0,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._steps = steps(directory)
        self._say = say
        self._claim_seconds = claim_seconds

    def plan(self) -> None:
        """Say what would be done, and write nothing."""
        try:
            self._plan()
        except PortError as error:
            raise MigrationFailed(str(error)) from error

    def run(self) -> Sequence[str]:
        """Run what is not recorded, one step after the other, and return the names of the steps run.

        Waits while another process migrates; what that one has done is not done again.
        """
        try:
            self._create_namespace()
            return self._run_claimed()
        except ClaimLost as error:
            raise MigrationFailed(f"{error}; run it again") from error
        except PortError as error:
            raise MigrationFailed(str(error)) from error

    def _plan(self) -> None:
        if not self._namespace_exists():
            self._say(f"create namespace {self._namespace}")
        pending = self._pending(self._recorded())
        for name, step in pending.items():
            self._say(f"{name}: {step.TITLE}")
            for line in step.plan(Kubernetes(self._client, self._namespace)):
                self._say(f"  {line}")
        if not pending:
            self._say("nothing to do")

    def _run_claimed(self) -> Sequence[str]:
        margin = min(2 * self._client.longest_call_seconds, self._claim_seconds / 2)
        claim = Claim(
            KubernetesLeases(self._client, self._namespace),
            duration=self._claim_seconds,
            margin=margin,
            waiting=lambda holder: self._say(f"waiting for {holder}, which is migrating"),
        )
        with claim:
            # Everything from here on is fenced: nothing is written once another process may have taken over.
            kubernetes = Kubernetes(self._client.guarded(claim.check), self._namespace)
            pending = self._pending(self._recorded())
            for name, step in pending.items():
                self._say(f"{name}: {step.TITLE}")
                try:
                    step.apply(kubernetes)
                except PortError as error:
                    raise MigrationFailed(f"{name} failed: {error}") from error
                self._record(kubernetes, name, step)
        self._say(f"{len(pending)} of {len(self._steps)} migrations run, the others had been")
        return list(pending)

    def _pending(self, recorded: Mapping[str, Any]) -> dict[str, Step]:
        for name in sorted(recorded.keys() - self._steps.keys()):
            self._say(f"{name} was run by another version of server-api")
        return {name: step for name, step in self._steps.items() if name not in recorded}

    def _recorded(self) -> Mapping[str, Any]:
        try:
            stored = self._client.get(kinds.CONFIG_MAP, self._namespace, NAME)
        except Missing:
            return {}
        return mapping(stored.get("data"))

    def _record(self, kubernetes: Kubernetes, name: str, step: Step) -> None:
        entry = {"title": step.TITLE, "at": timestamp(datetime.now(UTC)), "by": server_api.__version__}
        data = {name: orjson.dumps(entry).decode()}
        try:
            kubernetes.client.patch(kinds.CONFIG_MAP, self._namespace, NAME, {"data": data})
        except Missing:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}
            kubernetes.client.create(kinds.CONFIG_MAP, self._namespace, body)

    def _namespace_exists(self) -> bool:
        try:
            self._client.get(kinds.NAMESPACE, "", self._namespace)
        except Missing:
            return False
        return True

    def _create_namespace(self) -> None:
        if self._namespace_exists():
            return
        self._say(f"creating namespace {self._namespace}")
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        try:
            self._client.create(kinds.NAMESPACE, "", body)
        except AlreadyExists:
            return


def _load(path: Path) -> Step:
    # The names begin with a digit, so that no import statement can name them.
    spec = importlib.util.spec_from_file_location(f"migrations.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise MigrationFailed(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for part in ("TITLE", "plan", "apply"):
        if not hasattr(module, part):
            raise MigrationFailed(f"{path.name} has no {part}")
    return cast(Step, module)
