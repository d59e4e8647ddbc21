"""A model check of the image rebuild: every interleaving of a small world, with the real rules inside.

The world is one server whose image the user keeps changing between two, its instance in a model of Nova, the real
``Provisioner``, ``observe`` and ``wakes``. A pass and a look of the monitor are two steps each, a read and a
conditional write, so that everything else may happen between them. The search is breadth-first and complete: no state
is new after depth 17, with 11,474 states.

Left out: servers that never ran, a missing instance, markers of another version (test_rebuild.py has them), and two
controllers at once, which fencing excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import pytest

from server_api.controller.triggers import wakes
from server_api.servers.cloud_model import Instance
from server_api.servers.derived_status import provisioning_status
from server_api.servers.model import ConditionType, RebuildMarker, Server, ServerStatus
from server_api.servers.observed_state import observe
from server_api.servers.outcomes import Outcome
from server_api.servers.ports import PortError, ReferentKind, Refused, StateConflict, Unavailable
from server_api.servers.provisioning import Provisioner
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.tenancy import JournaledCompute, OneProjectCloud
from tests.unit.servers.builders import (
    EARLIER,
    IDENTITY,
    NETWORK,
    NOW,
    condition,
    identity,
    instance,
    region,
    server,
    spec,
)

DESIRED, OTHER = "desired", "other"
"""The two images. When the user changes the spec they change their names, which halves the number of states."""

_RENAMED = {DESIRED: OTHER, OTHER: DESIRED}


class Nova(NamedTuple):
    """The instance. ``before`` is the image a rebuild under way started from; None: no rebuild is under way."""

    image: str = DESIRED
    in_error: bool = False
    before: str | None = None

    @property
    def busy(self) -> bool:
        return self.before is not None

    def accepted(self, image: str) -> Nova:
        # Nova changes reference and task in one write, before it answers.
        return Nova(image, self.in_error, self.image)

    def shown(self, readable: bool = True) -> Instance:
        status = "REBUILD" if self.busy else "ERROR" if self.in_error else "ACTIVE"
        return instance(
            status=status,
            task_state="rebuilding" if self.busy else None,
            image_id=self.image if readable else None,
            created_at=EARLIER,
            launched_at=EARLIER,
        )


class Stored(NamedTuple):
    """What the store holds, as far as a rebuild depends on it. ``available`` is the condition's reason."""

    marker: tuple[str, str] | None = None
    available: str = "Provisioned"

    def as_server(self, generation: int = 1) -> Server:
        status = ServerStatus(
            conditions=(condition(ConditionType.AVAILABLE, "", self.available),),
            scheduled_at=EARLIER,
            launched_at=EARLIER,
            provisioned_at=EARLIER,
            rebuild=RebuildMarker(*self.marker) if self.marker else None,
        )
        return server(spec(image_id=DESIRED), status, generation=generation)

    @staticmethod
    def of(status: ServerStatus) -> Stored:
        available = status.condition(ConditionType.AVAILABLE)
        assert available is not None
        marker = status.rebuild
        return Stored((marker.target_image_id, marker.state) if marker else None, available.reason)


class Write(NamedTuple):
    """A status write that is on its way; ``result`` None when it will be refused, because somebody wrote meanwhile."""

    result: Stored | None
    outcome: Outcome | None = None


class State(NamedTuple):
    """The world. The last four are what nobody in it knows: they are there for the invariants."""

    nova: Nova = Nova()
    stored: Stored = Stored()
    due: bool = False
    """A pass is queued."""
    passing: Write | None = None
    looking: Stored | None = None
    taken: int = 0
    """Rebuilds that Nova accepted from us since the marker was armed, but for one whose traces are gone."""
    traceless: bool = False
    """That one: it was accepted, its record lost, and the instance does not show it any more."""
    unseen: bool = False
    """The desired image changed, and no pass that knows it has written yet."""
    drifted: bool = False
    """The instance's image was changed behind our back since a pass last looked at it."""


