"""The delete pass (contract 6.13 and 7.7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from server_api.servers.cloud_model import FloatingIP, PortOrder
from server_api.servers.cloud_requests import LATE_SECONDS
from server_api.servers.deprovisioning import Deprovisioner
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    RebuildMarker,
    Server,
    ServerStatus,
)
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import (
    Ambiguous,
    Denied,
    Missing,
    PortError,
    ReferentKind,
    Refused,
    StateConflict,
    TimedOut,
    Unavailable,
)
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import DELETED_AT, InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud, with_status
from tests.unit.servers.builders import (
    AUTHORITY,
    GROUP,
    IDENTITY,
    IMAGE,
    NAME,
    NETWORK,
    NOW,
    NOW_IN_SECONDS,
    OTHER_ID,
    REGION,
    SERVER,
    condition,
    identity,
    instance,
    region,
    server,
    spec,
)

NETWORKS, GROUPS = ReferentKind.NETWORK, ReferentKind.SECURITY_GROUP
AUTHORITIES = ReferentKind.SSH_CERTIFICATE_AUTHORITY
EDGE = f"servers.region.unikorn-cloud.org/{SERVER}"
PORT = f"server-{SERVER}"


class World:
    """A server with its instance, its port, two floating IPs, and what it holds on to."""

    def __init__(self) -> None:
        self.cloud = OneProjectCloud()
        self.cloud.compute.held.append(instance())
        port = self.cloud.networking.create_port(PortOrder(PORT, "cloud-network"))
        self.cloud.networking.bound[port.id] = [
            FloatingIP("fip-1", "198.51.100.1"),
            FloatingIP("fip-2", "198.51.100.2"),
        ]
        self.journal.clear()
        self.references = InMemoryReferences(self.journal)
        self.references.put(NETWORKS, NETWORK, IDENTITY, ["unikorn", EDGE])
        self.references.put(GROUPS, GROUP, IDENTITY, [EDGE])
        self.references.put(AUTHORITIES, AUTHORITY, finalizers=[EDGE])
        self.directory = InMemoryDirectory(region())
        self.store = InMemoryServerStore(journal=self.journal)

    @property
    def journal(self) -> list[str]:
        return self.cloud.journal

    def run(self, of_server: Server | None = None) -> PassResult:
        deleted = of_server or server(spec(ssh_certificate_authority_id=AUTHORITY), deleted_at=DELETED_AT)
        result = Deprovisioner(self.store, self.directory, self.references, self.cloud).run(
            self.store.put(deleted), NOW
        )
        assert result.events == ()
        return result


def assert_ended(result: PassResult, outcome: Outcome, reason: str, message: str) -> None:
    written = result.status.condition(ConditionType.AVAILABLE)
    assert written is not None
    assert (result.outcome, written.reason) == (outcome, reason)
    assert written.status == ("True" if outcome is Outcome.SUCCESS else "False")
    assert message in written.message
    assert written.last_transition_time == NOW_IN_SECONDS


CLOUD_SIDE = [
    f"find {NAME}",
    "delete instance-1",
    "get instance-1",
    f"ports_named {PORT}",
    "floating_ips port-0",
    "delete_floating_ip fip-1",
    "delete_floating_ip fip-2",
    "delete_port port-0",
]
EDGES = [
    f"release networks {NETWORK}",
    f"release securitygroups {GROUP}",
    f"release sshcertificateauthorities {AUTHORITY}",
]


def test_b28_b36_instance_floating_ips_port_and_edges_go_in_that_order_and_nothing_is_left() -> None:
    world = World()

    result = world.run()

    assert_ended(result, Outcome.SUCCESS, "Deprovisioned", "deprovisioned")
    assert world.journal == CLOUD_SIDE + EDGES
    assert world.cloud.asked_for == [(REGION, IDENTITY)]
    assert (world.cloud.compute.held, world.cloud.networking.ports) == ([], [])
    assert world.references.finalizers(NETWORKS, NETWORK) == ("unikorn",)
    assert result.again_in is None


def test_b38_a_pass_after_a_crash_finds_nothing_and_succeeds() -> None:
    world = World()
    world.run()
    world.journal.clear()

    assert world.run().outcome is Outcome.SUCCESS
    assert world.journal == [f"find {NAME}", f"ports_named {PORT}", f"ports_named {PORT}"]


def test_b10_a_create_that_may_still_take_effect_is_waited_for_before_the_server_is_forgotten() -> None:
    world = World()
    world.cloud.compute.held.clear()
    request = CloudRequest(CloudRequestKind.CREATE, NOW)
    server_with_request = server(deleted_at=DELETED_AT, cloud_request=request)

    assert_ended(world.run(server_with_request), Outcome.YIELD, "Deprovisioning", "waiting to see")
    assert world.cloud.networking.ports != []
    late = replace(request, sent_at=NOW - timedelta(seconds=LATE_SECONDS + 1))
    assert world.run(server(deleted_at=DELETED_AT, cloud_request=late)).outcome is Outcome.SUCCESS


def test_b28_a_port_that_may_still_come_into_being_is_waited_for_before_the_server_is_forgotten() -> None:
    world = World()
    world.cloud.compute.held.clear()
    world.cloud.networking.ports.clear()
    request = CloudRequest(CloudRequestKind.CREATE_PORT, NOW)

    assert_ended(
        world.run(server(deleted_at=DELETED_AT, cloud_request=request)),
        Outcome.YIELD,
        "Deprovisioning",
        "waiting to see",
    )
    late = replace(request, sent_at=NOW - timedelta(seconds=LATE_SECONDS + 1))
    assert world.run(server(deleted_at=DELETED_AT, cloud_request=late)).outcome is Outcome.SUCCESS


def test_b28_every_port_of_the_server_goes() -> None:
    world = World()
    world.cloud.networking.create_port(PortOrder(PORT, "cloud-network"))

    assert world.run().outcome is Outcome.SUCCESS
    assert world.cloud.networking.ports == []


def test_an_instance_that_the_deletion_saw_is_not_waited_for_once_it_is_gone() -> None:
    world = World()
    world.cloud.compute.dies = with_status("DELETING")
    request = CloudRequest(CloudRequestKind.CREATE, NOW)
    first = world.run(server(deleted_at=DELETED_AT, cloud_request=request))
    assert_ended(first, Outcome.YIELD, "Deprovisioning", "delete the instance")
    world.cloud.compute.held.clear()

    assert first.stored is not None
    assert world.run(first.stored).outcome is Outcome.SUCCESS


def test_an_instance_that_a_list_of_novas_does_not_show_yet_is_waited_for_although_somebody_saw_it() -> None:
    world = World()
    world.cloud.compute.held.clear()
    request = CloudRequest(CloudRequestKind.CREATE, NOW)
    seen = ServerStatus(scheduled_at=NOW)

    result = world.run(server(status=seen, deleted_at=DELETED_AT, cloud_request=request))

    assert_ended(result, Outcome.YIELD, "Deprovisioning", "waiting to see")
    assert world.cloud.networking.ports != []


def test_an_instance_that_was_given_another_name_in_the_cloud_is_deleted_all_the_same() -> None:
    world = World()
    world.cloud.compute.held = [instance(name="renamed-by-hand")]
    world.cloud.networking.ports = [replace(port, instance_id="instance-1") for port in world.cloud.networking.ports]

    assert world.run().outcome is Outcome.SUCCESS
    assert world.cloud.compute.held == []


def test_b28_the_port_of_an_instance_that_was_never_created_goes_too() -> None:
    world = World()
    world.cloud.compute.held.clear()

    assert world.run().outcome is Outcome.SUCCESS
    assert world.cloud.networking.ports == []
    assert "delete instance-1" not in world.journal


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR", "BUILD", "SHUTOFF", "DELETING"])
def test_b25_the_pass_ends_and_looks_again_soon_while_the_instance_is_still_there(status: str) -> None:
    world = World()
    world.cloud.compute.dies = with_status(status)

    result = world.run()

    assert_ended(result, Outcome.YIELD, "Deprovisioning", "waiting for the cloud to delete the instance")
    assert result.again_in == 2.0
    assert world.journal == [f"find {NAME}", "delete instance-1", "get instance-1"]
    assert world.references.finalizers(GROUPS, GROUP) == (EDGE,)


@pytest.mark.parametrize("status", ["ERROR", "BUILD", "SHUTOFF", "SUSPENDED", "REBUILD"])
def test_b25_an_instance_in_any_state_is_deleted_with_the_first_pass(status: str) -> None:
    world = World()
    world.cloud.compute.held[:] = [instance(status=status)]

    assert world.run().outcome is Outcome.SUCCESS
    assert "delete instance-1" in world.journal


@pytest.mark.parametrize("status", ["SOFT_DELETED", "DELETED"])
def test_b29_a_soft_deleted_instance_counts_as_gone(status: str) -> None:
    world = World()
    world.cloud.compute.dies = with_status(status)

    assert world.run().outcome is Outcome.SUCCESS
    assert world.cloud.networking.ports == []


@pytest.mark.parametrize("status", ["SOFT_DELETED", "DELETED"])
def test_b29_a_soft_deleted_instance_is_not_deleted_again(status: str) -> None:
    world = World()
    world.cloud.compute.held[:] = [instance(status=status)]

    assert world.run().outcome is Outcome.SUCCESS
    assert "delete instance-1" not in world.journal


def test_a_stranger_of_the_same_name_is_not_deleted() -> None:
    world = World()
    strangers = [instance(id="a", server_id=None), instance(id="b", server_id=OTHER_ID)]
    world.cloud.compute.held[:] = strangers

    assert world.run().outcome is Outcome.SUCCESS
    assert world.cloud.compute.held == strangers


def test_k25_without_credentials_nothing_can_be_there_and_nothing_is_called() -> None:
    world = World()
    world.cloud.without_credentials = True

    assert_ended(world.run(), Outcome.SUCCESS, "Deprovisioned", "deprovisioned")
    assert world.journal == EDGES


def test_a_missing_region_is_an_error_because_the_cloud_side_may_be_there() -> None:
    world = World()
    world.directory.remove(region())

    assert_ended(world.run(), Outcome.ERROR, "Errored", "Region not found")
    assert world.journal == []


def test_deletion_waits_for_no_identity_no_gate_and_no_rebuild() -> None:
    world = World()
    world.directory.put(identity(ready=False))
    status = ServerStatus(rebuild=RebuildMarker(IMAGE, "Rebuilding"))
    gated = server(spec(provider_create_gates=("example.org/a",)), status, deleted_at=DELETED_AT)

    result = world.run(gated)

    assert result.outcome is Outcome.SUCCESS
    assert result.status.rebuild == status.rebuild


@pytest.mark.parametrize(
    "finalizers", [("unikorn", "foregroundDeletion"), ("foregroundDeletion",), ("unikorn", "volumes.example.org/x")]
)
def test_while_something_else_holds_on_to_the_server_its_cloud_side_stays(finalizers: tuple[str, ...]) -> None:
    world = World()

    result = world.run(server(deleted_at=DELETED_AT, finalizers=finalizers))

    assert_ended(result, Outcome.YIELD, "Deprovisioning", "still uses the server")
    assert world.journal == []
    assert world.directory.calls == []
    assert result.again_in is None


STEPS = ["find", "delete", "ports_named", "floating_ips", "delete_floating_ip", "delete_port"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (StateConflict, Outcome.YIELD, "Deprovisioning"),
        (Unavailable, Outcome.ERROR, "Errored"),
        (TimedOut, Outcome.ERROR, "Errored"),
        (Denied, Outcome.ERROR, "Errored"),
        (Refused, Outcome.ERROR, "Errored"),
        (Missing, Outcome.ERROR, "Errored"),
        (Ambiguous, Outcome.ERROR, "Errored"),
    ],
)
def test_b06_b27_b32_any_failure_of_any_step_is_told_and_nothing_after_it_is_done(
    step: str, error: type[PortError], outcome: Outcome, reason: str
) -> None:
    world = World()
    part = world.cloud.compute if step in ("find", "delete") else world.cloud.networking
    part.fail(step, error("nova", "authentication failed"))

    result = world.run()

    assert_ended(result, outcome, reason, "nova: authentication failed")
    assert world.journal[-1].split()[0] == step
    assert world.references.finalizers(GROUPS, GROUP) == (EDGE,)


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (StateConflict, Outcome.YIELD, "Deprovisioning"),
        (Unavailable, Outcome.ERROR, "Errored"),
    ],
)
def test_a_clash_over_an_edge_yields(error: type[PortError], outcome: Outcome, reason: str) -> None:
    world = World()
    world.references.fail("release", error("kubernetes", "it broke"))

    assert_ended(world.run(), outcome, reason, "kubernetes: it broke")
    assert world.journal == CLOUD_SIDE


@pytest.mark.parametrize(
    ("region_id", "identity_id", "asked_for"), [(None, IDENTITY, []), (REGION, None, [(REGION, "")])]
)
def test_a_server_without_a_region_label_keeps_its_finalizer(
    region_id: str | None, identity_id: str | None, asked_for: list[tuple[str, str]]
) -> None:
    world = World()

    result = world.run(server(deleted_at=DELETED_AT, region_id=region_id, identity_id=identity_id))

    assert (result.outcome is Outcome.ERROR) is (region_id is None)
    assert world.cloud.asked_for == asked_for


def test_other_conditions_and_what_was_observed_stay() -> None:
    healthy = condition(ConditionType.HEALTHY, "True", "Healthy")

    result = World().run(
        server(status=ServerStatus(conditions=(healthy,), phase="Running", private_ip="x"), deleted_at=DELETED_AT)
    )

    assert result.status.condition(ConditionType.HEALTHY) == healthy
    assert (result.status.phase, result.status.private_ip) == ("Running", "x")
