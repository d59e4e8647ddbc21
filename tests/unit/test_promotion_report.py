"""What a run of promote tells, and what it exits with."""

from __future__ import annotations

import json

import pytest

from server_api.promotion_report import Report
from server_api.servers.promoter import Result, Verdict
from server_api.servers.promotion import RefusalReason

PROMOTED = Result("a1", "web", "n1", Verdict.PROMOTED, changes=("api-version label", "network-id label"))
REFUSED = Result("b2", "", None, Verdict.REFUSED, reason=RefusalReason.NOT_ONE_NETWORK, detail="it names 2 networks")
FAILED = Result("c3", "db", "n1", Verdict.FAILED, detail="others keep changing it")
ALREADY = Result("d4", "new", "n1", Verdict.ALREADY)


def report(*results: Result, plan: bool = False) -> Report:
    made = Report(plan=plan, total=len(results))
    for result in results:
        made.add(result)
    return made


def test_the_table_has_a_line_for_what_was_done_or_not_and_counts_the_rest() -> None:
    assert report(PROMOTED, REFUSED, FAILED, ALREADY).table().splitlines() == [
        "SERVER  NAME  NETWORK  RESULT    DETAIL",
        "a1      web   n1       promoted  api-version label, network-id label",
        "b2      -     -        refused   not-one-network: it names 2 networks",
        "c3      db    n1       failed    others keep changing it",
        "",
        "4 of 4 servers: 1 promoted, 1 already-v2, 1 refused, 1 failed",
    ]


def test_a_table_of_nothing_new_is_one_line() -> None:
    assert report(ALREADY).table() == "1 of 1 servers: 1 already-v2"
    assert report().table() == "0 of 0 servers: none"


def test_a_plan_says_that_it_is_one() -> None:
    assert report(plan=True).table().splitlines()[-1] == "this was a plan: nothing was written"


def test_json_has_every_server() -> None:
    document = json.loads(report(PROMOTED, REFUSED, ALREADY).json())
    assert document["plan"] is False
    assert document["total"] == 3
    assert document["stoppedBecause"] is None
    assert document["counts"] == {
        "promoted": 1,
        "promotable": 0,
        "already-v2": 1,
        "refused": 1,
        "gone": 0,
        "failed": 0,
    }
    assert document["servers"][1] == {
        "id": "b2",
        "name": "",
        "networkId": None,
        "verdict": "refused",
        "reason": "not-one-network",
        "detail": "it names 2 networks",
        "changes": [],
    }
    assert [server["id"] for server in document["servers"]] == ["a1", "b2", "d4"]


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ((), 0),
        ((PROMOTED, ALREADY), 0),
        ((Result("e5", "x", "n1", Verdict.GONE),), 0),
        ((PROMOTED, REFUSED), 3),
        ((REFUSED, FAILED), 1),
    ],
)
def test_the_exit_code_says_whether_to_go_on_run_again_or_decide(results: tuple[Result, ...], code: int) -> None:
    assert report(*results).exit_code == code


def test_a_run_that_ended_early_is_to_be_run_again() -> None:
    stopped = Report(plan=False, total=2)
    stopped.add(PROMOTED)
    stopped.stop("kubernetes: no answer in time")
    assert stopped.exit_code == 1
    assert stopped.table().splitlines()[-2:] == [
        "1 of 2 servers: 1 promoted",
        "stopped early: kubernetes: no answer in time",
    ]
    assert json.loads(stopped.json())["stoppedBecause"] == "kubernetes: no answer in time"
