"""The way of an older installation to v2, rehearsed: its store, the migrations, promote, and what clients see of it.

The first test has a Kubernetes API of its own, which an older region service filled, beside the sandbox's OpenStack.
The older controller is stopped and ours not started yet. The second has all of ours running, and clients of v1 at work.
"""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from server_api.sandbox import services
from server_api.sandbox.layout import REPOSITORY
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.waiting import wait_for
from server_api.store import kinds, labels
from tests.integration.harness import Sandbox
from tests.integration.legacy_store import Legacy
from tests.integration.older_installation import Installation, NovaLog, older_installation, v1_path

Item = dict[str, Any]

MADE_V2 = (labels.API_VERSION, labels.NETWORK_ID)


@pytest.fixture
def installation(region: Sandbox, tmp_path: Path) -> Iterator[Installation]:
    with older_installation(region, tmp_path) as installation:
        yield installation


def is_whole(item: Item) -> bool:
    """Say whether a stored server has all of what makes it v2's."""
    metadata, spec = item["metadata"], item["spec"]
    owners = [owner["name"] for owner in metadata.get("ownerReferences", [])]
    network_id = spec["networks"][0]["id"]
    its_labels = [metadata["labels"].get(label) for label in MADE_V2]
    return bool(its_labels == ["2", network_id] and owners == [network_id] and spec.get("sshInjection"))


def without_what_a_promotion_adds(item: Item) -> Item:
    """Return a stored server without labels, owner and mode, and without the nulls that a write drops."""
    item = copy.deepcopy(item)
    for field in ("resourceVersion", "generation", "ownerReferences"):
        item["metadata"].pop(field, None)
    for label in MADE_V2:
        item["metadata"]["labels"].pop(label, None)
    item["spec"].pop("sshInjection", None)
    cleaned: Item = without_nulls(item)
    return cleaned


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.timeout(600)
def test_an_older_installation_moves_to_v2_and_nova_sees_nothing_of_it(
    region: Sandbox, installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {server.id: server for server in installation.servers}
    promotable = [server.id for server in installation.servers if server.verdict == "promoted"]
    times: dict[str, float] = {}

    nova_log = NovaLog(region)
    installation.nova.compute.post("/os-keypairs", json={"keypair": {"name": "control", "public_key": key(region)}})
    assert len(nova_log.writes()) == 1, "the log tells of writes"
    instances, before, v1_before = installation.instances(), installation.stored(), installation.seen_by_v1()
    assert before.keys() == expected.keys() == v1_before.keys()
    assert any(item["spec"].get("tags", "") is None for item in before.values()), "nulls are stored"
    assert len(instances) == sum(server.instance for server in installation.servers)

    # 1. the definitions, which may only grow
    assert "update customresourcedefinition servers" in timed(times, "plan", installation, "migrate", "--plan").stdout
    assert timed(times, "migrate", installation, "migrate").returncode == 0
    assert installation.stored() == before
    assert installation.seen_by_v1() == v1_before

    # 2. what would happen
    planned = timed(times, "promote --plan", installation, "promote", "--all", "--plan", "-o", "json")
    assert planned.returncode == 3, planned.stderr
    found = {line["id"]: (line["verdict"], line["reason"]) for line in json.loads(planned.stdout)["servers"]}
    assert found == {
        id_: ("promotable" if server.verdict == "promoted" else server.verdict, server.reason)
        for id_, server in expected.items()
    }
    assert installation.stored() == before

    # 3. a run that is killed in the middle
    process = installation.begin("promote", "--all")
    wait_for("some are promoted", lambda: sum(map(is_promoted, installation.stored().values())) > 60, 120)
    process.send_signal(signal.SIGKILL)
    process.wait()
    halfway = installation.stored()
    changed = [id_ for id_, item in halfway.items() if item != before[id_]]
    assert 30 < len(changed) < len(promotable)
    assert all(is_whole(halfway[id_]) for id_ in changed)

    # 4. the run that ends it
    done = timed(times, "promote", installation, "promote", "--all", "-o", "json")
    assert done.returncode == 3, done.stderr
    counts = json.loads(done.stdout)["counts"]
    assert counts["promoted"] == len(promotable) - len(changed)
    after = installation.stored()
    for id_, item in after.items():
        if expected[id_].verdict == "promoted":
            assert is_whole(item), item
            assert without_what_a_promotion_adds(item) == without_what_a_promotion_adds(before[id_])
        else:
            assert item == before[id_]

    # 5. what clients see
    assert installation.seen_by_v1() == v1_before
    v2 = installation.seen_by_v2()
    of_v2 = {id_ for id_, server in expected.items() if server.verdict in ("promoted", "already-v2")}
    assert v2.keys() == of_v2
    for id_, document in v2.items():
        assert document["status"]["networkId"] == after[id_]["spec"]["networks"][0]["id"]
        assert document["metadata"]["name"] == expected[id_].name
        assert document["status"]["sshInjection"] == (after[id_]["spec"].get("sshInjection") or "identityKeypair")
    clients_can_put_what_they_read(installation, expected, v2, v1_before)

    # 6. once more, and nothing is left to do
    versions = {id_: item["metadata"]["resourceVersion"] for id_, item in installation.stored().items()}
    again = timed(times, "promote again", installation, "promote", "--all", "-o", "json")
    counts_again = json.loads(again.stdout)["counts"]
    assert (counts_again["promoted"], counts_again["already-v2"]) == (0, len(of_v2))
    assert "0 of 1 migrations run" in timed(times, "migrate again", installation, "migrate").stdout
    assert {id_: item["metadata"]["resourceVersion"] for id_, item in installation.stored().items()} == versions

    # 7. what an operator decides: the image that runs is the image that counts
    (drifted,) = (server for server in installation.servers if server.running_image)
    patch = {"spec": {"image": {"id": drifted.running_image}}}
    installation.client.patch(kinds.SERVER, NAMESPACE, drifted.id, patch)
    assert installation.command("promote", drifted.id).returncode == 0

    assert nova_log.writes() == []
    assert installation.instances() == instances
    refusals = Counter(str(server.reason) for server in installation.servers if server.reason)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(before)} servers, {len(instances)} of them with an instance; refused: {dict(refusals)}"
            f"\npromoted: {len(changed)} until the kill, {counts['promoted']} after it; on v2 in the end: {len(of_v2)}"
            f"\nseconds: { {step: round(spent, 1) for step, spent in times.items()} }\n"
        )


