"""The create and update pass (contract 6.3, 6.5, 7.2 to 7.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from server_api.servers.cloud_model import (
    Flavor,
    FloatingIP,
    Instance,
    InstanceOrder,
    Port,
    PortOrder,
    ResourceProvider,
)
from server_api.servers.cloud_requests import LATE_SECONDS
from server_api.servers.model import (
    AddressPair,
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    GateStatus,
    NetworkAttachment,
    Server,
    ServerSpec,
    ServerStatus,
    Tag,
)
from server_api.servers.outcomes import Outcome, PassResult
from server_api.servers.ports import (
    AlreadyExists,
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
from server_api.servers.provisioning import CLASH_SECONDS, Provisioner
from server_api.servers.surroundings import Identity, PlacementPreflight, Region
from server_api.servers.tags import instance_metadata
from server_api.servers.user_data_augmentation import augment
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.references import InMemoryReferences
from tests.doubles.store import InMemoryServerStore
from tests.doubles.tenancy import OneProjectCloud
from tests.unit.servers.builders import (
    AUTHORITY,
    EARLIER,
    FLAVOR,
    GROUP,
    GROUP_2,
    IDENTITY,
    IMAGE,
    NAME,
    NETWORK,
    NOW,
    NOW_IN_SECONDS,
    OTHER_ID,
    REGION,
    SERVER,
    authority,
    condition,
    identity,
    instance,
    region,
    server,
    spec,
)

NETWORKS, GROUPS = ReferentKind.NETWORK, ReferentKind.SECURITY_GROUP
EDGE = f"servers.region.unikorn-cloud.org/{SERVER}"
PORT = f"server-{SERVER}"
MAC = "fa:16:3e:00:00:01"


SEEN = ServerStatus(
    scheduled_at=EARLIER, conditions=(condition(ConditionType.HEALTHY, "True", "Healthy", "the instance is ACTIVE"),)
)
"""Status of a server whose instance was there at some time."""


class World:
    """An identity with a network, two groups and its project in the cloud, where nothing of the server exists yet."""

    def __init__(self) -> None:
        self.cloud = OneProjectCloud()
        self.references = InMemoryReferences(self.cloud.journal)
        self.references.put(NETWORKS, NETWORK, IDENTITY)
        for group_id in (GROUP, GROUP_2):
            self.references.put(GROUPS, group_id, IDENTITY)
        self.references.put(ReferentKind.SSH_CERTIFICATE_AUTHORITY, AUTHORITY)
        self.directory = InMemoryDirectory(identity(), region(), authority())
        self.store = InMemoryServerStore(journal=self.cloud.journal)

    @property
    def journal(self) -> list[str]:
        return self.cloud.journal

    def run(self, of_server: Server | None = None, now: datetime = NOW) -> PassResult:
        stored = self.store.put(of_server or server())
        result = Provisioner(self.store, self.directory, self.references, self.cloud).run(stored, now)
        assert result.events == ()
        return result

    def run_twice(self, of_server: Server) -> PassResult:
        """Run a second pass that starts from what the first one left."""
        left = left_by(self.run(of_server))
        self.journal.clear()
        return self.run(left)

    def with_port(self, *addresses: str) -> str:
        """Let the server's port exist, with these floating IPs, and return its ID."""
        port = self.cloud.networking.create_port(PortOrder(PORT, "cloud-network"))
        self.cloud.networking.bound[port.id] = [FloatingIP(f"id-of-{address}", address) for address in addresses]
        self.cloud.networking.orders.clear()
        self.journal.clear()
        return port.id


def left_by(result: PassResult) -> Server:
    """Return the server as the pass leaves it in the store."""
    assert result.stored is not None
    return replace(result.stored, status=result.status)


def available(result: PassResult) -> tuple[str, str, str]:
    """Return status, reason and message of the Available condition."""
    written = result.status.condition(ConditionType.AVAILABLE)
    assert written is not None
    return written.status, written.reason, written.message


def assert_ended(result: PassResult, outcome: Outcome, reason: str, message: str) -> None:
    assert result.outcome is outcome
    assert available(result)[:2] == ("True" if outcome is Outcome.SUCCESS else "False", reason)
    assert message in available(result)[2]


# A whole pass


