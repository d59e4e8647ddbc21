"""A model check of the image rebuild: every interleaving of a small world, with the real rules inside.

The world is that of rebuild_world.py. Every call of a pass is a step of its own (the read of the server, the look at
the instance, the question for the last rebuild, each conditional write, the request), so everything else may happen
between any two of them. Searched are the worlds in ``WORLDS``, breadth-first and to their ends: there is no bound on
depth or on the number of faults. How many states that were is in the suite's properties.

A target *stands* from the status write that aims the marker at it (at another image, or anew after there was none)
until the one that removes the marker or aims it at another image. So one that was replaced and chosen again is another
one. A rebuild counts for the target that stood when it was recorded, whenever the cloud takes it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.servers.model_search import Search, explore
from tests.unit.servers.rebuild_controller import reads_as
from tests.unit.servers.rebuild_world import (
    Faults,
    RebuildWorld,
    State,
    is_sent_beside_another,
    is_settled,
    is_taken_twice,
    is_untrue,
)

WORLDS = {
    "one controller": Faults(unreadable=False),
    "one controller that cannot always read the image": Faults(foreign_rebuilds=False),
    "two controllers": Faults(controllers=2, foreign_rebuilds=False, errors=False, unreadable=False),
}


@pytest.fixture(scope="module", params=sorted(WORLDS))
def search(request: pytest.FixtureRequest) -> Search[State]:
    return explore(State(), RebuildWorld(WORLDS[request.param]).steps)


def test_the_search_comes_to_an_end_and_sees_every_marker_and_reading(
    search: Search[State], request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]
) -> None:
    name = request.node.callspec.params["search"]
    record_testsuite_property(f"rebuild model, {name}, states", len(search.came_from))
    record_testsuite_property(f"rebuild model, {name}, steps", search.steps)
    record_testsuite_property(f"rebuild model, {name}, depth", search.depth)
    markers = {state.status.marker and state.status.marker[1] for state in search.came_from}

    assert markers == {None, "Initiated", "Rebuilding", "Succeeded", "Failed"}
    assert {reads_as(state.status) for state in search.came_from} == {"provisioning", "provisioned", "error"}
    assert any(state.taken for state in search.came_from)
    assert any(state.late for state in search.came_from)


def test_a_standing_target_has_at_most_one_rebuild_taken(search: Search[State]) -> None:
    search.assert_never(is_taken_twice)


def test_never_are_two_rebuilds_on_their_way_to_the_cloud(search: Search[State]) -> None:
    """Whatever was wanted when they were submitted: both could be taken, and the later one wipe what came since."""
    search.assert_never(is_sent_beside_another)


def test_a_server_reads_as_provisioned_only_with_the_desired_image(search: Search[State]) -> None:
    """Two moments are excepted, as in the contract, because nobody has looked yet: after a change of the spec until the
    next pass, and after the instance's image was changed without any pass knowing.
    """
    search.assert_never(is_untrue)


def test_a_recorded_rebuild_never_reads_as_provisioned(search: Search[State]) -> None:
    search.assert_never(lambda state: state.status.marker is not None and reads_as(state.status) == "provisioned")


def test_every_world_that_is_left_alone_settles(search: Search[State]) -> None:
    search.assert_each_leads_to(is_settled)


def test_a_settled_world_stays_settled_when_it_is_left_alone(search: Search[State]) -> None:
    search.assert_stays(is_settled)
