"""What a run of ``server-api promote`` did, for people as a table and for programs as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from server_api.servers.promoter import Result, Verdict

DONE, RUN_AGAIN, NEEDS_A_DECISION = 0, 1, 3
"""Exit codes. 2 is that of a command line that cannot be understood."""

_HEAD = ("SERVER", "NAME", "NETWORK", "RESULT", "DETAIL")


class Report:
    """Collects results of ``total`` servers. ``plan``: nothing was to be written."""

    def __init__(self, *, plan: bool, total: int) -> None:
        self.results: list[Result] = []
        self.stopped_because: str | None = None
        self._plan = plan
        self._total = total

    def add(self, result: Result) -> None:
        """Add one server's result."""
        self.results.append(result)

    def stop(self, why: str) -> None:
        """Say that the run ended before all servers were looked at."""
        self.stopped_because = why

    @property
    def counts(self) -> dict[str, int]:
        """How many servers there are of each verdict."""
        counted = Counter(result.verdict for result in self.results)
        return {verdict.value: counted[verdict] for verdict in Verdict}

    @property
    def exit_code(self) -> int:
        """0 when every server is one of v2 now (or, of a plan, could be), so that a script may go on from there.

        1 when another run may do more, 3 when another run alone will not help: somebody has to decide about refusals.
        """
        if self.stopped_because or self.counts[Verdict.FAILED]:
            return RUN_AGAIN
        return NEEDS_A_DECISION if self.counts[Verdict.REFUSED] else DONE

    def progress(self) -> str:
        """Return one line about how far it is."""
        return f"{len(self.results)} of {self._total} servers: {self._summary()}"

    def table(self) -> str:
        """Return the report for people. Servers that were of v2 before are only counted."""
        rows = [_HEAD, *map(_row, (result for result in self.results if result.verdict is not Verdict.ALREADY))]
        lines = list(_aligned(rows)) if len(rows) > 1 else []
        if lines:
            lines.append("")
        lines.append(self.progress())
        if self.stopped_because:
            lines.append(f"stopped early: {self.stopped_because}")
        if self._plan:
            lines.append("this was a plan: nothing was written")
        return "\n".join(lines)

    def json(self) -> str:
        """Return the report for programs, with every server that was looked at."""
        document = {
            "plan": self._plan,
            "total": self._total,
            "stoppedBecause": self.stopped_because,
            "counts": self.counts,
            "servers": [_document(result) for result in self.results],
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()

    def _summary(self) -> str:
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items() if count) or "none"


def _row(result: Result) -> tuple[str, ...]:
    because = f"{result.reason}: {result.detail}" if result.reason else result.detail
    detail = because or ", ".join(result.changes)
    return result.server_id, result.name or "-", result.network_id or "-", result.verdict, detail or "-"


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _document(result: Result) -> dict[str, Any]:
    return {
        "id": result.server_id,
        "name": result.name,
        "networkId": result.network_id,
        "verdict": result.verdict,
        "reason": result.reason,
        "detail": result.detail or None,
        "changes": result.changes,
    }
