"""Everything that may happen to servers, one step at a time: what users, the cloud, the controller and bad luck do.

``which`` chooses among what there is at that moment, so that most steps meet something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tests.api.lifecycle_bench import LifecycleBench
from tests.api.lifecycle_expectations import GATES, IMAGES, SLOTS, Slot
from tests.doubles.fault_plan import Fault
from tests.doubles.programmable_nova import Ending, Machine

NOT_FENCED = frozenset({"compute.create", "compute.rebuild", "store.update", "store.patch_status"})
"""Calls before which another leader may act: fencing keeps it from the rest, and for these it must not be needed."""


class Step(Protocol):
    """Something that happens."""

    def take(self, bench: LifecycleBench) -> None:
        """Let it happen on the bench."""


def free(bench: LifecycleBench, which: int) -> Slot:
    """Return a slot without a server, or any, if all have one."""
    stored = bench.stored()
    slots = [slot for slot in SLOTS if slot.server_id not in stored] or list(SLOTS)
    return slots[which % len(slots)]


def used(bench: LifecycleBench, which: int) -> Slot:
    """Return a slot with a server, or any, if none has."""
    stored = bench.stored()
    slots = [slot for slot in SLOTS if slot.server_id in stored] or list(SLOTS)
    return slots[which % len(slots)]


def go_on(bench: LifecycleBench) -> None:
    """Let the controller do what there is to do at once, and what a pass leaves to the next."""
    for seconds in (0, 1):
        bench.cloud.pass_time(seconds)
        bench.work()


def other_image(bench: LifecycleBench, slot: Slot, which: int) -> str:
    """Return an image that the server does not have."""
    known = bench.expected.get(slot.server_id)
    images = [image_id for image_id in IMAGES if known is None or image_id != known.image_id]
    return images[which % len(images)]


# Bad luck.


class Interruption(StrEnum):
    """What happens while a pass is under way, right before one of its calls."""

    UPDATE = "update"
    DELETE = "delete"
    LOOK = "look"
    PROGRESS = "progress"
    REBUILD = "foreign rebuild"
    LEADER = "another leader"


@dataclass(frozen=True)
class Trouble:
    """What the next call of that name meets."""

    call: str
    what: Fault | Interruption
    delay: float = 0.0

    def prepare(self, bench: LifecycleBench, slot: Slot) -> None:
        plan, what = bench.controller.plan, self.what
        if isinstance(what, Fault):
            plan.plan(self.call, what, self.delay)
        elif what is not Interruption.LEADER or self.call in NOT_FENCED:
            plan.meanwhile(self.call, self._action(bench, slot, what))

    @staticmethod
    def _action(bench: LifecycleBench, slot: Slot, what: Interruption) -> Callable[[], object]:
        actions: dict[Interruption, Callable[[], object]] = {
            Interruption.UPDATE: lambda: bench.update(slot, image_id=other_image(bench, slot, 0)),
            Interruption.DELETE: lambda: bench.delete(slot),
            Interruption.LOOK: bench.look,
            Interruption.PROGRESS: bench.cloud.finish_everything,
            Interruption.REBUILD: Meddle(0, Meddling.REBUILD, IMAGES[-1]).act_on(bench),
            Interruption.LEADER: lambda: bench.second_leader_passes(slot.server_id),
        }
        return actions[what]


@dataclass(frozen=True)
class PassInBadTimes:
    which: int
    trouble: Trouble

    def take(self, bench: LifecycleBench) -> None:
        slot = used(bench, self.which)
        self.trouble.prepare(bench, slot)
        bench.pass_over(slot.server_id)
        go_on(bench)


# Users.


@dataclass(frozen=True)
class Create:
    which: int
    gates: tuple[str, ...] | None = None
    public_ip: bool = False
    trouble: Trouble | None = None
    at_once: bool = True

    def take(self, bench: LifecycleBench) -> None:
        slot = free(bench, self.which)
        if self.trouble is not None:
            self.trouble.prepare(bench, slot)
        bench.create(slot, gates=self.gates, public_ip=self.public_ip)
        if self.at_once:
            go_on(bench)


@dataclass(frozen=True)
class ChangeImage:
    """``rested``: after everything has taken its course, so that there is something to rebuild."""

    which: int
    image: int = 0
    trouble: Trouble | None = None
    rested: bool = True
    at_once: bool = True

    def take(self, bench: LifecycleBench) -> None:
        if self.rested:
            GoOn(1).take(bench)
        slot = used(bench, self.which)
        if self.trouble is not None:
            self.trouble.prepare(bench, slot)
        bench.update(slot, image_id=other_image(bench, slot, self.image))
        if self.at_once:
            go_on(bench)


@dataclass(frozen=True)
class ChangeTheRest:
    which: int
    tag: str
    user_data: str | None
    public_ip: bool
    at_once: bool = True

    def take(self, bench: LifecycleBench) -> None:
        bench.update(used(bench, self.which), tag=self.tag, user_data=self.user_data, public_ip=self.public_ip)
        if self.at_once:
            go_on(bench)


@dataclass(frozen=True)
class Delete:
    which: int
    trouble: Trouble | None = None
    at_once: bool = True

    def take(self, bench: LifecycleBench) -> None:
        slot = used(bench, self.which)
        if self.trouble is not None:
            self.trouble.prepare(bench, slot)
        bench.delete(slot)
        if self.at_once:
            go_on(bench)


@dataclass(frozen=True)
class Act:
    """A power verb, a snapshot, a gate's service, or a read; ``fault`` is of a call that the API makes for it."""

    slot: Slot
    verb: str
    call: str = ""
    fault: Fault = Fault.DOWN

    def take(self, bench: LifecycleBench) -> None:
        if self.call:
            bench.api_plan.plan(self.call, self.fault, 20.0)
        if self.verb == "snapshot":
            bench.snapshot(self.slot)
        elif self.verb == "read":
            bench.read(self.slot)
        elif self.verb == "satisfy":
            for gate in GATES:
                bench.satisfy(self.slot, gate)
        else:
            bench.act(self.slot, self.verb)


