"""Ports, groups, networks and floating IPs, as they go over the wire to Neutron."""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_api.cloud.neutron import NeutronNetworking, exported_external_networks
from server_api.servers.cloud_model import FloatingIP, Port, PortOrder
from server_api.servers.model import AddressPair
from server_api.servers.ports import Ambiguous, Denied, Missing, Unavailable

PORTS = "/network/v2.0/ports"
NETWORKS = "/network/v2.0/networks"
FLOATING_IPS = "/network/v2.0/floatingips"
GONE = {"NeutronError": {"type": "NotFound", "message": "could not be found", "detail": ""}}


@pytest.fixture
def neutron(clients):
    return NeutronNetworking(clients, lambda: ["external-1", "external-2"])


def port(id_: str, name: str = "server-1", *addresses: str) -> dict[str, object]:
    return {"id": id_, "name": name, "fixed_ips": [{"ip_address": address} for address in addresses]}


@pytest.mark.parametrize(
    ("look_up", "path", "collection"),
    [
        ("network_id", NETWORKS, "networks"),
        ("security_group_id", "/network/v2.0/security-groups", "security_groups"),
    ],
)
class TestNames:
    @pytest.fixture
    def hold(self, wire, answer, path, collection):
        def hold(*names):
            items = [{"id": str(number), "name": name} for number, name in enumerate(names)]

            def page(request):
                return answer(body={collection: [] if "marker" in request.query else items})

            wire.answers[f"GET {path}"] = page

        return hold

    def test_the_exact_name_is_looked_up_in_our_project(self, neutron, wire, hold, look_up, path, collection):
        hold("foo-10", "foo-1")

        assert getattr(neutron, look_up)("foo-1") == "1"
        query = wire.seen("GET", path)[0].query
        assert (query["name"], query["project_id"]) == (["foo-1"], ["project"])

    def test_b01_a_look_alike_is_missing(self, neutron, hold, look_up, path, collection):
        hold("foo-10", "a-foo-1")

        with pytest.raises(Missing, match="foo-1"):
            getattr(neutron, look_up)("foo-1")

    def test_two_of_one_name_are_ambiguous(self, neutron, hold, look_up, path, collection):
        hold("foo-1", "foo-1")

        with pytest.raises(Ambiguous, match="foo-1"):
            getattr(neutron, look_up)("foo-1")

    def test_a_failed_look_up_is_not_missing(self, neutron, wire, answer, look_up, path, collection):
        wire.answers[f"GET {path}"] = answer(503, "down")

        with pytest.raises(Unavailable):
            getattr(neutron, look_up)("foo-1")


def lists(wire, answer, path, collection, *items):
    wire.answers[f"GET {path}"] = lambda request: answer(
        body={collection: [] if "marker" in request.query else list(items)}
    )


def test_a_port_is_found_with_its_first_address(neutron, wire, answer):
    lists(wire, answer, PORTS, "ports", port("9", "server-10"), port("1", "server-1", "10.0.0.5", "10.0.0.6"))

    assert neutron.ports_named("server-1") == [Port("1", "server-1", "10.0.0.5")]


def test_a_port_that_is_not_there_is_not_found(neutron, wire, answer):
    lists(wire, answer, PORTS, "ports", port("9", "server-10"))

    assert neutron.ports_named("server-1") == []


def test_two_ports_of_one_name_are_found_in_the_order_of_their_ids(neutron, wire, answer):
    lists(wire, answer, PORTS, "ports", port("2"), port("1"))

    assert [found.id for found in neutron.ports_named("server-1")] == ["1", "2"]


def test_a_port_says_which_instance_it_is_bound_to(neutron, wire, answer):
    lists(wire, answer, PORTS, "ports", port("1", "server-1") | {"device_id": "instance-1"}, port("2", "server-1"))

    assert [found.instance_id for found in neutron.ports_named("server-1")] == ["instance-1", None]


def test_b27_a_port_that_nova_did_not_take_off_an_instance_is_taken_off_and_deleted(neutron, wire, answer):
    bound = {"device": True}

    def delete(_):
        if bound["device"]:
            return answer(403, {"NeutronError": {"type": "PolicyNotAuthorized", "message": "disallowed", "detail": ""}})
        return answer(204)

    def update(request):
        bound["device"] = bool(request.body["port"]["device_id"])
        return answer(200, {"port": port("1")})

    wire.answers[f"DELETE {PORTS}/1"] = delete
    wire.answers[f"PUT {PORTS}/1"] = update

    neutron.delete_port("1")

    assert wire.seen("PUT", f"{PORTS}/1")[0].body == {"port": {"device_id": "", "device_owner": ""}}
    assert [request.method for request in wire.requests if request.path == f"{PORTS}/1"] == ["DELETE", "PUT", "DELETE"]


def test_a_port_that_must_not_be_deleted_at_all_is_denied(neutron, wire, answer):
    denied = answer(403, {"NeutronError": {"type": "PolicyNotAuthorized", "message": "disallowed", "detail": ""}})
    wire.answers[f"DELETE {PORTS}/1"] = wire.answers[f"PUT {PORTS}/1"] = denied

    with pytest.raises(Denied):
        neutron.delete_port("1")


