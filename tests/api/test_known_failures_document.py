"""``docs/known-failures.md`` has every entry, and the tests it names exist and are all there are."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "known-failures.md"

ENTRIES = [f"B-{number:02}" for number in range(1, 85)]
APPLIES = {"yes", "in part", "no", "later"}

CASES_OF_THE_CONTRACT = {
    "test_b09_every_status_but_rebuild_is_idle_without_a_task",
    "test_b16_of_an_instance_that_is_there_only_its_time_of_creation_is_learned",
}
"""Names whose ID is that of a case of contract 9.8."""


@cache
def rows() -> dict[str, tuple[str, list[str], str]]:
    """Return of every entry whether it applies, its tests, and the remark."""
    found = {}
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("| B-"):
            entry, _, applies, tests, remark = (cell.strip() for cell in line.strip("|").split("|"))
            assert entry not in found, f"{entry} has two rows"
            found[entry] = (applies, re.findall(r"`([^`]+)`", tests), remark)
    return found


@cache
def names_of_tests(path: str) -> set[str]:
    file = ROOT / "tests" / path
    return set(re.findall(r"^ *def (test_\w+)", file.read_text(), re.MULTILINE)) if file.is_file() else set()


def entries_in(name: str) -> list[str]:
    if name in CASES_OF_THE_CONTRACT or re.match("test_cases?_b", name):
        return []
    return [f"B-{number}" for number in re.findall(r"_b(\d\d)(?=_)", name)]


def test_every_entry_is_there_in_its_order() -> None:
    assert list(rows()) == ENTRIES


def test_every_entry_says_what_became_of_it() -> None:
    for entry, (applies, tests, remark) in rows().items():
        assert applies in APPLIES, entry
        assert tests or applies in {"no", "later"}, f"{entry} applies and has no test"
        assert remark or applies == "yes", f"{entry} has no reason"


def test_every_test_that_is_named_exists() -> None:
    named = {test for _, tests, _ in rows().values() for test in tests}
    missing = [test for test in named if test.split("::")[1] not in names_of_tests(test.split("::")[0])]
    assert not missing, missing


def test_every_test_that_carries_an_id_is_named() -> None:
    unnamed = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        path = str(file.relative_to(ROOT / "tests"))
        for name in sorted(names_of_tests(path)):
            unnamed += [
                f"{entry}: {path}::{name}" for entry in entries_in(name) if f"{path}::{name}" not in rows()[entry][1]
            ]
    assert not unnamed, "docs/known-failures.md lacks:\n" + "\n".join(unnamed)