def test_k15_k18_a_first_pass_builds_port_and_instance_in_the_order_of_the_contract() -> None:
    world = World()

    result = world.run(server(spec(security_group_ids=(GROUP,), public_ip=True)))

    assert_ended(result, Outcome.SUCCESS, "Provisioned", "provisioned")
    assert world.journal == [
        f"hold networks {NETWORK}",
        f"hold securitygroups {GROUP}",
        f"network_id network-{NETWORK}",
        f"security_group_id securitygroup-{GROUP}",
        f"ports_named {PORT}",
        f"update {SERVER}",
        f"create_port {PORT}",
        "floating_ips port-0",
        f"update {SERVER}",
        "create_floating_ip port-0",
        f"update {SERVER}",
        f"find {NAME}",
        f"ports_named {PORT}",
        f"update {SERVER}",
        f"create {NAME}",
    ]
    assert world.cloud.asked_for == [(REGION, IDENTITY)]


def test_k15_the_port_is_ordered_with_groups_and_pairs_and_its_address_is_stored() -> None:
    world = World()
    pairs = (AddressPair("10.0.0.0/24"), AddressPair("10.1.0.0/16", MAC))

    result = world.run(server(spec(networks=(NetworkAttachment(NETWORK, pairs),), security_group_ids=(GROUP_2, GROUP))))

    assert world.cloud.networking.orders == [
        PortOrder(
            name=PORT,
            network_id=f"cloud-network-{NETWORK}",
            security_group_ids=(f"cloud-securitygroup-{GROUP_2}", f"cloud-securitygroup-{GROUP}"),
            allowed_address_pairs=pairs,
        )
    ]
    assert result.status.private_ip == "192.168.0.7"
    assert result.status.mac_address is None


@pytest.mark.parametrize("of_spec", [spec(), spec(security_group_ids=())])
def test_b33_no_groups_and_no_pairs_are_ordered_as_explicitly_none(of_spec: ServerSpec) -> None:
    world = World()

    world.run(server(of_spec))

    assert world.cloud.networking.orders[0].security_group_ids == ()
    assert world.cloud.networking.orders[0].allowed_address_pairs == ()


def test_k18_the_instance_is_ordered_as_the_spec_says() -> None:
    world = World()
    built = server(spec(user_data=b"#cloud-config\n", tags=(Tag("compute.example.org/a-b", "x"),)))

    world.run(built)

    assert world.cloud.compute.orders == [
        InstanceOrder(
            name=NAME,
            image_id=IMAGE,
            flavor_id=FLAVOR,
            port_id="port-0",
            metadata=instance_metadata(built),
            user_data=b"#cloud-config\n",
            key_name="unikorn-openstack-provider",
        )
    ]
    assert world.cloud.compute.orders[0].metadata["compute:a_b"] == "x"


@pytest.mark.parametrize(
    ("changes", "key_name"),
    [
        ({"ssh_injection": "identityKeypair"}, "unikorn-openstack-provider"),
        ({"ssh_injection": None}, "unikorn-openstack-provider"),
        ({"ssh_injection": "none"}, None),
        ({"ssh_injection": "ca", "ssh_certificate_authority_id": AUTHORITY}, None),
        ({"ssh_injection": None, "ssh_certificate_authority_id": AUTHORITY}, None),
    ],
)
def test_k24_only_the_key_pair_mode_orders_a_key(changes: dict[str, Any], key_name: str | None) -> None:
    world = World()

    world.run(server(spec(**changes)))

    assert world.cloud.compute.orders[0].key_name == key_name


@pytest.mark.parametrize("stored", [None, b"#cloud-config\nhostname: x\n"])
def test_k26_k28_an_instance_with_an_authority_gets_a_copy_of_the_user_data_that_trusts_it(
    stored: bytes | None,
) -> None:
    world = World()
    built = server(spec(ssh_injection="ca", ssh_certificate_authority_id=AUTHORITY, user_data=stored))

    result = world.run(built)

    assert world.cloud.compute.orders[0].user_data == augment(stored, authority().public_key)
    assert built.spec.user_data == stored
    assert (result.status.private_ip, result.status.phase) == ("192.168.0.7", "Building")


def test_user_data_that_cannot_be_augmented_is_an_error_before_any_cloud_call() -> None:
    world = World()
    legacy = spec(ssh_injection="ca", ssh_certificate_authority_id=AUTHORITY, user_data=b"echo hello")

    result = world.run(server(legacy))

    assert_ended(result, Outcome.ERROR, "Errored", "userData")
    assert "echo hello" not in available(result)[2]
    assert [entry for entry in world.journal if not entry.startswith("hold")] == []


