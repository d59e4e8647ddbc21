"""Instances that live as Nova lets them: accepted first, done later, well or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count

from server_api.servers.cloud_model import Instance, InstanceOrder, PowerState
from server_api.servers.ports import Ambiguous, Clock, Missing, Refused, StateConflict
from tests.doubles.programmable_neutron import Neutron

SOFT_DELETED = "SOFT_DELETED"

STALE_SECONDS = 30.0
"""How old a stale list is."""


class Ending(StrEnum):
    """How what Nova has begun comes to an end."""

    WELL = "well"
    FAILED = "failed"
    UNDONE = "undone"
    """As if it had not begun; of a deletion: with soft delete on."""


@dataclass
class Machine:
    """One instance. ``before`` is what it was like before what is under way; ``gone``: Nova answers 404."""

    id: str
    name: str
    server_id: str | None
    image_id: str
    flavor_id: str
    port_id: str
    created_at: datetime
    status: str = "BUILD"
    task: str | None = "spawning"
    power_state: PowerState = PowerState.NOSTATE
    launched_at: datetime | None = None
    fault: str | None = None
    gone: bool = False
    rebuilds: int = 0
    before: tuple[str, str, PowerState] | None = None

    @property
    def can_rebuild(self) -> bool:
        """Whether Nova would take a rebuild."""
        return not self.gone and self.may("rebuild")

    @property
    def failed_to_launch(self) -> bool:
        """Whether its build came to nothing."""
        return self.status == "ERROR" and self.launched_at is None and self.task is None

    def may(self, verb: str) -> bool:
        """Say whether the state allows that."""
        return self.task is None and self.status in _WHEN[verb] and self.launched_at is not None


@dataclass(frozen=True)
class Rebuild:
    """A rebuild that Nova took. ``foreign``: not through the port.

    ``overtaken``: it was so late that Nova had taken another in between, so that nobody can tell the two apart.
    """

    machine: Machine
    image_id: str
    foreign: bool = False
    overtaken: bool = False


_WHEN: dict[str, frozenset[str]] = {
    # Nova's own lists of states (nova.compute.api, check_instance_state), as far as these statuses go.
    "start": frozenset({"SHUTOFF"}),
    "stop": frozenset({"ACTIVE", "ERROR"}),
    "soft reboot": frozenset({"ACTIVE"}),
    "hard reboot": frozenset({"ACTIVE", "SHUTOFF", "ERROR"}),
    "rebuild": frozenset({"ACTIVE", "SHUTOFF", "ERROR"}),
    "snapshot": frozenset({"ACTIVE", "SHUTOFF"}),
}
_RESULT: dict[str, tuple[str, PowerState] | None] = {
    "powering-on": ("ACTIVE", PowerState.RUNNING),
    "powering-off": ("SHUTOFF", PowerState.SHUTDOWN),
    "rebooting": ("ACTIVE", PowerState.RUNNING),
    "image_snapshot": None,
}


class Nova:
    """``ports.Compute``, and the hand of whoever runs the cloud.

    ``machines`` are all there ever were, ``rebuilds`` all that were taken. ``on_create``, ``on_rebuild`` and
    ``on_delete`` are called whenever one is accepted.
    """

    def __init__(self, clock: Clock, neutron: Neutron, image_ids: Callable[[], Sequence[str]]) -> None:
        self._clock = clock
        self._neutron = neutron
        self._image_ids = image_ids
        self._numbers = count(1)
        self.machines: dict[str, Machine] = {}
        self.rebuilds: list[Rebuild] = []
        self.snapshots: dict[str, str] = {}
        self.on_create: Callable[[Machine], object] = lambda _: None
        self.on_rebuild: Callable[[Rebuild], object] = lambda _: None
        self.on_delete: Callable[[Machine], object] = lambda _: None

    # What the service asks for.

    def find(self, name: str, server_id: str) -> Instance | None:
        found = [shown for shown in self.instances() if (shown.name, shown.server_id) == (name, server_id)]
        if len(found) > 1:
            raise Ambiguous("nova", f"{len(found)} instances belong to server {server_id}")
        return found[0] if found else None

    def past_find(self, name: str, server_id: str) -> Instance | None:
        found = self.find(name, server_id)
        return found if found is not None and found in self.past_instances() else None

    def past_instances(self) -> Sequence[Instance]:
        since = self._clock.now() - timedelta(seconds=STALE_SECONDS)
        return [shown for shown in self.instances() if shown.created_at is not None and shown.created_at < since]

    def get(self, instance_id: str) -> Instance | None:
        machine = self.machines.get(instance_id)
        return None if machine is None or machine.gone else self._shown(machine)

    def instances(self) -> Sequence[Instance]:
        # Nova's lists leave out what is soft-deleted; asked for by its ID, it is shown.
        return [self._shown(machine) for machine in self.live() if machine.status != SOFT_DELETED]

    def create(self, order: InstanceOrder) -> Instance:
        return self.send_create(order)()

    def send_create(self, order: InstanceOrder) -> Callable[[], Instance]:
        """Check an order, as Nova does before anything else, and return what makes the instance."""
        if order.image_id not in self._image_ids():
            raise Refused("nova", "image not found")
        port = self._neutron.ports.get(order.port_id)
        if port is None:
            raise Refused("nova", "port not found")
        if port.instance_id is not None:
            raise StateConflict("nova", "port in use")
        return lambda: self._made(order)

    def delete(self, instance_id: str) -> None:
        machine = self.machines.get(instance_id)
        if machine is None or machine.gone:
            return
        if machine.status == SOFT_DELETED:
            self.vanish(machine)
            return
        self.on_delete(machine)
        machine.task = "deleting"

    def start(self, instance_id: str) -> None:
        self._begin(instance_id, "start", "powering-on")

    def stop(self, instance_id: str) -> None:
        self._begin(instance_id, "stop", "powering-off")

    def soft_reboot(self, instance_id: str) -> None:
        self._begin(instance_id, "soft reboot", "rebooting")

    def hard_reboot(self, instance_id: str) -> None:
        self._begin(instance_id, "hard reboot", "rebooting")

    def rebuild(self, instance_id: str, image_id: str, *, foreign: bool = False) -> None:
        """Begin a rebuild. Nova changes image and task in one write, before it answers."""
        self._rebuild(Rebuild(self._existing(instance_id), image_id, foreign))

    def send_rebuild(self, instance_id: str, image_id: str) -> Callable[[], None]:
        """Return what begins a rebuild that was sent now."""
        machine = self._existing(instance_id)
        before = machine.rebuilds
        return lambda: self._rebuild(Rebuild(machine, image_id, overtaken=machine.rebuilds != before))

    def last_rebuild(self, instance_id: str) -> str:
        machine = self._existing(instance_id)
        return f"req-{machine.id}-{machine.rebuilds}" if machine.rebuilds else ""

    def console_output(self, instance_id: str, lines: int | None) -> str:
        return f"console of {self._existing(instance_id).id}"

    def console_url(self, instance_id: str) -> str:
        return f"http://console.invalid/{self._existing(instance_id).id}"

    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        self._begin(instance_id, "snapshot", "image_snapshot")
        image_id = f"b0000000-0000-4000-8000-{next(self._numbers):012d}"
        self.snapshots[image_id] = name
        return image_id

    # What the cloud does.

    def live(self) -> Iterator[Machine]:
        """Return the machines that are not gone."""
        return (machine for machine in self.machines.values() if not machine.gone)

    def last(self, machine: Machine) -> Rebuild:
        """Return the last rebuild of a machine that was rebuilt."""
        return next(rebuild for rebuild in reversed(self.rebuilds) if rebuild.machine is machine)

    def busy(self) -> list[Machine]:
        """Return the machines that something is under way with, the oldest first."""
        return [machine for machine in self.live() if machine.task is not None]

    def finish(self, machine: Machine, ending: Ending) -> None:
        """Bring what is under way with a machine to an end."""
        if machine.task == "deleting":
            self._finish_delete(machine, ending)
        elif machine.task == "spawning":
            self._finish_build(machine, ending)
        elif machine.task == "rebuilding":
            self._finish_rebuild(machine, ending)
        elif machine.task is not None:
            result = _RESULT[machine.task]
            if ending is Ending.WELL and result is not None:
                machine.status, machine.power_state = result
                machine.fault = None
        machine.task = None

    def vanish(self, machine: Machine) -> None:
        """Lose a machine, as when an operator deletes it."""
        machine.gone, machine.task = True, None
        self._neutron.unbind(machine.id)

    def break_down(self, machine: Machine) -> None:
        """Let a machine get into error of its own accord, as when its host is lost."""
        machine.status, machine.task, machine.fault = "ERROR", None, "the host is down"

    def mend(self, machine: Machine) -> None:
        """Get a machine to run that failed before it ever did, as an operator may."""
        if self._neutron.bind(machine.port_id, machine.id):
            machine.fault = None
            self._finish_build(machine, Ending.WELL)

    def _made(self, order: InstanceOrder) -> Instance:
        machine = Machine(
            id=f"a0000000-0000-4000-8000-{next(self._numbers):012d}",
            name=order.name,
            server_id=order.metadata.get("serverID"),
            image_id=order.image_id,
            flavor_id=order.flavor_id,
            port_id=order.port_id,
            created_at=self._clock.now().replace(microsecond=0),
        )
        self.machines[machine.id] = machine
        self.on_create(machine)
        return Instance(id=machine.id, name=machine.name, status="BUILD", server_id=machine.server_id)

    def _rebuild(self, rebuild: Rebuild) -> None:
        if rebuild.image_id not in self._image_ids():
            raise Refused("nova", "image not found")
        machine = self._begin(rebuild.machine.id, "rebuild", "rebuilding")
        machine.image_id, machine.status, machine.fault = rebuild.image_id, "REBUILD", None
        machine.rebuilds += 1
        self.rebuilds.append(rebuild)
        self.on_rebuild(rebuild)

    def _finish_build(self, machine: Machine, ending: Ending) -> None:
        if ending is Ending.WELL and self._neutron.bind(machine.port_id, machine.id):
            machine.status, machine.power_state = "ACTIVE", PowerState.RUNNING
            machine.launched_at = self._clock.now().replace(microsecond=0)
        else:
            machine.status, machine.fault = "ERROR", "No valid host was found."

    def _finish_rebuild(self, machine: Machine, ending: Ending) -> None:
        assert machine.before is not None
        image_id, status, power_state = machine.before
        if ending is Ending.WELL:
            machine.status, machine.power_state = "ACTIVE", PowerState.RUNNING
            if status == "SHUTOFF":
                machine.status, machine.power_state = status, power_state
        elif ending is Ending.FAILED:
            machine.status, machine.fault = "ERROR", "the image cannot be unpacked"
        else:
            # The conductor puts the old reference back when no host takes the rebuild.
            machine.image_id, machine.status = image_id, status

    def _finish_delete(self, machine: Machine, ending: Ending) -> None:
        if ending is Ending.WELL:
            self.vanish(machine)
        elif ending is Ending.FAILED:
            machine.status, machine.fault = "ERROR", "the host does not answer"
        else:
            machine.status = SOFT_DELETED

    def _begin(self, instance_id: str, verb: str, task: str) -> Machine:
        machine = self._existing(instance_id)
        if not machine.may(verb):
            raise StateConflict("nova", f"cannot {verb} while {machine.status}, {machine.task}")
        machine.before = machine.image_id, machine.status, machine.power_state
        machine.task = task
        return machine

    def _existing(self, instance_id: str) -> Machine:
        machine = self.machines.get(instance_id)
        if machine is None or machine.gone:
            raise Missing("nova", "no such instance")
        return machine

    def _shown(self, machine: Machine) -> Instance:
        return Instance(
            id=machine.id,
            name=machine.name,
            status=machine.status,
            server_id=machine.server_id,
            task_state=machine.task,
            power_state=machine.power_state,
            image_id=machine.image_id,
            flavor_id=machine.flavor_id,
            created_at=machine.created_at,
            launched_at=machine.launched_at,
            mac_addresses=self._neutron.mac_addresses(machine.id),
            fault=machine.fault,
        )