def test_b33_no_security_group_is_sent_as_an_explicit_empty_list(neutron, wire, answer):
    wire.answers[f"POST {PORTS}"] = answer(201, {"port": port("1", "server-1", "10.0.0.5")})

    created = neutron.create_port(PortOrder("server-1", "network"))

    assert created == Port("1", "server-1", "10.0.0.5")
    assert wire.seen("POST", PORTS)[0].body == {
        "port": {"name": "server-1", "network_id": "network", "security_groups": [], "allowed_address_pairs": []}
    }


def test_an_address_pair_without_a_mac_address_is_sent_without_one(neutron, wire, answer):
    wire.answers[f"POST {PORTS}"] = answer(201, {"port": port("1")})
    pairs = (AddressPair("10.1.0.0/16", "fa:16:3e:00:00:01"), AddressPair("10.2.0.0/16"))

    neutron.create_port(PortOrder("server-1", "network", ("group",), pairs))

    sent = wire.seen("POST", PORTS)[0].body["port"]
    assert sent["security_groups"] == ["group"]
    assert sent["allowed_address_pairs"] == [
        {"ip_address": "10.1.0.0/16", "mac_address": "fa:16:3e:00:00:01"},
        {"ip_address": "10.2.0.0/16"},
    ]


def test_b33_an_update_sends_empty_groups_and_pairs_too(neutron, wire, answer):
    wire.answers[f"PUT {PORTS}/1"] = answer(body={"port": port("1", "server-1", "10.0.0.5")})

    updated = neutron.update_port("1", PortOrder("server-1", "network"))

    assert updated == Port("1", "server-1", "10.0.0.5")
    assert wire.seen("PUT", f"{PORTS}/1")[0].body == {"port": {"security_groups": [], "allowed_address_pairs": []}}


def test_updating_a_port_that_is_gone_is_missing(neutron, wire, answer):
    wire.answers[f"PUT {PORTS}/1"] = answer(404, GONE)

    with pytest.raises(Missing, match="could not be found"):
        neutron.update_port("1", PortOrder("server-1", "network"))


@pytest.mark.parametrize(("verb", "path"), [("delete_port", PORTS), ("delete_floating_ip", FLOATING_IPS)])
def test_deleting_what_is_gone_is_no_error(neutron, wire, answer, verb, path):
    wire.answers[f"DELETE {path}/1"] = answer(404, GONE)

    getattr(neutron, verb)("1")

    assert len(wire.seen("DELETE", f"{path}/1")) == 1


@pytest.mark.parametrize(("verb", "path"), [("delete_port", PORTS), ("delete_floating_ip", FLOATING_IPS)])
def test_a_proxys_404_does_not_pass_for_a_deletion(neutron, wire, answer, verb, path):
    wire.answers[f"DELETE {path}/1"] = answer(404, "<h1>no backend</h1>")

    with pytest.raises(Unavailable):
        getattr(neutron, verb)("1")


def test_only_floating_ips_of_the_port_are_listed(neutron, wire, answer):
    items = [
        {"id": str(number), "floating_ip_address": f"203.0.113.{number}", "port_id": f"p{number}"} for number in (1, 2)
    ]
    lists(wire, answer, FLOATING_IPS, "floatingips", *items)

    assert neutron.floating_ips("p2") == [FloatingIP("2", "203.0.113.2")]
    assert wire.seen("GET", FLOATING_IPS)[0].query["port_id"] == ["p2"]


def test_a_floating_ip_comes_from_the_first_exported_network(neutron, wire, answer):
    created = {"id": "1", "floating_ip_address": "203.0.113.1", "port_id": "p"}
    wire.answers[f"POST {FLOATING_IPS}"] = answer(201, {"floatingip": created})

    assert neutron.create_floating_ip("p") == FloatingIP("1", "203.0.113.1")
    assert wire.seen("POST", FLOATING_IPS)[0].body == {
        "floatingip": {"floating_network_id": "external-1", "port_id": "p"}
    }


def test_without_an_exported_network_a_floating_ip_is_missing(clients, wire):
    with pytest.raises(Missing, match="no external network is exported by the region"):
        NeutronNetworking(clients, list).create_floating_ip("p")

    assert wire.requests == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, ["a", "b", "c"]),
        ({"external_network_ids": frozenset({"b", "z"})}, ["b"]),
        ({"external_network_tags": frozenset({"public"})}, ["a", "b"]),
        ({"external_network_tags": frozenset({"public", "fast"})}, ["b"]),
        ({"external_network_ids": frozenset({"a"}), "external_network_tags": frozenset({"fast"})}, []),
    ],
)
def test_external_networks_are_exported_by_id_and_by_all_tags(clients, wire, answer, region, selector, expected):
    tags = {"a": ["public"], "b": ["fast", "public"], "c": []}
    lists(wire, answer, NETWORKS, "networks", *({"id": id_, "tags": its_tags} for id_, its_tags in tags.items()))

    assert exported_external_networks(clients, replace(region, **selector)) == expected
    assert wire.seen("GET", NETWORKS)[0].query["router:external"] == ["True"]