def is_promoted(item: Item) -> bool:
    return bool(item["metadata"]["labels"].get(labels.API_VERSION) == "2")


def key(region: Sandbox) -> str:
    return region.world.first.public_key


def timed(times: dict[str, float], step: str, installation: Installation, *words: str) -> Any:
    """Run one of our commands, and note how many seconds it took."""
    began = time.monotonic()
    result = installation.command(*words)
    times[step] = time.monotonic() - began
    return result


def clients_can_put_what_they_read(
    installation: Installation, expected: dict[str, Legacy], v2: dict[str, Item], v1: dict[str, Item]
) -> None:
    """Update promoted servers through both versions: nothing that the other one shows is lost."""
    tenant = installation.tenants[0]
    for id_ in v2:
        groups = v2[id_]["spec"].get("networking", {}).get("securityGroups", [])
        # Of groups that were stored twice a write keeps one, in both versions.
        if expected[id_].verdict != "promoted" or not expected[id_].instance or len(groups) > len(set(groups)):
            continue
        read = v2[id_]
        body = {"metadata": {"name": read["metadata"]["name"], "description": "by v2"}, "spec": read["spec"]}
        written = installation.put(tenant, f"/api/v2/servers/{id_}", body)
        assert written["spec"] == read["spec"]
        read = v1[id_]
        body = {"metadata": {"name": read["metadata"]["name"], "description": "by v1"}, "spec": read["spec"]}
        assert installation.put(tenant, v1_path(tenant, id_), body)["spec"] == read["spec"]
        assert is_whole(installation.client.get(kinds.SERVER, NAMESPACE, id_))
        seen = installation.get(tenant, f"/api/v2/servers/{id_}")
        assert (seen["metadata"]["description"], seen["spec"]) == ("by v1", v2[id_]["spec"])