@dataclass(frozen=True)
class Faults:
    """What may go wrong in a world."""

    answers: tuple[str, ...] = ("accepted",)
    lost_writes: bool = False
    rollback: bool = False
    """Nova's conductor puts the old reference back when no host takes the rebuild."""
    foreign_rebuilds: bool = False
    errors: bool = False
    unreadable: bool = False
    changed_minds: bool = True
    """The user wants the other image, at any time."""


ALL_FAULTS = Faults(
    answers=("accepted", "accepted, answer lost", "conflict", "down", "refused"),
    lost_writes=True,
    rollback=True,
    foreign_rebuilds=True,
    errors=True,
    unreadable=True,
)
_ERRORS: dict[str, PortError | None] = {
    "accepted": None,
    "accepted, answer lost": Unavailable("nova", "connection lost"),
    "conflict": StateConflict("nova", "busy"),
    "down": Unavailable("nova", "503"),
    "refused": Refused("nova", "no"),
}


class Pass(NamedTuple):
    """What one pass of the real Provisioner comes to."""

    result: Stored
    outcome: Outcome
    submitted: str | None


class _Compute(JournaledCompute):
    submitted: str | None = None
    answer: PortError | None = None

    def rebuild(self, instance_id: str, image_id: str) -> None:
        assert self.submitted is None, "one pass submitted twice"
        self.submitted = image_id
        if self.answer is not None:
            raise self.answer


@cache
def run_pass(stored: Stored, nova: Nova, readable: bool, answer: str) -> Pass:
    cloud = OneProjectCloud()
    compute = cloud.compute = _Compute(cloud.journal, nova.shown(readable))
    compute.answer = _ERRORS[answer]
    references = InMemoryReferences()
    references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
    result = Provisioner(InMemoryDirectory(identity(), region()), references, cloud).run(stored.as_server(), NOW)
    return Pass(Stored.of(result.status), result.outcome, compute.submitted)


@cache
def look(stored: Stored, nova: Nova, readable: bool) -> Stored:
    return Stored.of(observe(stored.as_server().status, nova.shown(readable), NOW, ""))


@cache
def woken(before: Stored, after: Stored) -> bool:
    return wakes(before.as_server(), after.as_server())


@cache
def reads_as(stored: Stored) -> str:
    return provisioning_status(stored.as_server())


# What can happen next

Step = tuple[str, State]


def fair_steps(state: State) -> Iterator[Step]:
    """Yield what keeps happening in a world that is left alone."""
    nova = state.nova
    if nova.busy:
        yield "nova completes", state._replace(nova=Nova(nova.image))
    yield from _pass_reads(state, readable=True, answers=("accepted",))
    yield from _pass_writes(state)
    yield from _monitor(state, readable=True)


def all_steps(state: State, faults: Faults) -> Iterator[Step]:
    yield from fair_steps(state)
    yield from _nova_changes(state, faults)
    if faults.changed_minds:
        yield "the user wants the other image", _other_image_wanted(state)
    yield from _pass_reads(state, readable=True, answers=faults.answers)
    if faults.unreadable:
        yield from _pass_reads(state, readable=False, answers=())
        yield from _monitor(state, readable=False)
    if faults.lost_writes and state.passing is not None:
        yield "the pass's write is lost", state._replace(passing=None, due=True)
    if faults.lost_writes and state.looking is not None:
        yield "the monitor's write is lost", state._replace(looking=None)


def _other_image_wanted(state: State) -> State:
    nova, (marker, available) = state.nova, state.stored
    stored = Stored((_RENAMED[marker[0]], marker[1]) if marker else None, available)
    assert wakes(state.stored.as_server(generation=1), stored.as_server(generation=2))
    return state._replace(
        nova=nova._replace(image=_RENAMED[nova.image], before=nova.before and _RENAMED[nova.before]),
        stored=stored,
        due=True,
        passing=state.passing and Write(None),
        looking=None,
        unseen=True,
        drifted=False,
    )


