"""What must hold whatever happens: checked on the bench after every step, and once more at the end."""

from __future__ import annotations

from typing import Any

from server_api.servers import naming
from server_api.servers.finalizers import reference_edge
from server_api.servers.model import ConditionType, Reason, Server
from server_api.store import kinds
from tests.api.lifecycle_bench import LifecycleBench, is_strange
from tests.api.lifecycle_expectations import SLOTS, Expected, encoded
from tests.api.world import NAMESPACE
from tests.doubles.programmable_nova import SOFT_DELETED

_SETTLED = frozenset({"provisioned", "error"})


def check(bench: LifecycleBench) -> None:
    """Fail unless everything is as it must always be."""
    try:
        _check(bench)
    except BaseException:
        bench.broken = True
        raise


def _check(bench: LifecycleBench) -> None:
    stored = bench.stored()
    documents = bench.listed()
    _nothing_wrong_happened(bench)
    _every_server_is_listed(bench, stored, documents)
    _one_instance_each(bench)
    _one_rebuild_for_each_wish(bench)
    _nothing_is_left_of_what_is_gone(bench, stored)
    for document in documents:
        known = bench.expected[document["metadata"]["id"]]
        _read_is_of_that_server(bench, known, document)
        _provisioned_is_true(bench, known, document)
        _once_launched_stays_launched(known, stored[known.slot.server_id])


def check_settled(bench: LifecycleBench) -> None:
    """Fail unless every server has come to an end that is true, once nothing fails any more."""
    check(bench)
    for document in bench.listed():
        known = bench.expected[document["metadata"]["id"]]
        state = document["metadata"]["provisioningStatus"]
        assert not known.deleted, f"{known.slot} is not deleted: {_available(bench, known)}"
        assert state in _SETTLED, f"{known.slot} is {state} for ever: {_available(bench, known)}"
        machines = bench.instances(known.slot.server_id)
        if state == "provisioned":
            assert machines, f"{known.slot} is provisioned without an instance"
            # Unseen: somebody else rebuilt it, which wakes nobody (contract 7.1); the next pass, whatever for, sees it.
            true = machines[0].image_id == known.image_id or known.unseen
            assert true, f"{known.slot} is provisioned from another image"
            _network_is_as_wanted(bench, known, document)


def check_gone(bench: LifecycleBench) -> None:
    """Fail unless nothing at all is left, once all servers were deleted."""
    check(bench)
    assert bench.listed() == []
    assert [machine for machine in bench.cloud.nova.live() if machine.status != SOFT_DELETED] == []
    assert bench.cloud.neutron.ports == {}
    assert bench.cloud.neutron.floating == {}
    for kind in (kinds.NETWORK, kinds.SECURITY_GROUP):
        for item in bench.world.client.list(kind, NAMESPACE).items:
            edges = {reference_edge(slot.server_id) for slot in SLOTS} & {*item["metadata"].get("finalizers", ())}
            assert not edges, f"{kind.plural} {item['metadata']['name']} is still held by {edges}"


def _nothing_wrong_happened(bench: LifecycleBench) -> None:
    assert not bench.ledger.wrong, bench.ledger.wrong


def _every_server_is_listed(bench: LifecycleBench, stored: dict[str, Server], documents: list[dict[str, Any]]) -> None:
    ids = [document["metadata"]["id"] for document in documents]
    assert ids == sorted(stored), "the list is not what is stored"
    for server_id, known in bench.expected.items():
        assert known.deleted or server_id in stored, f"{known.slot} is gone, and nobody deleted it"


def _one_instance_each(bench: LifecycleBench) -> None:
    for slot in SLOTS:
        machines = bench.instances(slot.server_id)
        assert len(machines) <= 1, f"{slot} has {len(machines)} instances"


def _one_rebuild_for_each_wish(bench: LifecycleBench) -> None:
    for (number, wish, image_id), times in bench.ledger.rebuilds.items():
        assert times <= 1, f"server {number} was rebuilt {times} times to {image_id} for wish {wish}"


def _nothing_is_left_of_what_is_gone(bench: LifecycleBench, stored: dict[str, Server]) -> None:
    for machine in bench.cloud.nova.live():
        ours = machine.status != SOFT_DELETED
        assert not ours or machine.server_id in stored, f"{machine.id} outlives its server"
    names = {naming.cloud_port(server_id) for server_id in stored}
    for plug in bench.cloud.neutron.ports.values():
        assert plug.order.name in names, f"the port {plug.order.name} outlives its server"
    for floating in bench.cloud.neutron.floating.values():
        assert floating.port_id in bench.cloud.neutron.ports, f"the floating IP {floating.address} has no port"


def _read_is_of_that_server(bench: LifecycleBench, known: Expected, document: dict[str, Any]) -> None:
    metadata, spec, status = document["metadata"], document["spec"], document["status"]
    assert metadata["name"] == known.slot.name
    assert metadata["tags"] == [{"name": "mark", "value": known.tag}]
    assert spec["imageId"] == known.image_id
    assert spec.get("userData") == (encoded(known.user_data) if known.user_data else None)
    assert spec.get("networking", {}).get("publicIP", False) is known.public_ip
    assert status["networkId"] == known.slot.network_id
    assert ("remainingProviderCreateGates" in status) is (known.gates is not None)
    assert {*status.get("remainingProviderCreateGates", ())} <= {*(known.gates or ())}
    own = bench.cloud.neutron.addresses_of.get(naming.cloud_port(known.slot.server_id), set())
    shown = {status[name] for name in ("privateIP", "publicIP", "macAddress") if name in status}
    assert shown <= own, f"{known.slot} shows addresses of others: {shown - own}"


def _provisioned_is_true(bench: LifecycleBench, known: Expected, document: dict[str, Any]) -> None:
    if document["metadata"]["provisioningStatus"] != "provisioned" or known.unseen:
        # Unseen: somebody else changed the image, or the wish was not written down, and no pass has run since.
        return
    for machine in bench.instances(known.slot.server_id):
        assert machine.image_id == known.image_id, f"{known.slot} reads provisioned, and has image {machine.image_id}"
        ours = machine.task == "rebuilding" and not is_strange(bench.cloud.nova.last(machine))
        assert not ours, f"{known.slot} reads provisioned while it is being rebuilt"


def _once_launched_stays_launched(known: Expected, server: Server) -> None:
    known.told_launched = known.told_launched or server.status.provisioned_at is not None
    assert not known.told_launched or server.status.provisioned_at is not None, f"{known.slot} forgot its launch"


def _network_is_as_wanted(bench: LifecycleBench, known: Expected, document: dict[str, Any]) -> None:
    name = naming.cloud_port(known.slot.server_id)
    plug = next(plug for plug in bench.cloud.neutron.ports.values() if plug.order.name == name)
    addresses = [each.address for each in bench.cloud.neutron.floating_ips(plug.id)]
    assert document["status"].get("privateIP") == plug.private_ip, f"{known.slot} does not show its address"
    shown = [document["status"]["publicIP"]] if known.public_ip else []
    assert shown == addresses, f"{known.slot} shows the public addresses {shown} and has {addresses}"


def _available(bench: LifecycleBench, known: Expected) -> str:
    condition = bench.stored()[known.slot.server_id].status.condition(ConditionType.AVAILABLE)
    return f"{condition.reason}: {condition.message}" if condition else Reason.UNKNOWN
