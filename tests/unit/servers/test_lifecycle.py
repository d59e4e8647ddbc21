"""Create, read, list, update and delete (contract 1.5, 1.6, 1.9): who sees which error, and what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from server_api.servers.cloud_model import ImageState
from server_api.servers.conditions import available
from server_api.servers.derived_status import provisioning_status
from server_api.servers.errors import Conflict, Forbidden, InvalidRequest, NotFound, Rejection, Unprocessable
from server_api.servers.lifecycle import Lifecycle
from server_api.servers.model import (
    AddressPair,
    GateStatus,
    NetworkAttachment,
    Reason,
    RebuildMarker,
    Server,
    ServerSpec,
    ServerStatus,
    SSHInjection,
    Tag,
)
from server_api.servers.ports import Denied, Missing, PortError, Refused, StateConflict, TimedOut, Unavailable
from server_api.servers.requests import Networking, ServerCreate, ServerQuery, ServerUpdate
from server_api.servers.surroundings import Identity, Network, Region, SecurityGroup
from server_api.servers.user_data import NOVA_LIMIT
from tests.doubles.caller import Check, StubCaller
from tests.doubles.clock import FixedClock
from tests.doubles.directory import InMemoryDirectory
from tests.doubles.store import DELETED_AT, InMemoryServerStore
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
    NOW_IN_SECONDS,
    ORGANIZATION,
    OTHER_ID,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    REGION,
    SERVER,
    authority,
    create_request,
    flavor,
    group,
    image,
    network,
    region,
    server,
    spec,
    update_request,
)

SERVER_CREATE = "region:servers create"
NETWORK_READ = "region:networks:v2 read"
GROUP_READ = "region:securitygroups:v2 read"


class World:
    """A region with a network, two groups, a flavor and an image; and the servers it is given."""

    def __init__(self, *servers: Server) -> None:
        self.store = InMemoryServerStore(*servers)
        self.directory = InMemoryDirectory(network(), group(), group(id=GROUP_2), authority(), region())
        self.cloud = OneProjectCloud()
        self.cloud.offers.exported_flavors.append(flavor())
        self.cloud.offers.exported_images.append(image())
        self.lifecycle = Lifecycle(self.store, self.directory, self.cloud, FixedClock())

    def create(self, request: ServerCreate | None = None, caller: StubCaller | None = None) -> Server:
        return self.lifecycle.create(caller or StubCaller(), request or create_request())

    def update(self, request: ServerUpdate | None = None, caller: StubCaller | None = None) -> Server:
        return self.lifecycle.update(caller or StubCaller("bob", "bob-himself"), SERVER, request or update_request())

    def list(self, caller: StubCaller | None = None, **query: Any) -> list[str]:
        return [found.id for found in self.lifecycle.list(caller or StubCaller(), ServerQuery(**query))]

    @property
    def stored(self) -> Server:
        return self.store.stored(SERVER)


# Create


def test_c01_a_minimal_create_is_stored_with_the_scope_of_its_network() -> None:
    world = World()

    created = world.create(caller=StubCaller("alice", "alice-herself"))

    assert created == world.stored
    assert created.spec == ServerSpec(
        flavor_id=FLAVOR,
        image_id=IMAGE,
        networks=(NetworkAttachment(NETWORK),),
        ssh_injection=SSHInjection.IDENTITY_KEYPAIR,
    )
    assert created.status == ServerStatus()
    metadata = created.metadata
    assert (metadata.name, metadata.description) == (NAME, None)
    assert (metadata.organization_id, metadata.project_id) == (ORGANIZATION, PROJECT)
    assert (metadata.region_id, metadata.identity_id, metadata.network_id) == (REGION, IDENTITY, NETWORK)
    assert (metadata.api_version, metadata.owner_uid) == ("2", "uid-of-network")
    assert (metadata.creator, metadata.principal_creator) == ("alice", "alice-herself")
    assert (metadata.principal_organization_id, metadata.principal_project_id) == (ORGANIZATION, PROJECT)
    assert (metadata.modifier, metadata.modified_at, metadata.finalizers) == (None, None, ())


def test_everything_that_was_asked_for_is_stored() -> None:
    created = World().create(
        create_request(
            description="a description",
            tags=(Tag("a", "1"), Tag("a", "2")),
            networking=Networking((GROUP_2, GROUP), True, ("10.0.0.5/24", "10.1.0.0/16")),
            user_data=b"#cloud-config\n",
            ssh_injection="none",
            provider_create_gates=("example.org/b", "example.org/a"),
        )
    )

    assert created.metadata.description == "a description"
    assert created.spec == ServerSpec(
        flavor_id=FLAVOR,
        image_id=IMAGE,
        networks=(NetworkAttachment(NETWORK, (AddressPair("10.0.0.0/24"), AddressPair("10.1.0.0/16"))),),
        tags=(Tag("a", "1"), Tag("a", "2")),
        security_group_ids=(GROUP_2, GROUP),
        public_ip=True,
        user_data=b"#cloud-config\n",
        ssh_injection=SSHInjection.NONE,
        provider_create_gates=("example.org/b", "example.org/a"),
    )


def test_c44_what_asks_for_nothing_is_not_stored() -> None:
    created = World().create(create_request(networking=Networking((), False, ()), user_data=b"", description=""))

    assert created.spec.security_group_ids is None
    assert created.spec.public_ip is None
    assert created.spec.networks[0].allowed_address_pairs is None
    assert created.spec.user_data is None
    assert created.metadata.description is None


def test_c11_the_same_create_in_two_empty_stores_gives_the_same_id() -> None:
    assert World().create().id == World().create().id == SERVER


def test_c10_c45_a_second_create_of_a_name_is_a_conflict_found_without_a_look_first() -> None:
    world = World()
    world.create()

    with pytest.raises(Conflict) as refusal:
        world.create(create_request(description="another"))

    assert refusal.value.field == "metadata.name"
    assert world.store.calls == ["create", "create"]
    assert world.stored.metadata.description is None


def test_a_name_is_taken_until_its_server_is_gone() -> None:
    world = World(server(deleted_at=DELETED_AT))

    with pytest.raises(Conflict):
        world.create()


def test_creating_checks_rights_in_the_order_of_the_contract() -> None:
    caller = StubCaller()

    World().create(create_request(networking=Networking((GROUP,))), caller)

    assert caller.checks == [
        Check("region:networks:v2", "read", ORGANIZATION, PROJECT),
        Check("region:servers", "create", ORGANIZATION, PROJECT),
        Check("region:securitygroups:v2", "read", ORGANIZATION, PROJECT),
    ]


BROKEN_CREATES: list[Any] = [
    # In the order of contract 1.5: each is refused by its own check although every later one is broken too.
    pytest.param("no network", NotFound, "spec.networkId", id="c03 step 1"),
    pytest.param("network not readable", Forbidden, "spec.networkId", id="c04 step 2"),
    pytest.param("network of another generation", NotFound, "spec.networkId", id="c05 step 3"),
    pytest.param("no right to create", Forbidden, None, id="c06 step 5"),
    pytest.param("contradicting SSH mode", Unprocessable, "spec.sshInjection", id="c25 step 6"),
    pytest.param("unknown user data", Unprocessable, "spec.userData", id="c21 step 7"),
    pytest.param("unknown authority", NotFound, "spec.sshCertificateAuthorityId", id="c13 step 8"),
    pytest.param("unknown group", NotFound, "spec.networking.securityGroups[0]", id="c22 step 9"),
    pytest.param("no region", NotFound, "spec.networkId", id="step 10, region"),
    pytest.param("unknown image", NotFound, "spec.imageId", id="c35 step 10, image"),
    pytest.param("image not ready", Unprocessable, "spec.imageId", id="c34 step 10, readiness"),
    pytest.param("unknown flavor", Unprocessable, "spec.flavorId", id="c33 step 10, flavor"),
    pytest.param("incompatible image", Unprocessable, "spec.imageId", id="c36 step 10, compatibility"),
    pytest.param("pinned-only flavor", Unprocessable, "spec.flavorId", id="c31 step 11"),
    pytest.param("gate listed twice", Unprocessable, "spec.providerCreateGates", id="g17 step 12"),
    pytest.param("no address", Unprocessable, "spec.networking.allowedSourceAddresses[0]", id="c42 step 13"),
    pytest.param("name taken", Conflict, "metadata.name", id="c10 step 14"),
]
FAULTS = [parameters.values[0] for parameters in BROKEN_CREATES]


@pytest.mark.parametrize(("first_fault", "rejection", "field"), BROKEN_CREATES)
def test_creating_is_checked_in_the_order_of_the_contract(
    first_fault: str, rejection: type[Rejection], field: str | None
) -> None:
    faults = FAULTS[FAULTS.index(first_fault) :]
    world, request, caller = _broken_create(faults)

    with pytest.raises(Rejection) as refusal:
        world.create(request, caller)

    assert (type(refusal.value), refusal.value.field) == (rejection, field)
    assert world.store.writes == []


@pytest.mark.parametrize(("only_fault", "rejection", "field"), BROKEN_CREATES)
def test_each_single_fault_of_a_create_is_refused(
    only_fault: str, rejection: type[Rejection], field: str | None
) -> None:
    world, request, caller = _broken_create([only_fault])

    with pytest.raises(rejection) as refusal:
        world.create(request, caller)

    assert refusal.value.field == field
    assert world.store.writes == []


def _broken_create(faults: Iterable[str]) -> tuple[World, ServerCreate, StubCaller]:
    faults = set(faults)
    world = World(server()) if "name taken" in faults else World()
    if "no region" in faults:
        world.directory.remove(region())
    world.cloud.offers.exported_images[:] = [
        image(
            state=ImageState.PENDING if "image not ready" in faults else ImageState.READY,
            architecture="aarch64" if "incompatible image" in faults else None,
        )
    ]
    world.cloud.offers.exported_flavors[:] = [flavor(architecture="x86_64", pinned_only="pinned-only flavor" in faults)]
    if "unknown image" in faults:
        world.cloud.offers.exported_images.clear()
    if "unknown flavor" in faults:
        world.cloud.offers.exported_flavors.clear()
    if "network of another generation" in faults:
        world.directory.put(network(api_version=None))
    if "no network" in faults:
        world.directory.remove(network())
    refused = {"network not readable": NETWORK_READ, "no right to create": SERVER_CREATE}
    mode, authority_id = None, OTHER_ID if "unknown authority" in faults else None
    if "contradicting SSH mode" in faults:
        mode = "none" if authority_id else "ca"
    request = create_request(
        ssh_injection=mode,
        ssh_certificate_authority_id=authority_id,
        user_data=b"echo hello" if "unknown user data" in faults else None,
        provider_create_gates=("example.org/a",) * (2 if "gate listed twice" in faults else 1),
        networking=Networking(
            security_group_ids=(OTHER_ID,) if "unknown group" in faults else (),
            allowed_source_addresses=("10.0.0.1",) if "no address" in faults else (),
        ),
    )
    return world, request, StubCaller(refused=[refused[fault] for fault in faults & set(refused)])


@pytest.mark.parametrize("api_version", [None, "1", ""])
def test_c05_a_network_of_another_generation_takes_no_server(api_version: str | None) -> None:
    world = World()
    world.directory.put(network(api_version=api_version))

    with pytest.raises(NotFound):
        world.create()


@pytest.mark.parametrize("missing", ["organization_id", "project_id"])
def test_a_network_without_a_scope_is_our_fault_and_not_the_callers(missing: str) -> None:
    world = World()
    world.directory.put(network(**{missing: None}))

    with pytest.raises(RuntimeError, match=NETWORK):
        world.create()


@pytest.mark.parametrize("group_network", [OTHER_NETWORK, None])
def test_c23_a_group_of_another_network_is_refused(group_network: str | None) -> None:
    world = World()
    world.directory.put(group(network_id=group_network))

    with pytest.raises(Unprocessable) as refusal:
        world.create(create_request(networking=Networking((GROUP,))))
    assert refusal.value.field == "spec.networking.securityGroups[0]"


def test_c35_the_image_of_another_organization_is_not_found() -> None:
    world = World()
    world.cloud.offers.exported_images[:] = [image(organization_id=OTHER_ORGANIZATION)]

    with pytest.raises(NotFound):
        world.create()


def test_an_image_of_the_networks_organization_is_found_whoever_creates() -> None:
    world = World()
    world.cloud.offers.exported_images[:] = [image(organization_id=ORGANIZATION)]

    assert world.create(caller=StubCaller(organization_ids=[OTHER_ORGANIZATION])).spec.image_id == IMAGE


@pytest.mark.parametrize("provider", ["kubernetes", "simulated", ""])
def test_a_region_without_openstack_takes_no_server(provider: str) -> None:
    world = World()
    world.directory.put(region(provider=provider))

    with pytest.raises(InvalidRequest):
        world.create()
    assert world.cloud.journal == []


def test_a_network_without_a_region_takes_no_server() -> None:
    world = World()
    world.directory.put(network(region_id=None))

    with pytest.raises(NotFound):
        world.create()


def test_c15_a_certificate_authority_is_stored_with_the_mode_it_implies_and_the_user_data_as_sent() -> None:
    created = World().create(create_request(ssh_certificate_authority_id=AUTHORITY, user_data=b"#cloud-config\n"))

    assert (created.spec.ssh_certificate_authority_id, created.spec.ssh_injection) == (AUTHORITY, SSHInjection.CA)
    assert created.spec.user_data == b"#cloud-config\n"


GZIP = b"\x1f\x8b\x08\x00" + b"x" * 20


def test_c18_c19_gzip_is_for_servers_without_a_certificate_authority() -> None:
    assert World().create(create_request(user_data=GZIP)).spec.user_data == GZIP
    with pytest.raises(Unprocessable, match="gzip"):
        World().create(create_request(user_data=GZIP, ssh_certificate_authority_id=AUTHORITY))


def test_b72_user_data_must_fit_after_the_authority_was_added() -> None:
    fits_alone = b"#cloud-config\n" + b"#" * (NOVA_LIMIT * 3 // 4 - 100)

    assert World().create(create_request(user_data=fits_alone)).spec.user_data == fits_alone
    with pytest.raises(Unprocessable) as refusal:
        World().create(create_request(user_data=fits_alone, ssh_certificate_authority_id=AUTHORITY))
    assert refusal.value.field == "spec.userData"


def test_b46_a_refusal_by_the_stored_schema_is_unprocessable_and_says_why() -> None:
    world = World()
    world.store.fail("create", Refused("kubernetes", "spec.tags: too many"))

    with pytest.raises(Unprocessable, match=r"spec\.tags: too many"):
        world.create()


@pytest.mark.parametrize("error", [Denied, Unavailable, TimedOut])
@pytest.mark.parametrize("kind", [Network, SecurityGroup, Region])
def test_b37_a_failed_look_up_is_not_an_absence(kind: type, error: type[PortError]) -> None:
    world = World()
    world.directory.fail(kind, error("kubernetes", "it broke"))

    with pytest.raises(error):
        world.create(create_request(networking=Networking((GROUP,))))
    assert world.store.writes == []


@pytest.mark.parametrize("catalogue", ["images", "flavors"])
def test_b73_a_catalogue_that_fails_is_not_an_absence(catalogue: str) -> None:
    world = World()
    world.cloud.offers.fail(catalogue, TimedOut("glance", "it did not answer"))

    with pytest.raises(TimedOut):
        world.create()
    assert world.store.writes == []


# Read


def test_r01_r03_reading_needs_the_server_and_the_right() -> None:
    world = World(server())

    assert world.lifecycle.get(StubCaller(), SERVER) == world.stored
    with pytest.raises(NotFound):
        world.lifecycle.get(StubCaller(), OTHER_ID)
    with pytest.raises(Forbidden):
        world.lifecycle.get(StubCaller(refused=["region:servers read"]), SERVER)
    with pytest.raises(NotFound):
        World(server(api_version=None)).lifecycle.get(StubCaller(), SERVER)


# List


def test_r09_servers_come_by_id() -> None:
    assert World(server(server_id="b"), server(server_id="c"), server(server_id="a")).list() == ["a", "b", "c"]


def test_r12_no_servers_is_an_empty_list() -> None:
    assert World().list() == []


def test_r02_servers_of_the_other_generation_are_not_listed() -> None:
    assert World(server(), server(server_id="old", api_version=None)).list() == [SERVER]


def test_r10_a_server_the_caller_may_not_read_is_left_out() -> None:
    world = World(server(), server(server_id="other", project_id=OTHER_PROJECT))
    caller = StubCaller(scopes=[(ORGANIZATION, PROJECT)])

    assert world.list(caller) == [SERVER]
    assert set(caller.checks) == {
        Check("region:servers", "read", ORGANIZATION, PROJECT),
        Check("region:servers", "read", ORGANIZATION, OTHER_PROJECT),
    }


O1, O2, O3 = "organization-1", "organization-2", "organization-3"


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [
        pytest.param([], [], [O1, O2, O3], id="unrestricted"),
        pytest.param([], [O2], [O2], id="exactly the query"),
        pytest.param([], [O2, O3], [O2, O3], id="exactly the query, two"),
        pytest.param([O1], [], [O1], id="those of the caller"),
        pytest.param([O1, O3], [], [O1, O3], id="those of the caller, two"),
        pytest.param([O1, O2], [O2, O3], [O2], id="the intersection"),
        pytest.param([O1], [O2], [], id="r13 an empty intersection"),
    ],
)
def test_r13_organizations_are_restricted_to_the_callers_and_the_querys(
    own: list[str], asked: list[str], expected: list[str]
) -> None:
    world = World(*(server(server_id=id_, organization_id=id_) for id_ in (O1, O2, O3)))

    assert world.list(StubCaller(organization_ids=own), organization_ids=frozenset(asked)) == expected


def test_r13_an_empty_intersection_needs_no_look_into_the_store() -> None:
    world = World(server())

    world.list(StubCaller(organization_ids=[O1]), organization_ids=frozenset({O2}))

    assert world.store.calls == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["a", "b", "c"]),
        ({"project_ids": frozenset({"p1"})}, ["a", "b"]),
        ({"project_ids": frozenset({"p1", "p2"})}, ["a", "b", "c"]),
        ({"region_ids": frozenset({"r1"})}, ["a", "c"]),
        ({"region_ids": frozenset({"r9"})}, []),
        ({"network_ids": frozenset({"n2"})}, ["b", "c"]),
        ({"project_ids": frozenset({"p1"}), "region_ids": frozenset({"r1"})}, ["a"]),
        ({"network_ids": frozenset({"n2"}), "region_ids": frozenset({"r1"}), "project_ids": frozenset({"p1"})}, []),
    ],
)
def test_r11_values_of_one_field_widen_and_fields_narrow(query: dict[str, Any], expected: list[str]) -> None:
    world = World(
        server(server_id="a", project_id="p1", region_id="r1", network_id="n1"),
        server(server_id="b", project_id="p1", region_id="r2", network_id="n2"),
        server(server_id="c", project_id="p2", region_id="r1", network_id="n2"),
    )

    assert world.list(**query) == expected


def test_r14_r15_tags_select() -> None:
    world = World(server(spec(tags=(Tag("a", "1"), Tag("b", "2")))))

    assert world.list(tags=(Tag("a", "1"), Tag("b", "2"))) == [SERVER]
    assert world.list(tags=(Tag("a", "2"),)) == []


# Update

KNOWN_ONLY_TO_OTHERS = {"spec": {"volumes": [{"id": "v"}]}}
FULL = spec(
    networks=(NetworkAttachment(NETWORK, (AddressPair("10.0.0.0/24", "fa:16:3e:00:00:01"),)),),
    tags=(Tag("a", "1"),),
    security_group_ids=(GROUP,),
    public_ip=True,
    user_data=b"#cloud-config\n",
    provider_create_gates=("example.org/a",),
    pause=True,
)
FULL_REQUEST = update_request(
    tags=(Tag("a", "1"),),
    networking=Networking((GROUP,), True, ("10.0.0.0/24",)),
    user_data=b"#cloud-config\n",
    description="a description",
)


def full_server(**changes: Any) -> Server:
    made = server(
        FULL,
        ServerStatus(
            phase="Running",
            rebuild=RebuildMarker(IMAGE, "Succeeded"),
            provider_create_gates=(GateStatus("example.org/a", "True", None, "x", "y", "z"),),
        ),
        description="a description",
        **changes,
    )
    return replace(made, stored=KNOWN_ONLY_TO_OTHERS)


def test_u21_u18_an_update_replaces_what_it_may_and_clears_what_it_leaves_out() -> None:
    world = World(full_server())

    updated = world.update(update_request())

    assert updated == world.stored
    assert updated.spec == replace(
        FULL,
        networks=(NetworkAttachment(NETWORK),),
        tags=(),
        security_group_ids=None,
        public_ip=None,
        user_data=None,
    )
    assert updated.metadata.description is None


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (update_request(tags=(Tag("b", "2"),)), {"tags": (Tag("b", "2"),)}),
        (update_request(networking=Networking((GROUP_2, GROUP))), {"security_group_ids": (GROUP_2, GROUP)}),
        (update_request(networking=Networking((), True)), {"public_ip": True}),
        (
            update_request(networking=Networking((), False, ("10.0.0.9/8",))),
            {"networks": (NetworkAttachment(NETWORK, (AddressPair("10.0.0.0/8"),)),)},
        ),
        (update_request(user_data=b"#!/bin/sh\n"), {"user_data": b"#!/bin/sh\n"}),
    ],
)
def test_u16_each_member_of_the_body_is_stored(request_: ServerUpdate, expected: dict[str, Any]) -> None:
    assert World(server()).update(request_).spec == spec(**expected)


def test_the_description_is_replaced() -> None:
    assert World(server()).update(update_request(description="new")).metadata.description == "new"


def test_u22_the_creator_stays_and_the_modifier_is_written() -> None:
    world = World(full_server())

    metadata = world.update(update_request()).metadata

    assert (metadata.creator, metadata.principal_creator) == ("alice", "alice-herself")
    assert (metadata.principal_organization_id, metadata.principal_project_id) == (ORGANIZATION, PROJECT)
    assert (metadata.modifier, metadata.principal_modifier) == ("bob", "bob-himself")
    assert metadata.modified_at == NOW_IN_SECONDS


def test_g12_an_update_leaves_gates_status_and_unknown_stored_things_alone() -> None:
    before = full_server(finalizers=("unikorn", "another"))
    world = World(before)

    updated = world.update(update_request())

    assert updated.status == before.status
    assert updated.spec.provider_create_gates == ("example.org/a",)
    assert updated.spec.pause is True
    assert updated.stored == KNOWN_ONLY_TO_OTHERS
    assert updated.metadata.finalizers == ("unikorn", "another")
    assert (updated.metadata.owner_uid, updated.metadata.api_version) == ("uid-of-network", "2")


def test_u13_authority_and_mode_are_kept() -> None:
    pinned = spec(ssh_injection="ca", ssh_certificate_authority_id=AUTHORITY, infrastructure_ref="a-host")

    updated = World(server(pinned)).update(update_request(tags=(Tag("a", "1"),)))

    assert updated.spec == replace(pinned, tags=(Tag("a", "1"),))


@pytest.mark.parametrize(
    ("authority_id", "mode"), [(None, SSHInjection.IDENTITY_KEYPAIR), (AUTHORITY, SSHInjection.CA)]
)
def test_r21_a_legacy_server_gains_its_mode_with_its_first_update(authority_id: str | None, mode: str) -> None:
    legacy = spec(ssh_injection=None, ssh_certificate_authority_id=authority_id)

    assert World(server(legacy)).update(update_request(tags=(Tag("a", "1"),))).spec.ssh_injection == mode


def test_b21_an_update_that_says_what_is_stored_writes_nothing() -> None:
    world = World(full_server())

    for _ in range(3):
        assert world.update(FULL_REQUEST) == full_server_as_stored(world)

    assert world.store.writes == []


def full_server_as_stored(world: World) -> Server:
    return replace(full_server(), metadata=world.stored.metadata)


@pytest.mark.parametrize(
    "stored",
    [
        spec(),
        spec(security_group_ids=(), public_ip=False, user_data=b""),
        spec(networks=(NetworkAttachment(NETWORK, ()),)),
        spec(ssh_injection=None),
    ],
)
@pytest.mark.parametrize("description", [None, ""])
def test_b21_every_way_of_storing_nothing_equals_leaving_it_out(stored: ServerSpec, description: str | None) -> None:
    world = World(server(stored, description=description))

    world.update(update_request(user_data=b"", description=""))

    assert world.store.writes == []


def test_the_same_prefixes_keep_the_mac_addresses_stored_beside_them() -> None:
    world = World(full_server())

    updated = world.update(replace(FULL_REQUEST, tags=()))

    assert updated.spec.networks == FULL.networks


def test_another_prefix_keeps_the_mac_addresses_of_those_that_stay() -> None:
    world = World(full_server())

    updated = world.update(replace(FULL_REQUEST, networking=Networking((GROUP,), True, ("10.1.0.0/16", "10.0.0.0/24"))))

    assert updated.spec.networks[0].allowed_address_pairs == (
        AddressPair("10.1.0.0/16"),
        AddressPair("10.0.0.0/24", "fa:16:3e:00:00:01"),
    )


def test_b21_a_prefix_stored_with_two_mac_addresses_survives_its_own_read() -> None:
    pairs = (AddressPair("10.0.0.0/24", "fa:16:3e:00:00:01"), AddressPair("10.0.0.0/24", "fa:16:3e:00:00:02"))
    world = World(server(spec(networks=(NetworkAttachment(NETWORK, pairs),))))

    world.update(update_request(networking=Networking((), False, ("10.0.0.0/24", "10.0.0.0/24"))))

    assert world.store.writes == []


def test_a_prefix_stored_with_host_bits_keeps_how_it_is_stored() -> None:
    stored = AddressPair("10.0.0.5/24", "fa:16:3e:00:00:01")
    world = World(server(spec(networks=(NetworkAttachment(NETWORK, (stored,)),))))

    world.update(update_request(networking=Networking((), False, ("10.0.0.0/24",))))

    assert world.store.writes == []


def test_further_networks_of_a_server_are_kept() -> None:
    second = NetworkAttachment(OTHER_NETWORK, (AddressPair("10.9.0.0/16", "fa:16:3e:00:00:09"),))
    world = World(server(spec(networks=(NetworkAttachment(NETWORK), second))))

    updated = world.update(update_request(tags=(Tag("a", "1"),)))

    assert updated.spec.networks == (NetworkAttachment(NETWORK), second)


def test_a_server_stored_without_a_network_can_be_updated() -> None:
    World(server(spec(networks=()))).update(update_request(tags=(Tag("a", "1"),)))


BROKEN_UPDATES: list[Any] = [
    # In the order of contract 1.6: each is refused by its own check although every later one is broken too.
    pytest.param("no server", NotFound, None, "does not exist", id="u01 step 1"),
    pytest.param("not readable", Forbidden, None, "^read on", id="step 1, read"),
    pytest.param("of another generation", NotFound, None, "version of the API", id="step 1, generation"),
    pytest.param("no right to update", Forbidden, None, "^update on", id="u02 step 2"),
    pytest.param("being deleted", InvalidRequest, None, "being deleted", id="u03 step 3"),
    pytest.param("another name", Unprocessable, "metadata.name", "name is immutable", id="u05 step 4"),
    pytest.param("another flavor", Unprocessable, "spec.flavorId", "flavor is immutable", id="u06 step 5"),
    pytest.param(
        "foreign group", Unprocessable, "spec.networking.securityGroups[0]", "another network", id="u19 step 6"
    ),
    pytest.param("no network", NotFound, None, "network", id="u04 step 7"),
    pytest.param("another image", NotFound, "spec.imageId", "does not exist", id="u11 step 8"),
    pytest.param("unknown user data", Unprocessable, "spec.userData", "cloud-init", id="u14 step 9"),
    pytest.param("no address", Unprocessable, "spec.networking.allowedSourceAddresses[0]", "prefix", id="step 10"),
]
UPDATE_FAULTS = [parameters.values[0] for parameters in BROKEN_UPDATES]


@pytest.mark.parametrize(("first_fault", "rejection", "field", "reason"), BROKEN_UPDATES)
def test_updating_is_checked_in_the_order_of_the_contract(
    first_fault: str, rejection: type[Rejection], field: str | None, reason: str
) -> None:
    world, request, caller = _broken_update(UPDATE_FAULTS[UPDATE_FAULTS.index(first_fault) :])

    with pytest.raises(Rejection, match=reason) as refusal:
        world.update(request, caller)

    assert (type(refusal.value), refusal.value.field) == (rejection, field)
    assert world.store.writes == []


@pytest.mark.parametrize(("only_fault", "rejection", "field", "reason"), BROKEN_UPDATES)
def test_each_single_fault_of_an_update_is_refused(
    only_fault: str, rejection: type[Rejection], field: str | None, reason: str
) -> None:
    world, request, caller = _broken_update([only_fault])

    with pytest.raises(rejection, match=reason) as refusal:
        world.update(request, caller)

    assert refusal.value.field == field
    assert world.store.writes == []


def _broken_update(faults: Iterable[str]) -> tuple[World, ServerUpdate, StubCaller]:
    faults = set(faults)
    stored = server(
        api_version=None if "of another generation" in faults else "2",
        deleted_at=DELETED_AT if "being deleted" in faults else None,
    )
    world = World() if "no server" in faults else World(stored)
    world.directory.put(group(id=OTHER_ID, network_id=OTHER_NETWORK))
    if "no network" in faults:
        world.directory.remove(network())
    refused = {"not readable": "region:servers read", "no right to update": "region:servers update"}
    request = update_request(
        name="another" if "another name" in faults else NAME,
        flavor_id=OTHER_ID if "another flavor" in faults else FLAVOR,
        image_id=OTHER_ID if "another image" in faults else IMAGE,
        user_data=b"echo hello" if "unknown user data" in faults else None,
        networking=Networking(
            security_group_ids=(OTHER_ID,) if "foreign group" in faults else (),
            allowed_source_addresses=("10.0.0.1",) if "no address" in faults else (),
        ),
    )
    return world, request, StubCaller(refused=[refused[fault] for fault in faults & set(refused)])


def test_u15_user_data_stored_before_the_rules_may_be_sent_again() -> None:
    world = World(server(spec(user_data=b"echo hello")))

    updated = world.update(update_request(user_data=b"echo hello", tags=(Tag("a", "1"),)))

    assert updated.spec.user_data == b"echo hello"


@pytest.mark.parametrize("wanted", [None, b""])
def test_u18_user_data_that_is_left_out_is_cleared_whatever_was_stored(wanted: bytes | None) -> None:
    world = World(server(spec(user_data=b"echo hello")))

    assert world.update(update_request(user_data=wanted)).spec.user_data is None


WITH_AUTHORITY = spec(ssh_injection="ca", ssh_certificate_authority_id=AUTHORITY, user_data=b"#!/bin/sh\n")


def test_u17_changed_user_data_has_to_fit_the_servers_own_authority() -> None:
    with pytest.raises(Unprocessable, match="gzip"):
        World(server(WITH_AUTHORITY)).update(update_request(user_data=GZIP))
    with pytest.raises(Unprocessable):
        World(server(WITH_AUTHORITY)).update(
            update_request(user_data=b"#cloud-config\n" + b"#" * (NOVA_LIMIT * 3 // 4 - 100))
        )
    assert World(server(spec())).update(update_request(user_data=GZIP)).spec.user_data == GZIP


def test_changed_user_data_of_a_server_without_an_authority_needs_no_look_up_of_one() -> None:
    world = World(server())

    world.update(update_request(user_data=b"#!/bin/sh\n"))

    assert not any(call.startswith("SSHCertificateAuthority") for call in world.directory.calls)


def test_an_authority_that_is_gone_holds_up_no_update() -> None:
    world = World(server(WITH_AUTHORITY))
    world.directory.remove(authority())

    assert world.update(update_request(user_data=b"#cloud-config\n")).spec.user_data == b"#cloud-config\n"


def test_an_update_needs_the_right_to_read_the_network_and_its_groups() -> None:
    for refused in (NETWORK_READ, GROUP_READ):
        world = World(full_server())
        with pytest.raises(Forbidden):
            world.update(FULL_REQUEST, StubCaller(refused=[refused]))


def test_u05_the_case_of_a_name_counts() -> None:
    with pytest.raises(Unprocessable):
        World(server()).update(update_request(name=NAME.upper()))


def test_u07_b23_an_update_with_the_same_image_looks_nothing_up_in_the_cloud() -> None:
    world = World(full_server())

    world.update(update_request())

    assert world.cloud.journal == []
    assert not any(call.startswith("Region") for call in world.directory.calls)


def test_a_lost_race_is_tried_once_more_from_a_fresh_read() -> None:
    world = World(full_server())
    world.store.lose_race(lambda found: replace(found, spec=replace(found.spec, pause=False)))

    updated = world.update(update_request())

    assert updated.spec.tags == ()
    assert updated.spec.pause is False
    assert world.store.calls == ["get", "update", "get", "update"]


def test_a_race_lost_twice_is_a_conflict() -> None:
    world = World(full_server())
    world.store.lose_race()
    world.store.lose_race()

    with pytest.raises(Conflict, match="somebody else"):
        world.update(update_request())
    assert world.store.calls == ["get", "update", "get", "update"]
    assert world.store.writes == []


def test_the_second_try_applies_every_check_again() -> None:
    world = World(full_server())
    world.store.lose_race(lambda found: replace(found, metadata=replace(found.metadata, deleted_at=DELETED_AT)))

    with pytest.raises(InvalidRequest, match="being deleted"):
        world.update(update_request())


def test_the_second_try_writes_nothing_when_the_other_wrote_the_same() -> None:
    world = World(full_server())
    world.store.lose_race(lambda found: replace(found, spec=spec(provider_create_gates=("example.org/a",), pause=True)))

    updated = world.update(update_request(description="a description"))

    assert world.store.writes == []
    assert updated == world.stored


def test_a_server_gone_before_the_write_is_not_found() -> None:
    world = World(full_server())
    world.store.fail("update", Missing("kubernetes", "servers not found"))

    with pytest.raises(NotFound):
        world.update(update_request())


def test_g13_b46_a_refusal_by_the_stored_schema_on_update_is_unprocessable() -> None:
    world = World(full_server())
    world.store.fail("update", Refused("kubernetes", "infrastructureRef is immutable"))

    with pytest.raises(Unprocessable, match="infrastructureRef is immutable"):
        world.update(update_request())


def test_b37_a_store_that_is_down_is_not_tried_again() -> None:
    world = World(full_server())
    world.store.fail("update", Unavailable("kubernetes", "it broke"))

    with pytest.raises(Unavailable):
        world.update(update_request())
    assert world.store.calls == ["get", "update"]


# Delete


def test_r19_deleting_asks_the_store_and_only_that() -> None:
    world = World(server())

    world.lifecycle.delete(StubCaller(), SERVER)

    assert world.stored.metadata.deleted_at is not None
    assert world.cloud.journal == []


def test_r19_deleting_again_is_accepted() -> None:
    world = World(server(deleted_at=DELETED_AT))

    world.lifecycle.delete(StubCaller(), SERVER)

    assert world.stored.metadata.deleted_at == DELETED_AT


@pytest.mark.parametrize("refused", ["region:servers read", "region:servers delete"])
def test_r17_deleting_needs_the_right_to_read_and_to_delete(refused: str) -> None:
    world = World(server())

    with pytest.raises(Forbidden):
        world.lifecycle.delete(StubCaller(refused=[refused]), SERVER)
    assert world.store.writes == []


def test_r18_a_server_that_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(NotFound):
        World().lifecycle.delete(StubCaller(), SERVER)


def test_r18_a_server_gone_meanwhile_is_not_found() -> None:
    world = World(server())
    world.store.fail("delete", Missing("kubernetes", "servers not found"))

    with pytest.raises(NotFound):
        world.lifecycle.delete(StubCaller(), SERVER)


def test_a_server_of_the_other_generation_cannot_be_deleted() -> None:
    world = World(server(api_version=None))

    with pytest.raises(NotFound):
        world.lifecycle.delete(StubCaller(), SERVER)
    assert world.store.writes == []


def test_a_race_lost_in_the_store_never_reaches_the_caller_as_such() -> None:
    world = World(full_server())
    world.store.fail("update", StateConflict("kubernetes", "modified"))
    world.store.fail("update", StateConflict("kubernetes", "modified"))

    with pytest.raises(Conflict) as refusal:
        world.update(update_request())
    assert "kubernetes" not in str(refusal.value)


def test_an_unused_kind_of_the_directory_is_not_looked_up() -> None:
    world = World()
    world.directory.fail(Identity, Unavailable("kubernetes", "it broke"))

    world.create()

    assert world.directory.calls == [f"Network {NETWORK}", f"Region {REGION}"]


# Another image


RUNNING = ServerStatus(provisioned_at=EARLIER)
SETTLED = available(RUNNING, Reason.PROVISIONED, "done", EARLIER)


def test_u08_another_image_reads_as_provisioning_at_once_and_not_only_after_the_controller_looked() -> None:
    world = World(server(status=SETTLED))
    world.cloud.offers.exported_images.append(image(id=OTHER_ID))

    updated = world.update(update_request(image_id=OTHER_ID))

    assert updated.spec.image_id == OTHER_ID
    assert updated.status.rebuild == RebuildMarker(OTHER_ID, "Initiated")
    assert updated == world.stored
    assert provisioning_status(updated) == "provisioning"


def test_b22_another_image_before_there_is_an_instance_is_no_rebuild() -> None:
    world = World(server())
    world.cloud.offers.exported_images.append(image(id=OTHER_ID))

    assert world.update(update_request(image_id=OTHER_ID)).status.rebuild is None


def test_b22_another_image_before_the_first_boot_reads_as_provisioning_at_once() -> None:
    """The pass that created the instance has ended with success, and the instance has the old image."""
    building = available(ServerStatus(phase="Building", scheduled_at=EARLIER), Reason.PROVISIONED, "done", EARLIER)
    world = World(server(status=building))
    world.cloud.offers.exported_images.append(image(id=OTHER_ID))

    assert provisioning_status(world.update(update_request(image_id=OTHER_ID))) == "provisioning"


@pytest.mark.parametrize("error", [StateConflict("kubernetes", "changed"), Unavailable("kubernetes", "down")])
def test_another_image_is_accepted_although_its_intent_could_not_be_recorded(error: PortError) -> None:
    world = World(server(status=SETTLED))
    world.cloud.offers.exported_images.append(image(id=OTHER_ID))
    world.store.fail("patch_status", error)

    assert world.update(update_request(image_id=OTHER_ID)).spec.image_id == OTHER_ID
    assert world.stored.status == SETTLED


def test_an_update_that_keeps_the_image_records_no_rebuild() -> None:
    world = World(server(status=SETTLED))

    assert world.update(update_request(tags=(Tag("a", "1"),))).status.rebuild is None
