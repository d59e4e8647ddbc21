"""Instances: looked up by exact name and our own metadata, converted from Nova's JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from server_api.cloud.nova import NovaCompute, instance_from
from server_api.servers.cloud_model import Instance, InstanceOrder
from server_api.servers.ports import Ambiguous, Denied, Missing, PortError, Refused, StateConflict, Unavailable

SERVERS = "/compute/v2.1/servers"
IMAGE_ID = "70a599e0-31e7-49b7-b260-868f441e862b"


def record(id_: str, name: str = "web-1", server_id: str | None = "ours", **more: object) -> dict[str, object]:
    metadata = {} if server_id is None else {"serverID": server_id}
    return {"id": id_, "name": name, "status": "ACTIVE", "metadata": metadata, **more}


@pytest.fixture
def nova(clients):
    return NovaCompute(clients, lambda: clients)


@pytest.fixture
def holds(wire, answer):
    """Let Nova hold servers, returned in pages of at most 1,000 whatever the name filter says."""

    def hold(*records):
        def page(request):
            marker = request.query.get("marker", [None])[0]
            ids = [entry["id"] for entry in records]
            start = ids.index(marker) + 1 if marker else 0
            return answer(body={"servers": records[start : start + 1000]})

        wire.answers[f"GET {SERVERS}/detail"] = page

    return hold


def test_b01_look_alikes_are_not_taken_for_the_server(nova, holds):
    holds(record("1", "foo-web-1"), record("2", "web-10"), record("3", "web-1-old"), record("4", "WEB-1"))

    assert nova.find("web-1", "ours") is None


def test_b02_the_exact_name_is_found_among_look_alikes(nova, holds):
    holds(record("1", "web-10"), record("2", "web-1"), record("3", "foo-web-1"))

    assert nova.find("web-1", "ours").id == "2"


@pytest.mark.parametrize("server_id", [None, "theirs"])
def test_a_strangers_instance_of_the_same_name_is_not_found(nova, holds, server_id):
    holds(record("1", server_id=server_id))

    assert nova.find("web-1", "ours") is None


def test_b08_a_stranger_of_the_same_name_does_not_hide_ours(nova, holds):
    holds(record("1", server_id="theirs"), record("2"), record("3", server_id=None))

    assert nova.find("web-1", "ours").id == "2"


def test_b06_two_instances_of_ours_are_ambiguous(nova, holds):
    holds(record("1"), record("2"))

    with pytest.raises(Ambiguous, match="1, 2"):
        nova.find("web-1", "ours")


def test_b04_the_name_filter_is_anchored_and_escaped(nova, holds, wire):
    holds()

    nova.find("a.b[c]+", "ours")

    assert wire.seen("GET", f"{SERVERS}/detail")[0].query["name"] == [r"^a\.b\[c\]\+$"]


def test_b07_a_silent_cell_makes_absence_unknown(nova, holds, wire, answer):
    holds()
    wire.answers[f"GET {SERVERS}"] = answer(body={"servers": [{"id": "1", "status": "UNKNOWN"}]})

    with pytest.raises(Unavailable, match="cell"):
        nova.find("web-1", "ours")


def test_the_question_for_silent_cells_has_neither_filter_nor_paging(nova, holds, wire):
    holds()

    nova.find("web-1", "ours")

    assert wire.seen("GET", SERVERS)[0].query == {}


def test_b78_the_bulk_list_goes_through_every_page(nova, holds):
    holds(*(record(str(number)) for number in range(1500)))

    assert [instance.id for instance in nova.instances()] == [str(number) for number in range(1500)]


def test_b78_the_instance_is_found_beyond_the_first_page(nova, holds):
    holds(*(record(str(number), server_id="theirs") for number in range(1200)), record("last"))

    assert nova.find("web-1", "ours").id == "last"


def test_a_list_whose_pages_never_end_is_unavailable(nova, wire, answer):
    wire.answers[f"GET {SERVERS}/detail"] = answer(body={"servers": [record("1")]})

    with pytest.raises(Unavailable, match="to its end"):
        nova.instances()


def pages(wire, answer, *ids):
    """Let Nova answer a list with these pages, one after the other, and with empty ones after them."""
    left = [[record(id_) for id_ in page] for page in ids]
    wire.answers[f"GET {SERVERS}/detail"] = lambda _: answer(body={"servers": left.pop(0) if left else []})


def test_b06_an_instance_that_two_pages_have_is_one_instance(nova, wire, answer):
    pages(wire, answer, "1", "12")

    assert [instance.id for instance in nova.instances()] == ["1", "2"]


def test_b22_an_instance_that_nova_hands_to_a_cell_meanwhile_is_found(nova, wire, answer):
    pages(wire, answer, "1", "1", "1")

    assert nova.find("web-1", "ours").id == "1"


def test_a_list_whose_marker_was_deleted_meanwhile_is_read_again(nova, wire, answer):
    refusal = answer(400, {"badRequest": {"code": 400, "message": "marker [1] not found"}})
    left = [answer(body={"servers": [record("1")]}), refusal, answer(body={"servers": [record("2")]})]
    wire.answers[f"GET {SERVERS}/detail"] = lambda _: left.pop(0) if left else answer(body={"servers": []})

    assert [instance.id for instance in nova.instances()] == ["2"]


def test_a_list_that_is_refused_as_such_is_refused(nova, wire, answer):
    wire.answers[f"GET {SERVERS}/detail"] = answer(400, {"badRequest": {"code": 400, "message": "no"}})

    with pytest.raises(Refused):
        nova.instances()
    assert len(wire.seen("GET", f"{SERVERS}/detail")) == 1


def test_an_instance_in_a_silent_cell_is_left_out_of_the_bulk_list(nova, holds):
    holds({"id": "1", "status": "UNKNOWN"}, record("2"))

    assert [instance.id for instance in nova.instances()] == ["2"]


ORDER = InstanceOrder("web-1", "image", "flavor", "port", {"serverID": "ours"})


def created(nova, wire, answer, order):
    wire.answers[f"POST {SERVERS}"] = answer(202, {"server": {"id": "new", "links": [], "adminPass": "x"}})
    return nova.create(order), wire.seen("POST", SERVERS)[0].body["server"]


def test_create_sends_what_the_contract_says_and_nothing_else(nova, wire, answer):
    instance, body = created(nova, wire, answer, ORDER)

    assert body == {
        "name": "web-1",
        "imageRef": "image",
        "flavorRef": "flavor",
        "networks": [{"port": "port"}],
        "metadata": {"serverID": "ours"},
        "min_count": 1,
        "max_count": 1,
    }
    assert instance == Instance("new", "web-1", "BUILD", server_id="ours")


def test_k21_a_pinned_instance_is_created_on_its_host_with_the_regions_rights(clients, wire, answer):
    asked = []
    nova = NovaCompute(clients, lambda: asked.append("region") or clients)

    _, body = created(nova, wire, answer, replace(ORDER, hypervisor_hostname="host-1"))

    assert asked == ["region"]
    assert body["hypervisor_hostname"] == "host-1"


def test_k22_any_other_instance_is_created_with_the_tenants_own_rights(clients, wire, answer):
    def region_clients():
        raise AssertionError("the region's rights were used")

    _, body = created(NovaCompute(clients, region_clients), wire, answer, ORDER)

    assert "hypervisor_hostname" not in body


def test_b72_user_data_arrives_byte_for_byte(nova, wire, answer):
    order = InstanceOrder("n", "image", "flavor", "port", {}, user_data=b"\x1f\x8b\x00\xff", key_name="key")

    _, body = created(nova, wire, answer, order)

    assert (body["user_data"], body["key_name"]) == ("H4sA/w==", "key")


def test_empty_user_data_is_left_out(nova, wire, answer):
    _, body = created(nova, wire, answer, InstanceOrder("n", "image", "flavor", "port", {}, user_data=b""))

    assert "user_data" not in body


def test_deleting_an_instance_that_is_gone_is_no_error(nova, wire, answer):
    wire.answers[f"DELETE {SERVERS}/1"] = answer(404, {"itemNotFound": {"message": "gone"}})

    assert nova.delete("1") is None
    assert len(wire.seen("DELETE", f"{SERVERS}/1")) == 1


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("start", {"os-start": None}),
        ("stop", {"os-stop": None}),
        ("soft_reboot", {"reboot": {"type": "SOFT"}}),
        ("hard_reboot", {"reboot": {"type": "HARD"}}),
    ],
)
def test_b05_a_verb_reaches_the_instance_by_id(nova, wire, answer, verb, body):
    wire.answers[f"POST {SERVERS}/1/action"] = answer(202, "")

    getattr(nova, verb)("1")

    assert wire.seen("POST", f"{SERVERS}/1/action")[0].body == body


@pytest.mark.parametrize("verb", ["start", "stop", "soft_reboot", "hard_reboot"])
def test_a_verb_on_an_instance_that_is_gone_is_missing(nova, wire, answer, verb):
    wire.answers[f"POST {SERVERS}/1/action"] = answer(404, {"itemNotFound": {"message": "gone"}})

    with pytest.raises(Missing):
        getattr(nova, verb)("1")


ACTION = f"{SERVERS}/1/action"
CONSOLES = f"{SERVERS}/1/remote-consoles"
URL = "http://console:6080/vnc_lite.html?path=%3Ftoken%3Ds3cret"


def test_b18_a_rebuild_sends_the_image_reference_and_nothing_else(nova, wire, answer):
    wire.answers[f"POST {ACTION}"] = answer(202, {"server": record("1", adminPass="x")})

    nova.rebuild("1", IMAGE_ID)

    assert [(request.method, request.path) for request in wire.requests[1:]] == [("POST", ACTION)]
    assert wire.requests[1].body == {"rebuild": {"imageRef": IMAGE_ID}}
    assert wire.requests[1].headers["OpenStack-API-Version"] == "compute 2.90"


@pytest.mark.parametrize("lost", ["", "{", {"servers": []}])
def test_a_rebuild_whose_answer_makes_no_sense_is_not_taken_for_accepted(nova, wire, answer, lost):
    wire.answers[f"POST {ACTION}"] = answer(202, lost)

    with pytest.raises(Unavailable):
        nova.rebuild("1", IMAGE_ID)


ACTIONS = "/compute/v2.1/servers/1/os-instance-actions"


def action(name: str, number: int, user: str = "user") -> dict[str, Any]:
    started = f"2026-03-04T05:06:{number:02}.000000"
    return {"action": name, "request_id": f"req-{number}", "start_time": started, "user_id": user}


@pytest.mark.parametrize(
    ("actions", "last"),
    [
        ([], ""),
        ([action("create", 1)], ""),
        ([action("reboot", 4), action("rebuild", 3), action("rebuild", 2), action("create", 1)], "req-3"),
        ([action("create", 1), action("rebuild", 2), action("rebuild", 3)], "req-3"),
        ([action("rebuild", 4, "an-operator"), action("rebuild", 3)], "req-3"),
    ],
)
def test_b13_the_last_rebuild_is_the_newest_of_ours_that_nova_has_recorded(nova, wire, answer, actions, last):
    wire.answers[f"GET {ACTIONS}"] = answer(200, {"instanceActions": actions})

    assert nova.last_rebuild("1") == last


def test_an_instance_is_read_by_its_id_and_absent_only_when_nova_says_so(nova, wire, answer):
    path = "GET /compute/v2.1/servers/1"
    wire.answers[path] = answer(200, {"server": record("1")})
    assert nova.get("1").id == "1"

    wire.answers[path] = answer(404, {"itemNotFound": {"code": 404, "message": "Instance 1 could not be found."}})
    assert nova.get("1") is None

    wire.answers[path] = answer(404, {"unknown": {}})
    with pytest.raises(Unavailable):
        nova.get("1")


@pytest.mark.parametrize(
    ("lines", "options"), [(None, {}), (1, {"length": 1}), (0, {"length": 0}), (100_000, {"length": 100_000})]
)
def test_console_output_sends_a_length_only_when_there_is_one(nova, wire, answer, lines, options):
    wire.answers[f"POST {ACTION}"] = answer(200, {"output": "last\x1b[0m line 日本\n"})

    assert nova.console_output("1", lines) == "last\x1b[0m line 日本\n"
    assert wire.seen("POST", ACTION)[0].body == {"os-getConsoleOutput": options}


def test_the_console_is_a_vnc_session_in_the_browser(nova, wire, answer):
    wire.answers[f"POST {CONSOLES}"] = answer(200, {"remote_console": {"protocol": "vnc", "type": "novnc", "url": URL}})

    url = nova.console_url("1")

    assert (url, type(url)) == (URL, str)
    assert wire.seen("POST", CONSOLES)[0].body == {"remote_console": {"protocol": "vnc", "type": "novnc"}}


def test_b16_consoles_that_are_disabled_are_refused_with_novas_words(nova, wire, answer):
    fault = {"badRequest": {"code": 400, "message": "Unavailable console type novnc."}}
    wire.answers[f"POST {CONSOLES}"] = answer(400, fault)

    with pytest.raises(Refused) as failure:
        nova.console_url("1")
    assert failure.value.detail == "Unavailable console type novnc."


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"remote_console": {"url": URL}}),
        (200, {"remote_console": URL}),
        (200, {"remote_console": {"url": [URL]}}),
        (200, {URL: URL}),
        (500, {"computeFault": {"message": f"no proxy for {URL}", "code": 500}}),
        (400, f"<html>{URL}</html>"),
    ],
)
def test_b74_a_console_url_is_in_no_log_and_no_error(nova, wire, answer, caplog, status, body):
    caplog.set_level("DEBUG")
    wire.answers[f"POST {CONSOLES}"] = answer(status, body)

    try:
        nova.console_url("1")
        said = ""
    except PortError as failure:
        said = f"{failure} {failure.detail} {failure!r}"

    assert "s3cret" not in caplog.text + said
    assert len(wire.seen("POST", CONSOLES)) == 1


def test_an_image_of_the_instance_has_the_name_and_properties_asked_for(nova, wire, answer):
    wire.answers[f"POST {ACTION}"] = answer(202, {"image_id": IMAGE_ID})

    image_id = nova.create_image("1", "日本 %2F ✓", {"unikorn:tag:a": "b"})

    assert (image_id, type(image_id)) == (IMAGE_ID, str)
    assert wire.seen("POST", ACTION)[0].body == {
        "createImage": {"name": "日本 %2F ✓", "metadata": {"unikorn:tag:a": "b"}}
    }


CALLS = {
    "rebuild": (ACTION, lambda nova: nova.rebuild("1", IMAGE_ID)),
    "console_output": (ACTION, lambda nova: nova.console_output("1", None)),
    "console_url": (CONSOLES, lambda nova: nova.console_url("1")),
    "create_image": (ACTION, lambda nova: nova.create_image("1", "name", {})),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("status", "fault", "expected"),
    [
        (404, "itemNotFound", Missing),
        (409, "conflictingRequest", StateConflict),
        (400, "badRequest", Refused),
        (413, "overLimit", Refused),
        (403, "forbidden", Denied),
        (503, "serviceUnavailable", Unavailable),
    ],
)
def test_b11_a_call_that_nova_does_not_accept_fails_with_its_words(nova, wire, answer, call, status, fault, expected):
    path, ask = CALLS[call]
    wire.answers[f"POST {path}"] = answer(status, {fault: {"code": status, "message": "said so"}})

    with pytest.raises(expected, match="said so"):
        ask(nova)
    assert len(wire.seen("POST", path)) == 1


@pytest.mark.parametrize("call", sorted(CALLS.keys() - {"rebuild"}))
@pytest.mark.parametrize("body", [{}, "", "{", {"output": None, "image_id": None, "remote_console": None}, [1]])
def test_b37_an_answer_without_the_thing_asked_for_is_unavailable(nova, wire, answer, call, body):
    path, ask = CALLS[call]
    wire.answers[f"POST {path}"] = answer(200, body)

    with pytest.raises(Unavailable):
        ask(nova)


def test_a_whole_record_is_converted():
    addresses = {
        "network-a": [{"addr": "10.0.0.2"}, {"OS-EXT-IPS-MAC:mac_addr": ""}, {"OS-EXT-IPS-MAC:mac_addr": "fa:16"}],
        "network-b": [{"OS-EXT-IPS-MAC:mac_addr": "fa:17"}, {"OS-EXT-IPS-MAC:mac_addr": "fa:18"}],
        "network-c": [],
    }
    instance = instance_from(
        record(
            "1",
            image={"id": IMAGE_ID},
            flavor={"original_name": "small", "vcpus": 1},
            created="2026-01-02T03:04:05Z",
            addresses=addresses,
            fault={"message": "No valid host was found.", "code": 500, "details": "trace"},
            **{
                "OS-EXT-STS:task_state": "rebuilding",
                "OS-EXT-STS:power_state": 4,
                "OS-SRV-USG:launched_at": "2026-01-02T03:05:06.000000",
            },
        )
    )

    assert instance == Instance(
        id="1",
        name="web-1",
        status="ACTIVE",
        server_id="ours",
        task_state="rebuilding",
        power_state=4,
        image_id=IMAGE_ID,
        flavor_id=None,
        created_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        launched_at=datetime(2026, 1, 2, 3, 5, 6, tzinfo=UTC),
        mac_addresses={"network-a": "fa:16", "network-b": "fa:17"},
        fault="No valid host was found.",
    )


@pytest.mark.parametrize("image", [None, "", {}, {"id": ""}, {"id": "not-a-uuid"}, {"id": None}])
def test_an_image_reference_that_is_no_uuid_is_none(image):
    assert instance_from(record("1", image=image)).image_id is None


def test_what_nova_does_not_say_is_none():
    assert instance_from(record("1", created=None, **{"OS-SRV-USG:launched_at": None})) == Instance(
        "1", "web-1", "ACTIVE", server_id="ours"
    )
