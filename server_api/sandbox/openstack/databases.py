"""The databases: built once for each set of versions, and copied into every new state directory."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from server_api.sandbox.openstack import configuration, keystone, services
from server_api.sandbox.openstack.services import (
    DATABASES,
    GLANCE,
    KEYSTONE,
    NOVA,
    PASSWORD,
    PLACEMENT,
    REGION,
    Ports,
)
from server_api.sandbox.openstack.virtualenv import VirtualEnvironment, locked, run
from server_api.sandbox.processes import Processes, free_ports

# beside the databases: Keystone's keys, without which its tokens and credentials cannot be read
CONTENTS = ("db", "fernet", "credential")
TRANSPORT = "fake:///"


def recipe_key() -> str:
    """Return a name for how databases are built: a change of it must not meet those built before."""
    here = Path(__file__).parent
    sources = ("databases.py", "keystone.py", "services.py", "runtime/sandbox_runtime/neutron_schema.py")
    return hashlib.sha256(b"".join((here / name).read_bytes() for name in sources)).hexdigest()[:12]


def prepare(folder: Path, virtualenv: VirtualEnvironment, report: Callable[[str], None]) -> Path:
    """Return the prepared databases of `folder`; builds them first if need be, which takes about 20 s.

    Safe in several processes at once. Raises StepFailed.
    """
    prepared = folder / f"databases-{recipe_key()}"
    if not prepared.exists():
        with locked(folder / "databases.lock", report, "another process is preparing the databases"):
            if not prepared.exists():
                part = folder / "databases.part"
                Processes(part).stop()  # of a builder that was killed
                shutil.rmtree(part, ignore_errors=True)
                _Builder(part, virtualenv, report).build()
                part.rename(prepared)  # whole or not at all
    return prepared


def copy(prepared: Path, state: Path) -> None:
    """Copy prepared databases into `state`; `relocate` must follow."""
    for name in CONTENTS:
        shutil.copytree(prepared / name, state / name, dirs_exist_ok=True)


def relocate(state: Path, ports: Ports) -> None:
    """Make the databases of `state`, whose services are down, speak of this directory and of these ports."""
    with closing(sqlite3.connect(services.database_file(state, "keystone"))) as database, database:
        for service in services.SERVICES:
            database.execute(
                "UPDATE endpoint SET url = ? WHERE service_id IN (SELECT id FROM service WHERE type = ?)",
                (service.endpoint(ports[service.name]), service.type),
            )
    with closing(sqlite3.connect(services.database_file(state, "nova_api"))) as database, database:
        for cell, transport in (("cell0", "none:///"), ("cell1", TRANSPORT)):
            database.execute(
                "UPDATE cell_mappings SET database_connection = ?, transport_url = ? WHERE name = ?",
                (services.database_url(state, f"nova_{cell}"), transport, cell),
            )


class _Builder:
    """Builds databases, keys, users and catalogue into `state`, and leaves nothing running."""

    def __init__(self, state: Path, virtualenv: VirtualEnvironment, report: Callable[[str], None]) -> None:
        self._state = state
        self._virtualenv = virtualenv
        self._report = report
        self._environment = configuration.environment(state, virtualenv.path)
        names = [service.name for service in services.SERVICES]
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))

    def build(self) -> None:
        self._report("preparing the databases, once")
        configuration.write(self._state, self._virtualenv.path, self._ports)
        for name in DATABASES:
            # one writer and many readers at a time; the mode stays with the file
            self._pragma(name, "journal_mode=WAL")
        # the longest first; more at once would not be quicker on a small machine
        steps = (self._keystone, self._nova, self._neutron, self._glance, self._placement)
        with ThreadPoolExecutor(3) as pool:
            try:
                for step in [pool.submit(each) for each in steps]:
                    step.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for name in DATABASES:
            # fold the write-ahead logs in, so that plain files can be copied
            self._pragma(name, "wal_checkpoint(TRUNCATE)")

    def _pragma(self, name: str, pragma: str) -> None:
        with closing(sqlite3.connect(services.database_file(self._state, name))) as database:
            database.execute(f"PRAGMA {pragma}")

    def _keystone(self) -> None:
        url = KEYSTONE.endpoint(self._ports["keystone"])
        interfaces = ("public", "internal", "admin")
        urls = [word for each in interfaces for word in (f"--bootstrap-{each}-url", url)]
        owner = ("--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid()))
        config = ("--config-file", str(KEYSTONE.config_file(self._state)))
        self._manage("keystone", *config, "db_sync")
        self._manage("keystone", *config, "fernet_setup", *owner)
        self._manage("keystone", *config, "credential_setup", *owner)
        self._manage(
            "keystone",
            *config,
            "bootstrap",
            "--bootstrap-password",
            PASSWORD,
            "--bootstrap-region-id",
            REGION,
            *urls,
        )
        self._report("prepared Keystone's schema and keys")
        processes = Processes(self._state)
        try:
            command = configuration.serve_command(self._virtualenv.path, "keystone", self._ports, ())
            processes.start("keystone", command, env=self._environment, cwd=self._state)
            processes.wait_until_answering({"keystone": url}, report=self._report)
            keystone.populate(self._ports)
        finally:
            processes.stop()
        self._report("prepared Keystone's users and catalogue")

    def _nova(self) -> None:
        config = ("--config-file", str(NOVA.config_file(self._state)))
        cell0, cell1 = (services.database_url(self._state, f"nova_{cell}") for cell in ("cell0", "cell1"))
        self._manage("nova", *config, "api_db", "sync")
        self._manage("nova", *config, "cell_v2", "map_cell0", "--database_connection", cell0)
        self._manage(
            "nova",
            *config,
            *("cell_v2", "create_cell", "--name", "cell1"),
            *("--database_connection", cell1, "--transport-url", TRANSPORT),
        )
        self._manage("nova", *config, "db", "sync")
        self._report("prepared Nova's schemas and cells")

    def _neutron(self) -> None:
        file = services.database_file(self._state, "neutron")
        self._run("neutron", [self._virtualenv.python, "-P", "-m", "sandbox_runtime.neutron_schema", file])
        self._report("prepared Neutron's schema")

    def _glance(self) -> None:
        self._manage("glance", "--config-file", str(GLANCE.config_file(self._state)), "db_sync")
        self._report("prepared Glance's schema")

    def _placement(self) -> None:
        self._manage("placement", "--config-file", str(PLACEMENT.config_file(self._state)), "db", "sync")
        self._report("prepared Placement's schema")

    def _manage(self, service: str, *words: str) -> None:
        self._run(service, [self._virtualenv.path / "bin" / f"{service}-manage", *words])

    def _run(self, service: str, argv: list[str | Path]) -> None:
        doing = f"preparing the database of {service}"
        run(argv, doing, self._state / "log" / f"{service}.log", self._report, env=self._environment)
