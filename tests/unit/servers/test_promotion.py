"""What makes a server of v1 one of v2, and everything that stands in the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_api.servers.model import NetworkAttachment, RebuildMarker, Server, ServerStatus
from server_api.servers.promotion import (
    Promotion,
    Refusal,
    RefusalReason,
    Surroundings,
    image_refusal,
    is_done,
    network_of,
    plan,
)
from tests.unit.servers.builders import (
    AUTHORITY,
    GROUP,
    GROUP_2,
    IMAGE,
    NETWORK,
    NOW,
    OTHER_ID,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    authority,
    group,
    instance,
    metadata,
    network,
    region,
    server,
    spec,
)

LEGACY = "abcdef01-2345-4678-9abc-def012345678"


def legacy(of_spec: Any = None, **changes: Any) -> Server:
    """A server as v1 stores it: a random ID, none of what only v2 has."""
    labels = {"network_id": None, "api_version": None} | changes
    return server(of_spec or spec(ssh_injection=None), server_id=LEGACY, **labels)


def around(**changes: Any) -> Surroundings:
    return replace(Surroundings(region=region(), network=network()), **changes)


def test_a_server_of_v1_gets_labels_and_its_ssh_mode_and_keeps_everything_else() -> None:
    before = legacy(spec(ssh_injection=None, user_data=b"echo older than the rules", public_ip=False))
    promotion = plan(before, around())
    assert isinstance(promotion, Promotion)
    assert promotion.server == replace(
        before,
        metadata=replace(before.metadata, network_id=NETWORK, api_version="2"),
        spec=replace(before.spec, ssh_injection="identityKeypair"),
    )
    assert promotion.changes == ("api-version label", "network-id label", "sshInjection: identityKeypair")
    assert is_done(promotion.server)
    assert not is_done(before)


def test_a_server_without_an_owner_becomes_its_networks() -> None:
    promotion = plan(legacy(owner_uid=None), around())
    assert isinstance(promotion, Promotion)
    assert promotion.server.metadata.owner_uid == network().uid
    assert "owner reference" in promotion.changes


@pytest.mark.parametrize(
    ("stored", "mode"),
    [
        (spec(ssh_injection=None), "identityKeypair"),
        (spec(ssh_injection="none"), "none"),
        (spec(ssh_injection=None, ssh_certificate_authority_id=AUTHORITY), "ca"),
        (spec(ssh_injection="none", infrastructure_ref="host-1"), "none"),
    ],
)
def test_the_mode_is_that_which_applied_before(stored: Any, mode: str) -> None:
    promotion = plan(legacy(stored), around(authority=authority()))
    assert isinstance(promotion, Promotion)
    assert promotion.server.spec.ssh_injection == mode


def test_groups_of_the_same_network_are_no_obstacle() -> None:
    stored = legacy(spec(ssh_injection=None, security_group_ids=(GROUP, GROUP_2, GROUP)))
    groups = {GROUP: group(), GROUP_2: group(id=GROUP_2)}
    assert isinstance(plan(stored, around(groups=groups)), Promotion)


def test_what_somebody_began_by_hand_is_completed() -> None:
    promotion = plan(server(server_id=LEGACY, network_id=None), around())
    assert isinstance(promotion, Promotion)
    assert promotion.changes == ("network-id label",)


WITH_GROUP = legacy(spec(ssh_injection=None, security_group_ids=(GROUP,)))
WITH_AUTHORITY = legacy(spec(ssh_injection=None, ssh_certificate_authority_id=AUTHORITY))
ON_TWO = (NetworkAttachment(NETWORK), NetworkAttachment(OTHER_NETWORK))

REFUSALS: dict[str, tuple[Server, Surroundings, RefusalReason]] = {
    "being deleted": (legacy(deleted_at=NOW), around(), RefusalReason.BEING_DELETED),
    "version of another kind": (legacy(api_version="3"), around(), RefusalReason.UNKNOWN_API_VERSION),
    "no name": (legacy(name=""), around(), RefusalReason.MISSING_LABEL),
    "no organization": (legacy(organization_id=""), around(), RefusalReason.MISSING_LABEL),
    "no project": (legacy(project_id=""), around(), RefusalReason.MISSING_LABEL),
    "no region": (legacy(region_id=None), around(), RefusalReason.MISSING_LABEL),
    "no identity": (legacy(identity_id=None), around(), RefusalReason.MISSING_LABEL),
    "no image": (legacy(spec(image_id=None)), around(), RefusalReason.INCOMPLETE_SPEC),
    "no flavor": (legacy(spec(flavor_id="")), around(), RefusalReason.INCOMPLETE_SPEC),
    "region gone": (legacy(), around(region=None), RefusalReason.REGION_WITHOUT_SERVERS),
    "region of another provider": (
        legacy(),
        around(region=region(provider="simulated")),
        RefusalReason.REGION_WITHOUT_SERVERS,
    ),
    "no network": (legacy(spec(networks=())), around(), RefusalReason.NOT_ONE_NETWORK),
    "network without an ID": (
        legacy(spec(networks=(NetworkAttachment(""),))),
        around(),
        RefusalReason.NOT_ONE_NETWORK,
    ),
    "two networks": (legacy(spec(networks=ON_TWO)), around(), RefusalReason.NOT_ONE_NETWORK),
    "network gone": (legacy(), around(network=None), RefusalReason.NETWORK_MISSING),
    "network of v1": (legacy(), around(network=network(api_version=None)), RefusalReason.NETWORK_NOT_V2),
    "network of another project": (
        legacy(),
        around(network=network(project_id=OTHER_PROJECT)),
        RefusalReason.NETWORK_OF_ANOTHER_PROJECT,
    ),
    "network of another organization": (
        legacy(),
        around(network=network(organization_id=OTHER_ORGANIZATION)),
        RefusalReason.NETWORK_OF_ANOTHER_PROJECT,
    ),
    "network in another cloud project": (
        legacy(),
        around(network=network(identity_id=OTHER_ID)),
        RefusalReason.NETWORK_OF_ANOTHER_IDENTITY,
    ),
    "network in another region": (
        legacy(),
        around(network=network(region_id=OTHER_ID)),
        RefusalReason.NETWORK_OF_ANOTHER_IDENTITY,
    ),
    "labelled with another network": (legacy(network_id=OTHER_NETWORK), around(), RefusalReason.NETWORK_CHANGED),
    "owned by another network": (legacy(owner_uid="uid-of-another"), around(), RefusalReason.NETWORK_CHANGED),
    "name taken": (legacy(), around(namesakes=(OTHER_ID,)), RefusalReason.NAME_TAKEN),
    "group gone": (WITH_GROUP, around(), RefusalReason.GROUP_MISSING),
    "group of v1": (WITH_GROUP, around(groups={GROUP: group(api_version=None)}), RefusalReason.GROUP_NOT_V2),
    "group of another network": (
        WITH_GROUP,
        around(groups={GROUP: group(network_id=OTHER_NETWORK)}),
        RefusalReason.GROUP_OF_ANOTHER_NETWORK,
    ),
    "pinned, with the key pair": (
        legacy(spec(ssh_injection=None, infrastructure_ref="host-1")),
        around(),
        RefusalReason.SSH_ACCESS,
    ),
    "mode of another kind": (legacy(spec(ssh_injection="vault")), around(), RefusalReason.SSH_ACCESS),
    "mode ca without an authority": (legacy(spec(ssh_injection="ca")), around(), RefusalReason.SSH_ACCESS),
    "authority gone": (WITH_AUTHORITY, around(), RefusalReason.SSH_ACCESS),
    "authority of v1": (WITH_AUTHORITY, around(authority=authority(api_version=None)), RefusalReason.SSH_ACCESS),
    "authority of another project": (
        WITH_AUTHORITY,
        around(authority=authority(project_id=OTHER_PROJECT)),
        RefusalReason.SSH_ACCESS,
    ),
}


@pytest.mark.parametrize(("stored", "surroundings", "reason"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_v2_cannot_express_is_refused(stored: Server, surroundings: Surroundings, reason: RefusalReason) -> None:
    refusal = plan(stored, surroundings)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is reason
    assert refusal.detail


def test_a_refusal_names_what_to_look_at() -> None:
    both = plan(legacy(identity_id=None, region_id=None), around())
    assert isinstance(both, Refusal)
    assert both.detail == "it lacks labels: region-id, identity-id"
    taken = plan(legacy(), around(namesakes=(OTHER_ID,)))
    assert isinstance(taken, Refusal)
    assert OTHER_ID in taken.detail


def test_every_reason_of_the_rule_has_a_case() -> None:
    covered = {reason for _, _, reason in REFUSALS.values()}
    assert set(RefusalReason) - covered == {RefusalReason.IMAGE_DIFFERS, RefusalReason.STORED_SCHEMA}


def test_an_instance_that_runs_another_image_than_stored_is_refused() -> None:
    """As a v2 server it would be rebuilt to the stored one, which wipes its disk."""
    refusal = image_refusal(legacy(), instance(image_id=OTHER_ID))
    assert refusal is not None
    assert refusal.reason is RefusalReason.IMAGE_DIFFERS
    assert OTHER_ID in refusal.detail
    assert IMAGE in refusal.detail


@pytest.mark.parametrize("running", [None, instance(), instance(image_id=None)])
def test_the_stored_image_or_none_that_can_be_read_is_no_obstacle(running: Any) -> None:
    assert image_refusal(legacy(), running) is None


def test_a_rebuild_under_way_explains_the_difference() -> None:
    status = ServerStatus(rebuild=RebuildMarker(IMAGE, "Rebuilding"))
    assert image_refusal(replace(legacy(), status=status), instance(image_id=OTHER_ID)) is None


@pytest.mark.parametrize(
    ("networks", "expected"),
    [((NetworkAttachment(NETWORK),), NETWORK), ((), None), (ON_TWO, None), ((NetworkAttachment(""),), None)],
)
def test_the_network_of_a_server(networks: Any, expected: str | None) -> None:
    assert network_of(legacy(spec(networks=networks))) == expected


@pytest.mark.parametrize("missing", ["api_version", "network_id", "owner_uid"])
def test_a_server_is_done_when_v2_can_address_it_and_its_network_owns_it(missing: str) -> None:
    assert is_done(server())
    assert not is_done(replace(server(), metadata=metadata(**{missing: None})))
