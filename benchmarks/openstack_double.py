"""Keystone, Nova and Neutron as far as passes and the monitor go, answered from memory by a process of its own.

    python -m benchmarks.openstack_double --port PORT --projects 10 --servers 10000

It holds the cloud side of ``fleet.Fleet``: an instance, a port and a floating IP for every server of it. Nothing
happens in it by itself: what is being built or rebuilt stays so until it is told to settle.

- ``GET /double/calls``: how often each operation was asked for since the start, by service and operation.
- ``POST /double/build``: every instance is in BUILD and was never launched.
- ``POST /double/settle``: everything in BUILD or REBUILD is ACTIVE, all at once.
"""

import argparse
import itertools
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from types import FrameType
from typing import Any

import orjson
from cheroot import wsgi
from flask import Flask, Response, abort, request

from benchmarks.fleet import EXTERNAL_NETWORK_ID, Fleet, Member, cloud_project
from benchmarks.instances import ACTIVE, BUILD, FLAVOR, REBUILD, Instance, NoMarker, Project
from benchmarks.ports import Ports
from server_api.sandbox.processes import LOOPBACK
from server_api.servers.naming import cloud_network, cloud_security_group

_TOKEN = "token-of"
COMPUTE, NETWORK = "/compute/v2.1", "/network/v2.0"


