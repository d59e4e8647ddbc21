"""What there is in the world of create_world.py, what may go wrong in it, and what must not come to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.unit.servers.create_controller import CAP, Instance, Status, Stored
from tests.unit.servers.model_search import Ended, Passes, Point


class Worker(NamedTuple):
    """A pass under way.

    ``stale``: somebody wrote the server since it was read, or last written by this pass. ``removes``: it is one that
    takes things away, which no conditional write stands before. ``holds``: the instance it found is still there,
    ``holds_port``: so is the port. ``old``: it is older than the record. ``deposed``: it is of a controller whose
    Lease was stolen.
    """

    passes: Passes
    point: Point
    stale: bool = False
    removes: bool = False
    holds: bool = False
    holds_port: bool = False
    old: bool = False
    deposed: bool = False

    @property
    def is_about_to_remove(self) -> bool:
        """Whether it has found what it takes away, and does not look again before."""
        return self.removes and self.holds and not self.point.waits_for("find", "get")


class State(NamedTuple):
    """The world. ``faults`` is how many more may happen. The last five are what nobody in it knows."""

    faults: int
    stored: Stored | None = Stored()
    """None: deleted, and gone."""
    instance: Instance | None = None
    port: bool = False
    late: tuple[str, ...] = ()
    """Requests that were sent, and not taken so far."""
    due: bool = True
    workers: tuple[Worker, ...] = ()
    looking: Status | None = None
    creates: int = 0
    """Instances created since the last reason to create one: none failed, or vanished without anybody knowing of it."""
    attempts: int = 0
    """Instances created since the operator last allowed more, or one vanished like that."""
    failed: int = 0
    """Builds that failed since the operator last allowed more."""
    vanished: bool = False
    """Somebody deleted the instance."""
    wrong: str = ""


ALL_KINDS = frozenset(
    {
        "answers",
        "port answers",
        "stale list",
        "crash",
        "conflict",
        "vanish",
        "mend and break",
        "operator",
        "port taken away",
        "stolen lease",
    }
)
"""What may go wrong: answers of Nova and of Neutron; a list of Nova's that is older than a create; a controller that
dies; somebody who writes the server, deletes the instance, mends it when it is in error, breaks it when it runs, sets
the failures back, or deletes a port without an instance; a Lease that is stolen in the middle of a pass, which goes on
beside those of the new leader.
"""


@dataclass(frozen=True)
class Faults:
    """What may go wrong in a world, and how often in all."""

    budget: int = 2
    controllers: int = 1
    """How many passes may be under way at once."""
    gated: bool = False
    kinds: frozenset[str] = ALL_KINDS


def with_worker(state: State, worker: Worker) -> State:
    """Return the state with that pass under way."""
    if isinstance(worker.point.at, Ended):
        # So that it is the same whichever way a pass came to its end.
        worker = Worker(worker.passes, worker.point, deposed=worker.deposed)
    return state._replace(workers=in_order((*state.workers, worker)))


def in_order(items: Sequence[Worker]) -> tuple[Worker, ...]:
    """Return passes under way in an order that does not tell which of them began first."""
    return tuple(sorted(items)) if len(items) > 1 else tuple(items)


def miscounted(state: State, before: Status, after: Status) -> str:
    """Return what is wrong with a status write that counts a failure; empty: nothing."""
    if after.failures <= before.failures:
        return ""
    if after.failures > CAP:
        return "more failures than allowed"
    if before.provisioned:
        return "a launched server's create failed"
    return "a failure counted twice" if after.failures > state.failed else ""


def without_port(state: State) -> State:
    """Return the state without the port."""
    workers = in_order([worker._replace(holds_port=False) for worker in state.workers])
    return state._replace(port=False, workers=workers)


def without_instance(state: State) -> State:
    """Return the state without the instance."""
    workers = in_order([worker._replace(holds=False) for worker in state.workers])
    return state._replace(instance=None, workers=workers)


# What must not be


def is_wrong(state: State) -> bool:
    """Say whether something happened that must not."""
    return bool(state.wrong)


def is_left_over(state: State) -> bool:
    """Say whether a deletion is done, and something is left in the cloud, or may yet come into being."""
    if state.stored is not None:
        return False
    return bool(state.instance or state.port or state.late)


def is_beyond_a_closed_gate(state: State) -> bool:
    """Say whether there is something in the cloud for a server whose gate is closed."""
    stored = state.stored
    if stored is None or not stored.gated or stored.status.gate == "True":
        return False
    return bool(state.instance or state.port or state.late)