# The cloud.


@dataclass(frozen=True)
class PassTime:
    seconds: int
    at_once: bool = True

    def take(self, bench: LifecycleBench) -> None:
        bench.cloud.pass_time(self.seconds)
        if self.at_once:
            bench.work()


@dataclass(frozen=True)
class Finish:
    """Something that Nova is at comes to an end, and the monitor sees it if it is ``noticed``."""

    which: int
    ending: Ending = Ending.WELL
    noticed: bool = True

    def take(self, bench: LifecycleBench) -> None:
        busy = bench.cloud.nova.busy()
        if busy:
            bench.finish(busy[self.which % len(busy)], self.ending)
        if self.noticed:
            bench.look()
            bench.work()


class Meddling(StrEnum):
    """What people with rights of their own do, to an instance that idles or to the stored servers."""

    REBUILD = "rebuild"
    LOSE = "lose"
    BREAK = "break"
    RENAME = "rename"
    MEND = "mend"
    ALLOW = "allow more attempts"


@dataclass(frozen=True)
class Meddle:
    which: int
    what: Meddling
    image_id: str = IMAGES[0]
    noticed: bool = False

    def take(self, bench: LifecycleBench) -> None:
        self.act_on(bench)()
        if self.noticed:
            bench.look()
            bench.work()

    def act_on(self, bench: LifecycleBench) -> Callable[[], object]:
        """Return what does it when it is called."""
        return bench.allow_more_attempts if self.what is Meddling.ALLOW else lambda: self._touch(bench)

    def _touch(self, bench: LifecycleBench) -> None:
        live = list(bench.cloud.nova.live())
        if self.what is Meddling.MEND:
            machines = [machine for machine in live if machine.failed_to_launch]
        else:
            machines = [machine for machine in live if machine.can_rebuild]
        if machines:
            self._change(bench, machines[self.which % len(machines)])

    def _change(self, bench: LifecycleBench, machine: Machine) -> None:
        if self.what is Meddling.REBUILD:
            bench.cloud.nova.rebuild(machine.id, self.image_id, foreign=True)
        elif self.what is Meddling.LOSE:
            bench.cloud.nova.vanish(machine)
        elif self.what is Meddling.BREAK:
            bench.cloud.nova.break_down(machine)
        elif self.what is Meddling.MEND:
            bench.cloud.nova.mend(machine)
        else:
            machine.name = "renamed" if machine.name != "renamed" else SLOTS[0].name


# The controller.


@dataclass(frozen=True)
class GoOn:
    """Everything takes its course for a while."""

    seconds: int

    def take(self, bench: LifecycleBench) -> None:
        bench.work()
        bench.cloud.pass_time(self.seconds)
        bench.cloud.finish_everything()
        bench.look()
        bench.work()


@dataclass(frozen=True)
class Work:
    most: int

    def take(self, bench: LifecycleBench) -> None:
        bench.work(self.most)


class Sight(StrEnum):
    """What the controller knows of the world."""

    LOOK = "look"
    DIE = "die"
    LOSE_WATCH = "lose watch"


@dataclass(frozen=True)
class See:
    what: Sight

    def take(self, bench: LifecycleBench) -> None:
        if self.what is Sight.LOOK:
            bench.look()
        elif self.what is Sight.DIE:
            bench.restart()
        else:
            bench.controller.lose_watch()
