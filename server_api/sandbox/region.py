"""One sandbox as a whole: brought up, looked at and taken down."""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import keystoneauth1.exceptions

from server_api.sandbox import certificates, environment, seed, services
from server_api.sandbox.errors import StepFailed, tail
from server_api.sandbox.layout import REPOSITORY, Layout
from server_api.sandbox.memory import Memory
from server_api.sandbox.openstack import OpenStack
from server_api.sandbox.processes import Processes, answers
from server_api.sandbox.progress import Progress
from server_api.sandbox.seed_openstack import OpenStackSeed
from server_api.sandbox.services import API, CONTROLLER, IDENTITY, KUBERNETES, NAMESPACE, Choices
from server_api.sandbox.world import SERVICE, World
from server_api.servers.ports import PortError
from server_api.store.client import KubernetesClient
from server_api.store.connection import configuration_source

OPENSTACK = "openstack"
READY_TIMEOUT = 60.0


@dataclass(frozen=True)
class ProcessStatus:
    """One process of the sandbox: `pid` is None when it is not alive, `answering` whether it can be used."""

    name: str
    pid: int | None
    url: str
    answering: bool
    log: Path


class Region:
    """The sandbox in `layout`. Methods that fail raise StepFailed with a message to show as it is."""

    def __init__(self, layout: Layout, progress: Progress | None = None) -> None:
        self.layout = layout
        self._progress = progress or Progress(lambda _: None)
        self.processes = Processes(layout.directory)
        self._openstack_processes = Processes(layout.openstack)
        self.openstack = OpenStack(layout.openstack, layout.cache, report=self._progress)

    @property
    def elapsed(self) -> float:
        """Seconds since the command began."""
        return self._progress.elapsed

    @property
    def world(self) -> World:
        """What the seed puts here. The first to ask makes it up."""
        return World.recalled(Memory(self.layout.memory))

    @property
    def choices(self) -> Choices:
        """What the last start decided. Raises StepFailed if there was none."""
        choices = Choices.remembered(self.layout)
        if choices is None:
            raise StepFailed(f"there is no sandbox in {self.layout.directory}: run server-api sandbox up")
        return choices

    def up(
        self, kubeconfig: str | None = None, api_port: int | None = None, *, identity_service: bool = False
    ) -> list[str]:
        """Start what is not running, and return its names once everything can be used.

        `kubeconfig` names an existing cluster to use instead of the embedded API; with `identity_service`, callers come
        from the stand-in for the identity service and not from the file of tokens. When a step fails, or the caller is
        interrupted, what this call started is stopped again.
        """
        # the databases in it hold credentials
        self.layout.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._exclusive():
            before = self.running()
            try:
                self._up(kubeconfig, api_port, identity_service)
            except BaseException:
                self._stop(self.running() - before)
                raise
            return sorted(self.running() - before)

    def down(self) -> list[str]:
        """Stop everything and return the names of what was alive."""
        if not self.layout.directory.exists():
            return []
        with self._exclusive():
            running = self.running()
            self._stop(running)
            return sorted(running)

    def stop(self, names: list[str]) -> None:
        """Stop what `up` said that it had started."""
        with self._exclusive():
            self._stop(set(names))

    def running(self) -> set[str]:
        """Return the names of the processes that are alive; OpenStack's begin with "openstack/"."""
        openstack = {f"{OPENSTACK}/{name}" for name, alive in self.openstack.status().items() if alive}
        return openstack | {name for name in self.processes.names() if self.processes.alive(name)}

    def log_of(self, name: str) -> Path:
        """Return the file that the output of a process goes to."""
        group, _, service = name.rpartition("/")
        return (self._openstack_processes if group else self.processes).log_path(service)

    def status(self) -> list[ProcessStatus]:
        """Look at every process that belongs to the sandbox. Raises StepFailed if there was never one."""
        choices = self.choices
        own = [self._status(name, self.processes, choices.ready_url(name), choices.url(name)) for name in choices.names]
        if not choices.embedded:
            own.insert(0, self._existing_cluster(choices))
        types = {"keystone": "identity", "nova": "compute", "neutron": "network", "glance": "image"}
        openstack = []
        for name in self.openstack.status():
            url = self.openstack.endpoints[types.get(name, name)]
            openstack.append(self._status(f"{OPENSTACK}/{name}", self._openstack_processes, url, url))
        return openstack + own

    def environment(self) -> dict[str, str]:
        """Return the variables of `.sandbox/env` as they should be now."""
        return environment.variables(
            self.layout, self.choices, self.world, self.openstack.clouds_yaml, self.openstack.rules
        )

    def kubernetes(self) -> KubernetesClient:
        """Return a client of the Kubernetes that the sandbox uses."""
        files = services.kubeconfig(self.layout, self.choices)
        return KubernetesClient(configuration_source(Path(files)), namespace=NAMESPACE)

    def _up(self, kubeconfig: str | None, api_port: int | None, identity_service: bool) -> None:
        if kubeconfig and Path(kubeconfig) == self.layout.kubeconfig:
            raise StepFailed("KUBECONFIG names this sandbox's own Kubernetes API, which is not an existing cluster")
        choices = services.choose(self.layout, self.processes, kubeconfig, api_port, identity_service=identity_service)
        choices.remember(self.layout)
        self.openstack.install()
        if choices.embedded:
            services.write_kubeconfig(self.layout, choices)
            # it starts while OpenStack does, and is waited for after that
            self._start(KUBERNETES, choices)
        self.openstack.start()
        if choices.embedded:
            self._wait_for(KUBERNETES, choices)
        self._migrate(choices)
        self._seed()
        environment.write(self.layout.environment, self.environment())
        left = [name for name in choices.names if name != KUBERNETES]
        for name in left:
            self._start(name, choices)
        for name in left:
            self._wait_for(name, choices)

    def _start(self, name: str, choices: Choices) -> None:
        if self.processes.alive(name):
            return
        self.processes.start(
            name,
            services.command(name, self.layout, choices),
            env=services.environment(self.layout, choices),
            cwd=REPOSITORY,
        )

    def _wait_for(self, name: str, choices: Choices) -> None:
        with self._progress.step(f"{name}: {choices.url(name)}"):
            self.processes.wait_until_answering({name: choices.ready_url(name)}, READY_TIMEOUT, self._progress)
            if not self.processes.alive(name):
                # a stranger took the port first, and answered for it
                raise self.processes.failure(name)

    def _migrate(self, choices: Choices) -> None:
        log = self.processes.log_path("migrate")
        log.parent.mkdir(parents=True, exist_ok=True)
        with self._progress.step("migrations"), log.open("wb") as output:
            result = subprocess.run(
                services.own_command("migrate"),
                env=services.environment(self.layout, choices),
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if result.returncode:
                raise StepFailed(f"the migrations failed; read {log}\n{tail(log)}", log)

    def _seed(self) -> None:
        world = self.world
        kubernetes = self.kubernetes()
        try:
            with self._progress.step("seed"):
                seed.write_tokens(self.layout.tokens, world)
                seed.write_identity(self.layout.identity, world)
                certificates.ensured(self.layout.certificates, SERVICE)
                openstack = OpenStackSeed(self.openstack.auth_url, self.openstack.admin_password)
                seed.Seed(world, openstack, kubernetes, NAMESPACE).run(self.openstack.auth_url)
        except PortError as error:
            log = self.processes.log_path(KUBERNETES)
            raise StepFailed(f"the seed failed: {error}; read {log}", log) from error
        except keystoneauth1.exceptions.ClientException as error:
            raise StepFailed(f"the seed failed: {error}; read {self.openstack.logs}", self.openstack.logs) from error

    def _status(self, name: str, processes: Processes, ready_url: str, url: str) -> ProcessStatus:
        process = processes.find(name.rpartition("/")[2])
        answering = process is not None and answers(ready_url)
        return ProcessStatus(name, process.pid if process else None, url, answering, self.log_of(name))

    def _existing_cluster(self, choices: Choices) -> ProcessStatus:
        try:
            self.kubernetes().ping()
            answering = True
        except PortError:
            answering = False
        return ProcessStatus(KUBERNETES, None, str(choices.kubeconfig), answering, self.log_of("migrate"))

    def _stop(self, names: set[str]) -> None:
        # the API and the controller first: they would complain about everything else being gone
        for name in (API, CONTROLLER, IDENTITY, KUBERNETES):
            if name in names:
                self.processes.stop([name])
        openstack = [name.rpartition("/")[2] for name in names if name.startswith(f"{OPENSTACK}/")]
        self._openstack_processes.stop(openstack)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other commands from starting or stopping anything here meanwhile."""
        with self.layout.lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._progress("another command is starting or stopping this sandbox: waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
