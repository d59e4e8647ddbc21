"""Promotes stored servers of v1 to v2, one conditional write each, beside whoever else writes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Protocol, TypeVar

from server_api.servers import promotion
from server_api.servers.cloud_model import Instance
from server_api.servers.lookup import find_instance
from server_api.servers.model import Server
from server_api.servers.ports import (
    Cloud,
    Directory,
    Missing,
    PortError,
    Refused,
    ServerSelector,
    ServerStore,
    StateConflict,
    Tenancy,
)
from server_api.servers.promotion import Promotion, Refusal, RefusalReason, Surroundings
from server_api.servers.surroundings import Region

ATTEMPTS = 5
"""How often one server is decided and written when others write it at the same time."""

Item = TypeVar("Item")


class PromotableServers(ServerStore, Protocol):
    """The stored servers, with the one write that promotes."""

    def promote(self, before: Server, after: Server) -> Server:
        """Write labels, owner and SSH mode of ``after`` in one request, if nobody wrote since ``before`` was read.

        Everything else is left as it is stored. Raises StateConflict, Missing, Refused.
        """


class Verdict(StrEnum):
    """What became of one server. FAILED: whether it can be promoted was not found out, another run may."""

    PROMOTED = "promoted"
    PROMOTABLE = "promotable"
    ALREADY = "already-v2"
    REFUSED = "refused"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """One server's line of the report. ``reason`` is set for a refusal, ``detail`` also for a failure."""

    server_id: str
    name: str
    network_id: str | None
    verdict: Verdict
    changes: tuple[str, ...] = ()
    reason: RefusalReason | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Project:
    tenancy: Tenancy
    instances: Mapping[str, Instance]


class Promoter:
    """Decides about servers from one survey of all of them, and writes what is decided.

    The cloud is only read: one list of instances for each cloud project, and a look for what that list lacks. With
    ``write`` False nothing is written.
    """

    def __init__(
        self,
        servers: PromotableServers,
        directory: Directory,
        cloud: Cloud,
        *,
        write: bool = True,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._servers = servers
        self._cloud = cloud
        self._write = write
        self._attempts = attempts
        self._known: dict[str, Server] = {}
        self._ids_by_place: dict[tuple[str | None, str], set[str]] = defaultdict(set)
        # What many servers share is looked up once in a run.
        self._region = cache(_optional(directory.region))
        self._network = cache(_optional(directory.network))
        self._group = cache(_optional(directory.security_group))
        self._authority = cache(_optional(directory.ssh_certificate_authority))
        self._project = cache(self._open_project)

    def survey(self) -> Sequence[str]:
        """Read all stored servers and return their IDs. To be called first."""
        for server in self._servers.list(ServerSelector()):
            self._known[server.id] = server
            for network_id in {server.metadata.network_id, *(network.id for network in server.spec.networks)}:
                self._ids_by_place[network_id, server.metadata.name].add(server.id)
        return list(self._known)

    def promote(self, server_id: str) -> Result:
        """Promote one server of the survey, or say why not.

        A write that lost a race is decided anew from a fresh read. Raises PortError when Kubernetes cannot be used:
        nothing is half done then, and the call may be made again.
        """
        server = self._known[server_id]
        for _ in range(self._attempts):
            decision = self._decide(server)
            if isinstance(decision, Result):
                return decision
            try:
                self._servers.promote(server, decision.server)
                return _result(server, Verdict.PROMOTED, changes=decision.changes)
            except Refused as refusal:
                return _refused(server, Refusal(RefusalReason.STORED_SCHEMA, refusal.detail))
            except (StateConflict, Missing):
                current = _optional(self._servers.get)(server_id)
            if current is None:
                return _result(server, Verdict.GONE)
            server = current
        return _result(server, Verdict.FAILED, detail="others keep changing it")

    def _decide(self, server: Server) -> Promotion | Result:
        """Return what to write, or the result when there is nothing to be written."""
        if promotion.is_done(server):
            return _result(server, Verdict.ALREADY)
        decision = promotion.plan(server, self._surroundings(server))
        if isinstance(decision, Refusal):
            return _refused(server, decision)
        try:
            refusal = promotion.image_refusal(server, self._instance(server, decision.region))
        except PortError as error:
            return _result(server, Verdict.FAILED, detail=f"which image it runs is not known: {error}")
        if refusal is not None:
            return _refused(server, refusal)
        return decision if self._write else _result(server, Verdict.PROMOTABLE, changes=decision.changes)

    def _surroundings(self, server: Server) -> Surroundings:
        network_id, authority_id = promotion.network_of(server), server.spec.ssh_certificate_authority_id
        groups = map(self._group, server.spec.security_group_ids or ())
        namesakes = self._ids_by_place[network_id, server.metadata.name] - {server.id}
        return Surroundings(
            region=self._region(server.metadata.region_id or ""),
            network=self._network(network_id) if network_id else None,
            groups={group.id: group for group in groups if group is not None},
            authority=self._authority(authority_id) if authority_id else None,
            namesakes=tuple(sorted(namesakes)),
        )

    def _instance(self, server: Server, region: Region) -> Instance | None:
        """Return the server's instance, None only if there is definitely none. Raises PortError of the cloud."""
        project = self._project(region, server.metadata.identity_id or "")
        if isinstance(project, PortError):
            raise project
        if project is None:
            return None
        # A list leaves out what Nova cannot describe at the moment; a look for the one server tells.
        return project.instances.get(server.id) or find_instance(project.tenancy, server)

    def _open_project(self, region: Region, identity_id: str) -> _Project | PortError | None:
        """Return a cloud project, None if the identity has none, or why it could not be asked.

        An error is an answer, so that a project that cannot be reached is waited for once and not for every server.
        """
        try:
            tenancy = self._cloud.tenancy(region, identity_id)
        except Missing:
            return None
        try:
            instances = tenancy.compute.instances()
        except PortError as error:
            return error
        return _Project(tenancy, {instance.server_id: instance for instance in instances if instance.server_id})


def _optional(look_up: Callable[[str], Item]) -> Callable[[str], Item | None]:
    def find(id_: str) -> Item | None:
        try:
            return look_up(id_)
        except Missing:
            return None

    return find


def _result(server: Server, verdict: Verdict, *, changes: tuple[str, ...] = (), detail: str = "") -> Result:
    return Result(server.id, server.metadata.name, promotion.network_of(server), verdict, changes, detail=detail)


def _refused(server: Server, refusal: Refusal) -> Result:
    result = _result(server, Verdict.REFUSED, detail=refusal.detail)
    return replace(result, reason=refusal.reason)
