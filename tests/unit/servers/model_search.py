"""Exhaustive search of small worlds with the real rules inside, for test_rebuild_model.py and test_create_model.py.

A pass is a function of what it was given and of what the outside answers. So one that is under way is kept as the
answers it has had so far, and taken a step further by running it from its beginning with these and one more. That puts
everything else in the world between any two of its calls, without threads and without a word in the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from server_api.servers.ports import PortError, StateConflict

CONFLICT = StateConflict("kubernetes", "the object has been modified")
"""The answer to a conditional write that lost."""


class Call(NamedTuple):
    """A call to the outside that a pass waits for."""

    name: str
    argument: Hashable = None


class Ended(NamedTuple):
    """A pass that is over, and what it came to."""

    result: Any


class _Waits(BaseException):
    """Stops a pass at its next call. No ``Exception``, so that nothing under test takes it for a failure."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.call = call


class Script:
    """Answers the calls of one pass in their order, and stops it at the first that has no answer yet.

    From ``overtaken`` answers on (None: never) conditional writes are refused without counting as calls.
    """

    def __init__(self, answers: tuple[Any, ...], overtaken: int | None = None) -> None:
        self._answers = answers
        self._given = 0
        self._overtaken = overtaken

    def ask(self, name: str, argument: Hashable = None) -> Any:
        """Return the answer to this call, or raise it if it is an error."""
        if self._given == len(self._answers):
            raise _Waits(Call(name, argument))
        answer = self._answers[self._given]
        self._given += 1
        if isinstance(answer, PortError):
            raise answer
        return answer

    def ask_to_write(self, name: str, argument: Hashable = None) -> None:
        """Do the same for a write of the store on condition that nobody wrote before."""
        if self._overtaken is not None and self._given >= self._overtaken:
            raise CONFLICT
        self.ask(name, argument)


class Point:
    """How far a pass has got. Two points are the same if no answer from here on could tell them apart.

    ``number`` orders points, and ``at`` is the call that the pass waits for, or its end.
    """

    def __init__(self, number: int, at: Call | Ended, origin: tuple[Any, tuple[Any, ...], int | None]) -> None:
        self.number = number
        self.at = at
        self.origin = origin
        self.following: dict[Any, Point] = {}

    def waits_for(self, *names: str) -> bool:
        """Say whether the pass waits for one of these calls."""
        return isinstance(self.at, Call) and self.at.name in names

    def __lt__(self, other: Point) -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return f"<{self.number}: {self.at}>"


class Passes:
    """All points of a kind of pass.

    They are ordered, so that what is under way can be sorted. ``run`` does a whole pass from a start, with the answers
    of a script, and returns what is to be known of its end. ``effects`` and ``looks`` list what may be answered to
    calls, by their names: a pass that waits for an effect, and an overtaken pass in any case, is compared with others
    by all that may become of it. A pass that waits for a look is known by its start and the answers it has had, unless
    ``compares_looks``.
    """

    def __init__(
        self,
        run: Callable[[Any, Script], Hashable],
        effects: Mapping[str, tuple[Any, ...]],
        looks: Mapping[str, tuple[Any, ...]] | None = None,
        *,
        compares_looks: bool = False,
    ) -> None:
        self._run = run
        self._effects = effects
        self._everything = {**effects, **(looks or {})}
        self._compared = self._everything if compares_looks else effects
        self._beginnings: dict[Hashable, Point] = {}
        self._known: dict[Hashable, Point] = {}
        self._overtaken: dict[Point, Point] = {}
        self._points = 0
        self.runs = 0

    def __lt__(self, other: Passes) -> bool:
        return id(self) < id(other)

    def begin(self, start: Hashable) -> Point:
        """Return the first point of a pass with that start."""
        if start not in self._beginnings:
            self._beginnings[start] = self._point(start, ())
        return self._beginnings[start]

    def answer(self, point: Point, answer: Any) -> Point:
        """Return the point that an answer leads to."""
        if answer not in point.following:
            start, answers, overtaken = point.origin
            point.following[answer] = self._point(start, (*answers, answer), overtaken)
        return point.following[answer]

    def overtaken(self, point: Point) -> Point:
        """Return what is left of a pass whose conditional writes are refused from now on."""
        if point not in self._overtaken:
            start, answers, _ = point.origin
            self._overtaken[point] = self._point(start, answers, len(answers))
        return self._overtaken[point]

    def _point(self, start: Any, answers: tuple[Any, ...], overtaken: int | None = None) -> Point:
        self.runs += 1
        try:
            at: Call | Ended = Ended(self._run(start, Script(answers, overtaken)))
        except _Waits as waits:
            at = waits.call
        point = Point(self._points, at, (start, answers, overtaken))
        possible = self._compared if overtaken is None else self._everything
        if isinstance(at, Ended):
            key: Hashable = at
        elif at.name in possible:
            key = (at, tuple(self.answer(point, answer) for answer in possible[at.name]))
        else:
            self._points += 1
            return point
        if key not in self._known:
            self._points += 1
            point.number = self._points
            self._known[key] = point
        return self._known[key]


