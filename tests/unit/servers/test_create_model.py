"""A model check of create, bounded retry and deletion: a small world with the real controller inside.

The world is that of create_world.py. Every call of a pass that changes or looks at something (each conditional write of
the server, each look at Nova and Neutron, each request to them) is a step of its own, so everything else may happen
between any two of them. The search is breadth-first, and its depth is not bounded. What is bounded, for each of
``WORLDS``, is how many faults one run has in all; a build that fails, a user who deletes the server and a gate that
opens are no faults and may come at any time. Two creates may fail (the cap). Two controllers are at work only in the
world that says so; there a stolen Lease is one of the faults, and those of Nova's answers are the only others. How many
states were visited is in the suite's properties.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.servers.create_controller import CAP, Controller
from tests.unit.servers.create_state import Faults, State, is_beyond_a_closed_gate, is_left_over
from tests.unit.servers.create_world import CreateWorld
from tests.unit.servers.model_search import Search, explore

WORLDS = {
    "one controller": Faults(budget=2),
    "a gate": Faults(budget=1, gated=True),
    "two controllers": Faults(budget=2, controllers=2, kinds=frozenset({"stolen lease", "answers"})),
}


class Explored:
    """A world, and all of it."""

    def __init__(self, faults: Faults, controller: Controller) -> None:
        self.faults = faults
        self.world = CreateWorld(faults, controller)
        self.search: Search[State] = explore(self.world.start, self.world.steps)


@pytest.fixture(scope="module")
def controller() -> Controller:
    return Controller()


@pytest.fixture(scope="module", params=sorted(WORLDS))
def explored(request: pytest.FixtureRequest, controller: Controller) -> Explored:
    return Explored(WORLDS[request.param], controller)


def test_the_search_comes_to_an_end_and_sees_every_end_of_a_server(
    explored: Explored, request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]
) -> None:
    name = request.node.callspec.params["explored"]
    record_testsuite_property(f"create model, {name}, states", len(explored.search.came_from))
    record_testsuite_property(f"create model, {name}, steps", explored.search.steps)
    record_testsuite_property(f"create model, {name}, depth", explored.search.depth)
    record_testsuite_property(f"create model, {name}, faults in one run", explored.faults.budget)
    settled = [state for state in explored.search.came_from if explored.world.is_settled(state)]

    assert {state.stored and state.stored.status.available for state in settled} == {None, "Provisioned", "Errored"}
    assert any(state.stored and state.stored.status.failures == CAP for state in settled)


@pytest.mark.parametrize(
    "wrong",
    [
        "two instances",
        "two ports",
        "created again without a failure",
        "created more often than allowed",
        "a launched instance deleted",
        "the port of an instance deleted",
        "more failures than allowed",
        "a launched server's create failed",
        "a failure counted twice",
    ],
)
def test_never(wrong: str, explored: Explored) -> None:
    """Two instances: ever at the same time. Created again: with no build that failed, nor one that nobody knew of and
    somebody deleted, in between. Deleted: but for a server that is being deleted.
    """
    explored.search.assert_never(lambda state: state.wrong == wrong)


def test_once_a_deletion_is_done_nothing_is_left_in_the_cloud_nor_on_its_way_there(explored: Explored) -> None:
    assert any(state.stored is None for state in explored.search.came_from)
    explored.search.assert_never(is_left_over)


def test_every_world_that_is_left_alone_settles(explored: Explored) -> None:
    explored.search.assert_each_leads_to(explored.world.is_settled)


def test_a_settled_world_stays_settled_when_it_is_left_alone(explored: Explored) -> None:
    """But for an error that is looked at again and again: it is left and reached again with each look."""
    settled = explored.world.is_settled
    explored.search.assert_never(
        lambda state: (
            settled(state) and not state.due and not all(settled(after) for after in explored.search.fair[state])
        )
    )


def test_behind_a_closed_gate_there_is_neither_port_nor_instance(explored: Explored) -> None:
    if explored.faults.gated:
        explored.search.assert_never(is_beyond_a_closed_gate)
