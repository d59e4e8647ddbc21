from __future__ import annotations

import pytest

from server_api.controller.backoff import Backoff
from server_api.controller.project_backoff import ProjectBackoff


@pytest.fixture
def project() -> ProjectBackoff:
    return ProjectBackoff(Backoff(base=1, limit=60, spread=0))


def fail_when_due(project: ProjectBackoff, times: int) -> list[float]:
    """Fail as soon as it is allowed, and return the pauses after each failure."""
    pauses, now = [], 0.0
    for _ in range(times):
        project.note(False, now)
        pauses.append(project.probe_at - now)
        now = project.probe_at
    return pauses


def test_a_project_that_was_never_heard_of_is_not_backing_off(project: ProjectBackoff) -> None:
    assert (project.is_open, project.allows(0)) == (False, True)


def test_a_failure_opens_the_back_off_until_a_probe_is_due(project: ProjectBackoff) -> None:
    project.note(False, 10)
    assert project.is_open
    assert [project.allows(now) for now in (10, 10.9, 11)] == [False, False, True]


def test_each_failed_probe_makes_the_next_one_wait_longer_up_to_a_minute(project: ProjectBackoff) -> None:
    assert fail_when_due(project, 9) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_first_success_ends_it_and_it_begins_short_again(project: ProjectBackoff) -> None:
    fail_when_due(project, 5)
    project.note(True, 40)
    assert (project.is_open, project.allows(40)) == (False, True)
    assert fail_when_due(project, 1) == [1]


def test_passes_that_were_under_way_together_count_as_one_failure(project: ProjectBackoff) -> None:
    for _ in range(8):
        project.note(False, 10)
    assert (project.failures, project.probe_at) == (1, 11)
