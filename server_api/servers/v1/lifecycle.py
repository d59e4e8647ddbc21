"""The use cases of v1: create, read, list, update and delete, each check in the contract's order (1.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from server_api.servers import conditional_update, create_permission, offers, tags
from server_api.servers.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unprocessable
from server_api.servers.lookup import PERMISSION
from server_api.servers.model import API_VERSION_2, Metadata, NetworkAttachment, Phase, Server, ServerSpec, Tag
from server_api.servers.ports import (
    AlreadyExists,
    Caller,
    Clock,
    Cloud,
    Directory,
    Missing,
    Refused,
    ServerSelector,
    ServerStore,
)
from server_api.servers.surroundings import Identity, Network
from server_api.servers.v1.address_pairs import storable
from server_api.servers.v1.requests import ServerWrite
from server_api.servers.v1.scope import Scope


class LifecycleV1:
    """What callers of v1 do with servers, those of v2 included.

    Every method raises a ``Rejection`` when it turns the caller down, and a ``PortError`` when a dependency fails.
    ``new_id`` makes the IDs of servers.
    """

    def __init__(
        self,
        servers: ServerStore,
        directory: Directory,
        cloud: Cloud,
        clock: Clock,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        self._servers = servers
        self._directory = directory
        self._cloud = cloud
        self._clock = clock
        self._new_id = new_id

    def list(self, caller: Caller, organization_id: str, selectors: Sequence[Tag]) -> Sequence[Server]:
        """Return an organization's servers of any API version that have all the tags, by ID."""
        if not caller.may(PERMISSION, "read", organization_id):
            raise Forbidden("reading servers is not allowed in the organization")
        found = self._servers.list(ServerSelector(organization_ids=frozenset({organization_id})))
        return [server for server in found if tags.match(selectors, server.spec.tags)]

    def get(self, caller: Caller, scope: Scope, server_id: str) -> Server:
        """Return one server."""
        scope.require(caller, "read")
        return scope.server(self._servers, server_id)

    def create(self, caller: Caller, scope: Scope, request: ServerWrite) -> Server:
        """Store a new server and return it, in phase Pending. Names need not be unique.

        Of image only the existence is checked, of flavor and user data nothing, and of security groups only that their
        IDs are some.
        """
        create_permission.require(caller, scope.organization_id, scope.project_id)
        identity = scope.identity(self._directory)
        self._check_image(identity, request.image_id, scope.organization_id)
        network = scope.network(self._directory, request.network_id)
        spec = _replaced(ServerSpec(flavor_id="", image_id=request.image_id), request, network)
        server = Server(self._random_id(), _metadata(caller, scope, request, identity, network), spec)
        try:
            stored = self._servers.create(server)
        except AlreadyExists:
            raise Conflict("a server of that ID exists; try again") from None
        except Refused as refusal:
            raise Unprocessable(refusal.detail) from None
        # The answer alone says so: what a create says of status is not stored (contract 4.4).
        return replace(stored, status=replace(stored.status, phase=Phase.PENDING))

    def update(self, caller: Caller, scope: Scope, server_id: str, request: ServerWrite) -> Server:
        """Replace what a v1 body can say, and return the server as stored.

        The image in the body is ignored and not looked up, so that no client of v1 can start a rebuild. A lost race is
        tried once more from a fresh read.
        """
        # Contract 5.3: v1 has always asked for create here. To take update too would let more callers in.
        scope.require(caller, "create")
        scope.identity(self._directory)
        return conditional_update.with_one_retry(lambda: self._update(caller, scope, server_id, request))

    def delete(self, caller: Caller, scope: Scope, server_id: str) -> None:
        """Ask for a server's deletion; asking again while it is under way is accepted."""
        scope.require(caller, "delete")
        scope.server(self._servers, server_id)
        try:
            self._servers.delete(server_id)
        except Missing:
            raise NotFound("the server does not exist") from None

    def _update(self, caller: Caller, scope: Scope, server_id: str, request: ServerWrite) -> Server:
        server = scope.server(self._servers, server_id)
        if request.name != server.metadata.name:
            # The instance is looked up by it: under another name it would not be found, and be made a second time.
            raise Unprocessable("the name is immutable", "metadata.name")
        network = scope.network(self._directory, request.network_id)
        if server.metadata.api_version == API_VERSION_2:
            _check_fixed_in_v2(server.spec, request, network)
        metadata = replace(
            server.metadata,
            description=request.description or None,
            modifier=caller.subject,
            principal_modifier=caller.actor,
            modified_at=self._clock.now().replace(microsecond=0),
        )
        spec = _replaced(server.spec, request, network)
        return conditional_update.write(self._servers, replace(server, metadata=metadata, spec=spec))

    def _check_image(self, identity: Identity, image_id: str, organization_id: str) -> None:
        try:
            region = self._directory.region(identity.region_id or "")
        except Missing:
            raise NotFound("the identity's region does not exist") from None
        if region.provider != "openstack":
            raise InvalidRequest("the identity's region does not offer servers")
        offers.visible_image(self._cloud.catalogue(region).images(), image_id, organization_id)

    def _random_id(self) -> str:
        """Return a random UUID that begins with a letter, which Kubernetes asks of some names."""
        drawn = str(self._new_id())
        while drawn[0].isdigit():
            drawn = str(self._new_id())
        return drawn


def _check_fixed_in_v2(stored: ServerSpec, request: ServerWrite, network: Network) -> None:
    """Raise Unprocessable for a change that v2 promises its clients not to happen.

    In v2 a server's ID and scope follow from its network, and its flavor is what runs.
    """
    if request.flavor_id != stored.flavor_id:
        raise Unprocessable("the flavor is immutable", "spec.flavorId")
    if stored.networks and network.id != stored.networks[0].id:
        raise Unprocessable("the network is immutable", "spec.networks[0].id")


def _replaced(stored: ServerSpec, request: ServerWrite, network: Network) -> ServerSpec:
    """Return the stored spec with what the body can say replaced; what it cannot say, and the image, stays."""
    pairs = None if request.address_pairs is None else storable(request.address_pairs)
    return replace(
        stored,
        flavor_id=request.flavor_id,
        # A body speaks of the first network, which is the only one unless somebody wrote more by hand.
        networks=(NetworkAttachment(network.id, pairs), *stored.networks[1:]),
        tags=request.tags,
        security_group_ids=_group_ids(request.security_group_ids),
        public_ip=request.public_ip,
        user_data=request.user_data or None,
    )


def _group_ids(asked: tuple[str | None, ...] | None) -> tuple[str, ...] | None:
    if asked is None:
        return None
    for index, group_id in enumerate(asked):
        if group_id is None:
            raise Unprocessable("not a valid UUID", f"spec.securityGroups[{index}].id")
    return tuple(dict.fromkeys(filter(None, asked)))


def _metadata(caller: Caller, scope: Scope, request: ServerWrite, identity: Identity, network: Network) -> Metadata:
    organization_id, project_id = create_permission.attribution(caller, scope.organization_id, scope.project_id)
    return Metadata(
        name=request.name,
        organization_id=scope.organization_id,
        project_id=scope.project_id,
        region_id=identity.region_id,
        identity_id=identity.id,
        description=request.description or None,
        creator=caller.subject,
        principal_creator=caller.actor,
        principal_organization_id=organization_id,
        principal_project_id=project_id,
        owner_uid=network.uid,
    )
