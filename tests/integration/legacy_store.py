"""A store of a few hundred servers as an older region service leaves it, and what has to become of each.

Written from the contract: 4.2 to 4.5 for the objects, 1.4 for what v1 let through, behaviour.txt for what came later.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from server_api.sandbox.world import Tenant, World
from server_api.servers.naming import server_id
from server_api.store import kinds, labels

Object = dict[str, Any]

ORDINARY = 250
WITH_INSTANCE = 40
CREATED = "2024-05-06T07:08:09Z"
PLAIN = base64.b64encode(b"echo this is no cloud-init").decode()
GZIP = "H4sIAAAAAAAAA0vOSE0BAAjHg8kEAAAA"

NULLS = ("tags", "securityGroups", "publicIPAllocation", "userData", "volumes", "sshInjection")


@dataclass
class Place:
    """A network of the store, of the tenant that owns it. ``uid`` is known once it is stored."""

    tenant: Tenant
    network_id: str
    group_id: str
    uid: str = ""


@dataclass
class Legacy:
    """One server: what is stored of it, and what promote has to say. ``instance``: Nova has one for it.

    ``running_image`` is the image of that instance, None for the stored one.
    """

    body: Object
    verdict: str = "promoted"
    reason: str | None = None
    status: Object | None = None
    deleted: bool = False
    instance: bool = False
    running_image: str | None = None

    @property
    def id(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        found: dict[str, str] = self.body["metadata"]["labels"]
        return found

    @property
    def name(self) -> str:
        return self.labels.get(labels.NAME, "")


@dataclass
class LegacyStore:
    """Makes the servers; the same ones for the same seed."""

    world: World
    places: dict[str, Place]
    random: random.Random = field(default_factory=lambda: random.Random(5))

    def servers(self) -> list[Legacy]:
        """Return all of them."""
        return [*self._ordinary_ones(), *self._of_v2(), *self._refused()]

    def _ordinary_ones(self) -> Iterator[Legacy]:
        places = [self.places[name] for name in ("first", "second", "other")]
        for number in range(ORDINARY):
            instance = number < WITH_INSTANCE
            # Those that run are in one project, whose instances are made with one request.
            place = places[number % 2] if instance else places[number % 3]
            yield self._one(f"old-{number}", place, number, instance=instance)

    def _of_v2(self) -> Iterator[Legacy]:
        first = self.places["first"]
        v2 = {labels.API_VERSION: "2", labels.NETWORK_ID: first.network_id}
        for number in range(10):
            # Before names were derived, v2 made random ones too; and it did not say how SSH keys get in.
            legacy = self._one(f"early-v2-{number}", first, 5 * number + 1, verdict="already-v2")
            legacy.labels.update(v2)
            yield legacy
        for number in range(10):
            name = f"v2-{number}"
            legacy = self._one(name, first, 5 * number + 1, verdict="already-v2", id_=server_id(first.network_id, name))
            legacy.labels.update(v2)
            legacy.body["spec"]["sshInjection"] = "none"
            yield legacy
        for number in range(5):
            # An update through the older v1 took away all that made it v2 (contract 1.4).
            name = f"stripped-{number}"
            yield self._one(name, first, number, id_=server_id(first.network_id, name))

    def _refused(self) -> Iterator[Legacy]:
        first, other = self.places["first"], self.places["other"]

        def refused(reason: str, name: str | None = None, place: Place = first) -> Legacy:
            return self._one(name or reason, place, 3, verdict="refused", reason=reason)

        for _ in range(3):
            legacy = refused("being-deleted", "on-its-way-out")
            legacy.deleted = True
            legacy.labels[labels.NAME] += legacy.id[:4]
            yield legacy
        for legacy, networks in (
            (
                refused("not-one-network", "on-two"),
                [{"id": first.network_id}, {"id": self.places["second"].network_id}],
            ),
            (refused("not-one-network", "on-none"), []),
            (refused("not-one-network", "on-null"), None),
        ):
            legacy.body["spec"]["networks"] = networks
            yield legacy
        yield refused("network-not-v2", place=self.places["v1"])
        gone = refused("network-missing", place=Place(first.tenant, self._id(), first.group_id))
        yield gone
        foreign = refused("network-of-another-project")
        foreign.body["spec"]["networks"] = [{"id": other.network_id}]
        yield foreign
        moved = refused("network-changed", "moved-by-v1")
        moved.body["spec"]["networks"] = [{"id": self.places["second"].network_id}]
        yield moved
        for group_id, reason in (
            (self._id(), "security-group-missing"),
            (self.places["v1"].group_id, "security-group-not-v2"),
            (self.places["second"].group_id, "security-group-of-another-network"),
        ):
            legacy = refused(reason)
            legacy.body["spec"]["securityGroups"] = [{"id": group_id}]
            yield legacy
        for label in (labels.NAME, labels.IDENTITY_ID, labels.REGION_ID):
            legacy = refused("missing-label", f"without-{label.partition('/')[2]}")
            del legacy.labels[label]
            yield legacy
        imageless = refused("incomplete-spec", "without-image")
        del imageless.body["spec"]["image"]
        yield imageless
        pinned = refused("ssh-access", "pinned-by-hand")
        pinned.body["spec"]["infrastructureRef"] = "host-1"
        yield pinned
        for _ in range(2):
            yield refused("name-taken", "twice")
        taken = refused("name-taken", "v2-0")
        yield taken
        drifted = self._one("drifted", first, 3, verdict="refused", reason="image-differs", instance=True)
        # The older v1 stored the image of an update, and nothing came of it.
        drifted.running_image = self.world.images["ready"].id
        drifted.body["spec"]["image"] = {"id": self.world.images["ready-too"].id}
        yield drifted

    def _one(
        self,
        name: str,
        place: Place,
        number: int,
        *,
        verdict: str = "promoted",
        reason: str | None = None,
        id_: str | None = None,
        instance: bool = False,
    ) -> Legacy:
        tenant = place.tenant
        metadata: Object = {
            "name": id_ or self._id(),
            "labels": {
                labels.NAME: name,
                labels.ORGANIZATION: tenant.organization_id,
                labels.PROJECT: tenant.project_id,
                labels.REGION_ID: self.world.region_id,
                labels.IDENTITY_ID: tenant.identity_id,
            },
            "annotations": {labels.CREATOR: "somebody@legacy"},
            "finalizers": ["unikorn"],
        }
        # The oldest objects have no owner, and one that does not exist would let the object be collected.
        if place.uid and number % 5:
            metadata["ownerReferences"] = [_owner(place)]
        spec = {
            "provider": "openstack",
            "flavorID": self.world.flavors["virtual"].id,
            "image": {"id": self.world.images["ready"].id},
            "networks": [{"id": place.network_id, **_PAIRS[number % len(_PAIRS)]}],
            **_SPECS[number % len(_SPECS)](place),
        }
        body = {"apiVersion": kinds.SERVER.api_version, "kind": "Server", "metadata": metadata, "spec": spec}
        status = _STATUSES[-1] if instance else _STATUSES[number % len(_STATUSES)]
        return Legacy(body, verdict, reason, status, instance=instance)

    def _id(self) -> str:
        """Return a random version-4 UUID that begins with a letter."""
        drawn = str(UUID(int=self.random.getrandbits(128), version=4))
        return drawn if drawn[0].isalpha() else self._id()


def _owner(place: Place) -> Object:
    return {
        "apiVersion": kinds.NETWORK.api_version,
        "kind": kinds.NETWORK.name,
        "name": place.network_id,
        "uid": place.uid,
        "controller": False,
        "blockOwnerDeletion": True,
    }


_SPECS: tuple[Callable[[Place], Object], ...] = (
    lambda place: {},
    lambda place: dict.fromkeys(NULLS),
    lambda place: {"securityGroups": [{"id": place.group_id}], "tags": [{"name": "tier", "value": "front"}]},
    lambda place: {"securityGroups": [], "tags": [], "publicIPAllocation": {"enabled": False}},
    lambda place: {"userData": PLAIN, "publicIPAllocation": {"enabled": True}},
    lambda place: {"userData": GZIP, "securityGroups": [{"id": place.group_id}, {"id": place.group_id}]},
    lambda place: {"userData": "", "volumes": [{"id": "volume-1", "ofOthers": "kept"}]},
)

_PAIRS: tuple[Object, ...] = (
    {},
    {"allowedAddressPairs": None},
    {"allowedAddressPairs": []},
    {"allowedAddressPairs": [{"cidr": "10.1.0.0/16"}, {"cidr": "10.2.0.0/16", "macAddress": "fa:16:3e:00:00:01"}]},
)


def _condition(type_: str, status: str, reason: str) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": CREATED}


_STATUSES: tuple[Object | None, ...] = (
    None,
    {"phase": ""},
    {"conditions": [], "phase": "Running", "privateIP": "192.168.10.9"},
    {"conditions": [_condition("Available", "False", "Provisioning")], "phase": "Pending"},
    {"conditions": [_condition("Available", "False", "Errored"), _condition("Healthy", "False", "Errored")]},
    {"conditions": [_condition("Available", "True", "OfALaterVersion")], "phase": "Stopped", "launchedAt": CREATED},
    {
        "conditions": [_condition("Available", "True", "Provisioned"), _condition("Healthy", "True", "Healthy")],
        "phase": "Running",
        "launchedAt": CREATED,
        "privateIP": "192.168.10.10",
    },
)