def test_an_authority_that_is_gone_is_an_error() -> None:
    world = World()
    world.directory.remove(authority())

    result = world.run(server(spec(ssh_injection="ca", ssh_certificate_authority_id=AUTHORITY)))

    assert_ended(result, Outcome.ERROR, "Errored", "SSHCertificateAuthority not found")


def test_the_answer_to_a_create_counts_as_a_look_at_the_instance() -> None:
    world = World()
    world.cloud.compute.born = lambda made: replace(made, created_at=EARLIER)

    status = world.run().status

    assert (status.phase, status.scheduled_at) == ("Building", EARLIER)
    healthy = status.condition(ConditionType.HEALTHY)
    assert healthy is not None
    assert (healthy.reason, healthy.last_transition_time) == ("Degraded", NOW_IN_SECONDS)


def test_k16_k19_a_second_pass_updates_the_port_and_creates_nothing() -> None:
    world = World()
    world.run(server(spec(security_group_ids=(GROUP,), public_ip=True)))
    world.journal.clear()

    result = world.run(server(spec(security_group_ids=(GROUP_2,), public_ip=True)))

    assert result.outcome is Outcome.SUCCESS
    assert "update_port port-0" in world.journal
    assert not [entry for entry in world.journal if entry.startswith(("create", "delete"))]
    assert world.cloud.networking.orders[-1].security_group_ids == (f"cloud-securitygroup-{GROUP_2}",)


def test_an_unchanged_world_gives_an_unchanged_status() -> None:
    world = World()
    first = world.run()

    assert world.run(server(status=first.status)).status == first.status


def test_b16_of_an_instance_that_is_there_only_its_time_of_creation_is_learned() -> None:
    world = World()
    shown: Instance = instance(mac_addresses={f"network-{NETWORK}": MAC}, created_at=EARLIER, launched_at=EARLIER)
    world.cloud.compute.held.append(shown)

    status = world.run().status

    assert status.scheduled_at == EARLIER
    assert (status.phase, status.provisioned_at, status.mac_address) == (None, None, None)
    assert status.condition(ConditionType.HEALTHY) is None


def test_b01_b05_neighbours_and_strangers_are_neither_adopted_nor_touched() -> None:
    world = World()
    strangers = [
        instance(id="a", name=f"{NAME}-1", server_id="a"),
        instance(id="b", name=NAME, server_id=None),
        instance(id="c", name=NAME, server_id=OTHER_ID),
    ]
    world.cloud.compute.held.extend(strangers)

    world.run()

    assert len(world.cloud.compute.orders) == 1
    assert world.cloud.compute.held[:3] == strangers


# What a pass waits for


def test_k13_an_identity_that_is_not_ready_is_waited_for_without_any_cloud_call() -> None:
    world = World()
    world.directory.put(identity(ready=False))

    result = world.run()

    assert_ended(result, Outcome.YIELD, "Provisioning", "identity")
    assert world.journal == [f"hold networks {NETWORK}"]
    assert world.cloud.asked_for == []


@pytest.mark.parametrize("missing", [identity(), region()])
def test_a_missing_identity_or_region_is_an_error_without_any_cloud_call(missing: Identity | Region) -> None:
    world = World()
    world.directory.remove(missing)

    result = world.run()

    assert_ended(result, Outcome.ERROR, "Errored", "not found")
    assert world.journal == [f"hold networks {NETWORK}"]


def test_an_identity_without_credentials_is_an_error_without_any_cloud_call() -> None:
    world = World()
    world.cloud.without_credentials = True

    result = world.run()

    assert_ended(result, Outcome.ERROR, "Errored", "openstackidentities not found")
    assert world.journal == [f"hold networks {NETWORK}"]


def test_k14_a_group_that_is_not_under_the_identity_is_an_error_before_anything_else() -> None:
    world = World()

    result = world.run(server(spec(security_group_ids=(OTHER_ID,))))

    assert_ended(result, Outcome.ERROR, "Errored", OTHER_ID)
    assert world.journal == []
    assert world.directory.calls == []


A, B = "example.org/a", "example.org/b"
GATED = spec(provider_create_gates=(A, B))


