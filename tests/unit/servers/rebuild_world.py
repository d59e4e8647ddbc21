"""The world of test_rebuild_model.py: one server whose image its user keeps changing between two, and its instance.

Inside is the real controller (rebuild_controller.py). Around it are a Nova that takes a rebuild, refuses it, loses the
answer or takes it late, undoes it, or is used by somebody else; a store with conditional writes; one or two
controllers, each of which may die between any two calls; and a monitor.

Left out: servers that never ran (create_world.py), a missing instance, markers of another version (test_rebuild.py).

Assumed: a request takes effect less than ``LATE_SECONDS`` after it was recorded or never, be it that the answer was
lost or that the process was slow between record and request. So time is only whether a record is older than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from server_api.servers.outcomes import Outcome
from tests.unit.servers.model_search import Call, Ended, Point, Step, without
from tests.unit.servers.rebuild_controller import (
    ANSWERS,
    DESIRED,
    OTHER,
    RENAMED,
    WHEN_BUSY,
    Nova,
    Record,
    Status,
    looked,
    new_passes,
    reads_as,
    wakes_when_respecified,
    woken,
)


class Worker(NamedTuple):
    """A pass under way. ``outdated`` is of the last rebuild it knows of, as in ``Record``.

    ``informed``: it has looked at the instance, and nobody changed its image since. ``stale``: somebody wrote the
    server since it was read.
    """

    point: Point
    outdated: bool
    informed: bool = False
    stale: bool = False

    @property
    def heeds_the_last_rebuild(self) -> bool:
        return isinstance(self.point.at, Call) and self.point.at.name != "rebuild"


class Request(NamedTuple):
    """A recorded request that was not sent yet, or may still be taken. ``counts``: for the target that stands now."""

    image: str
    counts: bool = True


class State(NamedTuple):
    """The world. The last three are what nobody in it knows: they are there for the invariants."""

    nova: Nova = Nova()
    status: Status = Status()
    record: Record | None = None
    due: bool = False
    """A pass is queued."""
    workers: tuple[Worker, ...] = ()
    unsent: tuple[Request, ...] = ()
    """Of passes that can do nothing any more but send it, because somebody wrote the server since they recorded it."""
    late: tuple[Request, ...] = ()
    """Sent, and not taken so far."""
    looking: Status | None = None
    taken: int = 0
    """Rebuilds submitted for the target that stands, and taken."""
    unseen: bool = False
    """The desired image changed, and no pass that knows it has written yet."""
    drifted: str = ""
    """Who changed the instance's image without any pass knowing, while no pass that looked since then has written:
    others, or we by a request that was taken late."""


@dataclass(frozen=True)
class Faults:
    """What may go wrong in a world. ``answers``: to a submission."""

    answers: tuple[str, ...] = tuple(ANSWERS)
    crashes: bool = True
    rollback: bool = True
    """Nova's conductor puts the old reference back when no host takes the rebuild."""
    foreign_rebuilds: bool = True
    errors: bool = True
    unreadable: bool = True
    changed_minds: bool = True
    """The user wants the other image, at any time."""
    controllers: int = 1
    """How many passes may be under way at once: more than one when a Lease was stolen."""


