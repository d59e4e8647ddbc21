"""Which test covers which of the contract's cases: ``docs/contract-cases.md`` says so, and this keeps it honest."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOCUMENT = ROOT / "docs" / "contract-cases.md"

CASES = {"T": 24, "C": 45, "R": 21, "U": 22, "V": 17, "G": 17, "W": 16}
"""How many cases each section of contract 9.1 to 9.7 has."""

PASS = "tests/unit/servers/test_provisioning.py"

ELSEWHERE = {
    "G02": f"{PASS}::test_g02_g11_a_remaining_gate_stops_the_pass_before_any_cloud_call",
    "G04": f"{PASS}::test_g04_g16_satisfied_or_absent_gates_let_the_pass_go_on",
    "G11": f"{PASS}::test_g02_g11_a_remaining_gate_stops_the_pass_before_any_cloud_call",
    "G14": "tests/unit/servers/test_deprovisioning.py::test_deletion_waits_for_no_identity_no_gate_and_no_rebuild",
}
"""Cases that HTTP cannot show: what the controller does."""

NOT_YET = {
    "G15": "the bounded retry of creates comes later (issue 4)",
}

REMARKS = {
    "T15": "415 and not 400: design section 4",
    "V06": "502 and not 500, 504 for a time-out: design section 4",
    "V17": "502 or 504, whatever the failure was: design section 4",
}

HEAD = """# The contract's cases for the API and their tests

Cases T, C, R, U, V, G and, for v1, W of contract section 9. Written by `tests/api/test_contract_cases.py`, which fails
when this page is out of date: `SERVER_API_WRITE_CASES=1 pytest tests/api/test_contract_cases.py` writes it anew.
"""


def covered() -> dict[str, list[str]]:
    """Return the tests of each case, by the IDs in their names."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(HERE.rglob("test_*.py")):
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE):
            for letter, number in re.findall(r"_([tcruvgw])(\d\d)(?=_)", name):
                found[letter.upper() + number].append(f"{path.relative_to(ROOT)}::{name}")
    return {**found, **{case: [test] for case, test in ELSEWHERE.items()}}


def page(tests: dict[str, list[str]]) -> str:
    rows = [(case, f"`{test}`") for case in sorted(tests, key=order) for test in tests[case]]
    lines = [HEAD, f"{len(tests)} of {sum(CASES.values())} cases are covered.", "", *table("test", rows)]
    lines += [
        "",
        "## Where a decision, or what is still to come, shapes the case",
        "",
        *table("remark", REMARKS.items()),
    ]
    lines += ["", "## Not covered", "", *table("why", NOT_YET.items())]
    return "\n".join(lines) + "\n"


def table(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| case | {title} |", "| --- | --- |", *(f"| {case} | {text} |" for case, text in rows)]


def order(case: str) -> tuple[int, str]:
    return list(CASES).index(case[0]), case


def test_every_case_is_covered_or_it_is_said_why_not() -> None:
    cases = {f"{letter}{number:02}" for letter, count in CASES.items() for number in range(1, count + 1)}
    tests = covered()
    assert tests.keys() | NOT_YET.keys() == cases
    assert not tests.keys() & NOT_YET.keys()
    assert REMARKS.keys() <= tests.keys()


def test_tests_elsewhere_exist() -> None:
    for test in ELSEWHERE.values():
        path, name = test.split("::")
        assert f"\ndef {name}(" in (ROOT / path).read_text(), test


def test_page_is_up_to_date() -> None:
    written = page(covered())
    if os.environ.get("SERVER_API_WRITE_CASES"):
        DOCUMENT.write_text(written)
    assert DOCUMENT.read_text() == written, "SERVER_API_WRITE_CASES=1 pytest tests/api/test_contract_cases.py"