def _nova_changes(state: State, faults: Faults) -> Iterator[Step]:
    nova = state.nova
    if nova.before is not None:
        yield "the rebuild fails", state._replace(nova=Nova(nova.image, in_error=True))
        if faults.rollback:
            yield "no host takes the rebuild", _image_changed(state, Nova(nova.before, in_error=True))
        return
    if faults.errors:
        yield "the instance goes to error or recovers", state._replace(nova=nova._replace(in_error=not nova.in_error))
    if faults.foreign_rebuilds:
        for image in (DESIRED, OTHER):
            yield f"another actor rebuilds to the {image} image", _image_changed(state, nova.accepted(image))


def _image_changed(state: State, nova: Nova) -> State:
    """Return the state after Nova's reference became another one without us."""
    target = state.stored.marker and state.stored.marker[0]
    unrecorded = state.taken > 0 and state.stored.marker == (target, "Initiated")
    erased = unrecorded and state.nova.image == target and nova.image != target
    drifted = nova.image != DESIRED and (state.drifted or nova.image != state.nova.image)
    return state._replace(nova=nova, traceless=state.traceless or erased, drifted=drifted)


def _pass_reads(state: State, readable: bool, answers: tuple[str, ...]) -> Iterator[Step]:
    if not state.due or state.passing is not None:
        return
    begun = run_pass(state.stored, state.nova, readable, "accepted")
    if begun.submitted is None:
        yield "a pass runs", _pass_began(state, begun)
        return
    assert readable, "a rebuild was submitted without knowing the image"
    assert not state.nova.busy, "a rebuild was submitted while the cloud was at work on the instance"
    assert state.stored.marker == (DESIRED, "Initiated"), "a rebuild was submitted without its record"
    for answer in answers:
        begun = run_pass(state.stored, state.nova, readable, answer)
        assert begun.submitted is not None
        after = _pass_began(state, begun)
        if answer.startswith("accepted"):
            taken = 1 if state.traceless else state.taken + 1
            after = after._replace(nova=state.nova.accepted(begun.submitted), taken=taken, traceless=False)
        yield f"a pass submits: {answer}", after


def _pass_began(state: State, begun: Pass) -> State:
    return state._replace(due=False, passing=Write(begun.result, begun.outcome), drifted=False)


def _pass_writes(state: State) -> Iterator[Step]:
    write = state.passing
    if write is None:
        return
    if write.result is None:
        yield "the pass's write is refused", state._replace(passing=None, due=True)
        return
    after = _stored(state._replace(passing=None), write.result, unseen=False)
    again = write.outcome in (Outcome.YIELD, Outcome.ERROR)
    yield "the pass's write is stored", after._replace(due=after.due or again)


def _monitor(state: State, readable: bool) -> Iterator[Step]:
    if state.looking is None:
        seen = look(state.stored, state.nova, readable)
        if seen != state.stored:
            yield "the monitor looks", state._replace(looking=seen)
    else:
        yield "the monitor's write is stored", _stored(state, state.looking, unseen=state.unseen)


def _stored(state: State, after: Stored, unseen: bool) -> State:
    """Return the state after a status write: what others are about to write is refused, and the controller may wake.

    A refused write of the monitor has no consequence, so it is forgotten here.
    """
    before = state.stored
    if after == before:
        return state._replace(unseen=unseen)
    fresh = after.marker is None or before.marker is None or after.marker[0] != before.marker[0]
    return state._replace(
        stored=after,
        due=state.due or woken(before, after),
        passing=state.passing and Write(None),
        looking=None,
        taken=0 if fresh else state.taken,
        traceless=state.traceless and not fresh and after.marker == (before.marker and (before.marker[0], "Initiated")),
        unseen=unseen,
    )


# The search

START = State()


@dataclass
class Search:
    """Every state that can be reached, and how it was first reached."""

    came_from: dict[State, tuple[str, State] | None] = field(default_factory=dict)
    depth: int = 0

    def story(self, state: State) -> str:
        """Return how a state comes about, for whoever has to find out."""
        told = [str(state)]
        while (origin := self.came_from[state]) is not None:
            step, state = origin
            told.append(step)
        return "\n".join(reversed(told))


