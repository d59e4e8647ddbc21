"""From the moment when Nova has settled until every stored server says so."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from benchmarks.readings import Instruments, Onlooker
from benchmarks.stage import Stage, building_status, stage
from server_api.sandbox.progress import Progress
from server_api.servers.derived_status import provisioning_status
from server_api.servers.model import ConditionType, Phase, Reason, Server
from server_api.servers.rebuild import RebuildState
from server_api.settings import Settings

LAUNCH, REBUILD = "first launch", "rebuild"
_TIMEOUT = 900.0


@dataclass(frozen=True)
class Settling:
    """Seconds from settled to settled, of every server in every round of one kind, in ascending order."""

    kind: str
    servers: int
    rounds: int
    seconds: Sequence[float]


def measure_settling(servers: int, projects: int, progress: Progress) -> list[Settling]:
    """Let that many servers be launched, and then be rebuilt, at once; several times, as far as time allows.

    Each round begins at another moment between two sweeps, since the time to the next one is most of what a single
    server waits.
    """
    rounds = 4 if servers <= 10 else 3 if servers <= 100 else 2
    with stage(min(projects, servers), servers) as it:
        progress(f"{servers} servers are stored")
        instruments = Instruments(it, it.start_controller())
        instruments.wait_idle()
        with closing(Onlooker(it)) as onlooker:
            scene = _Scene(it, instruments, onlooker)
            results = []
            for kind, prepare, settled in (
                (LAUNCH, scene.prepare_launch, _runs),
                (REBUILD, scene.prepare_rebuild, _is_provisioned),
            ):
                seconds: list[float] = []
                for number in range(rounds):
                    prepare()
                    seconds += scene.settle(number / rounds, settled)
                    progress(f"{kind} of {servers}: round {number + 1} of {rounds}, the last after {seconds[-1]:.1f} s")
                results.append(Settling(kind, servers, rounds, sorted(seconds)))
            return results


class _Scene:
    def __init__(self, stage_: Stage, instruments: Instruments, onlooker: Onlooker) -> None:
        self._stage = stage_
        self._instruments = instruments
        self._onlooker = onlooker
        self._ids = [member.id for member in stage_.fleet.members]
        self._images = [image.id for image in stage_.fleet.world.images.values()]

    def prepare_launch(self) -> None:
        """Have every instance in BUILD, and every server say that its first launch is under way."""
        self._stage.tell("build")
        self._onlooker.begin(_is_built)
        for id_ in self._ids:
            self._stage.patch_server_status(id_, building_status())
        self._onlooker.wait(len(self._ids), _TIMEOUT)

    def prepare_rebuild(self) -> None:
        """Have every server's image replaced, and wait until Nova has taken every rebuild."""
        self._images.reverse()
        self._onlooker.begin(_is_rebuilt)
        for id_ in self._ids:
            self._stage.patch_server(id_, {"spec": {"image": {"id": self._images[0]}}})
        self._onlooker.wait(len(self._ids), _TIMEOUT)

    def settle(self, moment: float, settled: Callable[[Server], bool]) -> list[float]:
        """Let Nova settle when that part of the time between two sweeps has passed; return the seconds of each."""
        self._instruments.wait_idle()
        # The first to end may have begun before everything was as it should be.
        self._instruments.wait_for_sweeps(2)
        time.sleep(moment * Settings().monitor_seconds)
        self._onlooker.begin(settled)
        self._stage.tell("settle")
        began = time.monotonic()
        moments = self._onlooker.wait(len(self._ids), _TIMEOUT)
        self._instruments.wait_idle()
        return sorted(max(0.0, moment - began) for moment in moments.values())


def _healthy(server: Server) -> str | None:
    condition = server.status.condition(ConditionType.HEALTHY)
    return condition.reason if condition else None


def _is_built(server: Server) -> bool:
    return server.status.phase == Phase.BUILDING and server.status.launched_at is None


def _is_rebuilt(server: Server) -> bool:
    return server.status.rebuild is not None and server.status.rebuild.state == RebuildState.REBUILDING


def _runs(server: Server) -> bool:
    return server.status.phase == Phase.RUNNING and _healthy(server) == Reason.HEALTHY


def _is_provisioned(server: Server) -> bool:
    return _runs(server) and provisioning_status(server) == "provisioned"
