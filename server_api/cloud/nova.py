"""Instances of one project, through python-novaclient (contract 6.2 to 6.4, 6.8, 6.13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from keystoneauth1.exceptions import BadRequest

from server_api.cloud.errors import safe_detail, translated
from server_api.cloud.sessions import CloudClients
from server_api.servers.cloud_model import Instance, InstanceOrder, PowerState
from server_api.servers.ports import Ambiguous, Missing, Unavailable

SERVER_ID_KEY = "serverID"
"""Metadata key that makes an instance ours (contract 6.4)."""

LIST_ATTEMPTS = 3

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class NovaCompute:
    """The port ``Compute`` over Nova.

    ``region_clients`` logs in with the region's rights on the same project, for what a tenant may not do.
    """

    def __init__(self, clients: CloudClients, region_clients: Callable[[], CloudClients]) -> None:
        self._clients = clients
        self._region_clients = region_clients

    def find(self, name: str, server_id: str) -> Instance | None:
        """Return our instance by exact name and our metadata; instances of others with that name are passed over.

        Raises Ambiguous when several are ours, Unavailable when Nova cannot tell whether there is one.
        """
        # Nova takes the filter for a regular expression, in the dialect of its database: hence the second look.
        pattern = f"^{re.escape(name)}$"
        ours = [
            instance
            for instance in self._list(search_opts={"name": pattern})
            if instance.name == name and instance.server_id == server_id
        ]
        if len(ours) > 1:
            ids = ", ".join(sorted(instance.id for instance in ours))
            raise Ambiguous("nova", safe_detail(f"several instances belong to server {server_id}: {ids}"))
        if not ours:
            self._require_every_cell()
            return None
        return ours[0]

    def get(self, instance_id: str) -> Instance | None:
        """Return the instance of that ID, None only if Nova says that there is none."""
        try:
            with translated("nova"):
                return instance_from(self._clients.nova.servers.get(instance_id).to_dict())
        except Missing:
            return None

    @translated("nova")
    def instances(self) -> Sequence[Instance]:
        """Return every instance of the project that Nova can describe at the moment."""
        return self._list()

    @translated("nova")
    def create(self, order: InstanceOrder) -> Instance:
        """Create an instance. Nova's answer names only its ID; it is in BUILD from then on.

        The network entry carries the port alone: Nova derives the network from it and ignores one that is sent.
        """
        pinned = {"hypervisor_hostname": order.hypervisor_hostname} if order.hypervisor_hostname else {}
        clients = self._region_clients() if pinned else self._clients
        created = clients.nova.servers.create(
            name=order.name,
            image=order.image_id,
            flavor=order.flavor_id,
            nics=[{"port-id": order.port_id}],
            meta=dict(order.metadata),
            userdata=order.user_data or None,
            key_name=order.key_name,
            **pinned,
        )
        return Instance(id=created.id, name=order.name, status="BUILD", server_id=order.metadata.get(SERVER_ID_KEY))

    def delete(self, instance_id: str) -> None:
        """Ask for deletion; an instance already gone is no error."""
        try:
            with translated("nova"):
                self._clients.nova.servers.delete(instance_id)
        except Missing:
            return

    @translated("nova")
    def start(self, instance_id: str) -> None:
        """Start. Raises Missing, StateConflict."""
        self._clients.nova.servers.start(instance_id)

    @translated("nova")
    def stop(self, instance_id: str) -> None:
        """Stop. Raises Missing, StateConflict."""
        self._clients.nova.servers.stop(instance_id)

    @translated("nova")
    def soft_reboot(self, instance_id: str) -> None:
        """Reboot through the guest. Raises Missing, StateConflict."""
        self._clients.nova.servers.reboot(instance_id, "SOFT")

    @translated("nova")
    def hard_reboot(self, instance_id: str) -> None:
        """Reboot by power cycle. Raises Missing, StateConflict."""
        self._clients.nova.servers.reboot(instance_id, "HARD")

    @translated("nova")
    def rebuild(self, instance_id: str, image_id: str) -> None:
        """Rebuild from an image, sending nothing else: user data and key pair stay (B-18).

        Raises Missing, StateConflict, Refused.
        """
        self._clients.nova.servers.rebuild(instance_id, image_id)

    @translated("nova")
    def last_rebuild(self, instance_id: str) -> str:
        """Return the request ID of the last rebuild Nova has taken from the identity's user, empty if it took none.

        Nova records the action before it answers the request, so one that is not there was not taken so far. Raises
        Missing.
        """
        us = self._clients.session.get_user_id()
        actions = [action.to_dict() for action in self._clients.nova.instance_action.list(instance_id)]
        ours = [action for action in actions if (action["action"], action["user_id"]) == ("rebuild", us)]
        # Nova lists them newest first, but the order is not documented; of two in one second it is.
        return str(max(ours, key=lambda action: action["start_time"])["request_id"]) if ours else ""

    @translated("nova")
    def console_output(self, instance_id: str, lines: int | None) -> str:
        """Return the last lines of the console, Nova's own choice of them for None. Raises Missing, StateConflict."""
        # novaclient's own method sends a null for None.
        options = {} if lines is None else {"length": lines}
        path, body = f"/servers/{instance_id}/action", {"os-getConsoleOutput": options}
        _, answer = self._clients.nova.client.post(path, body=body)
        return _text(answer["output"])

    @translated("nova")
    def console_url(self, instance_id: str) -> str:
        """Open a console and return its URL, which is a secret.

        Raises Missing, StateConflict, Refused when the cloud has no such consoles.
        """
        answer = self._clients.nova.servers.get_console_url(instance_id, "novnc")
        return _text(answer["remote_console"]["url"])

    @translated("nova")
    def create_image(self, instance_id: str, name: str, properties: Mapping[str, str]) -> str:
        """Begin an image of the instance and return the image's ID.

        Besides ``properties`` the image gets those of the image that the instance was made from. Raises Missing,
        StateConflict, Refused.
        """
        # A null for the ID comes out of novaclient as the text "None".
        image_id = _text(self._clients.nova.servers.create_image(instance_id, name, dict(properties)))
        if not _UUID.fullmatch(image_id):
            raise Unavailable("nova", "the answer does not name the new image")
        return image_id

    def _list(self, **options: Any) -> list[Instance]:
        with translated("nova"):
            records = every_page(self._clients.nova.servers.list, **options)
            return [instance_from(record) for record in records if "name" in record]

    @translated("nova")
    def _require_every_cell(self) -> None:
        """Raise Unavailable when a cell of Nova does not answer.

        A filtered list leaves out the instances of such a cell without a word, and an instance left out would be
        created a second time (B-07). Only a list without filter and paging names them, with the status UNKNOWN.
        """
        servers = self._clients.nova.servers.list(detailed=False)
        if any(server.to_dict().get("status") == "UNKNOWN" for server in servers):
            raise Unavailable("nova", "a cell does not answer, so whether the instance exists cannot be told")


