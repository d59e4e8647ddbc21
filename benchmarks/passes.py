"""What a server asks of the cloud in its life, beside the monitor's lists."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.readings import Instruments
from benchmarks.stage import Stage, stage
from server_api.sandbox.progress import Progress

_OF_SWEEPS = frozenset({"compute GET /servers/detail", "compute GET /flavors/detail"})


@dataclass(frozen=True)
class Deed:
    """Something done to a server, with the passes and the calls by service and operation that came of it."""

    what: str
    passes: int
    calls: Counter[str]


def measure_passes(progress: Progress) -> list[Deed]:
    """Take one server through its life, on a controller that has logged in already."""
    with stage(1, 1) as it:
        instruments = Instruments(it, it.start_controller())
        instruments.wait_idle()
        # The first sweep logs in as the region.
        instruments.wait_for_sweeps(1)
        deeds = _Deeds(it, instruments).all()
        progress("the calls of passes are counted")
        return deeds


class _Deeds:
    def __init__(self, stage_: Stage, instruments: Instruments) -> None:
        self._stage = stage_
        self._instruments = instruments
        self._id = ""

    def all(self) -> list[Deed]:
        return [
            self._count("a create", self._create),
            self._count("its launch", self._settle),
            self._count("an update of its tags", self._update),
            self._count("a rebuild, until Nova has taken it", self._rebuild),
            self._count("the same, after Nova has finished", self._settle),
        ]

    def _count(self, what: str, do: Callable[[], None]) -> Deed:
        before = self._instruments.read()
        do()
        # A pass may want another one a second later, and a sweep may wake one.
        self._instruments.wait_for_sweeps(2)
        self._instruments.wait_idle()
        after = self._instruments.read()
        calls = after.calls - before.calls
        of_passes = {operation: count for operation, count in calls.items() if operation not in _OF_SWEEPS}
        return Deed(what, after.passes - before.passes, Counter(of_passes))

    def _create(self) -> None:
        self._id = self._stage.create_server("created")

    def _settle(self) -> None:
        self._stage.tell("settle")

    def _update(self) -> None:
        self._stage.patch_server(self._id, {"spec": {"tags": []}})

    def _rebuild(self) -> None:
        image = self._stage.fleet.world.images["second"].id
        self._stage.patch_server(self._id, {"spec": {"image": {"id": image}}})
