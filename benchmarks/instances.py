"""The instances of one project in the OpenStack double, as Nova shows them, with their JSON kept ready."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from benchmarks.fleet import EPOCH, Fleet, Member
from server_api.servers.naming import cloud_network

PAGE = 1000
"""Nova's own ``max_limit``."""

ACTIVE, BUILD, REBUILD = "ACTIVE", "BUILD", "REBUILD"
FLAVOR = {
    "vcpus": 1,
    "ram": 1024,
    "disk": 20,
    "ephemeral": 0,
    "swap": 0,
    "original_name": "benchmark",
    "extra_specs": {},
}
_RUNNING, _NOSTATE = 1, 0
_HEX = "0123456789abcdef" * 2


LAUNCHED = EPOCH.removesuffix("Z") + ".000000"
"""Nova names no zone here."""


class NoMarker(Exception):
    """The marker of a list is no instance."""


@dataclass
class Instance:
    """One instance. Whoever changes it has to tell its ``Project``. ``actions`` are Nova's records, oldest first."""

    id: str
    name: str
    image_id: str
    metadata: Mapping[str, str]
    network: str
    mac_address: str
    addresses: Mapping[str, str]
    status: str = ACTIVE
    task_state: str | None = None
    launched_at: str | None = LAUNCHED
    actions: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of_member(cls, member: Member, fleet: Fleet) -> "Instance":
        """Return the settled instance of a member of the fleet."""
        tenant = member.tenant
        ids = {"serverID": member.id, "organizationID": tenant.organization_id, "projectID": tenant.project_id}
        legacy = {"region:server_id": member.id, "identity:organization_id": tenant.organization_id}
        return cls(
            id=member.instance_id,
            name=member.name,
            image_id=fleet.world.images["first"].id,
            metadata=ids | legacy | {"regionID": fleet.world.region_id},
            network=cloud_network(tenant.network_id),
            mac_address=member.mac_address,
            addresses={"fixed": member.private_ip, "floating": member.public_ip},
        )

    def record(self) -> dict[str, Any]:
        """Return Nova's JSON of it, at microversion 2.90, of about the size of a real one."""
        settled = self.status == ACTIVE
        links = [
            {"rel": rel, "href": f"http://nova.example/{path}/{self.id}"}
            for rel, path in (("self", "compute/v2.1/servers"), ("bookmark", "compute/servers"))
        ]
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "tenant_id": _HEX,
            "user_id": _HEX,
            "metadata": dict(self.metadata),
            "hostId": _HEX + _HEX[:24],
            "image": {"id": self.image_id, "links": links[1:]},
            "flavor": FLAVOR,
            "created": EPOCH,
            "updated": EPOCH,
            "addresses": {
                self.network: [
                    {
                        "version": 4,
                        "addr": address,
                        "OS-EXT-IPS:type": type_,
                        "OS-EXT-IPS-MAC:mac_addr": self.mac_address,
                    }
                    for type_, address in self.addresses.items()
                ]
            },
            "accessIPv4": "",
            "accessIPv6": "",
            "links": links,
            "OS-DCF:diskConfig": "MANUAL",
            "progress": 0,
            "OS-EXT-AZ:availability_zone": "nova",
            "config_drive": "",
            "key_name": "unikorn-openstack-provider",
            "OS-SRV-USG:launched_at": self.launched_at,
            "OS-SRV-USG:terminated_at": None,
            "OS-EXT-STS:task_state": self.task_state,
            "OS-EXT-STS:vm_state": "active" if settled else "building",
            "OS-EXT-STS:power_state": _RUNNING if settled else _NOSTATE,
            "os-extended-volumes:volumes_attached": [],
            "locked": False,
            "locked_reason": None,
            "description": None,
            "tags": [],
            "trusted_image_certificates": None,
            "host_status": "UP",
            "server_groups": [],
            "security_groups": [{"name": self.network.replace("network", "securitygroup")}],
        }


class Project:
    """The instances of one project, in an order that does not change, listed in pages as Nova lists them.

    The JSON of every instance and the bytes of every page are kept until something in them changes, so that what a
    benchmark measures is the reader and not the double. Not safe for use by several threads.
    """

    def __init__(self, instances: Iterable[Instance]) -> None:
        self._instances = {instance.id: instance for instance in instances}
        self._by_pattern = {_pattern(instance): instance for instance in self._instances.values()}
        self._json: dict[str, bytes] = {}
        self._pages: dict[str | None, bytes] = {}

    def instances(self) -> Iterable[Instance]:
        """Return all of them."""
        return self._instances.values()

    def find(self, instance_id: str) -> Instance | None:
        """Return one of them."""
        return self._instances.get(instance_id)

    def add(self, instance: Instance) -> None:
        """Put another one at the end."""
        self._instances[instance.id] = instance
        self._by_pattern[_pattern(instance)] = instance
        self._pages.clear()

    def changed(self, instance_ids: Iterable[str]) -> None:
        """Take note that these have changed."""
        self._pages.clear()
        for instance_id in instance_ids:
            self._json.pop(instance_id, None)

    def prepare(self) -> None:
        """Make the JSON of everything now, and not when it is first asked for."""
        for instance in self._instances.values():
            self._record(instance)

    def one(self, instance: Instance) -> bytes:
        """Return what a GET of one instance answers."""
        return b'{"server":' + self._record(instance) + b"}"

    def page(self, marker: str | None) -> bytes:
        """Return the page behind the marker. Raises NoMarker."""
        if marker is not None and marker not in self._instances:
            raise NoMarker
        if marker not in self._pages:
            ids = list(self._instances)
            begin = 0 if marker is None else ids.index(marker) + 1
            self._pages[marker] = self._listed(self._instances[id_] for id_ in ids[begin : begin + PAGE])
        return self._pages[marker]

    def named(self, pattern: str, marker: str | None) -> bytes:
        """Return the instances whose names match the regular expression, all on the page before any marker."""
        if marker is not None:
            return self._listed(())
        exact = self._by_pattern.get(pattern)
        if exact is not None:
            return self._listed([exact])
        return self._listed(one for one in self._instances.values() if re.search(pattern, one.name))

    def brief(self) -> bytes:
        """Return the list without details."""
        listed = list(self._instances.values())[:PAGE]
        return orjson.dumps({"servers": [{"id": one.id, "name": one.name, "links": []} for one in listed]})

    def _listed(self, instances: Iterable[Instance]) -> bytes:
        return b'{"servers":[' + b",".join(map(self._record, instances)) + b"]}"

    def _record(self, instance: Instance) -> bytes:
        if instance.id not in self._json:
            self._json[instance.id] = orjson.dumps(instance.record())
        return self._json[instance.id]


def _pattern(instance: Instance) -> str:
    # What a look-up by exact name asks for: found at once, so that ten thousand of them cost the double little.
    return f"^{re.escape(instance.name)}$"