World = TypeVar("World", bound=Hashable)


class Step(NamedTuple, Generic[World]):
    """Something that may happen next. ``fair``: it keeps happening in a world that is left alone."""

    name: str
    after: World
    fair: bool = False


class Found(Exception):
    """A search came upon a state that must not be."""


@dataclass
class Search(Generic[World]):
    """Every state that was reached, how it was reached first, and where a world that is left alone goes from it."""

    came_from: dict[World, tuple[str, World] | None] = field(default_factory=dict)
    fair: dict[World, list[World]] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0

    def story(self, state: World) -> str:
        """Return how a state comes about, for whoever has to find out."""
        told = [str(state)]
        while (origin := self.came_from[state]) is not None:
            step, state = origin
            told += [f"    {step}", str(state)]
        return "\n".join(reversed(told))

    def assert_never(self, wrong: Callable[[World], bool]) -> None:
        """Fail, with its story, for a state that is wrong: the one that was found first, which is the shortest."""
        bad = next((state for state in self.came_from if wrong(state)), None)
        assert bad is None, self.story(bad)

    def assert_each_leads_to(self, goal: Callable[[World], bool]) -> None:
        """Fail for a state from which a world that is left alone has no way to a goal.

        Where there is a way from every state it is taken in the end, as everything in it keeps happening.
        """
        leads_here: dict[World, list[World]] = {}
        for state, following in self.fair.items():
            for after in following:
                leads_here.setdefault(after, []).append(state)
        there = {state for state in self.came_from if goal(state)}
        waiting = list(there)
        while waiting:
            for before in leads_here.get(waiting.pop(), ()):
                if before not in there:
                    there.add(before)
                    waiting.append(before)
        self.assert_never(lambda state: state not in there)

    def assert_stays(self, goal: Callable[[World], bool]) -> None:
        """Fail for a state at the goal that a world which is left alone leaves again."""
        self.assert_never(lambda state: goal(state) and not all(goal(after) for after in self.fair[state]))


def explore(
    start: World, steps: Callable[[World], Iterable[Step[World]]], wrong: Callable[[World], bool] | None = None
) -> Search[World]:
    """Reach every state there is, the nearest first. Raises Found at once, with its story, at one that is ``wrong``."""
    search = Search[World]({start: None})
    level = [start]
    while level:
        following = []
        for state in level:
            fair = search.fair[state] = []
            for name, after, is_fair in steps(state):
                search.steps += 1
                if is_fair:
                    fair.append(after)
                if after not in search.came_from:
                    search.came_from[after] = (name, state)
                    following.append(after)
                    if wrong is not None and wrong(after):
                        raise Found(search.story(after))
        level = following
        search.depth += bool(following)
    return search


def without(items: tuple[Any, ...], index: int) -> Iterator[Any]:
    """Yield all items but one."""
    return (item for place, item in enumerate(items) if place != index)
