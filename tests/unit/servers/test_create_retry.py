"""The bounded retry of a create that failed in the cloud (contract 7.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_api.servers.cloud_model import FloatingIP, Instance, PortOrder
from server_api.servers.cloud_requests import LATE_SECONDS
from server_api.servers.create_retry import failed, recovered
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    GateStatus,
    Server,
    ServerSpec,
    ServerStatus,
)
from server_api.servers.naming import cloud_network
from server_api.servers.observed_state import observe
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import EventType, PortError, ReferentKind, TimedOut, Unavailable
from server_api.servers.provisioning import Provisioner
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud, with_status
from tests.unit.servers.builders import (
    EARLIER,
    IDENTITY,
    NAME,
    NETWORK,
    SERVER,
    condition,
    identity,
    instance,
    region,
    server,
    spec,
)

FAULT = "the instance is ERROR: No valid host was found."
ERRORED = condition(ConditionType.HEALTHY, "False", "Errored", FAULT)
FAILED = ServerStatus(
    conditions=(condition(ConditionType.AVAILABLE, "True", "Provisioned"), ERRORED),
    phase="Building",
    private_ip="192.168.0.7",
    public_ip="203.0.113.9",
    mac_address="fa:16:3e:00:00:01",
    scheduled_at=EARLIER,
)
GATE = "example.unikorn-cloud.org/ready"
PUBLIC = spec(public_ip=True)
GATED = spec(provider_create_gates=(GATE,))
SATISFIED = GateStatus(GATE, "True", EARLIER, "a-service", "Ready", "")


class World:
    """A server whose instance failed, with its port and floating IP."""

    def __init__(
        self, written: ServerStatus = FAILED, of_spec: ServerSpec = PUBLIC, attempts: int = 3, **shown: Any
    ) -> None:
        request = CloudRequest(CloudRequestKind.CREATE, EARLIER)
        self.cloud = OneProjectCloud()
        self.store = InMemoryServerStore(server(of_spec, written, cloud_request=request), journal=self.cloud.journal)
        self.cloud.compute.held.append(instance(**{"status": "ERROR", "fault": "No valid host was found.", **shown}))
        port = self.cloud.networking.create_port(PortOrder(f"server-{SERVER}", "cloud-network"))
        self.cloud.networking.bound[port.id] = [FloatingIP("fip-1", "203.0.113.9")]
        self.cloud.journal.clear()
        references = InMemoryReferences()
        references.put(ReferentKind.NETWORK, NETWORK, IDENTITY)
        directory = InMemoryDirectory(identity(), region())
        self.provisioner = Provisioner(self.store, directory, references, self.cloud, attempts)
        self.clock = FixedClock()

    def run(self) -> PassResult:
        self.cloud.journal.clear()
        self.clock.advance(10)
        result = self.provisioner.run(self.stored, self.clock.now())
        assert result.stored is not None
        self.store.patch_status(result.stored, replace(result.stored, status=result.status))
        return result

    def poll(self) -> None:
        """Do what the monitor does."""
        before = self.stored
        for held in self.cloud.compute.held:
            status = observe(before.status, held, self.clock.now(), cloud_network(NETWORK))
            self.store.patch_status(before, replace(before, status=status))

    @property
    def stored(self) -> Server:
        return self.store.stored(SERVER)

    @property
    def status(self) -> ServerStatus:
        return self.stored.status

    @property
    def health(self) -> tuple[str, str]:
        written = self.status.condition(ConditionType.HEALTHY)
        assert written is not None
        return written.status, written.reason

    @property
    def counted(self) -> tuple[int, bool]:
        return self.status.provider_create_failures, self.status.provider_create_retrying


def events(result: PassResult) -> list[tuple[EventType, str]]:
    return [(event.type, event.reason) for event in result.events]


def test_k01_a_failed_create_is_removed_and_everything_made_ready_for_the_next() -> None:
    world = World()

    result = world.run()

    assert result.outcome is Outcome.YIELD
    assert world.counted == (1, False)
    assert (world.status.phase, world.health) == ("Pending", ("Unknown", "Provisioning"))
    gone = world.status.private_ip, world.status.public_ip, world.status.scheduled_at, world.status.launched_at
    assert gone == (None, None, None, None)
    assert world.status.mac_address == "fa:16:3e:00:00:01"
    assert events(result) == [
        (EventType.NORMAL, "ProviderCreateRetrying"),
        (EventType.NORMAL, "ProviderCreateRetryReady"),
    ]
    assert all("attempt 1/3" in event.message for event in result.events)
    assert "No valid host" in result.events[0].message


def test_b28_a_failed_create_leaves_no_instance_no_floating_ip_and_no_port() -> None:
    world = World()

    world.run()

    assert world.cloud.compute.held == []
    assert world.cloud.networking.ports == []
    assert [line for line in world.cloud.journal if line.startswith("delete")] == [
        "delete instance-1",
        "delete_floating_ip fip-1",
        "delete_port port-0",
    ]


def test_the_pass_after_the_removal_creates_anew_without_waiting_for_the_create_before() -> None:
    world = World()
    world.run()

    result = world.run()

    assert result.outcome is Outcome.SUCCESS
    assert [line.split()[0] for line in world.cloud.journal][-2:] == ["update", "create"]
    assert world.counted == (1, False)
    assert len(world.cloud.compute.orders) == 1


def test_k02_an_instance_that_is_still_there_is_waited_for_and_not_counted_again() -> None:
    world = World(replace(FAILED, provider_create_failures=1, provider_create_retrying=True))
    world.cloud.compute.dies = with_status("ERROR")

    result = world.run()

    assert (result.outcome, result.events, world.counted) == (Outcome.YIELD, (), (1, True))
    assert world.status.phase == "Pending"
    assert world.cloud.networking.ports != []


def test_k02_a_removal_that_took_several_passes_counts_as_one_failure() -> None:
    world = World()
    world.cloud.compute.dies = with_status("ERROR")
    told = [events(world.run()), events(world.run())]
    world.cloud.compute.held.clear()
    told.append(events(world.run()))

    assert told == [
        [(EventType.NORMAL, "ProviderCreateRetrying")],
        [],
        [(EventType.NORMAL, "ProviderCreateRetryReady")],
    ]
    assert world.counted == (1, False)


@pytest.mark.parametrize("before", [2, 3])
def test_k03_k04_the_last_failure_parks_the_server_without_a_cloud_call(before: int) -> None:
    world = World(replace(FAILED, provider_create_failures=before))

    result = world.run()

    assert (result.outcome, world.counted) == (Outcome.TERMINAL, (3, False))
    assert events(result) == [(EventType.WARNING, "ProviderCreateFailed")]
    assert "attempt 3/3" in result.events[0].message
    assert world.cloud.journal == []
    available = world.status.condition(ConditionType.AVAILABLE)
    assert available is not None
    assert available.reason == "Errored"
    assert "provider_create_failed" in available.message
    assert "No valid host" in available.message


@pytest.mark.parametrize(("attempts", "creates"), [(3, 3), (2, 2), (1, 1), (0, 1), (-5, 1)])
def test_as_many_creates_as_are_allowed_are_tried_and_no_more(attempts: int, creates: int) -> None:
    world = World(ServerStatus(), attempts=attempts)
    world.cloud.compute.held.clear()
    world.cloud.compute.born = lambda built: replace(built, status="ERROR", fault="No valid host was found.")
    world.store.put(server())

    for _ in range(12):
        world.run()
        world.poll()

    assert len(world.cloud.compute.orders) == creates
    assert world.counted == (creates, False)
    assert len(world.cloud.compute.held) == 1


def test_an_operator_who_sets_the_failures_back_allows_more_attempts() -> None:
    world = World(replace(FAILED, provider_create_failures=3))
    world.run()
    parked = world.stored

    allowed = replace(parked, status=replace(parked.status, provider_create_failures=0))
    assert recovered(parked.status, allowed.status)
    world.store.put(allowed)

    assert world.run().outcome is Outcome.YIELD
    assert world.counted == (1, False)


@pytest.mark.parametrize(
    "lived",
    [
        pytest.param({"launched_at": EARLIER}, id="K05 launched"),
        pytest.param({"provisioned_at": EARLIER}, id="K06 provisioned once"),
        pytest.param({"phase": "Running"}, id="K07 running"),
        pytest.param({"phase": "Stopped"}, id="stopped"),
        pytest.param({"phase": "Stopping"}, id="stopping"),
    ],
)
def test_k05_k06_k07_a_server_that_ever_ran_is_never_removed(lived: dict[str, Any]) -> None:
    status = replace(FAILED, **lived)
    world = World(status)

    assert not failed(status)
    assert world.run().outcome is Outcome.SUCCESS
    assert not [line for line in world.cloud.journal if line.startswith("delete")]
    assert world.counted == (0, False)


@pytest.mark.parametrize("phase", [None, "Pending", "Queued", "Building"])
def test_a_create_counts_as_failed_only_when_the_instance_is_in_error(phase: str | None) -> None:
    assert failed(replace(FAILED, phase=phase))
    for health in (("False", "Degraded"), ("Unknown", "Unknown"), ("True", "Healthy"), ("False", "Provisioning")):
        other = condition(ConditionType.HEALTHY, *health)
        assert not failed(replace(FAILED, phase=phase, conditions=(other,)))
    assert not failed(replace(FAILED, phase=phase, conditions=()))


@pytest.mark.parametrize("retrying", [False, True])
def test_an_instance_that_a_fresh_look_shows_to_have_launched_is_not_removed(retrying: bool) -> None:
    """The status is what the monitor saw a while ago."""
    world = World(replace(FAILED, provider_create_retrying=retrying), status="ACTIVE", launched_at=EARLIER)

    assert world.run().outcome is Outcome.SUCCESS
    assert not [line for line in world.cloud.journal if line.startswith("delete")]
    assert world.counted == (0, False)
    assert world.health == ("True", "Healthy")


def test_an_instance_that_somebody_mended_is_not_removed() -> None:
    world = World(status="BUILD", fault=None)

    assert world.run().outcome is Outcome.SUCCESS
    assert len(world.cloud.compute.held) == 1


@pytest.mark.parametrize("error", [Unavailable("nova", "down"), TimedOut("nova", "slow")])
@pytest.mark.parametrize("step", ["find", "delete"])
def test_a_cloud_that_fails_during_the_removal_is_asked_again_and_the_failure_counted_once(
    step: str, error: PortError
) -> None:
    world = World()
    world.cloud.compute.fail(step, error)
    for _ in range(3):
        assert world.run().outcome is Outcome.YIELD

    assert world.counted == ((0, False) if step == "find" else (1, True))
    assert world.cloud.networking.ports != []


def test_g15_gates_close_again_only_when_the_failed_instance_is_gone() -> None:
    world = World(replace(FAILED, provider_create_gates=(SATISFIED,)), GATED)
    world.cloud.compute.dies = with_status("ERROR")
    world.run()
    assert world.status.provider_create_gates == (SATISFIED,)

    world.cloud.compute.held.clear()
    world.run()

    (gate,) = world.status.provider_create_gates
    assert (gate.status, gate.actor, gate.reason) == ("Unknown", "region", "ProviderCreateRetry")
    assert gate.message
    result = world.run()
    assert result.outcome is Outcome.YIELD
    assert world.cloud.journal == []


def test_the_next_attempt_uses_the_image_that_is_wanted_by_then() -> None:
    world = World(of_spec=spec(image_id="another-image"))

    world.run()
    world.run()

    assert [order.image_id for order in world.cloud.compute.orders] == ["another-image"]


def test_a_create_whose_answer_was_lost_after_a_retry_is_waited_for_like_the_first() -> None:
    world = World()
    world.run()
    world.cloud.compute.fail("create", TimedOut("nova", "slow"))

    for _ in range(3):
        assert world.run().outcome is Outcome.YIELD
    assert world.cloud.compute.orders == []
    assert [line for line in world.cloud.journal if line.startswith("create")] == []


@pytest.mark.parametrize(
    ("before", "after", "awakes"),
    [
        pytest.param(FAILED, replace(FAILED, provider_create_failures=1), False, id="one more failure"),
        pytest.param(replace(FAILED, provider_create_failures=1), FAILED, True, id="set back"),
        pytest.param(FAILED, FAILED, False, id="unchanged"),
        pytest.param(
            FAILED,
            replace(FAILED, conditions=(condition(ConditionType.HEALTHY, "True", "Healthy"),)),
            True,
            id="came up after all",
        ),
    ],
)
def test_a_parked_create_is_looked_at_again_when_there_is_something_new(
    before: ServerStatus, after: ServerStatus, awakes: bool
) -> None:
    assert recovered(before, after) is awakes


def test_an_instance_of_another_name_is_found_for_its_removal() -> None:
    world = World()
    world.cloud.compute.held = [instance(name="renamed", status="ERROR")]
    world.cloud.networking.ports = [replace(port, instance_id="instance-1") for port in world.cloud.networking.ports]

    world.run()

    assert world.cloud.compute.held == []


def test_a_stranger_of_the_same_name_is_never_removed() -> None:
    world = World()
    stranger = Instance(id="stranger", name=NAME, status="ERROR", server_id=None)
    world.cloud.compute.held.append(stranger)

    world.run()

    assert world.cloud.compute.held == [stranger]


def test_a_failed_instance_that_a_list_of_novas_does_not_show_is_not_taken_for_gone() -> None:
    """It would be there beside the next one."""
    world = World()
    world.cloud.compute.held.clear()
    request = CloudRequest(CloudRequestKind.CREATE, world.clock.now())
    world.store.put(server(PUBLIC, FAILED, cloud_request=request))

    assert world.run().outcome is Outcome.YIELD
    assert (world.counted, world.cloud.networking.ports != []) == ((0, False), True)
    world.clock.advance(LATE_SECONDS)
    world.run()
    assert world.counted == (1, False)


def test_an_instance_that_launches_while_it_is_looked_at_is_not_looked_at_again_and_removed() -> None:
    world = World()
    mended = instance(status="ACTIVE", launched_at=EARLIER, id="instance-2")

    def mend(name: str, server_id: str) -> Instance | None:
        found, world.cloud.compute.held = world.cloud.compute.held, [mended]
        return found[0]

    world.cloud.compute.find = mend  # type: ignore[method-assign]
    world.run()

    assert world.cloud.compute.held == [mended]


def test_a_pass_that_was_overtaken_by_another_controllers_next_attempt_removes_nothing() -> None:
    world = World(
        replace(FAILED, provider_create_failures=1, provider_create_retrying=True), status="BUILD", fault=None
    )
    world.store.lose_race()

    result = world.provisioner.run(world.stored, world.clock.now())

    assert result.outcome is Outcome.YIELD
    assert len(world.cloud.compute.held) == 1


def test_b28_a_port_that_may_still_come_into_being_is_waited_for_before_the_removal() -> None:
    world = World()
    world.store.put(server(PUBLIC, FAILED, cloud_request=CloudRequest(CloudRequestKind.CREATE_PORT, world.clock.now())))

    assert world.run().outcome is Outcome.YIELD
    assert (len(world.cloud.compute.held), world.counted) == (1, (0, False))


def test_a_pass_that_was_overtaken_does_not_take_the_next_attempts_port_either() -> None:
    world = World(replace(FAILED, provider_create_failures=1, provider_create_retrying=True))
    world.cloud.compute.held.clear()
    world.store.lose_race()

    world.provisioner.run(world.stored, world.clock.now())

    assert len(world.cloud.networking.ports) == 1
