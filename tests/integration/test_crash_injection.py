"""A controller that is killed after every effect it has, and what comes of it.

First a server goes its whole way undisturbed, and the journal says which effects that takes. Then, for each of them, a
server of its own is worked on by a controller of its own, which is killed right after that effect; an ordinary
controller follows, and the server has to end like the undisturbed one. Nova's own records say how often it was asked.

These controllers wait 12 seconds for a request whose answer was lost, not ``cloud_requests.LATE_SECONDS``
(``controllers.LATE_SECONDS``).
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import pytest

from server_api.sandbox.layout import REPOSITORY
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.store import kinds
from tests.integration.controllers import Controllers, Running, controllers_of_our_own
from tests.integration.crashing_controller import Crash
from tests.integration.endings import end_of, runs
from tests.integration.harness import Item, Sandbox
from tests.integration.orphans import orphans

# sweeps of a dozen controllers at once would leave Nova no time for anything else
CRASHING: dict[str, Any] = {"monitor_seconds": 4}
# one crashing controller after the other: all of them write the edges of the same network and group
APART_SECONDS = 0.3
REPORT = REPOSITORY / ".tox" / "crash-injection.json"


@dataclass
class Server:
    """A server of the trial, by its ID and name."""

    id: str
    name: str


@dataclass
class Point:
    """One crash, and how the server ended that it happened to. ``reached``: whether the controller got that far."""

    call: str
    reached: bool
    end: Item = field(default_factory=dict)


@dataclass
class Act:
    """A create, a rebuild or a delete: what it does and comes to when nobody disturbs it, and with each crash."""

    effects: list[str] = field(default_factory=list)
    undisturbed: Item = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)


class Trial:
    """Takes servers through the three acts, side by side, with one crash each in every act."""

    def __init__(self, region: Sandbox, controllers: Controllers) -> None:
        self.region = region
        self.controllers = controllers
        self.acts = {"create": Act(), "rebuild": Act(), "delete": Act()}
        self.orphans: list[str] = []
        self.instances_ever: dict[str, int] = {}
        self._servers: list[Server] = []
        self._images: dict[str, str] = {}

    def run(self) -> None:
        """Play the undisturbed server's acts, then the same ones with crashes."""
        steps: dict[str, tuple[Callable[[Server], None], Callable[[list[Server]], bool]]] = {
            "create": (self._create, self._all_run),
            "rebuild": (self._rebuild, self._all_run),
            "delete": (self._delete, self._all_gone),
        }
        self._learn(steps)
        count = max(len(act.effects) for act in self.acts.values())
        self._servers = [self._new(f"crash-{number}") for number in range(count)]
        for name, (ask, settled) in steps.items():
            act = self.acts[name]
            self._each(ask, self._servers)
            act.points = self._crash(act.effects)
            follower = self.controllers.start(f"after-{name}")
            wait_for(f"every {name} is done", partial(settled, self._servers), 120)
            follower.stop()
            ends = self._each(self._end, self._servers)
            for point, end in zip(act.points, ends, strict=False):
                point.end = end
        self.orphans = orphans(self.region)
        self.instances_ever = {server.name: len(self.region.instances_ever(server.name)) for server in self._servers}

    def _learn(self, steps: dict[str, Any]) -> None:
        server = self._new("undisturbed")
        for name, (ask, settled) in steps.items():
            ask(server)
            # a controller for each act, as the crashing ones begin anew too
            controller = self.controllers.start(f"learn-{name}", only=server.id, **CRASHING)
            wait_for(f"the undisturbed {name} is done", partial(settled, [server]))
            controller.stop()
            self.acts[name].effects = controller.done()
            self.acts[name].undisturbed = self._end(server)

    def _crash(self, effects: list[str]) -> list[Point]:
        """Have each effect be the last of a controller, with a server of its own, and wait until all are dead."""
        running: list[tuple[str, Running]] = []
        for effect, server in zip(effects, self._servers, strict=False):
            crash = Crash(effect)
            running.append((effect, self.controllers.start(f"{server.name}", crash=crash, only=server.id, **CRASHING)))
            time.sleep(APART_SECONDS)
        deadline = time.monotonic() + 40
        for _, controller in running:
            controller.process.join(max(0.0, deadline - time.monotonic()))
            controller.kill()
        return [Point(effect, controller.crashed()) for effect, controller in running]

    def _new(self, name: str) -> Server:
        body = self.region.body(name, public=True)
        server = self.region.create(body)
        return Server(server["metadata"]["id"], name)

    def _create(self, server: Server) -> None:
        """Nothing: it was asked for when it was stored, and no controller was there."""

    def _rebuild(self, server: Server) -> None:
        self.region.change_image(server.id, "ready-too")

    def _delete(self, server: Server) -> None:
        assert self.region.api().delete(server.id).status_code == 202

    def _all_run(self, servers: list[Server]) -> bool:
        return all(runs(stored) for stored in self._stored(servers))

    def _all_gone(self, servers: list[Server]) -> bool:
        return not self._stored(servers)

    def _stored(self, servers: list[Server]) -> list[Item]:
        ids = {server.id for server in servers}
        listed = self.region.kubernetes.list(kinds.SERVER, NAMESPACE).items
        return [item for item in listed if item["metadata"]["name"] in ids]

    def _each(self, do: Callable[[Server], Any], servers: list[Server]) -> list[Any]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(do, servers))

    def _end(self, server: Server) -> Item:
        return end_of(self.region, server.id, server.name)


