"""What the lifecycle machine works with, and what its users know of their servers."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass, field

from server_api.servers import naming
from tests.api.world import IMAGE, NETWORK, SECOND_IMAGE, SECOND_NETWORK

SERVERS = "/api/v2/servers"
THIRD_IMAGE = "80000000-0000-4000-8000-000000000004"
IMAGES = (IMAGE, SECOND_IMAGE, THIRD_IMAGE)
GATES = ("example.unikorn-cloud.org/first", "second")
VERBS = ("start", "stop", "softreboot", "hardreboot")


@dataclass(frozen=True)
class Slot:
    """A place for a server: its name on its network, which give it its ID."""

    network_id: str
    name: str

    @property
    def server_id(self) -> str:
        return naming.server_id(self.network_id, self.name)

    @property
    def path(self) -> str:
        return f"{SERVERS}/{self.server_id}"


# The last has the first's name: in the cloud their instances are called the same, in the same project.
SLOTS = (Slot(NETWORK, "web-0"), Slot(NETWORK, "web-1"), Slot(SECOND_NETWORK, "web-0"))


@dataclass
class Expected:
    """What the user knows of a server that was created. ``number`` tells it from others that had its ID.

    ``wishes`` counts how often the image that is wanted, or the one that is there, was changed by somebody else than
    us. ``unseen``: it was since the last pass. ``told_launched``: the service said that the server had launched.
    """

    number: int
    slot: Slot
    image_id: str
    tag: str
    user_data: str | None = None
    public_ip: bool = False
    gates: tuple[str, ...] | None = None
    deleted: bool = False
    wishes: int = 0
    unseen: bool = False
    told_launched: bool = False

    def wish(self) -> None:
        self.wishes += 1
        self.unseen = True


@dataclass
class Ledger:
    """What must not happen twice, or at all, and is only seen when it happens. ``wrong`` says what did.

    ``owners`` has the number of the server that an instance was made for, by the instance's ID: a deletion may come so
    late that there is another server of that name by then.
    """

    owners: dict[str, int] = field(default_factory=dict)
    rebuilds: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def encoded(user_data: str) -> str:
    """Return user data as the API takes it."""
    return base64.b64encode(user_data.encode()).decode()
