"""Many servers at once."""

from concurrent.futures import ThreadPoolExecutor

from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Item, Sandbox

COUNT = 12


def test_b03_twelve_servers_created_at_once_are_exactly_twelve_in_nova_and_leave_nothing(region: Sandbox) -> None:
    bodies = [region.body(f"bulk-{number}", public=True) for number in range(COUNT)]
    with ThreadPoolExecutor(COUNT) as pool:
        answers = list(pool.map(region.api().create, bodies))
    assert [answer.status_code for answer in answers] == [201] * COUNT
    ids = {answer.json()["metadata"]["id"] for answer in answers}

    def settled() -> list[Item] | None:
        mine = [server for server in region.api().list().json() if server["metadata"]["id"] in ids]
        done = all(
            server["metadata"]["provisioningStatus"] == "provisioned"
            and server["status"].get("powerState") == "Running"
            for server in mine
        )
        return mine if done and len(mine) == COUNT else None

    servers = wait_for("all are provisioned and Running", settled, 150)
    instances = [item for item in region.cloud.instances() if item["name"].startswith("bulk-")]
    assert sorted(item["metadata"]["serverID"] for item in instances) == sorted(ids)
    assert len({server["status"]["privateIP"] for server in servers}) == COUNT
    assert len({server["status"]["publicIP"] for server in servers}) == COUNT

    with ThreadPoolExecutor(COUNT) as pool:
        answers = list(pool.map(region.api().delete, ids))
    assert {answer.status_code for answer in answers} == {202}
    listed = region.api().list
    wait_for("all are gone", lambda: not ids & {item["metadata"]["id"] for item in listed().json()}, 120)
    wait_for("Nova has none left", lambda: not _of(region.cloud.instances(), "bulk-"))
    region.assert_no_orphans()


def _of(instances: list[Item], prefix: str) -> list[Item]:
    return [item for item in instances if item["name"].startswith(prefix)]
