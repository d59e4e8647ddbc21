"""The image rebuild over several passes: what is stored, and how often the cloud is asked (contract 7.6).

``case_b…`` in a name is a case of contract 9.8, a bare ``b…`` an entry of known-failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from server_api.servers.cloud_model import Instance
from server_api.servers.cloud_requests import LATE_SECONDS
from server_api.servers.derived_status import provisioning_status
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    RebuildMarker,
    Server,
    ServerStatus,
)
from server_api.servers.naming import cloud_network
from server_api.servers.observed_state import observe
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import Denied, PortError, ReferentKind, Refused, StateConflict, TimedOut, Unavailable
from server_api.servers.provisioning import Provisioner
from server_api.servers.rebuild_pass import MARKED_SECONDS
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import JournaledCompute, OneProjectCloud
from tests.unit.servers.builders import (
    EARLIER,
    IDENTITY,
    NETWORK,
    SERVER,
    condition,
    identity,
    instance,
    region,
    server,
    spec,
)

OLD, NEW, THIRD = "image-old", "image-new", "image-third"
AS_BEFORE = ServerStatus(
    conditions=(
        condition(ConditionType.AVAILABLE, "True", "Provisioned"),
        condition(ConditionType.HEALTHY, "True", "Healthy"),
    ),
    phase="Running",
    scheduled_at=EARLIER,
    launched_at=EARLIER,
    provisioned_at=EARLIER,
)
Change = Callable[[Instance], Instance]


def showing(**changes: Any) -> Change:
    return lambda shown: replace(shown, **changes)


ACCEPTED = showing(image_id=NEW, task_state="rebuilding", status="REBUILD")
NOT_TAKEN = showing()
"""What a request that did not reach the cloud, or was refused, makes of the instance."""

DONE = showing(image_id=NEW, task_state=None, status="ACTIVE")


class RebuildingCompute(JournaledCompute):
    """One instance, and what the next submissions come to: what they make of it, and the error that answers them."""

    def __init__(self, journal: list[str], held: Instance) -> None:
        super().__init__(journal, held)
        self.answers: list[tuple[Change, PortError | None]] = []
        self.submitted: list[str] = []

    def rebuild(self, instance_id: str, image_id: str) -> None:
        super().rebuild(instance_id, image_id)
        self.submitted.append(image_id)
        effect, error = self.answers.pop(0) if self.answers else (showing(), None)
        if error is None or effect is not NOT_TAKEN:
            self.taken_rebuild = f"req-{len(self.submitted)}"
        self.show(effect)
        if error is not None:
            raise error

    def show(self, change: Change) -> None:
        self.held = [change(held) for held in self.held]


class World:
    """A server that is to have the new image, and its instance that ran with the old one."""

    def __init__(
        self, marker: RebuildMarker | str | None = None, written: ServerStatus = AS_BEFORE, **shown: Any
    ) -> None:
        if isinstance(marker, str):
            marker = RebuildMarker(NEW, marker)
        self.store = InMemoryServerStore(server(spec(image_id=NEW), replace(written, rebuild=marker)))
        self.cloud = OneProjectCloud()
        held = instance(**{"image_id": OLD, "launched_at": EARLIER, "created_at": EARLIER, **shown})
        self.compute = self.cloud.compute = RebuildingCompute(self.cloud.journal, held)
        references = InMemoryReferences()
        references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
        self.provisioner = Provisioner(self.store, InMemoryDirectory(identity(), region()), references, self.cloud)
        self.clock = FixedClock()
        self._generation = 1

    def run(self, *, lose_the_write: bool = False) -> PassResult:
        """Do what the reconciler does: read, run, write."""
        before = self.stored
        self.clock.advance(10)
        result = self.provisioner.run(before, self.clock.now())
        assert result.events == ()
        assert result.stored is not None
        if not lose_the_write:
            self.store.patch_status(result.stored, replace(result.stored, status=result.status))
        return result

    def poll(self) -> None:
        """Do what the monitor does."""
        before = self.stored
        status = observe(before.status, self.compute.held[0], self.clock.now(), cloud_network(NETWORK))
        self.store.patch_status(before, replace(before, status=status))

    def want(self, image_id: str) -> None:
        self.store.update(replace(self.stored, spec=spec(image_id=image_id)))

    def answer(self, error: PortError | None, effect: Change = ACCEPTED) -> None:
        self.compute.answers.append((effect, error))

    @property
    def stored(self) -> Server:
        return self.store.stored(SERVER)

    @property
    def marker(self) -> tuple[str, str] | None:
        marker = self.stored.status.rebuild
        return None if marker is None else (marker.target_image_id, marker.state)

    @property
    def phase_and_health(self) -> tuple[str | None, str, str]:
        written = self.stored.status.condition(ConditionType.HEALTHY)
        assert written is not None
        return self.stored.status.phase, written.status, written.reason

    @property
    def reads_as(self) -> str:
        return provisioning_status(self.stored)

    @property
    def submitted(self) -> list[str]:
        return self.compute.submitted


UNTOUCHED = ("Running", "True", "Healthy")
STAMPED = ("Building", "False", "Provisioning")


# From the intent to the new image


def test_case_b01_the_intent_is_stored_by_one_pass_and_submitted_by_the_next() -> None:
    world = World()

    first = world.run()
    assert first.outcome is Outcome.YIELD
    assert world.marker == (NEW, "Initiated")
    assert world.phase_and_health == UNTOUCHED
    assert world.submitted == []

    second = world.run()
    assert second.outcome is Outcome.SUCCESS
    assert world.marker == (NEW, "Rebuilding")
    assert world.phase_and_health == STAMPED
    assert world.submitted == [NEW]


def test_a_pass_that_changed_the_marker_is_followed_by_the_next_at_once() -> None:
    assert World().run().again_in == MARKED_SECONDS


def test_a_pass_that_waits_looks_again_after_the_usual_interval() -> None:
    assert World("Initiated", task_state="rebooting").run().again_in is None


def test_case_b02_b18_the_cloud_is_told_the_instance_and_the_image_and_nothing_else() -> None:
    world = World("Initiated")

    world.run()

    assert [call for call in world.cloud.journal if call.startswith("rebuild")] == [f"rebuild instance-1 {NEW}"]


def test_case_b01_the_whole_way_is_one_submission_and_reads_as_provisioning_until_the_image_is_there() -> None:
    world = World()
    world.answer(None)
    seen = []

    for step in (world.run, world.run, world.poll, world.run, world.poll):
        step()
        seen.append((world.marker, world.reads_as))
    world.compute.show(DONE)
    for step in (world.poll, world.run, world.run, world.run):
        step()
        seen.append((world.marker, world.reads_as))

    assert seen == [
        ((NEW, "Initiated"), "provisioning"),
        *[((NEW, "Rebuilding"), "provisioning")] * 4,
        ((NEW, "Succeeded"), "provisioning"),
        (None, "provisioning"),
        *[(None, "provisioned")] * 2,
    ]
    assert world.submitted == [NEW]


def test_case_b20_what_the_status_says_of_an_earlier_launch_does_not_matter_when_the_instance_ran() -> None:
    world = World(written=replace(AS_BEFORE, launched_at=None, provisioned_at=None))

    world.run()
    world.run()

    assert world.submitted == [NEW]


# What the cloud answers


def test_case_b03_a_conflict_leaves_the_intent_as_it_was_and_is_tried_again() -> None:
    world = World("Initiated")
    world.answer(StateConflict("nova", "Cannot 'rebuild' instance while it is in task_state image_snapshot"), NOT_TAKEN)

    result = world.run()

    assert result.outcome is Outcome.YIELD
    assert result.again_in is None
    assert world.marker == (NEW, "Initiated")
    assert world.phase_and_health == UNTOUCHED
    assert "image_snapshot" in _available(world).message

    world.run()
    assert world.submitted == [NEW, NEW]
    assert world.marker == (NEW, "Rebuilding")


def test_case_b04_the_stamp_does_not_wait_for_the_instance_to_show_the_rebuild() -> None:
    world = World("Initiated", status="ACTIVE")
    world.answer(None, showing(status="ACTIVE"))

    world.run()

    assert world.phase_and_health == STAMPED


@pytest.mark.parametrize(
    "error", [Unavailable("nova", "503"), TimedOut("nova", "no answer")], ids=lambda error: type(error).__name__
)
def test_b13_a_submission_without_an_answer_is_not_repeated_while_it_may_still_take_effect(error: PortError) -> None:
    world = World("Initiated")
    world.answer(error, NOT_TAKEN)

    result = world.run()

    assert result.outcome is Outcome.YIELD
    assert error.detail in _available(world).message
    assert world.marker == (NEW, "Initiated")
    assert world.reads_as == "provisioning"
    world.clock.advance(LATE_SECONDS - 11)
    world.run()
    assert world.submitted == [NEW]
    world.clock.advance(1)
    world.run()
    assert world.submitted == [NEW, NEW]


@pytest.mark.parametrize("error", [None, Unavailable("nova", "503")], ids=["its record", "its answer"])
def test_b13_a_rebuild_that_left_no_trace_but_in_the_clouds_actions_is_not_submitted_again(
    error: PortError | None,
) -> None:
    """No host took it, so the cloud put the old image back before anybody looked."""
    world = World("Initiated")
    world.answer(error, showing())
    world.run(lose_the_write=True)

    for _ in range(3):
        world.clock.advance(LATE_SECONDS)
        world.run()

    assert world.submitted == [NEW]
    assert (world.marker, world.reads_as) == ((NEW, "Failed"), "error")


def test_b13_a_process_that_died_after_the_record_leaves_the_rebuild_to_be_waited_for() -> None:
    world = World("Initiated")
    request = CloudRequest(CloudRequestKind.REBUILD, world.clock.now(), NEW)
    world.store.update(replace(world.stored, metadata=replace(world.stored.metadata, cloud_request=request)))

    assert world.run().outcome is Outcome.YIELD
    assert world.submitted == []
    world.clock.advance(LATE_SECONDS)
    world.run()
    assert world.submitted == [NEW]


def test_b13_of_two_controllers_that_both_see_the_intent_only_one_submits() -> None:
    world = World("Initiated")
    world.store.lose_race()

    assert world.provisioner.run(world.stored, world.clock.now()).outcome is Outcome.YIELD
    assert world.submitted == []


def test_a_rebuild_to_one_image_whose_answer_was_lost_holds_up_that_to_another() -> None:
    """Both of them on their way to the cloud could wipe the disk one after the other."""
    world = World("Initiated")
    world.answer(TimedOut("nova", "no answer"), NOT_TAKEN)
    world.run()
    world.want(THIRD)
    world.run()

    world.run()
    assert world.submitted == [NEW]
    world.clock.advance(LATE_SECONDS)
    world.run()
    assert world.submitted == [NEW, THIRD]


def test_a_server_whose_old_image_is_wanted_again_does_not_settle_while_the_rebuild_may_still_come() -> None:
    """It would read as provisioned, and then lose its disk to the other image."""
    world = World("Initiated")
    world.answer(TimedOut("nova", "no answer"), NOT_TAKEN)
    world.run()
    world.want(OLD)
    for _ in range(4):
        assert world.run().outcome is Outcome.YIELD
        assert world.reads_as == "provisioning"

    world.want(NEW)
    for _ in range(3):
        world.run()
    assert world.submitted == [NEW]
    world.want(OLD)
    world.clock.advance(LATE_SECONDS)
    for _ in range(3):
        world.run()
    assert (world.submitted, world.reads_as) == ([NEW], "provisioned")


def test_a_rebuild_that_came_late_to_a_server_whose_old_image_is_wanted_again_is_undone() -> None:
    world = World("Initiated")
    world.answer(TimedOut("nova", "no answer"), NOT_TAKEN)
    world.run()
    world.want(OLD)
    for _ in range(3):
        world.run()

    world.compute.taken_rebuild = "req-late"
    world.compute.show(DONE)
    for _ in range(3):
        world.run()

    assert world.submitted == [NEW, OLD]


def test_a_rebuild_that_is_taken_between_the_look_and_the_question_is_not_settled_over() -> None:
    world = World("Initiated")
    world.answer(TimedOut("nova", "no answer"), NOT_TAKEN)
    world.run()
    world.want(OLD)
    for _ in range(3):
        world.run()
    assert world.marker is None

    world.compute.taken_rebuild = "req-late"
    assert world.run().outcome is Outcome.YIELD
    world.compute.show(DONE)
    for _ in range(2):
        world.run()

    assert world.submitted == [NEW, OLD]


def test_an_earlier_rebuild_to_the_same_image_does_not_stand_in_the_way_of_a_new_one() -> None:
    world = World("Initiated")
    world.answer(None, showing())
    for _ in range(3):
        world.run()
    assert world.marker == (NEW, "Failed")

    for image in (THIRD, NEW):
        world.want(image)
        world.run()
    world.run()

    assert world.submitted == [NEW, NEW]


def test_any_other_answer_is_an_error_that_is_told_and_the_image_is_not_taken_for_realised() -> None:
    error = Denied("nova", "Policy does not allow it")
    world = World("Initiated")
    world.answer(error, NOT_TAKEN)

    result = world.run()

    assert result.outcome is Outcome.ERROR
    assert error.detail in _available(world).message
    assert world.marker == (NEW, "Initiated")
    assert world.phase_and_health == UNTOUCHED
    assert world.reads_as == "error"


def test_b11_b16_a_refused_rebuild_is_parked_and_never_submitted_again() -> None:
    world = World("Initiated")
    world.answer(Refused("nova", "Image has no NUMA topology that fits"), NOT_TAKEN)

    result = world.run()

    assert result.outcome is Outcome.TERMINAL
    assert "NUMA" in _available(world).message
    assert world.marker == (NEW, "Failed")
    assert world.reads_as == "error"
    world.run()
    assert world.submitted == [NEW]


@pytest.mark.parametrize("error", [Unavailable("nova", "502"), TimedOut("nova", "no answer")], ids=["502", "time-out"])
@pytest.mark.parametrize("polled", [False, True], ids=["seen by the next pass", "seen by the monitor first"])
@pytest.mark.parametrize(
    ("then", "ending"),
    [
        pytest.param(DONE, (None, "provisioned"), id="completes"),
        pytest.param(showing(image_id=NEW, task_state=None, status="ERROR"), ((NEW, "Failed"), "error"), id="fails"),
    ],
)
def test_b13_a_lost_answer_never_leads_to_a_second_submission(
    error: PortError, polled: bool, then: Change, ending: tuple[object, str]
) -> None:
    world = World("Initiated")
    world.answer(error)

    world.run()
    if polled:
        world.poll()
    world.run()
    assert world.marker == (NEW, "Rebuilding")
    world.compute.show(then)
    for _ in range(4):
        world.run()

    assert world.submitted == [NEW]
    assert (world.marker, world.reads_as) == ending


@pytest.mark.parametrize("then", [ACCEPTED, DONE, showing(image_id=NEW, task_state=None, status="ERROR")])
def test_an_accepted_rebuild_whose_record_was_lost_is_not_submitted_again(then: Change) -> None:
    world = World("Initiated")
    world.answer(None)
    world.run(lose_the_write=True)
    assert world.marker == (NEW, "Initiated")

    world.compute.show(then)
    for _ in range(4):
        world.run()

    assert world.submitted == [NEW]


def test_an_intent_that_was_not_stored_is_not_submitted() -> None:
    world = World()

    for _ in range(3):
        world.run(lose_the_write=True)

    assert world.submitted == []


# How it ends


@pytest.mark.parametrize("state", ["Initiated", "Rebuilding", "Succeeded"])
def test_case_b05_an_idle_instance_with_the_new_image_ends_it_and_the_next_pass_confirms(state: str) -> None:
    world = World(state, image_id=NEW)

    assert world.run().outcome is Outcome.YIELD
    assert world.marker is None
    assert world.reads_as == "provisioning"

    assert world.run().outcome is Outcome.SUCCESS
    assert world.reads_as == "provisioned"
    assert world.submitted == []


def test_case_b06_a_failed_rebuild_stays_parked_even_when_the_instance_recovered() -> None:
    world = World("Failed", written=replace(AS_BEFORE, phase="Building"), image_id=NEW)

    result = world.run()

    assert result.outcome is Outcome.TERMINAL
    assert world.marker == (NEW, "Failed")
    assert world.phase_and_health == UNTOUCHED
    assert "server_rebuild_failed" in _available(world).message
    assert world.reads_as == "error"


@pytest.mark.parametrize(
    ("state", "image_id"),
    [
        pytest.param("Rebuilding", OLD, id="b07 Rebuilding, old image"),
        pytest.param("Rebuilding", NEW, id="b07 Rebuilding, new image"),
        pytest.param("Rebuilding", None, id="Rebuilding, unreadable image"),
        pytest.param("Succeeded", NEW, id="b07 Succeeded, new image"),
        pytest.param("Initiated", NEW, id="b08 Initiated, new image"),
    ],
)
def test_case_b07_b08_an_instance_in_error_fails_the_rebuild_and_parks_the_server(
    state: str, image_id: str | None
) -> None:
    world = World(state, image_id=image_id, status="ERROR", fault="No valid host was found.")

    first = world.run()
    assert first.outcome is Outcome.YIELD
    assert world.marker == (NEW, "Failed")
    assert world.phase_and_health == ("Running", "False", "Errored")
    assert world.reads_as == "provisioning"

    second = world.run()
    assert second.outcome is Outcome.TERMINAL
    assert world.marker == (NEW, "Failed")
    assert world.reads_as == "error"
    assert world.submitted == []


def test_b14_the_fault_is_told_and_another_image_arms_anew() -> None:
    world = World("Rebuilding", image_id=NEW, status="ERROR", fault="No valid host was found.")
    world.run()
    world.run()

    assert "No valid host was found." in _available(world).message
    health = world.stored.status.condition(ConditionType.HEALTHY)
    assert health is not None
    assert "No valid host was found." in health.message

    world.want(THIRD)
    world.run()
    assert (world.marker, world.submitted) == ((THIRD, "Initiated"), [])
    world.run()
    assert (world.marker, world.submitted) == ((THIRD, "Rebuilding"), [THIRD])


def test_case_b14_a_rebuild_that_left_the_old_image_on_an_idle_instance_failed() -> None:
    world = World("Rebuilding")

    assert world.run().outcome is Outcome.YIELD
    assert world.marker == (NEW, "Failed")

    assert world.run().outcome is Outcome.TERMINAL
    assert world.submitted == []


def test_case_b09_an_instance_in_error_before_the_submission_is_rebuilt() -> None:
    world = World("Initiated", status="ERROR")

    world.run()

    assert (world.marker, world.submitted) == ((NEW, "Rebuilding"), [NEW])


def test_case_b11_another_image_for_a_parked_server_is_armed_in_one_pass_and_submitted_once_in_the_next() -> None:
    world = World("Failed", image_id=NEW)
    world.want(THIRD)

    world.answer(None, showing(image_id=THIRD, status="REBUILD", task_state="rebuilding"))
    submitted = [(world.run().outcome, list(world.submitted)) for _ in range(4)]

    assert submitted[0] == (Outcome.YIELD, [])
    assert submitted[1:] == [(Outcome.SUCCESS, [THIRD])] * 3


# What leaves everything as it is


@pytest.mark.parametrize(
    ("marker", "shown", "outcome"),
    [
        pytest.param(None, {"image_id": NEW, "status": "ERROR"}, Outcome.SUCCESS, id="b10"),
        pytest.param(
            "Initiated",
            {"image_id": THIRD, "status": "REBUILD", "task_state": "rebuilding"},
            Outcome.YIELD,
            id="b12 a foreign rebuild",
        ),
        pytest.param("Initiated", {"task_state": "image_snapshot"}, Outcome.YIELD, id="b12 a blocking task"),
        pytest.param("Succeeded", {"image_id": NEW, "task_state": "rebuilding"}, Outcome.YIELD, id="b15"),
        pytest.param(None, {"image_id": NEW, "status": "REBUILD"}, Outcome.SUCCESS, id="b16"),
        pytest.param(None, {"image_id": None}, Outcome.YIELD, id="b17 no marker"),
        pytest.param("Initiated", {"image_id": None}, Outcome.YIELD, id="b17 Initiated"),
        pytest.param("Rebuilding", {"image_id": None}, Outcome.YIELD, id="b17 Rebuilding"),
        pytest.param(None, {"launched_at": None}, Outcome.YIELD, id="b18"),
        pytest.param("Initiated", {"launched_at": None}, Outcome.YIELD, id="b18 with an intent"),
        pytest.param(None, {"launched_at": None, "status": "ERROR"}, Outcome.YIELD, id="b19"),
        pytest.param("OfAnotherVersion", {}, Outcome.YIELD, id="b21"),
    ],
)
def test_cases_b10_to_b21_marker_phase_and_health_stay(
    marker: str | None, shown: dict[str, Any], outcome: Outcome
) -> None:
    world = World(marker, **shown)
    before = world.marker

    assert [world.run().outcome for _ in range(3)] == [outcome] * 3
    assert world.marker == before
    assert world.phase_and_health == UNTOUCHED
    assert world.submitted == []


def test_case_b13_a_rebuild_under_way_is_stamped_and_not_submitted_again() -> None:
    world = World("Rebuilding", task_state="rebuild_spawning")

    assert [world.run().outcome for _ in range(3)] == [Outcome.SUCCESS] * 3
    assert world.phase_and_health == STAMPED
    assert (world.marker, world.submitted) == ((NEW, "Rebuilding"), [])
    assert world.reads_as == "provisioning"


def test_a_server_without_an_image_loses_its_marker_and_is_left_alone() -> None:
    world = World("Rebuilding")
    world.store.update(replace(world.stored, spec=spec(image_id=None)))

    assert world.run().outcome is Outcome.SUCCESS
    assert (world.marker, world.submitted) == (None, [])


def test_b21_passes_over_an_unchanged_image_ask_for_nothing_and_write_nothing() -> None:
    world = World(image_id=NEW)
    world.run()
    world.store.writes.clear()

    for _ in range(3):
        assert world.run().outcome is Outcome.SUCCESS

    assert (world.submitted, world.store.writes) == ([], [])


# Changing one's mind


def test_b13_twenty_changes_between_two_images_never_have_two_rebuilds_under_way() -> None:
    world = World(image_id=THIRD)

    for turn in range(20):
        world.want((OLD, NEW)[turn % 2])
        world.run()
        world.run()
        if len(world.submitted) == 1:
            # From the first on the cloud is busy with it.
            world.compute.show(showing(image_id=OLD, status="REBUILD", task_state="rebuilding"))

    assert world.submitted == [OLD]
    assert world.marker == (NEW, "Initiated")

    world.compute.show(showing(status="ACTIVE", task_state=None))
    world.run()
    assert world.submitted == [OLD, NEW]


def test_another_image_is_armed_while_a_rebuild_runs_and_submitted_when_that_ended() -> None:
    world = World("Rebuilding", image_id=NEW, status="REBUILD", task_state="rebuilding")
    world.want(THIRD)

    for _ in range(3):
        world.run()
        assert (world.marker, world.submitted) == ((THIRD, "Initiated"), [])

    world.compute.show(DONE)
    world.run()
    assert (world.marker, world.submitted) == ((THIRD, "Rebuilding"), [THIRD])


def test_the_image_one_had_ends_an_intent_that_was_not_submitted() -> None:
    world = World("Initiated")
    world.want(OLD)

    outcomes = [world.run().outcome for _ in range(3)]

    assert outcomes == [Outcome.YIELD, Outcome.YIELD, Outcome.SUCCESS]
    assert (world.marker, world.submitted) == (None, [])


def test_b22_an_image_changed_before_the_first_boot_is_rebuilt_once_after_it() -> None:
    world = World(written=ServerStatus(scheduled_at=EARLIER), launched_at=None, status="BUILD", task_state="spawning")

    for _ in range(3):
        assert world.run().outcome is Outcome.YIELD
        assert (world.marker, world.reads_as) == (None, "provisioning")

    world.compute.show(showing(status="ACTIVE", task_state=None, launched_at=EARLIER + timedelta(minutes=1)))
    world.answer(None)
    world.run()
    world.run()
    world.compute.show(DONE)
    for _ in range(4):
        world.run()
    assert world.submitted == [NEW]
    assert world.reads_as == "provisioned"


def _available(world: World) -> Any:
    written = world.stored.status.condition(ConditionType.AVAILABLE)
    assert written is not None
    return written


def test_a_server_of_v1_is_never_rebuilt_whatever_image_is_stored_for_it() -> None:
    world = World()
    world.store.put(replace(world.stored, metadata=replace(world.stored.metadata, api_version=None)))

    for _ in range(3):
        assert world.run().outcome is Outcome.SUCCESS

    assert (world.marker, world.submitted) == (None, [])


def test_b22_a_rebuild_that_was_recorded_before_the_first_boot_waits_for_it() -> None:
    world = World(
        "Initiated", ServerStatus(scheduled_at=EARLIER), launched_at=None, status="BUILD", task_state="spawning"
    )
    for _ in range(3):
        assert world.run().outcome is Outcome.YIELD
    assert (world.marker, world.submitted) == ((NEW, "Initiated"), [])

    world.compute.show(showing(status="ACTIVE", task_state=None, launched_at=EARLIER))
    world.run()
    assert world.submitted == [NEW]