def gate(condition_type: str, status: str) -> GateStatus:
    return GateStatus(condition_type, status, EARLIER, "x", "y", "z")


@pytest.mark.parametrize(
    ("recorded", "named", "not_named"),
    [
        ((), [A, B], []),
        ((gate(A, "True"),), [B], [A]),
        ((gate(A, "False"), gate(B, "True")), [A], [B]),
        ((gate(A, "Unknown"), gate(B, "True")), [A], [B]),
    ],
)
def test_g02_g11_a_remaining_gate_stops_the_pass_before_any_cloud_call(
    recorded: tuple[GateStatus, ...], named: list[str], not_named: list[str]
) -> None:
    world = World()

    result = world.run(server(GATED, ServerStatus(provider_create_gates=recorded)))

    assert_ended(result, Outcome.YIELD, "Provisioning", "waiting for provider-create gates")
    message = available(result)[2]
    assert all(gate in message for gate in named)
    assert not any(gate in message for gate in not_named)
    assert world.journal == [f"hold networks {NETWORK}"]
    assert result.status.provider_create_gates == recorded


@pytest.mark.parametrize(
    ("gates", "recorded"), [((A, B), (gate(A, "True"), gate(B, "True"))), ((), ()), (None, (gate(A, "False"),))]
)
def test_g04_g16_satisfied_or_absent_gates_let_the_pass_go_on(
    gates: tuple[str, ...] | None, recorded: tuple[GateStatus, ...]
) -> None:
    world = World()

    result = world.run(server(spec(provider_create_gates=gates), ServerStatus(provider_create_gates=recorded)))

    assert result.outcome is Outcome.SUCCESS
    assert len(world.cloud.compute.orders) == 1


def test_gates_are_not_asked_again_once_the_instance_was_created() -> None:
    world = World()
    world.cloud.compute.held.append(instance())

    result = world.run(server(GATED, ServerStatus(scheduled_at=EARLIER)))

    assert result.outcome is Outcome.SUCCESS


def test_g02_remaining_gates_are_no_error_even_while_the_identity_has_no_credentials() -> None:
    world = World()
    world.cloud.without_credentials = True

    assert_ended(world.run(server(GATED)), Outcome.YIELD, "Provisioning", "gates")


def test_k21_k22_only_a_pinned_server_is_ordered_on_a_host() -> None:
    pinned, free = World(), World()

    pinned.run(server(spec(infrastructure_ref="a-host", ssh_injection="none")))
    free.run(server())

    assert pinned.cloud.compute.orders[0].hypervisor_hostname == "a-host"
    assert free.cloud.compute.orders[0].hypervisor_hostname is None


def test_a_server_without_an_image_cannot_be_built() -> None:
    world = World()

    result = world.run(server(spec(image_id=None)))

    assert_ended(result, Outcome.ERROR, "Errored", "names no image")
    assert world.cloud.compute.orders == []
    assert result.status.private_ip == "192.168.0.7"


def test_a_server_without_a_network_is_an_error_and_no_crash() -> None:
    assert_ended(World().run(server(spec(networks=()))), Outcome.ERROR, "Errored", "network")


# Pinned servers

PINNED = spec(infrastructure_ref="host-1", ssh_injection="none")
ASKING = replace(region(), placement_preflight=PlacementPreflight())


def pinned_world(asking: Region = ASKING) -> World:
    """A region that wants Placement asked, and offers a flavor for pinned servers."""
    world = World()
    world.directory = InMemoryDirectory(identity(), asking)
    pinned = Flavor(FLAVOR, "pinned", cpus=1, memory_mib=1, disk_gb=1, extra_specs={"resources:CUSTOM_NODE": "1"})
    world.cloud.offers.exported_flavors = [pinned]
    return world


def test_k18_placement_is_asked_right_before_a_pinned_instance_is_created() -> None:
    world = pinned_world()
    world.cloud.placement.hosts = [ResourceProvider("1", "host-1")]

    assert world.run(server(PINNED)).outcome is Outcome.SUCCESS
    assert [line.split()[0] for line in world.journal][-4:] == ["flavors", "providers", "update", "create"]
    assert world.cloud.compute.orders[0].hypervisor_hostname == "host-1"


def test_k19_an_instance_that_is_there_needs_no_host() -> None:
    world = pinned_world()
    world.cloud.compute.held.append(instance())

    assert world.run(server(PINNED)).outcome is Outcome.SUCCESS
    assert world.cloud.placement.queries == []