COUNT = 6


@pytest.mark.timeout(600)
def test_servers_are_promoted_beside_clients_of_v1_and_the_controller(region: Sandbox) -> None:
    ids = create_through_v1(region)
    instances = {item["id"]: item for item in region.cloud.instances()}
    nova_log = NovaLog(region)
    with clients_of_v1_at_work(region, ids) as answers:
        wait_for("clients are at work", lambda: len(answers) > COUNT)
        result = promote(region, "--all", "-o", "json")
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout)["counts"]["promoted"] == COUNT
    # A client can lose its race twice, and is told so; whatever was accepted was kept.
    assert set(answers) <= {202, 409}
    assert answers.count(202) > len(answers) / 2
    for id_ in ids:
        assert is_whole(region.stored(id_) or {})
        assert region.running(id_)["metadata"]["name"].startswith("promoted-")
    assert nova_log.writes() == []
    assert {item["id"]: item for item in region.cloud.instances()} == instances
    assert json.loads(promote(region, "--all", "-o", "json").stdout)["counts"]["promoted"] == 0

    # from now on it is a server of v2 like any other
    id_ = ids[0]
    assert region.api().act(id_, "stop").status_code == 202
    region.in_power_state(id_, "Stopped")
    assert region.api().act(id_, "start").status_code == 202
    read = region.in_power_state(id_, "Running")
    image_id = region.world.images["ready-too"].id
    body = {"metadata": {"name": read["metadata"]["name"]}, "spec": read["spec"] | {"imageId": image_id}}
    assert region.api().update(id_, body).status_code == 202
    wait_for("it is rebuilt", lambda: region.read(id_)["metadata"]["provisioningStatus"] == "provisioned")
    assert (region.cloud.instance(read["metadata"]["name"]) or {})["image"]["id"] == image_id
    for id_ in ids:
        assert region.api().delete(id_).status_code == 202
    for id_ in ids:
        region.gone(id_)
    region.assert_no_orphans()


def v1_body(region: Sandbox, name: str, description: str = "") -> Item:
    return {
        "metadata": {"name": name, "description": description},
        "spec": {
            "flavorId": region.world.flavors["virtual"].id,
            "imageId": region.world.images["ready"].id,
            "networks": [{"id": region.world.first.network_id}],
            "securityGroups": [{"id": region.world.first.security_group_id}],
        },
    }


def create_through_v1(region: Sandbox) -> list[str]:
    """Create servers as a client of v1 and wait until the controller is done with them."""
    path = v1_path(region.world.first)
    ids = []
    for number in range(COUNT):
        answer = region.api().request("POST", path, json=v1_body(region, f"promoted-{number}"))
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["metadata"]["id"])

    def settled() -> bool:
        documents = [region.api().request("GET", f"{path}/{id_}").json() for id_ in ids]
        return all(
            document["metadata"]["provisioningStatus"] == "provisioned" and document["status"].get("phase") == "Running"
            for document in documents
        )

    wait_for("all run", settled, 120)
    assert {region.api().get(id_).status_code for id_ in ids} == {404}
    return ids


@contextmanager
def clients_of_v1_at_work(region: Sandbox, ids: list[str]) -> Iterator[list[int]]:
    """Let two clients of v1 update the servers again and again; gives the list of the statuses they get."""
    answers: list[int] = []
    stop = threading.Event()

    def work(turn: int) -> None:
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {region.world.callers['USER'].token}"
        while not stop.is_set():
            number = turn % len(ids)
            body = v1_body(region, f"promoted-{number}", f"turn {turn}")
            url = f"{region.environment['SERVER_API_URL']}{v1_path(region.world.first, ids[number])}"
            answers.append(session.put(url, json=body, timeout=30).status_code)
            turn += 1

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def promote(region: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    """Run promote against the sandbox."""
    layout, choices = region.region.layout, region.region.choices
    return subprocess.run(
        services.own_command("promote", *words),
        env=services.environment(layout, choices),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