class OpenStackDouble:
    """The state of the cloud and its WSGI application, for use by one thread."""

    def __init__(self, fleet: Fleet, url: str) -> None:
        self._fleet = fleet
        self._url = url
        self._tenants = {cloud_project(tenant): tenant for tenant in fleet.tenants}
        members: dict[str, list[Member]] = {cloud_id: [] for cloud_id in self._tenants}
        for member in fleet.members:
            members[cloud_project(member.tenant)].append(member)
        self._projects = {
            cloud_id: Project(Instance.of_member(member, fleet) for member in its_members)
            for cloud_id, its_members in members.items()
        }
        self._ports = {cloud_id: Ports(its_members) for cloud_id, its_members in members.items()}
        self._numbers = itertools.count(fleet.servers)
        self.calls: Counter[str] = Counter()
        self.app = Flask(__name__)
        self._route()

    def build(self) -> None:
        """Let every instance be in BUILD, as one that was never launched."""
        for project in self._projects.values():
            for instance in project.instances():
                instance.status, instance.task_state, instance.launched_at = BUILD, "spawning", None
            project.changed(instance.id for instance in project.instances())

    def settle(self) -> None:
        """Let everything that is being built or rebuilt be ACTIVE, and the next answers come at once."""
        now = _now()
        for project in self._projects.values():
            settling = [instance for instance in project.instances() if instance.status != ACTIVE]
            for instance in settling:
                instance.status, instance.task_state = ACTIVE, None
                instance.launched_at = instance.launched_at or now
            project.changed(instance.id for instance in settling)
            project.prepare()

    def _route(self) -> None:
        routes: dict[str, Callable[..., Response]] = {
            "POST /identity/v3/auth/tokens": self._log_in,
            f"GET {COMPUTE}/servers/detail": self._servers,
            f"GET {COMPUTE}/servers": lambda: _json(self._project.brief()),
            f"POST {COMPUTE}/servers": self._create_server,
            f"GET {COMPUTE}/servers/<id_>": self._server,
            f"POST {COMPUTE}/servers/<id_>/action": self._act,
            f"GET {COMPUTE}/servers/<id_>/os-instance-actions": self._actions,
            f"GET {COMPUTE}/flavors/detail": self._flavors,
            "GET /network/": self._network_versions,
            f"GET {NETWORK}/networks": self._networks,
            f"GET {NETWORK}/security-groups": self._security_groups,
            f"GET {NETWORK}/ports": self._list_ports,
            f"POST {NETWORK}/ports": self._create_port,
            f"PUT {NETWORK}/ports/<id_>": self._update_port,
            f"GET {NETWORK}/floatingips": self._list_floating_ips,
            f"POST {NETWORK}/floatingips": self._create_floating_ip,
            "GET /double/calls": lambda: _json(dict(self.calls)),
            "POST /double/build": self._build,
            "POST /double/settle": self._settle,
        }
        for route, view in routes.items():
            method, path = route.split()
            self.app.add_url_rule(path, route, view, methods=[method])
        self.app.before_request(self._count)

    def _count(self) -> None:
        operation = request.endpoint or f"{request.method} {request.path} (unknown)"
        method, _, path = operation.partition(" ")
        if not path.startswith("/double"):
            # A look-up by name is another thing than the bulk list.
            named = "?name" if path.endswith("/servers/detail") and "name" in request.args else ""
            service, _, rest = path.removeprefix("/").partition("/")
            self.calls[f"{service} {method} /{rest.partition('/')[2]}{named}"] += 1

    @property
    def _cloud_id(self) -> str:
        """The ID of the project that the token is for. A token says what it is: project and user."""
        _, _, cloud_and_user = request.headers.get("X-Auth-Token", "").partition(" ")
        cloud_id = cloud_and_user.partition(" ")[0]
        if cloud_id not in self._projects:
            abort(HTTPStatus.UNAUTHORIZED)
        return cloud_id

    @property
    def _user_id(self) -> str:
        return request.headers["X-Auth-Token"].rpartition(" ")[2]

    @property
    def _project(self) -> Project:
        return self._projects[self._cloud_id]

    def _build(self) -> Response:
        self.build()
        return _json({})

    def _settle(self) -> Response:
        self.settle()
        return _json({})

    def _log_in(self) -> Response:
        auth = orjson.loads(request.data)["auth"]
        project_id, user_id = auth["scope"]["project"]["id"], auth["identity"]["password"]["user"]["id"]
        services = {"compute": COMPUTE, "network": "/network"}
        catalogue = [
            {"type": type_, "endpoints": [{"interface": "public", "region": "here", "url": self._url + path}]}
            for type_, path in services.items()
        ]
        token = {
            "expires_at": "2199-01-01T00:00:00Z",
            "catalog": catalogue,
            "project": {"id": project_id},
            "user": {"id": user_id},
        }
        answer = _json({"token": token}, HTTPStatus.CREATED)
        answer.headers["X-Subject-Token"] = f"{_TOKEN} {project_id} {user_id}"
        return answer

    def _servers(self) -> Response:
        marker, pattern = request.args.get("marker"), request.args.get("name")
        try:
            page = self._project.page(marker) if pattern is None else self._project.named(pattern, marker)
        except NoMarker:
            message = f"marker [{marker}] not found"
            return _json({"badRequest": {"code": 400, "message": message}}, HTTPStatus.BAD_REQUEST)
        return _json(page)

    def _server(self, id_: str) -> Response:
        return _json(self._project.one(self._instance(id_)))

    def _instance(self, id_: str) -> Instance:
        instance = self._project.find(id_)
        if instance is None:
            abort(HTTPStatus.NOT_FOUND)
        return instance

    def _create_server(self) -> Response:
        order = orjson.loads(request.data)["server"]
        tenant = self._tenants[self._cloud_id]
        member = Member(next(self._numbers), tenant)
        port = self._ports[self._cloud_id].bind(order["networks"][0]["port"], member.instance_id)
        instance = Instance(
            id=member.instance_id,
            name=order["name"],
            image_id=order["imageRef"],
            metadata=order["metadata"],
            network=cloud_network(tenant.network_id),
            mac_address=port["mac_address"],
            addresses={"fixed": port["fixed_ips"][0]["ip_address"]},
            status=BUILD,
            task_state="spawning",
            launched_at=None,
        )
        self._project.add(instance)
        return _json({"server": {"id": instance.id, "links": []}}, HTTPStatus.ACCEPTED)

    def _act(self, id_: str) -> Response:
        body = orjson.loads(request.data)
        if list(body) != ["rebuild"]:
            abort(HTTPStatus.BAD_REQUEST)
        instance = self._instance(id_)
        if instance.status != ACTIVE:
            message = f"Cannot 'rebuild' instance {id_} while it is in vm_state {instance.status}"
            return _json({"conflictingRequest": {"code": 409, "message": message}}, HTTPStatus.CONFLICT)
        # Nova itself says the new image as soon as it has taken the rebuild.
        instance.image_id = body["rebuild"]["imageRef"]
        instance.status, instance.task_state = REBUILD, "rebuild_spawning"
        instance.actions.append(_action("rebuild", f"req-{len(instance.actions)}-{id_}", self._user_id))
        self._project.changed([id_])
        return _json(self._project.one(instance), HTTPStatus.ACCEPTED)

    def _actions(self, id_: str) -> Response:
        return _json({"instanceActions": self._instance(id_).actions[::-1]})

    def _flavors(self) -> Response:
        flavor = self._fleet.world.flavors["virtual"]
        record = FLAVOR | {"id": flavor.id, "name": flavor.name, "os-flavor-access:is_public": True, "links": []}
        return _json({"flavors": [] if "marker" in request.args else [record]})

    def _network_versions(self) -> Response:
        links = [{"rel": "self", "href": f"{self._url}{NETWORK}/"}]
        return _json({"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})

    def _networks(self) -> Response:
        external = {"id": EXTERNAL_NETWORK_ID, "name": "external", "router:external": True, "tags": []}
        if request.args.get("router:external", "").lower() == "true":
            return _json({"networks": [external]})
        tenant = self._tenants[self._cloud_id]
        network = {"id": tenant.network_id, "name": cloud_network(tenant.network_id), "router:external": False}
        return _json({"networks": _named(network)})

    def _security_groups(self) -> Response:
        tenant = self._tenants[self._cloud_id]
        group = {"id": tenant.security_group_id, "name": cloud_security_group(tenant.security_group_id)}
        return _json({"security_groups": _named(group)})

    def _list_ports(self) -> Response:
        return _json({"ports": self._ports[self._cloud_id].named(request.args["name"])})

    def _create_port(self) -> Response:
        body = orjson.loads(request.data)["port"]
        member = Member(next(self._numbers), self._tenants[self._cloud_id])
        port = self._ports[self._cloud_id].create(body["name"], member)
        return _json({"port": port}, HTTPStatus.CREATED)

    def _update_port(self, id_: str) -> Response:
        return _json({"port": self._ports[self._cloud_id].port(id_)})

    def _list_floating_ips(self) -> Response:
        return _json({"floatingips": self._ports[self._cloud_id].floating_ips(request.args["port_id"])})

    def _create_floating_ip(self) -> Response:
        body = orjson.loads(request.data)["floatingip"]
        member = Member(next(self._numbers), self._tenants[self._cloud_id])
        created = self._ports[self._cloud_id].create_floating_ip(body["port_id"], member)
        return _json({"floatingip": created}, HTTPStatus.CREATED)


def _json(content: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    return Response(body, status, mimetype="application/json")


def _named(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [record] if request.args.get("name", record["name"]) == record["name"] else []


def _action(name: str, request_id: str, user_id: str) -> dict[str, Any]:
    now = _now()
    return {"action": name, "request_id": request_id, "user_id": user_id, "start_time": now, "updated_at": now}


def _now() -> str:
    """Return the time as Nova writes it here: in whole seconds, and without a zone."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000")


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--projects", type=int, default=10)
    parser.add_argument("--servers", type=int, default=10_000)
    arguments = parser.parse_args()
    double = OpenStackDouble(Fleet(arguments.projects, arguments.servers), f"http://{LOOPBACK}:{arguments.port}")
    double.settle()
    # One thread, so that nothing is seen half done. Connections that are kept do not hold it.
    server = wsgi.Server((LOOPBACK, arguments.port), double.app, numthreads=1, request_queue_size=256)

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        server.start()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()
