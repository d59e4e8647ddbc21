"""The use cases of v2: create, read, list, update and delete, each check in the contract's order (1.5, 1.6, 1.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from server_api.servers import (
    conditional_update,
    create_permission,
    image_compatibility,
    naming,
    offers,
    provider_create_gates,
    ssh_access,
    tags,
    updates,
    user_data,
)
from server_api.servers.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from server_api.servers.lookup import PERMISSION, had_instance, permitted_server, readable_server, region_of
from server_api.servers.model import (
    API_VERSION_2,
    Metadata,
    NetworkAttachment,
    RebuildMarker,
    Server,
    ServerSpec,
)
from server_api.servers.ports import (
    AlreadyExists,
    Caller,
    Clock,
    Cloud,
    Directory,
    Missing,
    PortError,
    Refused,
    ServerSelector,
    ServerStore,
)
from server_api.servers.rebuild import RebuildState
from server_api.servers.references import certificate_authority, readable_network, security_groups
from server_api.servers.requests import ServerCreate, ServerQuery, ServerUpdate
from server_api.servers.source_addresses import address_pairs
from server_api.servers.surroundings import Network
from server_api.servers.user_data_augmentation import augment

UpdateObserver = Callable[[Server, Server], None]
"""Told of an update: the server before, and as it is stored now."""


class Lifecycle:
    """What callers of v2 do with servers.

    Every method raises a ``Rejection`` when it turns the caller down, and a ``PortError`` when a dependency fails.
    """

    def __init__(self, servers: ServerStore, directory: Directory, cloud: Cloud, clock: Clock) -> None:
        self._servers = servers
        self._directory = directory
        self._cloud = cloud
        self._clock = clock

    def get(self, caller: Caller, server_id: str) -> Server:
        """Return one server."""
        return readable_server(self._servers, caller, server_id)

    def list(self, caller: Caller, query: ServerQuery) -> Sequence[Server]:
        """Return the servers the caller may read, by ID; what it may not read is left out without a word."""
        organization_ids = _visible_organizations(caller.organization_ids, query.organization_ids)
        if organization_ids is None:
            return ()
        selector = ServerSelector(
            organization_ids=organization_ids,
            project_ids=query.project_ids,
            region_ids=query.region_ids,
            network_ids=query.network_ids,
            api_version=API_VERSION_2,
        )
        return [
            server
            for server in self._servers.list(selector)
            if tags.match(query.tags, server.spec.tags)
            and caller.may(PERMISSION, "read", server.metadata.organization_id, server.metadata.project_id)
        ]

    def create(self, caller: Caller, request: ServerCreate) -> Server:
        """Store a new server and return it. The controller builds it; nothing in the cloud exists yet."""
        network = readable_network(self._directory, caller, request.network_id, "spec.networkId")
        if not network.is_v2:
            raise NotFound("the network does not belong to this version of the API", "spec.networkId")
        organization_id, project_id = _scope(network)
        create_permission.require(caller, organization_id, project_id)
        spec = self._spec(caller, request, network, organization_id)
        server = Server(
            id=naming.server_id(network.id, request.name),
            metadata=_metadata(caller, request, network, organization_id, project_id),
            spec=spec,
        )
        try:
            return self._servers.create(server)
        except AlreadyExists:
            raise Conflict("a server of that name exists on the network", "metadata.name") from None
        except Refused as refusal:
            raise Unprocessable(refusal.detail) from None

    def update(
        self, caller: Caller, server_id: str, request: ServerUpdate, written: UpdateObserver | None = None
    ) -> Server:
        """Replace what an update may replace, and return the server as stored.

        A lost race is tried once more from a fresh read. A request that says what is stored already writes nothing.
        ``written`` is called once something is written, with the server before and after.
        """
        return conditional_update.with_one_retry(lambda: self._update(caller, server_id, request, written))

    def delete(self, caller: Caller, server_id: str) -> None:
        """Ask for a server's deletion; asking again while it is under way is accepted."""
        permitted_server(self._servers, caller, server_id, "delete")
        try:
            self._servers.delete(server_id)
        except Missing:
            raise NotFound("the server does not exist") from None

    def _spec(self, caller: Caller, request: ServerCreate, network: Network, organization_id: str) -> ServerSpec:
        authority_id = request.ssh_certificate_authority_id
        mode = ssh_access.resolve(request.ssh_injection, authority_id)
        ssh_access.check(mode, authority_id, request.infrastructure_ref)
        user_data.check(request.user_data, managed=authority_id is not None)
        if authority_id is not None:
            authority = certificate_authority(self._directory, caller, authority_id, network)
            user_data.check_size(augment(request.user_data, authority.public_key))
        groups = security_groups(self._directory, caller, request.networking.security_group_ids, network.id)
        self._check_offer(request, network, organization_id)
        provider_create_gates.check_unique(request.provider_create_gates)
        pairs = address_pairs(request.networking.allowed_source_addresses)
        return ServerSpec(
            flavor_id=request.flavor_id,
            image_id=request.image_id,
            networks=(NetworkAttachment(id=network.id, allowed_address_pairs=pairs or None),),
            tags=request.tags,
            security_group_ids=groups or None,
            public_ip=request.networking.public_ip or None,
            user_data=request.user_data or None,
            ssh_certificate_authority_id=authority_id,
            ssh_injection=mode,
            infrastructure_ref=request.infrastructure_ref,
            provider_create_gates=request.provider_create_gates,
        )

    def _check_offer(self, request: ServerCreate, network: Network, organization_id: str) -> None:
        try:
            region = self._directory.region(network.region_id or "")
        except Missing:
            raise NotFound("the network's region does not exist", "spec.networkId") from None
        if region.provider != "openstack":
            raise InvalidRequest("the network's region does not offer servers", "spec.networkId")
        catalogue = self._cloud.catalogue(region)
        image = offers.visible_image(catalogue.images(), request.image_id, organization_id)
        image_compatibility.check_ready(image)
        flavor = offers.offered_flavor(catalogue.flavors(), request.flavor_id)
        image_compatibility.check_compatible(image, flavor)
        offers.check_placement(flavor, request.infrastructure_ref)

    def _update(self, caller: Caller, server_id: str, request: ServerUpdate, written: UpdateObserver | None) -> Server:
        server = permitted_server(self._servers, caller, server_id, "update")
        if server.metadata.deleted_at is not None:
            raise InvalidRequest("the server is being deleted")
        if request.name != server.metadata.name:
            raise Unprocessable("the name is immutable", "metadata.name")
        if request.flavor_id != server.spec.flavor_id:
            raise Unprocessable("the flavor is immutable", "spec.flavorId")
        network_id = server.metadata.network_id
        groups = security_groups(self._directory, caller, request.networking.security_group_ids, network_id)
        readable_network(self._directory, caller, network_id or "", None)
        if request.image_id != server.spec.image_id:
            self._check_new_image(server, request.image_id)
        self._check_changed_user_data(server.spec, request.user_data or None)
        spec = updates.replaced(server.spec, request, groups)
        description = request.description or None
        if spec == updates.normal_form(server.spec) and description == (server.metadata.description or None):
            return server
        metadata = replace(
            server.metadata,
            description=description,
            modifier=caller.subject,
            principal_modifier=caller.actor,
            modified_at=self._clock.now().replace(microsecond=0),
        )
        stored = conditional_update.write(self._servers, replace(server, metadata=metadata, spec=spec))
        if written is not None:
            written(server, stored)
        return stored if spec.image_id == server.spec.image_id else self._with_rebuild_intended(stored)

    def _with_rebuild_intended(self, server: Server) -> Server:
        """Record the intent of a rebuild at once, so that no read says provisioned before the controller has looked.

        Left to the controller while there is no instance, whose creation decides the image, and whenever the record
        cannot be written: its next pass makes it.
        """
        if not had_instance(server.status):
            return server
        marker = RebuildMarker(server.spec.image_id or "", RebuildState.INITIATED)
        try:
            return self._servers.patch_status(server, replace(server, status=replace(server.status, rebuild=marker)))
        except PortError:
            return server

    def _check_new_image(self, server: Server, image_id: str) -> None:
        """Check an image that would be rebuilt to.

        A flavor that is no longer offered must not stand in the way: the server has it already, and what is known of
        it for comparison is gone. Nova remains the backstop.
        """
        catalogue = self._cloud.catalogue(region_of(self._directory, server))
        image = offers.visible_image(catalogue.images(), image_id, server.metadata.organization_id)
        image_compatibility.check_ready(image)
        flavor = offers.find_flavor(catalogue.flavors(), server.spec.flavor_id)
        if flavor is not None:
            image_compatibility.check_compatible(image, flavor)

    def _check_changed_user_data(self, stored: ServerSpec, wanted: bytes | None) -> None:
        """Check user data only where the stored value would change: older payloads predate the rules."""
        if wanted == (stored.user_data or None):
            return
        authority_id = stored.ssh_certificate_authority_id
        user_data.check(wanted, managed=bool(authority_id))
        if authority_id:
            with suppress(Missing):
                authority = self._directory.ssh_certificate_authority(authority_id)
                user_data.check_size(augment(wanted, authority.public_key))


def _visible_organizations(own: frozenset[str], asked: frozenset[str]) -> frozenset[str] | None:
    """Return the organizations to select (contract 5.6), empty for all of them; None when no server can match."""
    if not own or not asked:
        return asked or own
    return asked & own or None


def _scope(network: Network) -> tuple[str, str]:
    if not network.organization_id or not network.project_id:
        raise RuntimeError(f"network {network.id} is not labelled with organization and project")
    return network.organization_id, network.project_id


def _metadata(
    caller: Caller, request: ServerCreate, network: Network, organization_id: str, project_id: str
) -> Metadata:
    principal_organization_id, principal_project_id = create_permission.attribution(caller, organization_id, project_id)
    return Metadata(
        name=request.name,
        organization_id=organization_id,
        project_id=project_id,
        region_id=network.region_id,
        identity_id=network.identity_id,
        network_id=network.id,
        api_version=API_VERSION_2,
        description=request.description or None,
        creator=caller.subject,
        principal_creator=caller.actor,
        principal_organization_id=principal_organization_id,
        principal_project_id=principal_project_id,
        owner_uid=network.uid,
    )