class RebuildWorld:
    """What may happen next in a world with these faults.

    ``prunes``: forget a pass as soon as another write has made sure that nothing it will do has any effect, which is so
    as long as the record is a conditional write.
    """

    def __init__(self, faults: Faults, prunes: bool = True) -> None:
        self._faults = faults
        self._prunes = prunes
        self.passes = new_passes()

    def steps(self, state: State) -> Iterator[Step[State]]:
        """Yield everything that may happen."""
        yield from self._nova(state)
        yield from self._late_requests(state)
        yield from self._user(state)
        yield from self._monitor(state)
        yield from self._a_pass_begins(state)
        for index, worker in enumerate(state.workers):
            others = tuple(without(state.workers, index))
            yield from self._goes_on(state._replace(workers=others), worker)

    # The cloud and its users

    def _nova(self, state: State) -> Iterator[Step[State]]:
        nova, faults = state.nova, self._faults
        if nova.before is not None:
            yield Step("nova completes", state._replace(nova=Nova(nova.image)), fair=True)
            yield Step("the rebuild fails", state._replace(nova=Nova(nova.image, in_error=True)))
            if faults.rollback:
                yield Step("no host takes the rebuild", _image_changed(state, Nova(nova.before, in_error=True)))
            return
        if faults.errors:
            other = nova._replace(in_error=not nova.in_error)
            yield Step("the instance goes to error or recovers", state._replace(nova=other))
        if faults.foreign_rebuilds:
            for image in (DESIRED, OTHER):
                # Nova records it as another user's, which ``last_rebuild`` does not count.
                yield Step(f"another actor rebuilds to the {image} image", _image_changed(state, nova.accepted(image)))

    def _late_requests(self, state: State) -> Iterator[Step[State]]:
        for index, request in enumerate(state.late):
            others = state._replace(late=tuple(without(state.late, index)))
            yield Step(f"the request for the {request.image} image is lost", others, fair=True)
            if not state.nova.busy:
                yield Step(
                    f"nova takes the {request.image} image late", _taken(others, request, known=False), fair=True
                )
        # A request that is not sent yet would be sent later than assumed.
        in_time = state.unsent or state.late or any(worker.point.waits_for("rebuild") for worker in state.workers)
        if state.record is not None and not state.record.old and not in_time:
            yield Step("time passes", state._replace(record=state.record._replace(old=True)), fair=True)
        for index, request in enumerate(state.unsent):
            others = state._replace(unsent=tuple(without(state.unsent, index)))
            for answer in self._answers(state):
                after = _submitted(others, request, answer, known=False)
                yield Step(f"a stale pass submits: {answer}", after, answer == "taken")
            if self._faults.crashes:
                yield Step("a controller dies before it sends", others._replace(due=True))

    def _answers(self, state: State) -> tuple[str, ...]:
        if state.nova.busy:
            return tuple(answer for answer in self._faults.answers if answer in WHEN_BUSY) or ("conflict",)
        return self._faults.answers

    def _user(self, state: State) -> Iterator[Step[State]]:
        if not self._faults.changed_minds:
            return
        record = state.record
        changed = _written(state, but=self)._replace(
            nova=state.nova.renamed(),
            status=state.status.renamed(),
            record=record and record._replace(image=RENAMED[record.image]),
            due=True,
            unseen=True,
            drifted="",
        )
        changed = changed._replace(
            unsent=_sorted(tuple(request._replace(image=RENAMED[request.image]) for request in changed.unsent)),
            late=_sorted(tuple(request._replace(image=RENAMED[request.image]) for request in changed.late)),
        )
        assert wakes_when_respecified(state.status, changed.status)
        yield Step("the user wants the other image", changed)
        marked = changed.status._replace(marker=(DESIRED, "Initiated"))
        # The update writes the marker too, unless that second write fails (decision 7).
        yield Step(
            "the user wants the other image, and the update says so", _retargeted(changed._replace(status=marked))
        )

    # The controller and the monitor

    def _monitor(self, state: State) -> Iterator[Step[State]]:
        if state.looking is not None:
            yield Step("the monitor's write is stored", self._stored(state, state.looking), fair=True)
            return
        for readable in (True, False) if self._faults.unreadable else (True,):
            seen = looked(state.status, state.nova, readable)
            if seen != state.status:
                yield Step("the monitor looks", state._replace(looking=seen), fair=readable)

    def _a_pass_begins(self, state: State) -> Iterator[Step[State]]:
        under_way = len(state.workers) + len(state.unsent)
        if under_way >= self._faults.controllers:
            return
        record = state.record
        known = record and record._replace(outdated=False)
        worker = Worker(self.passes.begin((state.status, known)), outdated=record is not None and record.outdated)
        begun = state._replace(workers=_sorted((*state.workers, worker)))
        if state.due:
            yield Step("a pass begins", begun._replace(due=False), fair=True)
        elif under_way:
            yield Step("the other controller begins a pass", begun)

    def _goes_on(self, others: State, worker: Worker) -> Iterator[Step[State]]:
        """Yield what a pass does next; ``others`` is the state without it."""
        at = worker.point.at
        if isinstance(at, Ended):
            yield from self._ends(others, worker, *at.result)
        elif at.name == "find":
            views = [(others.nova, True), (others.nova, False)] if self._faults.unreadable else [(others.nova, True)]
            for view in views:
                after = self._answered(worker, view)._replace(informed=True)
                name = "a pass finds the instance" if view[1] else "a pass cannot read the image"
                yield Step(name, _with(others, after), fair=view[1])
        elif at.name == "last_rebuild":
            answer = "another" if worker.outdated else "last before"
            after = self._answered(worker, answer)._replace(outdated=False)
            yield Step("a pass asks for the last rebuild", _with(others, after), fair=True)
        elif at.name == "record":
            yield from self._records(others, worker, at)
        else:
            yield from self._submits(others, worker, at)

    def _records(self, others: State, worker: Worker, at: Call) -> Iterator[Step[State]]:
        assert isinstance(at.argument, tuple)
        image, conditional = at.argument
        if worker.stale and conditional:
            yield Step("a pass's record is refused", others._replace(due=True), fair=True)
            return
        record = None if image is None else Record(image, outdated=worker.outdated)
        after = _with(
            _written(others, but=self)._replace(record=record), self._answered(worker, None)._replace(stale=False)
        )
        yield Step(f"a pass records {image}", after, fair=True)
        if self._faults.crashes:
            yield Step(f"a pass dies before it records {image}", others._replace(due=True))

    def _submits(self, others: State, worker: Worker, at: Call) -> Iterator[Step[State]]:
        assert at.name == "rebuild"
        assert isinstance(at.argument, str)
        for answer in self._answers(others):
            after = _submitted(others, Request(at.argument), answer, known=True)
            after = _with(after, self._answered(worker, ANSWERS[answer]))
            yield Step(f"a pass submits: {answer}", after, fair=answer == "taken")
        if self._faults.crashes:
            yield Step("a pass dies before it submits", others._replace(due=True))

    def _ends(self, others: State, worker: Worker, status: Status, outcome: Outcome) -> Iterator[Step[State]]:
        if worker.stale:
            yield Step("a pass's write is refused", others._replace(due=True), fair=True)
            return
        after = self._stored(others, status)._replace(unseen=False)
        after = after._replace(
            due=after.due or outcome in (Outcome.YIELD, Outcome.ERROR),
            drifted="" if worker.informed else after.drifted,
        )
        yield Step(f"a pass ends: {outcome}", after, fair=True)
        if self._faults.crashes:
            yield Step("a pass dies before it writes", others._replace(due=True))

    def _answered(self, worker: Worker, answer: Any) -> Worker:
        after = worker._replace(point=self.passes.answer(worker.point, answer))
        return after if after.heeds_the_last_rebuild else after._replace(outdated=False)

    def _stored(self, state: State, after: Status) -> State:
        """Return the state after a status write, which may wake the controller."""
        before = state.status
        if after == before:
            return state._replace(looking=None)
        state = _written(state, but=self)
        state = state._replace(status=after, due=state.due or woken(before, after))
        same = after.marker is not None and before.marker is not None and after.marker[0] == before.marker[0]
        return state if same else _retargeted(state)

    def outrun(self, worker: Worker) -> Worker | Request | None:
        """Return what is left of a pass once somebody else wrote the server; None: nothing that has any effect."""
        at = worker.point.at
        if isinstance(at, Call) and at.name == "rebuild":
            assert isinstance(at.argument, str)
            return Request(at.argument)
        return None if self._prunes else worker._replace(stale=True)