def test_k20_without_the_host_the_pass_waits_and_creates_nothing() -> None:
    world = pinned_world()

    assert_ended(world.run(server(PINNED)), Outcome.YIELD, "Provisioning", "host-1")
    assert world.cloud.compute.orders == []


@pytest.mark.parametrize(
    ("asking", "wanted"),
    [(region(), PINNED), (ASKING, spec())],
    ids=["a region that does not want it", "a server that is not pinned"],
)
def test_placement_is_not_asked_for(asking: Region, wanted: ServerSpec) -> None:
    world = pinned_world(asking)

    assert world.run(server(wanted)).outcome is Outcome.SUCCESS
    assert world.cloud.placement.queries == []


# The one instance


def test_b07_b30_an_instance_that_was_there_and_is_not_found_leads_to_no_second_one() -> None:
    world = World()

    result = world.run(server(status=replace(SEEN, phase="Running")))

    assert_ended(result, Outcome.ERROR, "Errored", "no longer found")
    assert world.cloud.compute.orders == []
    assert result.status.phase == "Running"
    assert result.status.scheduled_at == EARLIER


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Ambiguous, Outcome.ERROR, "Errored"),
        (Denied, Outcome.ERROR, "Errored"),
        (Refused, Outcome.ERROR, "Errored"),
        (Missing, Outcome.ERROR, "Errored"),
        (Unavailable, Outcome.YIELD, "Provisioning"),
        (TimedOut, Outcome.YIELD, "Provisioning"),
    ],
)
def test_b06_b07_a_failed_look_up_leads_to_no_instance(error: type[PortError], outcome: Outcome, reason: str) -> None:
    world = World()
    world.cloud.compute.fail("find", error("nova", "two instances, or none at all"))

    result = world.run()

    assert_ended(result, outcome, reason, "nova: two instances, or none at all")
    assert world.cloud.compute.orders == []


# Floating IPs


def test_a_floating_ip_that_is_wanted_is_created_and_stored() -> None:
    world = World()

    assert world.run(server(spec(public_ip=True))).status.public_ip == "203.0.113.9"
    assert "create_floating_ip port-0" in world.journal


def test_a_floating_ip_that_is_there_is_used() -> None:
    world = World()
    world.with_port("198.51.100.1")

    assert world.run(server(spec(public_ip=True))).status.public_ip == "198.51.100.1"
    assert not [entry for entry in world.journal if "create_floating_ip" in entry or "delete_floating" in entry]


@pytest.mark.parametrize("public_ip", [None, False])
def test_k17_a_floating_ip_that_is_not_wanted_is_deleted(public_ip: bool | None) -> None:
    world = World()
    port_id = world.with_port("198.51.100.1")

    result = world.run(server(spec(public_ip=public_ip), ServerStatus(public_ip="198.51.100.1")))

    assert result.status.public_ip is None
    assert world.cloud.networking.bound[port_id] == []
    assert "delete_floating_ip id-of-198.51.100.1" in world.journal


def test_a_floating_ip_that_may_come_late_to_a_server_that_wants_none_any_more_is_waited_for() -> None:
    world = World()
    world.with_port()
    world.cloud.compute.held.append(instance())
    world.cloud.networking.fail("create_floating_ip", TimedOut("neutron", "no answer"))
    left = left_by(world.run(server(spec(public_ip=True))))

    private = replace(left, spec=spec())
    assert_ended(world.run(private), Outcome.YIELD, "Provisioning", "floating IP")
    world.cloud.networking.bound[world.cloud.networking.ports[0].id] = [FloatingIP("late", "198.51.100.9")]
    assert world.run(private).outcome is Outcome.SUCCESS
    assert "delete_floating_ip late" in world.journal


def test_a_floating_ip_that_was_created_and_is_not_wanted_any_more_is_not_waited_for() -> None:
    world = World()
    left = left_by(world.run(server(spec(public_ip=True))))

    for _ in range(2):
        assert world.run(replace(left, spec=spec())).outcome is Outcome.SUCCESS


def test_an_address_that_is_gone_from_the_cloud_is_no_longer_shown() -> None:
    assert World().run(server(status=ServerStatus(public_ip="198.51.100.1"))).status.public_ip is None