def explore(faults: Faults, start: State = START) -> Search:
    search = Search({start: None})
    level = [start]
    while level:
        following = []
        for state in level:
            for step, after in all_steps(state, faults):
                if after not in search.came_from:
                    search.came_from[after] = (step, state)
                    following.append(after)
        level = following
        search.depth += bool(following)
    return search


@pytest.fixture(scope="module")
def everything() -> Search:
    return explore(ALL_FAULTS)


def assert_never(search: Search, wrong: Callable[[State], bool]) -> None:
    bad = next((state for state in search.came_from if wrong(state)), None)
    assert bad is None, search.story(bad)


def test_the_search_is_complete_and_not_empty(
    everything: Search, record_testsuite_property: Callable[[str, object], None]
) -> None:
    record_testsuite_property("rebuild model, states", len(everything.came_from))
    record_testsuite_property("rebuild model, depth", everything.depth)
    markers = {state.stored.marker and state.stored.marker[1] for state in everything.came_from}

    assert markers == {None, "Initiated", "Rebuilding", "Succeeded", "Failed"}
    assert {reads_as(state.stored) for state in everything.came_from} == {"provisioning", "provisioned", "error"}


def test_a_standing_target_has_one_accepted_rebuild_unless_every_trace_of_the_first_is_gone(everything: Search) -> None:
    """The exception is the contract's: an acceptance that was not recorded is only known from the instance, and Nova
    puts the old image back when no host takes a rebuild, as another actor's rebuild does.
    """
    assert_never(everything, lambda state: state.taken > 1)


CHANGED = State(nova=Nova(image=OTHER), due=True)


@pytest.mark.parametrize(
    ("faults", "start"),
    [
        pytest.param(
            replace(ALL_FAULTS, rollback=False, foreign_rebuilds=False),
            START,
            id="the instance keeps the image of a rebuild",
        ),
        pytest.param(
            replace(
                ALL_FAULTS,
                answers=("accepted", "conflict", "down", "refused"),
                lost_writes=False,
                changed_minds=False,
            ),
            CHANGED,
            id="what the cloud took is recorded",
        ),
    ],
)
def test_a_standing_target_has_one_accepted_rebuild_as_long_as(faults: Faults, start: State) -> None:
    search = explore(faults, start)

    assert any(state.taken for state in search.came_from)
    # Without a write on its way that still tells of it.
    assert_never(search, lambda state: state.taken > 1 or (state.traceless and state.passing is None))


def test_a_server_reads_as_provisioned_only_with_the_desired_image(everything: Search) -> None:
    """Two moments are excepted, as in the contract, because nobody has looked yet: after a change of the spec until the
    next pass, and after somebody else changed the instance's image.
    """
    assert_never(
        everything,
        lambda state: (
            reads_as(state.stored) == "provisioned"
            and state.nova.image != DESIRED
            and not state.unseen
            and not state.drifted
        ),
    )


def test_a_recorded_rebuild_never_reads_as_provisioned(everything: Search) -> None:
    assert_never(everything, lambda state: state.stored.marker is not None and reads_as(state.stored) == "provisioned")


def is_settled(state: State) -> bool:
    at_rest = not (state.due or state.passing or state.looking or state.nova.busy)
    return at_rest and reads_as(state.stored) in ("provisioned", "error")


def test_every_world_that_is_left_alone_settles(everything: Search) -> None:
    """From every state there is a way to a settled one in which nothing goes wrong any more. As everything in it keeps
    happening, it is taken in the end.
    """
    leads_here: dict[State, list[State]] = {}
    for state in everything.came_from:
        for _, after in fair_steps(state):
            leads_here.setdefault(after, []).append(state)
    settles = {state for state in everything.came_from if is_settled(state)}
    waiting = list(settles)
    while waiting:
        fresh = set(leads_here.get(waiting.pop(), ())) - settles
        settles |= fresh
        waiting.extend(fresh)

    assert_never(everything, lambda state: state not in settles)


def test_a_settled_world_stays_settled_when_it_is_left_alone(everything: Search) -> None:
    assert_never(
        everything,
        lambda state: is_settled(state) and any(not is_settled(after) for _, after in fair_steps(state)),
    )
