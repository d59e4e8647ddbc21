"""The main job on a running sandbox, shown step by step as it happens."""

import os
import secrets
import shutil
import subprocess
from typing import Any

import keystoneauth1.exceptions
import requests

from server_api.sandbox.api_client import ApiClient
from server_api.sandbox.errors import StepFailed
from server_api.sandbox.progress import Progress, Report
from server_api.sandbox.region import Region
from server_api.sandbox.rest import OpenStackUser
from server_api.sandbox.services import NAMESPACE
from server_api.sandbox.tenancy import Tenancy
from server_api.sandbox.waiting import wait_for
from server_api.servers.naming import server_id
from server_api.store import kinds

Item = dict[str, Any]
WATCHED = ("provisioningStatus", "healthStatus")


class Demo:
    """Walks one server of its own through its whole life; every step holds, or StepFailed says what did not."""

    def __init__(self, region: Region, report: Report) -> None:
        self._region = region
        self._progress = Progress(report)
        self._world = region.world
        self._tenant = self._world.first
        environment = region.environment()
        self._api = ApiClient(environment["SERVER_API_URL"], environment["SERVER_API_TOKEN_USER"])
        self._environment = environment
        name = self._tenant.cloud_name
        openstack = region.openstack
        self._cloud = Tenancy(OpenStackUser(openstack.auth_url, name, self._tenant.password, name))
        self._name = f"demo-{secrets.token_hex(3)}"
        self._id = server_id(self._tenant.network_id, self._name)

    def run(self) -> None:
        """Do all steps. A server that a failed step leaves behind stays there to be looked at."""
        steps = (
            self._create,
            self._settle,
            self._addresses,
            self._in_kubernetes,
            self._in_nova,
            lambda: self._power("stop", "SHUTOFF", "Stopped"),
            lambda: self._power("start", "ACTIVE", "Running"),
            lambda: self._reboot("softreboot"),
            lambda: self._reboot("hardreboot"),
            self._change,
            self._delete,
            self._nothing_left,
        )
        try:
            for step in steps:
                step()
        except requests.RequestException as error:
            reason = f"{type(error).__name__}; see server-api sandbox status"
            raise StepFailed(f"the API does not answer: {reason}") from error
        except keystoneauth1.exceptions.ClientException as error:
            raise StepFailed(f"OpenStack does not answer: {error}; see server-api sandbox status") from error
        self._progress("the main job is done: every step held")

    def _create(self) -> None:
        body = {
            "metadata": {"name": self._name, "tags": [{"name": "made-by", "value": "demo"}]},
            "spec": {
                "networkId": self._tenant.network_id,
                "flavorId": self._world.flavors["virtual"].id,
                "imageId": self._world.images["ready"].id,
                "networking": {"publicIP": True, "securityGroups": [self._tenant.security_group_id]},
            },
        }
        server = _expect(201, self._api.create(body), "create").json()
        _hold("the ID follows from network and name", server["metadata"]["id"], self._id)
        self._progress(f"created {self._name} over HTTP: {self._id}")

    def _settle(self) -> None:
        seen: list[str] = []

        def look() -> Item | None:
            server = self._read()
            words = [server["metadata"][name] for name in WATCHED]
            line = ", ".join([*words, server["status"].get("powerState", "no power state")])
            if line not in seen[-1:]:
                seen.append(line)
                self._progress(f"  {line}")
            settled = server["metadata"]["provisioningStatus"] == "provisioned"
            return server if settled and server["status"].get("powerState") == "Running" else None

        with self._progress.step("it is provisioned and Running"):
            wait_for("the server is provisioned and Running", look)

    def _addresses(self) -> None:
        status = self._read()["status"]
        port = self._cloud.port(self._id)
        if port is None:
            raise StepFailed("Neutron has no port of the server")
        _hold("private address", status.get("privateIP"), port["fixed_ips"][0]["ip_address"])
        floating = [item for item in self._cloud.floating_ips() if item["port_id"] == port["id"]]
        _hold("public address", [status.get("publicIP")], [item["floating_ip_address"] for item in floating])
        self._progress(f"addresses: private {status['privateIP']}, public {status['publicIP']}")

    def _in_kubernetes(self) -> None:
        if shutil.which("kubectl") is None:
            stored = self._region.kubernetes().get(kinds.SERVER, NAMESPACE, self._id)
            self._progress(f"stored in Kubernetes: {stored['metadata']['name']}, {stored['status'].get('phase')}")
            return
        result = subprocess.run(
            ["kubectl", "get", "servers", self._id],
            env={**os.environ, "KUBECONFIG": self._environment["KUBECONFIG"]},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise StepFailed(f"kubectl get servers: {result.stderr.strip()}")
        self._progress("kubectl get servers:")
        for line in result.stdout.splitlines():
            self._progress(f"  {line}")

    def _in_nova(self) -> None:
        instance = self._instance()
        _hold("Nova's status", instance["status"], "ACTIVE")
        _hold("Nova's metadata serverID", instance["metadata"].get("serverID"), self._id)
        addresses = [item["addr"] for items in instance["addresses"].values() for item in items]
        self._progress(f"Nova: {instance['id']} {instance['status']} {', '.join(addresses)}")

    def _power(self, verb: str, nova: str, power: str) -> None:
        with self._progress.step(f"{verb}: Nova says {nova}, the API {power}"):
            _expect(202, self._api.act(self._id, verb), verb)
            self._wait_for_state(nova, power)

    def _reboot(self, verb: str) -> None:
        instance = self._instance()
        before = len(self._cloud.actions(instance["id"], "reboot"))
        with self._progress.step(f"{verb}: Nova did it, ACTIVE and Running again"):
            _expect(202, self._api.act(self._id, verb), verb)
            _hold("reboots that Nova recorded", len(self._cloud.actions(instance["id"], "reboot")), before + 1)
            self._wait_for_state("ACTIVE", "Running")

    def _change(self) -> None:
        server = self._read()
        metadata = {
            "name": self._name,
            "description": "changed",
            "tags": [{"name": "changed", "value": "yes"}],
        }
        body = {"metadata": metadata, "spec": server["spec"]}
        with self._progress.step("description and tags are changed"):
            _expect(202, self._api.update(self._id, body), "update")
            now = self._read()["metadata"]
            _hold("description", now.get("description"), metadata["description"])
            _hold("tags", now.get("tags"), metadata["tags"])

    def _delete(self) -> None:
        with self._progress.step("deleted: the API says 404"):
            _expect(202, self._api.delete(self._id), "delete")
            wait_for("the server is gone", lambda: self._api.get(self._id).status_code == 404)

    def _nothing_left(self) -> None:
        with self._progress.step("Nova and Neutron hold nothing of it: no instance, no port, no floating IP"):
            wait_for("Nova's instance is gone", lambda: not self._cloud.instances(self._name))
            _hold("Neutron's port", self._cloud.port(self._id), None)
            _hold("Neutron's floating IPs without a port", self._orphans(), [])

    def _orphans(self) -> list[Item]:
        return [item for item in self._cloud.floating_ips() if item["port_id"] is None]

    def _read(self) -> Item:
        return dict(_expect(200, self._api.get(self._id), "get").json())

    def _instance(self) -> Item:
        instance = self._cloud.instance(self._name)
        if instance is None:
            raise StepFailed(f"Nova has no instance {self._name}")
        return instance

    def _wait_for_state(self, nova: str, power: str) -> None:
        def look() -> bool:
            instance = self._instance()
            idle = instance["OS-EXT-STS:task_state"] is None
            return idle and instance["status"] == nova and self._read()["status"].get("powerState") == power

        wait_for(f"Nova says {nova} and the API {power}", look)


def _expect(status: int, answer: requests.Response, what: str) -> requests.Response:
    if answer.status_code != status:
        raise StepFailed(f"{what}: {answer.status_code} instead of {status}: {answer.text[:500]}")
    return answer


def _hold(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise StepFailed(f"{what}: {seen!r} instead of {expected!r}")
