"""Starting, stopping and looking at the OpenStack of the sandbox."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import keystoneauth1.exceptions
from keystoneauth1.session import Session

from server_api.sandbox.errors import StepFailed, tail
from server_api.sandbox.openstack import configuration, databases, keystone
from server_api.sandbox.openstack.rules import write_rules
from server_api.sandbox.openstack.services import KEYSTONE, NOVA, PASSWORD, SERVICES
from server_api.sandbox.openstack.virtualenv import VirtualEnvironment, cache_key, locked
from server_api.sandbox.processes import Processes, free_ports, is_free, pace

READY_TIMEOUT = 90.0


class OpenStack:
    """The OpenStack whose databases, configuration, logs and pid files lie below `state`.

    `cache` holds what is made once and used by every state: the virtual environment and the prepared
    databases. `hosts` are the names of the compute hosts; `report` is called with one line of progress at a
    time. Every method that fails raises StepFailed with a message to show as it is. `auth_url`, `endpoints`
    and `clouds_yaml` are good once `start` has returned, also in another process.
    """

    def __init__(
        self,
        state: Path,
        cache: Path,
        *,
        hosts: Sequence[str] = ("fake1", "fake2"),
        report: Callable[[str], None] = print,
    ) -> None:
        self._state = state.absolute()
        self._hosts = tuple(hosts)
        self._report = report
        self._key = cache_key()
        self._folder = cache.absolute() / f"openstack-{self._key}"
        self._virtualenv = VirtualEnvironment(self._folder, report)
        self._processes = Processes(self._state)
        self._ports_file = self._state / "ports.json"
        self._versions_file = self._state / "versions"
        self.admin_password = PASSWORD
        self.clouds_yaml = self._state / "clouds.yaml"
        self.rules = self._state / "rules.json"
        self.logs = self._state / "log"

    @property
    def auth_url(self) -> str:
        """Keystone's URL, /v3 included."""
        return self.endpoints[KEYSTONE.type]

    @property
    def endpoints(self) -> dict[str, str]:
        """Service type -> URL, as the catalogue has them."""
        ports = self._remembered_ports()
        if not ports:
            raise StepFailed("OpenStack was never started here")
        return {service.type: service.endpoint(ports[service.name]) for service in SERVICES}

    def install(self) -> None:
        """Install the virtual environment into the cache, unless it is there; safe in several processes at once."""
        self._virtualenv.install()

    def start(self) -> None:
        """Install and prepare what is missing, start what is not running, and wait for every host.

        If a service does not start, those that this call started are stopped again.
        """
        self.install()
        with locked(self._state / "start.lock", self._report, "another process is starting OpenStack"):
            self._ensure_databases()
            running = {name for name, alive in self.status().items() if alive}
            if len(running) == len(SERVICES):
                return
            ports = self._choose_ports(running)
            if not running:
                configuration.write(self._state, self._virtualenv.path, ports)
                databases.relocate(self._state, ports)
            if not self.rules.exists():
                write_rules(self.rules, [])
            self._start_services({service.name for service in SERVICES} - running, ports)
            self.clouds_yaml.write_text(configuration.clouds(ports))

    def stop(self) -> None:
        """Stop what is running, and nothing else."""
        self._processes.stop([service.name for service in SERVICES])

    def status(self) -> dict[str, bool]:
        """Service name -> whether its process is alive."""
        return {service.name: self._processes.alive(service.name) for service in SERVICES}

    def _ensure_databases(self) -> None:
        if self._versions_file.exists():
            if self._versions_file.read_text() != self._key:
                raise StepFailed(f"the databases in {self._state} are of other versions of OpenStack: remove it")
            return
        prepared = databases.prepare(self._folder, self._virtualenv, self._report)
        for name in databases.CONTENTS:
            shutil.rmtree(self._state / name, ignore_errors=True)
        databases.copy(prepared, self._state)
        self._versions_file.write_text(self._key)

    def _choose_ports(self, running: set[str]) -> dict[str, int]:
        """Return the remembered ports if they are still to be had; those of running services are theirs."""
        ports = self._remembered_ports()
        wanted = [port for name, port in ports.items() if name not in running]
        if ports and (running or all(map(is_free, wanted))):
            return ports
        chosen = free_ports(len(SERVICES))
        ports = {service.name: port for service, port in zip(SERVICES, chosen, strict=True)}
        self._ports_file.write_text(json.dumps(ports))
        return ports

    def _remembered_ports(self) -> dict[str, int]:
        try:
            return {str(name): int(port) for name, port in json.loads(self._ports_file.read_text()).items()}
        except FileNotFoundError:
            return {}

    def _start_services(self, names: set[str], ports: dict[str, int]) -> None:
        environment = configuration.environment(self._state, self._virtualenv.path)
        self._report("starting OpenStack")
        began = time.monotonic()
        try:
            for service in SERVICES:
                if service.name in names:
                    command = configuration.serve_command(self._virtualenv.path, service.name, ports, self._hosts)
                    self._processes.start(service.name, command, env=environment, cwd=self._state)
            urls = {service.name: f"{service.url(ports[service.name])}/" for service in SERVICES}
            self._processes.wait_until_answering(urls, READY_TIMEOUT, self._report)
            self._wait_for_hosts()
        except BaseException:
            self._processes.stop(sorted(names))
            raise
        self._report(f"OpenStack is ready after {time.monotonic() - began:.1f} s: {self.auth_url}")

    def _wait_for_hosts(self) -> None:
        """Wait until every compute host is up and can be scheduled to."""
        session = keystone.admin_session(self.auth_url)
        deadline = time.monotonic() + READY_TIMEOUT
        for seconds in pace():
            missing = ", ".join(sorted(set(self._hosts) - self._usable_hosts(session)))
            if not missing:
                return
            if time.monotonic() > deadline:
                log = self._processes.log_path(NOVA.name)
                raise StepFailed(f"compute hosts did not come up: {missing}; read {log}\n{tail(log)}", log)
            if seconds:
                self._report(f"waiting for the compute hosts {missing} ({seconds} s)")

    def _usable_hosts(self, session: Session) -> set[str]:
        compute, placement = self.endpoints["compute"], self.endpoints["placement"]
        try:
            services = session.get(f"{compute}/os-services?binary=nova-compute").json()["services"]
            hypervisors = session.get(f"{compute}/os-hypervisors").json()["hypervisors"]
            providers = session.get(f"{placement}/resource_providers").json()["resource_providers"]
        except keystoneauth1.exceptions.ClientException:
            return set()
        return (
            {service["host"] for service in services if service["state"] == "up"}
            & {hypervisor["hypervisor_hostname"] for hypervisor in hypervisors}
            & {provider["name"] for provider in providers}
        )