def every_page(list_page: Callable[..., Sequence[Any]], **options: Any) -> list[dict[str, Any]]:
    """Return the JSON of all that a list of novaclient holds, each item once; a call returns one page of it (B-78).

    novaclient's own ``limit=-1`` does this for servers only, and for ever when a marker is not heeded. Raises
    Unavailable in that case, and when the list changes every time while it is read.
    """
    for _ in range(LIST_ATTEMPTS):
        records = _walk(list_page, options)
        if records is not None:
            return records
    raise Unavailable("nova", "a list could not be read to its end")


def _walk(list_page: Callable[..., Sequence[Any]], options: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return every item, None when a page brings nothing new or cannot be had because of its marker.

    Both happen without fault of anybody. While Nova hands the marker to a cell, it is a build request and an instance
    at once, and the list after it begins with itself. A marker that was deleted is none any more.
    """
    records: dict[str, dict[str, Any]] = {}
    marker = None
    while True:
        try:
            page = list_page(marker=marker, **options)
        except BadRequest:
            if marker is None:
                raise
            return None
        if not page:
            return list(records.values())
        known = len(records)
        records |= {item.id: item.to_dict() for item in page}
        if len(records) == known:
            return None
        marker = page[-1].id


def instance_from(record: Mapping[str, Any]) -> Instance:
    """Return Nova's JSON of a server as an ``Instance``. Raises LookupError, TypeError or ValueError if it is none."""
    return Instance(
        id=record["id"],
        name=record["name"],
        status=record["status"],
        server_id=record["metadata"].get(SERVER_ID_KEY),
        task_state=record.get("OS-EXT-STS:task_state"),
        power_state=record.get("OS-EXT-STS:power_state") or PowerState.NOSTATE,
        image_id=_image_id(record.get("image")),
        # From microversion 2.47 on Nova embeds what the flavor was at creation, without its ID.
        flavor_id=record.get("flavor", {}).get("id"),
        created_at=_time(record.get("created")),
        launched_at=_time(record.get("OS-SRV-USG:launched_at")),
        mac_addresses=_mac_addresses(record.get("addresses") or {}),
        fault=_fault(record.get("fault")),
    )


def _text(value: Any) -> str:
    """Return a string of an answer without what novaclient attaches to it. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError("a string was expected")
    return str(value)


def _image_id(image: Any) -> str | None:
    """An instance booted from a volume has the empty string for an image."""
    image_id = image.get("id") if isinstance(image, Mapping) else None
    return image_id if isinstance(image_id, str) and _UUID.fullmatch(image_id) else None


def _time(text: str | None) -> datetime | None:
    """``created`` ends in Z; ``launched_at`` names no zone and is in UTC.

    Whole seconds, which is all that a stored object keeps: more would differ from it at every look.
    """
    if not text:
        return None
    moment = datetime.fromisoformat(text).replace(microsecond=0)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _mac_addresses(addresses: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    found = {}
    for network, entries in addresses.items():
        macs = (entry.get("OS-EXT-IPS-MAC:mac_addr") for entry in entries)
        mac = next((mac for mac in macs if mac), None)
        if mac:
            found[network] = mac
    return found


def _fault(fault: Mapping[str, Any] | None) -> str | None:
    return safe_detail(str(fault.get("message", ""))) or None if fault else None