@pytest.mark.parametrize("public_ip", [True, None])
def test_two_floating_ips_on_the_port_are_an_error_and_neither_is_touched(public_ip: bool | None) -> None:
    world = World()
    port_id = world.with_port("198.51.100.1", "198.51.100.2")

    result = world.run(server(spec(public_ip=public_ip)))

    assert_ended(result, Outcome.ERROR, "Errored", "2 floating IPs")
    assert len(world.cloud.networking.bound[port_id]) == 2
    assert world.cloud.compute.orders == []


def test_no_exported_external_network_is_an_error_that_says_so() -> None:
    world = World()
    world.cloud.networking.fail("create_floating_ip", Missing("neutron", "no external network is exported"))

    result = world.run(server(spec(public_ip=True)))

    assert_ended(result, Outcome.ERROR, "Errored", "no external network is exported")
    assert result.status.private_ip == "192.168.0.7"


# Failures

STEPS = [
    "network_id",
    "security_group_id",
    "ports_named",
    "create_port",
    "floating_ips",
    "create_floating_ip",
    "find",
    "create",
]
STATUS_BEFORE = ServerStatus(
    conditions=(condition(ConditionType.AVAILABLE, "True", "Provisioned"),), phase="Pending", provider_create_failures=1
)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (StateConflict, Outcome.YIELD, "Provisioning"),
        (Unavailable, Outcome.YIELD, "Provisioning"),
        (TimedOut, Outcome.YIELD, "Provisioning"),
        (Missing, Outcome.ERROR, "Errored"),
        (Refused, Outcome.ERROR, "Errored"),
        (Denied, Outcome.ERROR, "Errored"),
        (Ambiguous, Outcome.ERROR, "Errored"),
        (AlreadyExists, Outcome.ERROR, "Errored"),
    ],
)
def test_b37_any_failure_of_any_step_is_an_outcome_that_names_the_dependency(
    step: str, error: type[PortError], outcome: Outcome, reason: str
) -> None:
    world = World()
    part = world.cloud.compute if step in ("find", "create") else world.cloud.networking
    part.fail(step, error("neutron", "it broke"))

    result = world.run(server(spec(security_group_ids=(GROUP,), public_ip=True), STATUS_BEFORE))

    assert_ended(result, outcome, reason, "neutron: it broke")
    assert result.again_in is None
    # Nothing after the step that failed, and nothing forgotten of what was learned before it.
    calls = [entry.split()[0] for entry in world.journal if not entry.startswith("update ")]
    assert calls[-1] == step
    assert result.status.private_ip == ("192.168.0.7" if STEPS.index(step) > STEPS.index("create_port") else None)
    assert result.status.public_ip == ("203.0.113.9" if STEPS.index(step) > STEPS.index("create_floating_ip") else None)
    assert (result.status.phase, result.status.provider_create_failures) == ("Pending", 1)
    written = result.status.condition(ConditionType.AVAILABLE)
    assert written is not None
    assert written.last_transition_time == NOW_IN_SECONDS


def test_what_was_learned_before_a_failure_shows_in_the_next_pass() -> None:
    world = World()
    world.cloud.compute.fail("create", Unavailable("nova", "it broke"))

    result = world.run_twice(server(spec(public_ip=True)))

    assert (result.status.private_ip, result.status.public_ip) == ("192.168.0.7", "203.0.113.9")
    assert not [entry for entry in world.journal if entry.startswith(("create_port", "create_floating_ip"))]


@pytest.mark.parametrize("kind", [Identity, Region])
@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [(Unavailable, Outcome.YIELD, "Provisioning"), (Denied, Outcome.ERROR, "Errored")],
)
def test_a_directory_that_fails_stops_the_pass_before_any_cloud_call(
    kind: type, error: type[PortError], outcome: Outcome, reason: str
) -> None:
    world = World()
    world.directory.fail(kind, error("kubernetes", "it broke"))

    assert_ended(world.run(), outcome, reason, "kubernetes: it broke")
    assert world.journal == [f"hold networks {NETWORK}"]


# Reference edges


def test_everything_used_is_held_before_the_cloud_is_asked_and_the_rest_let_go_at_the_end() -> None:
    world = World()
    world.references.put(GROUPS, GROUP, IDENTITY, [EDGE])

    world.run(server(spec(security_group_ids=(GROUP_2,))))

    assert world.journal[:2] == [f"hold networks {NETWORK}", f"hold securitygroups {GROUP_2}"]
    assert world.journal[-1] == f"release securitygroups {GROUP}"
    assert world.references.finalizers(GROUPS, GROUP_2) == (EDGE,)


