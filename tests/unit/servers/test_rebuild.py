"""The tables of the image rebuild, compared with the contract over every input there is (contract 7.6).

The expectations below are the contract's rows, not the code's: each line names the columns it restricts, and the first
line that fits decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest

from server_api.servers import rebuild
from server_api.servers.cloud_model import Instance
from server_api.servers.model import ConditionType, RebuildMarker, ServerStatus
from server_api.servers.rebuild import Decision, Situation, advance, decide, settled
from tests.unit.servers.builders import EARLIER, condition, instance, server

DESIRED, ANOTHER, THIRD = "image-desired", "image-another", "image-third"
STATES = ("Initiated", "Rebuilding", "Succeeded", "Failed", "OfAnotherVersion")
STATUSES = ("ACTIVE", "ERROR", "REBUILD", "SHUTOFF", "BUILD")
TASKS = (None, "", "rebuilding")

CONTROLLER = """
row | desired | target  | state      | ref | status | task   | launched | marker     | action  | outcome
1   | none    | any     | any        | any | any    | any    | any      | none       | nothing | success
2   | some    | another | any        | any | any    | any    | any      | Initiated  | nothing | yield
3   | some    | desired | Failed     | any | any    | any    | any      | kept       | observe | terminal
4   | some    | desired | accepted   | any | ERROR  | any    | any      | Failed     | observe | yield
4   | some    | desired | any        | =   | ERROR  | any    | any      | Failed     | observe | yield
5   | some    | desired | accepted   | ≠   | any    | idle   | any      | Failed     | observe | yield
6   | some    | any     | any        | ?   | any    | any    | any      | kept       | nothing | yield
7   | some    | any     | any        | =   | ERROR  | any    | any      | kept       | nothing | success
8   | some    | none    | any        | =   | any    | any    | any      | kept       | nothing | success
9   | some    | desired | not-failed | =   | any    | idle   | any      | none       | nothing | yield
10  | some    | desired | not-ended  | =   | any    | active | any      | Rebuilding | stamp   | success
11  | some    | desired | Succeeded  | =   | any    | active | any      | kept       | nothing | yield
12  | some    | any     | any        | ≠   | any    | any    | never    | kept       | nothing | yield
13  | some    | none    | any        | ≠   | any    | any    | once     | Initiated  | nothing | yield
14  | some    | desired | Rebuilding | ≠   | any    | active | any      | kept       | stamp   | success
15  | some    | desired | Succeeded  | ≠   | any    | active | any      | kept       | nothing | yield
16  | some    | desired | Initiated  | ≠   | any    | active | any      | kept       | nothing | yield
17  | some    | desired | Initiated  | ≠   | any    | idle   | any      | kept       | submit  | success
18  | some    | desired | unknown    | ≠   | any    | any    | any      | kept       | nothing | yield
"""

MONITOR = """
state    | ref | status | task   | to
any      | =   | ERROR  | any    | Failed
any      | =   | any    | active | Rebuilding
any      | =   | any    | any    | Succeeded
accepted | ≠   | ERROR  | any    | Failed
accepted | ≠   | any    | idle   | Failed
accepted | ?   | ERROR  | any    | Failed
any      | any | any    | any    | kept
"""

GROUPS = {
    "accepted": {"Rebuilding", "Succeeded", "Failed"},
    "not-failed": {"Initiated", "Rebuilding", "Succeeded", "OfAnotherVersion"},
    "not-ended": {"Initiated", "Rebuilding", "OfAnotherVersion"},
    "unknown": {"OfAnotherVersion"},
}

Line = dict[str, str]


def lines(table: str) -> list[Line]:
    head, *body = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    return [dict(zip(head, cells, strict=True)) for cells in body]


def first_fit(table: Sequence[Line], case: Line) -> Line:
    """Return the first line that every column of the case agrees with."""
    return next(line for line in table if all(fits(line[column], value) for column, value in case.items()))


def fits(cell: str, value: str) -> bool:
    return cell == "any" or value in GROUPS.get(cell, {cell})


CONTROLLER_LINES, MONITOR_LINES = lines(CONTROLLER), lines(MONITOR)
ROWS = sorted({int(line["row"]) for line in CONTROLLER_LINES})


@dataclass(frozen=True)
class Case:
    """One input, and what the contract has done about it."""

    situation: Situation
    row: int
    marker: RebuildMarker | None
    action: str
    outcome: str

    @property
    def behaviour(self) -> tuple[RebuildMarker | None, str, str]:
        return self.marker, self.action, self.outcome


def columns(shown: Instance, image_id: str | None) -> Line:
    """Return how the contract reads an instance, compared with an image."""
    active = shown.status == "REBUILD" or shown.task_state == "rebuilding"
    return {
        "ref": "?" if shown.image_id is None else "=" if shown.image_id == image_id else "≠",
        "status": shown.status,
        "task": "active" if active else "idle",
    }


def expected(situation: Situation) -> Case:
    marker, shown = situation.marker, situation.instance
    line = first_fit(
        CONTROLLER_LINES,
        {
            "desired": "some" if situation.desired else "none",
            "target": "none" if marker is None else "desired" if marker.target_image_id == DESIRED else "another",
            "state": marker.state if marker else "without",
            "launched": "once" if shown.launched_at else "never",
            **columns(shown, situation.desired),
        },
    )
    after = {"kept": marker, "none": None}.get(line["marker"], RebuildMarker(DESIRED, line["marker"]))
    return Case(situation, int(line["row"]), after, line["action"], line["outcome"])


def situations() -> Iterator[Situation]:
    markers = [None, *(RebuildMarker(target, state) for target in (DESIRED, ANOTHER) for state in STATES)]
    images = (DESIRED, ANOTHER, THIRD, None)
    for desired, marker, shown, launched in product(
        (DESIRED, None, ""), markers, product(images, STATUSES, TASKS), (None, EARLIER)
    ):
        image_id, status, task = shown
        yield Situation(
            marker, desired, instance(image_id=image_id, status=status, task_state=task, launched_at=launched)
        )


CASES = [expected(situation) for situation in situations()]


def behaviour(decision: Decision) -> tuple[RebuildMarker | None, str, str]:
    return decision.marker, decision.action.value, decision.outcome.value


def differing() -> list[Case]:
    """Return the inputs on which the code does something else than the contract says, whichever row it names."""

    def differs(case: Case) -> bool:
        try:
            return behaviour(decide(case.situation)) != case.behaviour
        except AssertionError:
            return True

    return [case for case in CASES if differs(case)]


# The controller's table


@pytest.mark.parametrize("row", ROWS)
def test_every_input_of_a_row_leads_to_its_marker_action_and_outcome(row: int) -> None:
    cases = [case for case in CASES if case.row == row]

    assert cases, "no input leads to this row"
    for case in cases:
        decision = decide(case.situation)
        assert (decision.row, *behaviour(decision)) == (row, *case.behaviour), case.situation


def test_there_are_as_many_rows_as_in_the_contract_and_in_its_order() -> None:
    assert [row.number for row in rebuild._ROWS] == ROWS == list(range(1, 19))


def test_only_a_stored_intent_for_the_desired_image_on_an_idle_instance_that_ran_submits() -> None:
    submitting = [case.situation for case in CASES if decide(case.situation).action is rebuild.Action.SUBMIT]

    assert submitting
    for situation in submitting:
        assert situation.marker == RebuildMarker(DESIRED, "Initiated")
        assert situation.instance.image_id in (ANOTHER, THIRD)
        assert not situation.instance.task_state
        assert situation.instance.status != "REBUILD"
        assert situation.instance.launched_at is not None


def test_a_marker_only_ever_targets_the_desired_image_after_a_pass() -> None:
    markers = [decide(case.situation).marker for case in CASES]

    assert {marker.target_image_id for marker in markers if marker} == {DESIRED}


@pytest.mark.parametrize("shown", ["SUSPENDED", "PAUSED", "VERIFY_RESIZE", "UNKNOWN"])
def test_b09_every_status_but_rebuild_is_idle_without_a_task(shown: str) -> None:
    of_now = instance(image_id=ANOTHER, status=shown, launched_at=EARLIER)

    assert decide(Situation(RebuildMarker(DESIRED, "Initiated"), DESIRED, of_now)).row == 17


# Rows whose behaviour a later row has too: they are there because the contract names them, and a reader compares.
_SAME_AS_A_LATER_ROW = {7: 8, 11: 15, 15: 18}


@pytest.mark.parametrize("row", [row for row in ROWS if row not in _SAME_AS_A_LATER_ROW])
def test_mutation_without_a_row_the_behaviour_differs(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "_ROWS", tuple(kept for kept in rebuild._ROWS if kept.number != row))

    assert differing()


@pytest.mark.parametrize("row", sorted(_SAME_AS_A_LATER_ROW))
def test_mutation_without_these_rows_only_another_row_is_named(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "_ROWS", tuple(kept for kept in rebuild._ROWS if kept.number != row))

    assert not differing()
    taken_by = {decide(case.situation).row for case in CASES if case.row == row}
    assert _SAME_AS_A_LATER_ROW[row] in taken_by
    assert row not in taken_by


@pytest.mark.parametrize("row", ROWS)
def test_mutation_with_a_guard_negated_the_behaviour_differs(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def negated(original: rebuild._Row) -> rebuild._Row:
        return replace(original, applies=lambda situation: not original.applies(situation))

    mutant = tuple(negated(each) if each.number == row else each for each in rebuild._ROWS)
    monkeypatch.setattr(rebuild, "_ROWS", mutant)

    assert differing()


# The monitor's table

LOOKS = [
    (RebuildMarker(DESIRED, state), instance(image_id=image_id, status=status, task_state=task))
    for state, image_id, status, task in product(STATES, (DESIRED, ANOTHER, None), STATUSES, TASKS)
]
RANK = {"Initiated": 0, "Rebuilding": 1, "Succeeded": 2, "Failed": 2}


@pytest.mark.parametrize("state", STATES)
def test_m01_to_m06_a_look_raises_the_marker_as_the_contract_says(state: str) -> None:
    for marker, shown in LOOKS:
        if marker.state == state:
            line = first_fit(MONITOR_LINES, {"state": state, **columns(shown, DESIRED)})
            # It only ever rises, and what another version meant is not ours to say.
            rises = RANK.get(line["to"], -1) > RANK.get(state, 9)
            assert advance(marker, shown) == (RebuildMarker(DESIRED, line["to"]) if rises else marker), shown


def test_m06_a_look_never_lowers_a_marker_nor_turns_one_end_into_the_other() -> None:
    for (marker, first), (_, second) in product(LOOKS, LOOKS):
        once = advance(marker, first)
        twice = advance(once, second)
        assert once.target_image_id == twice.target_image_id == DESIRED
        if once.state in ("Succeeded", "Failed"):
            assert twice == once
        elif once.state in RANK:
            assert RANK[twice.state] >= RANK[once.state]


def test_the_monitor_compares_with_the_target_of_the_marker_whatever_is_desired_by_now() -> None:
    marker = RebuildMarker(ANOTHER, "Rebuilding")

    assert advance(marker, instance(image_id=ANOTHER)) == RebuildMarker(ANOTHER, "Succeeded")


# What wakes the controller


@pytest.mark.parametrize("reason", [None, "Provisioning", "Provisioned", "Errored", "SomethingNewer"])
@pytest.mark.parametrize("state", [None, *STATES])
def test_k09_to_k12_a_rebuild_is_settled_when_it_ended_and_no_pass_saw_that(
    state: str | None, reason: str | None
) -> None:
    conditions = () if reason is None else (condition(ConditionType.AVAILABLE, "False", reason),)
    marker = None if state is None else RebuildMarker(DESIRED, state)

    unseen = state == "Succeeded" or (state == "Failed" and reason != "Errored")
    assert settled(server(status=ServerStatus(conditions=conditions, rebuild=marker))) is unseen


def test_k10_the_health_condition_says_nothing_about_whether_a_pass_saw_it() -> None:
    conditions = (condition(ConditionType.HEALTHY, "False", "Errored"),)

    assert settled(server(status=ServerStatus(conditions=conditions, rebuild=RebuildMarker(DESIRED, "Failed"))))