def _with(state: State, worker: Worker) -> State:
    return state._replace(workers=_sorted((*state.workers, worker)))


def _sorted(items: tuple[Any, ...]) -> tuple[Any, ...]:
    # So that two passes under way make no difference by which of them is called the first.
    return tuple(sorted(items)) if len(items) > 1 else items


def _written(state: State, but: RebuildWorld) -> State:
    """Return the state after a write of the server: passes under way, and the monitor, cannot write it any more."""
    left = [but.outrun(worker) for worker in state.workers]
    return state._replace(
        workers=_sorted(tuple(worker for worker in left if isinstance(worker, Worker))),
        unsent=_sorted((*state.unsent, *(request for request in left if isinstance(request, Request)))),
        due=state.due or any(worker is None for worker in left),
        looking=None,
    )


def _retargeted(state: State) -> State:
    """Return the state after the target that stood was replaced or removed."""
    return state._replace(
        taken=0,
        unsent=_sorted(tuple(request._replace(counts=False) for request in state.unsent)),
        late=_sorted(tuple(request._replace(counts=False) for request in state.late)),
    )


def _image_changed(state: State, nova: Nova, by: str = "others") -> State:
    """Return the state after Nova's reference became another one and no pass knows."""
    if nova.image == state.nova.image:
        return state._replace(nova=nova)
    workers = _sorted(tuple(worker._replace(informed=False) for worker in state.workers))
    return state._replace(nova=nova, drifted=by if nova.image != DESIRED else "", workers=workers)


def _rebuild_recorded(state: State) -> State:
    """Return the state after Nova recorded a rebuild as the last."""
    record = state.record
    return state._replace(
        record=record and record._replace(outdated=True),
        workers=_sorted(tuple(worker._replace(outdated=worker.heeds_the_last_rebuild) for worker in state.workers)),
    )


def _taken(state: State, request: Request, known: bool) -> State:
    nova = state.nova.accepted(request.image)
    after = state._replace(nova=nova) if known else _image_changed(state, nova, by="us")
    return _rebuild_recorded(after)._replace(taken=min(2, state.taken + request.counts))


def _submitted(state: State, request: Request, answer: str, known: bool) -> State:
    if answer.startswith("taken"):
        return _taken(state, request, known)
    if answer.endswith("late"):
        return state._replace(late=_sorted((*state.late, request)))
    return state


# What must not be


def is_taken_twice(state: State) -> bool:
    """Say whether a target that stands has had two rebuilds."""
    return state.taken > 1


def is_sent_beside_another(state: State) -> bool:
    """Say whether two requests are on their way to the cloud, so that both may be taken."""
    ready = sum(worker.point.waits_for("rebuild") for worker in state.workers)
    return ready + len(state.unsent) + len(state.late) > 1


def is_untrue(state: State) -> bool:
    """Say whether the server reads as provisioned, and is not, though a pass has had the time to find out."""
    told = reads_as(state.status) == "provisioned" and state.nova.image != DESIRED
    return told and not state.unseen and not state.drifted


def is_settled(state: State) -> bool:
    """Say whether nothing more will happen by itself, and the server says how it is."""
    moving = state.due or state.workers or state.unsent or state.late or state.looking or state.nova.busy
    if moving:
        return False
    if reads_as(state.status) == "error":
        return state.status.marker is None or state.status.marker[1] == "Failed"
    # What others do to an instance that needs nothing from us is not looked for.
    return reads_as(state.status) == "provisioned" and (state.nova.image == DESIRED or state.drifted == "others")