def test_a_pass_that_stops_lets_nothing_go() -> None:
    world = World()
    world.references.put(GROUPS, GROUP, IDENTITY, [EDGE])
    world.cloud.compute.fail("create", Unavailable("nova", "it broke"))

    world.run()

    assert world.references.finalizers(GROUPS, GROUP) == (EDGE,)


@pytest.mark.parametrize("step", ["hold", "release"])
def test_a_clash_over_an_edge_yields(step: str) -> None:
    world = World()
    world.references.put(GROUPS, GROUP, IDENTITY, [EDGE])
    world.references.fail(step, StateConflict("kubernetes", "the object has been modified"))

    result = world.run()

    assert_ended(result, Outcome.YIELD, "Provisioning", "the object has been modified")
    assert result.again_in == CLASH_SECONDS
    assert (len(world.cloud.compute.orders), result.status.private_ip) == (
        (0, None) if step == "hold" else (1, "192.168.0.7")
    )


def test_b07_an_instance_not_found_right_after_its_creation_leads_to_no_second_one() -> None:
    world = World()
    built = left_by(world.run())
    world.cloud.compute.held.clear()

    soon = world.run(built)
    assert_ended(soon, Outcome.YIELD, "Provisioning", "waiting to see")
    late = world.run(left_by(soon), now=NOW + timedelta(seconds=LATE_SECONDS + 1))

    assert_ended(late, Outcome.ERROR, "Errored", "no longer found")
    assert len(world.cloud.compute.orders) == 1


def test_b30_an_instance_that_ran_and_is_gone_is_missed_at_once() -> None:
    world = World()
    built = left_by(world.run())
    world.cloud.compute.held.clear()

    ran = replace(built, status=replace(built.status, launched_at=NOW))
    result = world.run(ran)

    assert_ended(result, Outcome.ERROR, "Errored", "no longer found")
    health = result.status.condition(ConditionType.HEALTHY)
    assert health is not None
    assert (health.status, health.reason) == ("Unknown", "Unknown")


def test_b34_a_group_stored_twice_is_asked_of_neutron_once() -> None:
    world = World()

    world.run(server(spec(security_group_ids=(GROUP, GROUP))))

    assert len(world.cloud.networking.orders[-1].security_group_ids) == 1


def test_user_data_that_cannot_be_augmented_is_no_concern_of_an_instance_that_exists() -> None:
    world = World()
    world.cloud.compute.held.append(instance())
    managed = spec(user_data=b"echo legacy", ssh_certificate_authority_id=AUTHORITY, ssh_injection="ca")

    assert world.run(server(managed, SEEN)).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("lost", [Unavailable("nova", "the connection broke"), TimedOut("nova", "no answer")])
def test_b10_a_create_whose_answer_was_lost_is_not_sent_again_while_it_may_still_take_effect(lost: PortError) -> None:
    world = World()
    world.cloud.compute.fail("create", lost)
    first = world.run()
    assert_ended(first, Outcome.YIELD, "Provisioning", "waiting to see")

    soon = world.run(left_by(first), now=NOW + timedelta(seconds=LATE_SECONDS - 1))
    assert_ended(soon, Outcome.YIELD, "Provisioning", "waiting to see")
    assert world.journal.count(f"create {NAME}") == 1

    recovered = World()
    late = recovered.run(left_by(soon), now=NOW + timedelta(seconds=LATE_SECONDS + 1))
    assert late.outcome is Outcome.SUCCESS
    assert len(recovered.cloud.compute.orders) == 1


def test_a_create_whose_answer_was_lost_and_that_took_effect_is_found() -> None:
    world = World()
    world.cloud.compute.fail("create", TimedOut("nova", "no answer"))
    first = world.run()
    world.cloud.compute.held.append(instance())

    assert world.run(left_by(first)).outcome is Outcome.SUCCESS
    assert world.cloud.compute.orders == []


@pytest.mark.parametrize("refusal", [Refused("nova", "no"), Denied("nova", "quota"), StateConflict("nova", "busy")])
def test_a_create_that_was_refused_is_tried_again_at_the_usual_pace(refusal: PortError) -> None:
    world = World()
    world.cloud.compute.fail("create", refusal)

    left = left_by(world.run())
    assert left.metadata.cloud_request is None
    world.run(left)

    assert world.journal.count(f"create {NAME}") == 2