@pytest.fixture(scope="module")
def trial(
    sandbox: Sandbox,
    tmp_path_factory: pytest.TempPathFactory,
    record_testsuite_property: Callable[[str, object], None],
) -> Trial:
    began = time.monotonic()
    with controllers_of_our_own(sandbox, tmp_path_factory.mktemp("crashes")) as controllers:
        trial = Trial(sandbox, controllers)
        trial.run()
    points = [point for act in trial.acts.values() for point in act.points]
    rebuilt = [instance["rebuilds"] for point in trial.acts["rebuild"].points for instance in point.end["instances"]]
    numbers = {
        "crash points tried": sum(point.reached for point in points),
        "crash points not reached": [point.call for point in points if not point.reached],
        "orphans": len(trial.orphans),
        "second instances": sum(count > 1 for count in trial.instances_ever.values()),
        "second rebuilds": sum(count > 1 for count in rebuilt),
        "seconds": round(time.monotonic() - began),
    }
    for name, value in numbers.items():
        record_testsuite_property(name, value)
    REPORT.parent.mkdir(exist_ok=True)
    acts = {name: asdict(act) for name, act in trial.acts.items()}
    REPORT.write_text(json.dumps({**numbers, "acts": acts}, indent=1))
    return trial


@pytest.mark.parametrize("name", ["create", "rebuild", "delete"])
def test_b38_a_controller_killed_after_any_effect_leaves_the_server_as_if_nothing_had_happened(
    trial: Trial, name: str
) -> None:
    act = trial.acts[name]
    assert [(point.call, point.end) for point in act.points if point.end != act.undisturbed] == []


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        (
            "create",
            {
                "store update (finalizer, nothing recorded)",
                "references hold (networks)",
                "references hold (securitygroups)",
                "neutron create_port",
                "neutron create_floating_ip",
                "store update (finalizer, create recorded)",
                "nova create",
                "store patch_status (Provisioned)",
            },
        ),
        (
            "rebuild",
            {
                "store update (finalizer, rebuild recorded)",
                "nova rebuild",
                "store patch_status (Provisioned, rebuild Rebuilding)",
                "store patch_status (Provisioned)",
            },
        ),
        (
            "delete",
            {
                "nova delete",
                "store patch_status (Deprovisioning)",
                "neutron delete_floating_ip",
                "neutron delete_port",
                "references release (networks)",
                "references release (securitygroups)",
                "store patch_status (Deprovisioned)",
                "store update (finalizer removed)",
            },
        ),
    ],
)
def test_the_controllers_were_killed_after_every_effect_there_is(trial: Trial, name: str, calls: set[str]) -> None:
    tried = {point.call for point in trial.acts[name].points if point.reached}
    assert calls - tried == set()


def test_killed_controllers_leave_no_orphan_and_make_no_second_instance(trial: Trial) -> None:
    assert trial.orphans == []
    assert set(trial.instances_ever.values()) == {1}
