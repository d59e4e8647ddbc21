"""Holding on to what a server uses (contract 4.10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server_api.servers import reference_edges
from server_api.servers.model import NetworkAttachment, Server
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.ports import Missing, ReferentKind, StateConflict, Unavailable
from tests.doubles.references import InMemoryReferences
from tests.unit.servers.builders import (
    AUTHORITY,
    GROUP,
    GROUP_2,
    IDENTITY,
    NETWORK,
    OTHER_ID,
    OTHER_NETWORK,
    SERVER,
    server,
    spec,
)

NETWORKS, GROUPS, AUTHORITIES = (
    ReferentKind.NETWORK,
    ReferentKind.SECURITY_GROUP,
    ReferentKind.SSH_CERTIFICATE_AUTHORITY,
)
EDGE = f"servers.region.unikorn-cloud.org/{SERVER}"
FOREIGN = "servers.region.unikorn-cloud.org/another"


def using_all() -> Server:
    return server(
        spec(
            networks=(NetworkAttachment(NETWORK), NetworkAttachment(OTHER_NETWORK)),
            security_group_ids=(GROUP, GROUP_2),
            ssh_certificate_authority_id=AUTHORITY,
        )
    )


def all_there(*finalizers: str) -> InMemoryReferences:
    references = InMemoryReferences()
    for network_id in (NETWORK, OTHER_NETWORK):
        references.put(NETWORKS, network_id, IDENTITY, finalizers)
    for group_id in (GROUP, GROUP_2):
        references.put(GROUPS, group_id, IDENTITY, finalizers)
    references.put(AUTHORITIES, AUTHORITY, finalizers=finalizers)
    return references


def everything(references: InMemoryReferences) -> list[tuple[str, ...]]:
    return [
        references.finalizers(NETWORKS, NETWORK),
        references.finalizers(NETWORKS, OTHER_NETWORK),
        references.finalizers(GROUPS, GROUP),
        references.finalizers(GROUPS, GROUP_2),
        references.finalizers(AUTHORITIES, AUTHORITY),
    ]


def test_all_that_the_spec_names_is_held_and_other_finalizers_stay() -> None:
    references = all_there("unikorn", FOREIGN)

    reference_edges.hold(references, using_all())

    assert everything(references) == [("unikorn", FOREIGN, EDGE)] * 5


def test_what_is_held_already_is_not_written_again() -> None:
    references = all_there(EDGE)

    reference_edges.hold(references, using_all())

    assert references.journal == []


def test_what_the_spec_does_not_name_is_not_held() -> None:
    references = all_there()

    reference_edges.hold(references, server())

    assert references.journal == [f"hold networks {NETWORK}"]


@pytest.mark.parametrize(
    ("used", "what"),
    [
        (spec(networks=(NetworkAttachment(OTHER_ID),)), f"networks {OTHER_ID}"),
        (spec(security_group_ids=(OTHER_ID,)), f"securitygroups {OTHER_ID}"),
        # A group's ID is no network's: kinds are not mixed up.
        (spec(networks=(NetworkAttachment(GROUP),)), f"networks {GROUP}"),
    ],
)
def test_k14_what_is_not_under_the_identity_is_an_error(used: object, what: str) -> None:
    references = all_there()
    references.put(GROUPS, OTHER_ID, "another-identity")
    references.put(NETWORKS, OTHER_ID, "another-identity")

    with pytest.raises(Stop, match=what) as stop:
        reference_edges.hold(references, server(used))  # type: ignore[arg-type]

    assert stop.value.outcome is Outcome.ERROR
    assert references.journal == []


def test_a_certificate_authority_that_is_gone_is_missing() -> None:
    references = all_there()
    references.remove(AUTHORITIES, AUTHORITY)

    with pytest.raises(Missing):
        reference_edges.hold(references, using_all())


def test_a_faster_writer_is_a_conflict() -> None:
    references = all_there()
    references.fail("hold", StateConflict("kubernetes", "the object has been modified"))

    with pytest.raises(StateConflict):
        reference_edges.hold(references, using_all())


def test_networks_and_groups_no_longer_used_are_let_go() -> None:
    references = all_there(FOREIGN, EDGE)

    reference_edges.release_unused(references, server(spec(security_group_ids=(GROUP_2,))))

    assert everything(references) == [
        (FOREIGN, EDGE),
        (FOREIGN,),
        (FOREIGN,),
        (FOREIGN, EDGE),
        (FOREIGN, EDGE),
    ]


def test_the_certificate_authority_in_use_stays_held_after_a_pass() -> None:
    references = all_there(EDGE)

    reference_edges.release_unused(references, using_all())

    assert references.journal == []


def test_what_was_never_held_is_not_written_when_letting_go() -> None:
    references = all_there(FOREIGN)

    reference_edges.release_unused(references, server(spec(networks=())))
    reference_edges.release_all(references, using_all())

    assert references.journal == []


def test_everything_is_let_go_in_the_end() -> None:
    references = all_there(FOREIGN, EDGE)

    reference_edges.release_all(references, using_all())

    assert everything(references) == [(FOREIGN,)] * 5


def test_what_the_spec_no_longer_names_is_let_go_in_the_end_too() -> None:
    references = all_there(EDGE)

    reference_edges.release_all(references, server(spec(networks=())))

    assert everything(references) == [(), (), (), (), (EDGE,)]


def test_a_certificate_authority_that_is_gone_holds_up_no_deletion() -> None:
    references = all_there(EDGE)
    references.remove(AUTHORITIES, AUTHORITY)

    reference_edges.release_all(references, using_all())

    assert references.finalizers(NETWORKS, NETWORK) == ()


@pytest.mark.parametrize("release", [reference_edges.release_unused, reference_edges.release_all])
def test_a_faster_writer_is_a_conflict_when_letting_go(release: object) -> None:
    references = all_there(EDGE)
    references.fail("release", StateConflict("kubernetes", "the object has been modified"))

    with pytest.raises(StateConflict):
        release(references, server(spec(networks=())))  # type: ignore[operator]


@pytest.mark.parametrize("identity_id", [None, "another-identity"])
def test_objects_of_another_identity_are_left_alone(identity_id: str | None) -> None:
    references = all_there(EDGE)

    reference_edges.release_all(references, server(identity_id=identity_id))

    assert references.journal == []


@pytest.mark.parametrize("step", [reference_edges.hold, reference_edges.release_all])
def test_a_server_without_an_authority_needs_no_look_at_one(step: Callable[[InMemoryReferences, Server], None]) -> None:
    references = all_there()
    references.fail("ssh_certificate_authority", Unavailable("kubernetes", "it broke"))

    step(references, server())