def test_the_cloud_is_not_asked_for_an_instance_before_the_store_has_taken_down_that_it_will_be() -> None:
    world = World()
    world.store.fail("update", Unavailable("kubernetes", "it broke"))

    assert_ended(world.run(), Outcome.YIELD, "Provisioning", "kubernetes: it broke")
    assert f"create {NAME}" not in world.journal


def test_b10_of_two_controllers_that_saw_no_instance_only_one_asks_for_it() -> None:
    """Whatever each of them thinks of the Lease."""
    world = World()
    world.store.lose_race()

    assert_ended(world.run(), Outcome.YIELD, "Provisioning", "the object has been modified")
    assert f"create {NAME}" not in world.journal


def test_b10_a_create_counts_from_when_it_was_sent_and_not_from_when_its_pass_began() -> None:
    """A pass may take a minute before it gets there."""
    world = World()
    clock = FixedClock(NOW + timedelta(seconds=50))
    stored = world.store.put(server())

    Provisioner(world.store, world.directory, world.references, world.cloud, clock=clock).run(stored, NOW)

    request = world.store.stored(SERVER).metadata.cloud_request
    assert request is not None
    assert request.sent_at == clock.now()


def test_b10_a_process_that_died_after_the_record_leaves_the_create_to_be_waited_for() -> None:
    world = World()
    request = CloudRequest(CloudRequestKind.CREATE, NOW)

    result = world.run(server(cloud_request=request))

    assert_ended(result, Outcome.YIELD, "Provisioning", "waiting to see")
    assert f"create {NAME}" not in world.journal


def test_b10_an_instance_that_was_given_another_name_in_the_cloud_is_found_by_the_servers_port() -> None:
    world = World()
    port_id = world.with_port()
    world.cloud.networking.ports = [Port(port_id, PORT, "192.168.0.7", instance_id="instance-1")]
    world.cloud.compute.held.append(instance(name="renamed-by-hand"))

    assert world.run().outcome is Outcome.SUCCESS
    assert world.cloud.compute.orders == []


def test_b28_a_port_whose_create_may_still_take_effect_is_waited_for_and_not_created_again() -> None:
    world = World()
    world.cloud.networking.fail("create_port", TimedOut("neutron", "no answer"))

    soon = world.run_twice(server())
    assert_ended(soon, Outcome.YIELD, "Provisioning", "waiting to see")
    assert f"create_port {PORT}" not in world.journal
    recovered = World()
    late = recovered.run(left_by(soon), now=NOW + timedelta(seconds=LATE_SECONDS + 1))
    assert late.outcome is Outcome.SUCCESS


def test_b28_of_two_ports_the_one_that_the_instance_is_on_is_kept_up_to_date() -> None:
    world = World()
    world.cloud.networking.ports = [
        Port("port-late", PORT, "192.168.0.8"),
        Port("port-used", PORT, "192.168.0.7", instance_id="instance-1"),
    ]
    world.cloud.compute.held.append(instance())

    assert world.run().status.private_ip == "192.168.0.7"
    assert "update_port port-used" in world.journal


def test_a_stranger_on_the_servers_port_is_not_taken_for_its_instance() -> None:
    world = World()
    port_id = world.with_port()
    world.cloud.networking.ports = [Port(port_id, PORT, "192.168.0.7", instance_id="instance-1")]
    world.cloud.compute.held.append(instance(name="a-stranger", server_id=OTHER_ID))

    world.run()

    assert len(world.cloud.compute.orders) == 1


@pytest.mark.parametrize(
    ("error", "unreachable"),
    [
        (Unavailable("nova", "down"), True),
        (TimedOut("neutron", "slow"), True),
        (Denied("keystone", "wrong password"), True),
        (Denied("nova", "quota"), False),
        (Refused("nova", "no"), False),
        (Unavailable("kubernetes", "down"), False),
        (Unavailable("placement", "down"), False),
    ],
)
def test_a_pass_says_whether_the_whole_project_is_out_of_reach(error: PortError, unreachable: bool) -> None:
    world = World()
    world.cloud.compute.fail("find", error)

    assert world.run().unreachable is unreachable
