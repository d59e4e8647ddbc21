"""How long the API takes beside Nova and beside a bare Flask view, all in one run on one machine.

    python -m benchmarks.run [--servers 1000] [--instances 20] [--requests 200] [--directory DIRECTORY]

With a directory, the sandbox that runs there is used; without one, a sandbox is started for the run.
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Target, Timing, children, measure, resident
from benchmarks.stored import stored
from server_api.sandbox.api_client import SERVERS, ApiClient
from server_api.sandbox.layout import REPOSITORY, Layout
from server_api.sandbox.processes import LOOPBACK, Processes, free_port
from server_api.sandbox.progress import Progress
from server_api.sandbox.region import Region
from server_api.sandbox.rest import MICROVERSION, OpenStackUser
from server_api.sandbox.services import API, CONTROLLER, environment
from server_api.sandbox.waiting import wait_for

BARE, OURS, NOVA = "bare Flask view", "server-api", "Nova"
BARE_PROCESS = "bare"
JSON = {"Content-Type": "application/json"}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=1000, help="servers in the store")
    parser.add_argument("--instances", type=int, default=20, help="real instances in Nova")
    parser.add_argument("--requests", type=int, default=200, help="requests of each kind; lists take a tenth")
    parser.add_argument("--directory", type=Path, help="of a running sandbox")
    arguments = parser.parse_args()
    with _region(arguments.directory) as region:
        Benchmark(region, arguments.servers, arguments.instances, arguments.requests).run()


@dataclass(frozen=True)
class Row:
    """What one kind of request took at one of those compared; a list holds `items` servers."""

    operation: str
    who: str
    timing: Timing
    items: int = 1


class Benchmark:
    """One run on a sandbox that is up."""

    def __init__(self, region: Region, servers: int, instances: int, requests: int) -> None:
        self._region = region
        self._servers, self._instances, self._requests = servers, instances, requests
        self._environment = region.environment()
        self._token = self._environment["SERVER_API_TOKEN_USER"]
        self._api = ApiClient(self._environment["SERVER_API_URL"], self._token)
        self._rows: list[Row] = []
        self._progress = Progress(lambda line: print(line, file=sys.stderr, flush=True))

    def run(self) -> None:
        """Measure everything, print it, and leave the sandbox as it was found."""
        memory = self._memory("nothing stored")
        with self._real_instances() as names:
            self._measure_nova(names[0])
        with stored(self._region, self._servers) as ids:
            self._progress(f"{len(ids)} servers are stored")
            self._measure_reads(ids)
            memory += self._memory(f"{len(ids)} servers, after the reads")
            with _without_controller(self._region):
                self._measure_creates()
        self._print_timings()
        print()
        for line in memory:
            print(line)

    @contextmanager
    def _real_instances(self) -> Iterator[list[str]]:
        names = [f"real-{secrets.token_hex(3)}-{number}" for number in range(self._instances)]
        ids = [self._api.create(self._body(name)).json()["metadata"]["id"] for name in names]
        try:
            wait_for("every instance runs", lambda: all(map(self._runs, ids)), 30 + 10 * len(ids))
            self._progress(f"{len(ids)} instances run in Nova")
            yield names
        finally:
            for id_ in ids:
                self._api.delete(id_)
            wait_for("every instance is gone", lambda: not any(map(self._known, ids)), 30 + 10 * len(ids))

    def _runs(self, server_id: str) -> bool:
        return bool(self._api.get(server_id).json()["status"].get("powerState") == "Running")

    def _known(self, server_id: str) -> bool:
        return self._api.get(server_id).status_code != 404

    def _body(self, name: str) -> dict[str, object]:
        world = self._region.world
        spec = {
            "networkId": world.first.network_id,
            "flavorId": world.flavors["virtual"].id,
            "imageId": world.images["ready"].id,
        }
        return {"metadata": {"name": name}, "spec": spec}

    def _measure_nova(self, name: str) -> None:
        tenant, openstack = self._region.world.first, self._region.openstack
        user = OpenStackUser(openstack.auth_url, tenant.cloud_name, tenant.password, tenant.cloud_name)
        headers = {"X-Auth-Token": str(user.compute.get_token()), "OpenStack-API-Version": f"compute {MICROVERSION}"}
        url = f"{openstack.endpoints['compute']}/servers"
        instances = user.compute.get("/servers").json()["servers"]
        id_ = next(item["id"] for item in instances if item["name"] == name)
        self._time("GET", NOVA, Target(f"{url}/{id_}", headers=headers))
        self._time("LIST", NOVA, Target(f"{url}/detail", headers=headers), len(instances))

    def _measure_reads(self, ids: list[str]) -> None:
        url, headers = self._environment["SERVER_API_URL"] + SERVERS, {"Authorization": f"Bearer {self._token}"}
        servers = self._api.list().json()
        with self._bare_view(servers) as bare:
            self._time("GET", BARE, Target(f"{bare}/servers/{ids[0]}"))
            self._time("GET", OURS, Target(f"{url}/{ids[0]}", headers=headers))
            self._time("LIST", BARE, Target(f"{bare}/servers"), len(servers))
            self._time("LIST", OURS, Target(url, headers=headers), len(servers))
            self._time("create", BARE, Target(f"{bare}/servers", "POST", JSON, 201))

    def _measure_creates(self) -> None:
        run = secrets.token_hex(3)
        headers = {**JSON, "Authorization": f"Bearer {self._token}"}
        target = Target(self._environment["SERVER_API_URL"] + SERVERS, "POST", headers, 201)
        names = [f"created-{run}-{number}" for number in range(self._requests)]
        try:
            timing = measure(target, (json.dumps(self._body(name)).encode() for name in names))
            self._rows.append(Row("create", OURS, timing))
        finally:
            # the controller has not seen them, so that nothing of them is in the cloud
            for server in self._api.list().json():
                if server["metadata"]["name"].startswith(f"created-{run}-"):
                    self._api.delete(server["metadata"]["id"])

    def _time(self, operation: str, who: str, target: Target, items: int = 1) -> None:
        body = json.dumps(self._body("bare")).encode() if target.method == "POST" else None
        count = self._requests if items == 1 else self._requests // 10
        self._rows.append(Row(operation, who, measure(target, [body] * (count + 5)), items))
        self._progress(f"{operation} of {who} is measured")

    @contextmanager
    def _bare_view(self, servers: list[object]) -> Iterator[str]:
        """Serve the bare view under the same gunicorn settings as the API."""
        processes, port = Processes(self._region.layout.directory), free_port()
        url = f"http://{LOOPBACK}:{port}"
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(servers, file)
            file.flush()
            settings = environment(self._region.layout, self._region.choices)
            settings |= {"SERVER_API_BIND": f"{LOOPBACK}:{port}", "BENCHMARK_SERVERS": file.name}
            configuration = REPOSITORY / "deploy" / "gunicorn.conf.py"
            command: list[str | Path] = [sys.executable, "-m", "gunicorn", "-c", configuration, "benchmarks.bare:app"]
            processes.start(BARE_PROCESS, command, env=settings, cwd=REPOSITORY)
            try:
                processes.wait_until_answering({BARE_PROCESS: f"{url}/readyz"})
                yield url
            finally:
                processes.stop([BARE_PROCESS])

    def _memory(self, when: str) -> list[str]:
        processes = self._region.processes
        api, controller = processes.find(API), processes.find(CONTROLLER)
        if api is None or controller is None:
            raise RuntimeError("the sandbox is not up: see server-api sandbox status")
        workers = max(resident(pid) for pid in children(api.pid))
        return [f"memory with {when}: API worker {workers:.0f} MiB, controller {resident(controller.pid):.0f} MiB"]

    def _print_timings(self) -> None:
        print(f"\n{'':<34}{'n':>6}{'median ms':>11}{'p95 ms':>9}{'bytes':>9}{'x bare':>9}{'x Nova':>9}")
        rows = {(row.operation, row.who): row for row in self._rows}
        for row in sorted(self._rows, key=lambda row: (row.operation, row.who)):
            # of a create, Nova's own would measure its scheduler and Neutron: its GET is what there is to compare
            nova = rows[("GET" if row.operation == "create" else row.operation, NOVA)]
            bare = rows.get((row.operation, BARE))
            timing, label = row.timing, f"{row.operation}{f' of {row.items}' if row.items > 1 else ''}, {row.who}"
            print(
                f"{label:<34}{timing.count:>6}{timing.median:>11.2f}{timing.p95:>9.2f}{timing.size:>9}"
                f"{_ratio(row, bare):>9}{_ratio(row, nova):>9}"
            )
        print("The ratio of a LIST to another is that of the time for one server in it.")


def _ratio(row: Row, other: Row | None) -> str:
    if other is None:
        return "-"
    return f"{(row.timing.median / row.items) / (other.timing.median / other.items):.3g}"


@contextmanager
def _region(directory: Path | None) -> Iterator[Region]:
    if directory:
        yield Region(Layout.at(directory))
        return
    base = REPOSITORY / ".sandbox"
    cache = Path(os.environ.get("SERVER_API_SANDBOX_CACHE", base / "cache"))
    region = Region(Layout.at(base / "benchmark", cache), Progress(lambda line: print(line, file=sys.stderr)))
    try:
        region.up()
        yield region
    finally:
        region.down()


@contextmanager
def _without_controller(region: Region) -> Iterator[None]:
    region.processes.stop([CONTROLLER])
    try:
        yield
    finally:
        region.up()


if __name__ == "__main__":
    main()
