"""The whole service over the embedded Kubernetes API and a programmable cloud, and what its users know of it.

Every request checks its answer: whether the code is one that the contract has for what is so, and never 500.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from werkzeug.test import TestResponse

from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers import naming
from server_api.servers.console import Console
from server_api.servers.lifecycle import Lifecycle
from server_api.servers.model import Server
from server_api.servers.power import Power
from server_api.servers.provider_create_gates import ProviderCreateGates
from server_api.servers.snapshots import Snapshots
from server_api.settings import Settings
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.directory import KubernetesDirectory
from server_api.store.server_object import from_object
from server_api.store.servers import KubernetesServerStore
from tests.api.conftest import Api, checked_client
from tests.api.lifecycle_expectations import THIRD_IMAGE, Expected, Ledger, Slot, encoded
from tests.api.stepped_controller import Cluster, SteppedController, reconciler
from tests.api.world import (
    IDENTITY,
    IMAGE,
    NAMESPACE,
    SECOND_IMAGE,
    World,
    condition,
    create_body,
    update_body,
)
from tests.doubles.clock import FixedClock
from tests.doubles.cloud import CloudDouble
from tests.doubles.fault_plan import Crash
from tests.doubles.programmable_cloud import ProgrammableCloud
from tests.doubles.programmable_nova import SOFT_DELETED, Ending, Machine, Rebuild

SERVERS = "/api/v2/servers"
FAILED_DEPENDENCY = frozenset({502, 504})

MOST_PASSES = 40
"""Passes over one server at one moment, at most: more are a controller that wakes itself for ever."""


class LifecycleBench:
    """One region with its users, API, controller and cloud. Nothing moves unless it is told to.

    ``broken``: something was found to be wrong, so that looking on makes no sense.
    """

    def __init__(
        self, kubernetes: EmbeddedKubernetes, client: KubernetesClient, services: Services, settings: Settings
    ) -> None:
        kubernetes.reset()
        self.world = World(client, CloudDouble())
        self.world.seed()
        self.world.image(SECOND_IMAGE)
        self.world.image(THIRD_IMAGE)
        _make_ready(self.world)
        self.clock = FixedClock()
        offers = self.world.cloud
        self.cloud = ProgrammableCloud(self.clock, offers.offered_flavors, offers.offered_images)
        self.cloud.nova.on_rebuild = self._note_rebuild
        self.cloud.nova.on_delete = self._note_delete
        self.cloud.nova.on_create = self._note_create
        self._cluster = Cluster(kubernetes, client, self.cloud, self.clock)
        self.controller = SteppedController(self._cluster)
        self.api_plan = self.cloud.plan()
        http = checked_client(build_app(self._services(services), settings))
        self.user, self.admin, self.stranger = Api(http, "USER"), Api(http, "ADMIN"), Api(http, "OTHER")
        self.expected: dict[str, Expected] = {}
        self.ledger = Ledger()
        self.broken = False
        self._created = 0

    def _services(self, services: Services) -> Services:
        servers = KubernetesServerStore(self.world.client, NAMESPACE)
        directory = KubernetesDirectory(self.world.client, NAMESPACE)
        cloud = self.cloud.seen_through(self.api_plan)
        return replace(
            services,
            lifecycle=Lifecycle(servers, directory, cloud, self.clock),
            power=Power(servers, directory, cloud),
            console=Console(servers, directory, cloud),
            snapshots=Snapshots(servers, directory, cloud),
            provider_create_gates=ProviderCreateGates(servers, self.clock),
        )

    # What users do.

    def create(self, slot: Slot, *, gates: tuple[str, ...] | None = None, public_ip: bool = False) -> None:
        """Ask for a server; it is a duplicate if there is one of that name, also while it is being deleted."""
        self._created += 1
        wanted = Expected(self._created, slot, IMAGE, f"made-{self._created}", public_ip=public_ip, gates=gates)
        body = create_body(
            slot.name,
            networkId=slot.network_id,
            networking={"publicIP": public_ip},
            providerCreateGates=None if gates is None else [{"conditionType": gate} for gate in gates],
        )
        body["metadata"]["tags"] = [{"name": "mark", "value": wanted.tag}]
        response = self._request(self.user, "POST", SERVERS, {409} if slot.server_id in self.stored() else {201}, body)
        if response.status_code == 201:
            assert response.get_json()["metadata"]["id"] == slot.server_id
            self.expected[slot.server_id] = wanted

    def update(self, slot: Slot, **changes: Any) -> None:
        """Replace the server with itself but for ``changes``: image_id, tag, user_data or public_ip."""
        known = self.expected.get(slot.server_id)
        wanted = replace(known or Expected(0, slot, IMAGE, "none"), **changes)
        spec: dict[str, Any] = {"imageId": wanted.image_id, "networking": {"publicIP": wanted.public_ip}}
        if wanted.user_data is not None:
            spec["userData"] = encoded(wanted.user_data)
        metadata = {"tags": [{"name": "mark", "value": wanted.tag}]}
        code = 404 if known is None or self._is_gone(slot) else 400 if known.deleted else 202
        response = self._request(self.user, "PUT", slot.path, {code}, update_body(slot.name, metadata=metadata, **spec))
        if response.status_code == 202 and known is not None:
            if wanted.image_id != known.image_id:
                wanted.wish()
                # The API itself writes the intent down, if it can; from then on no read may say provisioned.
                marker = self.stored()[slot.server_id].status.rebuild
                wanted.unseen = marker is None or marker.target_image_id != wanted.image_id
            self.expected[slot.server_id] = wanted

    def delete(self, slot: Slot) -> None:
        """Ask for the server's deletion."""
        gone = self._is_gone(slot)
        if self._request(self.user, "DELETE", slot.path, {404 if gone else 202}).status_code == 202:
            self.expected[slot.server_id].deleted = True

    def act(self, slot: Slot, verb: str) -> None:
        """Use a power verb. The cloud may not take it in the instance's state."""
        codes = {404} if self._is_gone(slot) or not self.has_instance(slot) else {202, 400}
        self._request(self.user, "POST", f"{slot.path}/{verb}", codes)

    def snapshot(self, slot: Slot) -> None:
        """Make an image of the server."""
        codes = {404} if self._is_gone(slot) or not self.has_instance(slot) else {201, 400}
        self._request(self.admin, "POST", f"{slot.path}/snapshot", codes, {"metadata": {"name": "copy"}, "spec": {}})

    def satisfy(self, slot: Slot, gate: str) -> None:
        """Satisfy a gate of the server's."""
        known = self.expected.get(slot.server_id)
        if known is None or self._is_gone(slot):
            code = 404
        elif known.deleted:
            code = 400
        else:
            code = 202 if gate in (known.gates or ()) else 422
        body = {"conditionType": gate, "reason": "Ready", "message": ""}
        self._request(self.admin, "POST", f"{slot.path}/provider-create-gates", {code}, body)

    def read(self, slot: Slot) -> dict[str, Any] | None:
        """Return what the API says of the server, None if it is gone. A stranger is told nothing."""
        code = 404 if self._is_gone(slot) else 200
        response = self._request(self.user, "GET", slot.path, {code})
        self._request(self.stranger, "GET", slot.path, {404 if code == 404 else 403})
        document: dict[str, Any] | None = response.get_json() if code == 200 else None
        return document

    def listed(self) -> list[dict[str, Any]]:
        """Return what the API says of all servers."""
        documents: list[dict[str, Any]] = self._request(self.user, "GET", SERVERS, {200}).get_json()
        return documents

    def allow_more_attempts(self) -> None:
        """Have an operator set the failures of every server back."""
        for server_id in self.stored():
            self.world.set_status(server_id, providerCreateFailures=0)

    # What the controller does.

    def work(self, most: int = MOST_PASSES) -> None:
        """Run the passes that are due, at most so many; what they wake is due as well."""
        for _ in range(most):
            self.controller.hear()
            due = self.controller.queue.due()
            if not due:
                return
            self.pass_over(due[0])
        assert most < MOST_PASSES, f"still due: {self.controller.queue.due()}"

    def pass_over(self, server_id: str) -> None:
        """Run one pass. One in which the controller crashes is the last of that controller."""
        began = self._wish(server_id)
        with self._crashing():
            requeue = self.controller.pass_over(server_id)
            # Else it wrote nothing.
            if requeue.reached is not None and began is not None and self._wish(server_id) == began:
                self.expected[server_id].unseen = False

    def second_leader_passes(self, server_id: str) -> None:
        """Run a pass of another controller that believes it leads."""
        reconciler(self._cluster, self.cloud.plan()).reconcile(server_id)

    def look(self) -> None:
        """Run one poll of the monitor, which knows of what was written until the last pass."""
        with self._crashing():
            self.controller.look()

    def restart(self) -> None:
        """Put another process in the controller's place."""
        self.controller = SteppedController(self._cluster)

    # What the cloud does.

    def finish(self, machine: Machine, ending: Ending) -> None:
        """Bring what is under way with an instance to an end."""
        undone = machine.task == "rebuilding" and ending is Ending.UNDONE
        self.cloud.nova.finish(machine, ending)
        if undone and is_strange(self.cloud.nova.last(machine)):
            self._note_drift(machine)

    # How it stands.

    def stored(self) -> dict[str, Server]:
        """Return every stored server by ID."""
        items = self.world.client.list(kinds.SERVER, NAMESPACE).items
        return {server.id: server for server in map(from_object, items)}

    def instances(self, server_id: str) -> list[Machine]:
        """Return the live instances that say they are the server's."""
        live = self.cloud.nova.live()
        return [machine for machine in live if machine.server_id == server_id and machine.status != SOFT_DELETED]

    def has_instance(self, slot: Slot) -> bool:
        """Say whether the service can find an instance of the server: by its name, or by its port (contract 6.2)."""
        if any(machine.name == slot.name for machine in self.instances(slot.server_id)):
            return True
        for port in self.cloud.neutron.ports_named(naming.cloud_port(slot.server_id)):
            bound = self.cloud.nova.get(port.instance_id) if port.instance_id else None
            if bound is not None and bound.server_id == slot.server_id:
                return True
        return False

    def settle(self, *, rounds: int = 12) -> None:
        """Let nothing fail any more and everything go on, until nothing changes for longer than a late answer takes."""
        self.controller.plan.clear()
        self.api_plan.clear()
        before: object = None
        for _ in range(rounds):
            for seconds in (0, 1, 2, 10, 60):
                self.cloud.pass_time(seconds)
                self.cloud.finish_everything()
                self._satisfy_all()
                self.work()
            self.look()
            self.work()
            now = self._standing()
            if now == before and self.cloud.is_still and not self._deleting():
                return
            before = now
        raise AssertionError(f"no rest after {rounds} rounds: {before}")

    def _wish(self, server_id: str) -> tuple[int, int] | None:
        known = self.expected.get(server_id)
        return (known.number, known.wishes) if known else None

    def _standing(self) -> list[tuple[object, ...]]:
        documents = self.listed()
        stored = [(server.id, server.status, server.metadata.cloud_request) for server in self.stored().values()]
        return [*((document["metadata"], document["status"]) for document in documents), *stored]

    def _deleting(self) -> bool:
        stored = self.stored()
        return any(known.deleted and server_id in stored for server_id, known in self.expected.items())

    def _satisfy_all(self) -> None:
        if not any(known.gates for known in self.expected.values()):
            return
        for document in self.listed():
            known = self.expected[document["metadata"]["id"]]
            for gate in () if known.deleted else document["status"].get("remainingProviderCreateGates", ()):
                self.satisfy(known.slot, gate)

    def _is_gone(self, slot: Slot) -> bool:
        return slot.server_id not in self.stored()

    def _request(
        self, api: Api, method: str, path: str, codes: Iterable[int], body: dict[str, Any] | None = None
    ) -> TestResponse:
        failures = len(self.api_plan.spent)
        response = api.request(method, path, json=body)
        # A planned failure may come before or after what would have been refused anyway.
        failed = FAILED_DEPENDENCY | {400, 404} if len(self.api_plan.spent) > failures else frozenset()
        expected = frozenset(codes) | failed
        self.broken = response.status_code not in expected
        assert not self.broken, f"{method} {path}: {response.status_code}, not {sorted(expected)}"
        return response

    @contextmanager
    def _crashing(self) -> Iterator[None]:
        """Put up with the death of the controller inside the block: another comes."""
        try:
            yield
        except Crash:
            self.restart()
        except BaseException:
            self.broken = True
            raise

    def _note_rebuild(self, rebuild: Rebuild) -> None:
        known = self.expected.get(rebuild.machine.server_id or "")
        if is_strange(rebuild):
            self._note_drift(rebuild.machine)
        elif known is not None:
            self.ledger.rebuilds[known.number, known.wishes, rebuild.image_id] += 1

    def _note_drift(self, machine: Machine) -> None:
        known = self.expected.get(machine.server_id or "")
        if known is not None:
            known.wish()

    def _note_create(self, machine: Machine) -> None:
        known = self.expected.get(machine.server_id or "")
        if known is None:
            return
        self.ledger.owners[machine.id] = known.number
        if known.told_launched:
            self.ledger.wrong.append(f"{known.slot} had launched, and got another instance")

    def _note_delete(self, machine: Machine) -> None:
        known = self.expected.get(machine.server_id or "")
        if known is None or known.deleted or self.ledger.owners.get(machine.id) != known.number:
            return
        if machine.launched_at is not None:
            self.ledger.wrong.append(f"{machine.id} of {known.slot} had launched, and was deleted for another attempt")


def is_strange(rebuild: Rebuild) -> bool:
    """Say whether the service cannot know of a rebuild: not its own, or its own and taken for one that was not."""
    return rebuild.foreign or rebuild.overtaken


def _make_ready(world: World) -> None:
    version = world.client.get(kinds.IDENTITY, NAMESPACE, IDENTITY)["metadata"]["resourceVersion"]
    status = {"conditions": [condition("Available", "True", "Provisioned")]}
    world.client.patch_status(kinds.IDENTITY, NAMESPACE, IDENTITY, status, version)
