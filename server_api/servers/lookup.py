"""Finding the server a request is about, and its project in the cloud (contract 1.6 step 1 and 6.8)."""

from __future__ import annotations

from server_api.servers import naming
from server_api.servers.cloud_model import Instance
from server_api.servers.errors import Forbidden, InvalidRequest, NotFound
from server_api.servers.model import API_VERSION_2, ConditionStatus, ConditionType, Reason, Server, ServerStatus
from server_api.servers.ports import Caller, Cloud, Directory, Missing, ServerStore, Tenancy
from server_api.servers.surroundings import Region

PERMISSION = "region:servers"
"""The permission for servers, in both generations of the API (contract 5.4)."""

BETWEEN_ATTEMPTS = (ConditionStatus.UNKNOWN, Reason.PROVISIONING)
"""Health of a server whose failed instance was removed, until the next one is created (contract 7.5)."""


def readable_server(servers: ServerStore, caller: Caller, server_id: str) -> Server:
    """Return a v2 server if the caller may read it. Raises NotFound, Forbidden."""
    try:
        server = servers.get(server_id)
    except Missing:
        raise NotFound("the server does not exist") from None
    _require(caller, "read", server)
    if server.metadata.api_version != API_VERSION_2:
        raise NotFound("the server does not belong to this version of the API")
    return server


def permitted_server(servers: ServerStore, caller: Caller, server_id: str, operation: str) -> Server:
    """Return a v2 server if the caller may read it and do that operation to it. Raises NotFound, Forbidden."""
    server = readable_server(servers, caller, server_id)
    _require(caller, operation, server)
    return server


def region_of(directory: Directory, server: Server) -> Region:
    """Return a server's region. Raises NotFound, InvalidRequest for a region without servers."""
    try:
        region = directory.region(server.metadata.region_id or "")
    except Missing:
        raise NotFound("the server's region does not exist") from None
    if region.provider != "openstack":
        raise InvalidRequest("the server's region does not offer this")
    return region


def tenancy_of(directory: Directory, cloud: Cloud, server: Server) -> Tenancy:
    """Return the cloud project a server lives in.

    Raises NotFound when region or credentials are missing, InvalidRequest for a region without servers.
    """
    region = region_of(directory, server)
    try:
        return cloud.tenancy(region, server.metadata.identity_id or "")
    except Missing:
        raise NotFound("the server's identity has no project in the cloud") from None


def find_instance(tenancy: Tenancy, server: Server) -> Instance | None:
    """Return a server's instance, None only if there is definitely none. Raises Ambiguous when there are several.

    It is known by its exact name and our ``serverID`` metadata. One that somebody gave another name in the cloud is
    found by the server's port, which it is bound to: taken for absent, it would be created a second time, or forgotten.
    """
    instance = tenancy.compute.find(server.metadata.name, server.id)
    if instance is not None:
        return instance
    for port in tenancy.networking.ports_named(naming.cloud_port(server.id)):
        bound = tenancy.compute.get(port.instance_id) if port.instance_id else None
        if bound is not None and bound.server_id == server.id:
            return bound
    return None


def instance_of(tenancy: Tenancy, server: Server) -> Instance:
    """Return a server's instance. Raises NotFound."""
    instance = find_instance(tenancy, server)
    if instance is None:
        raise NotFound("the server has no instance in the cloud")
    return instance


def had_instance(status: ServerStatus) -> bool:
    """Say whether anybody ever saw an instance of the server that was not removed for another attempt."""
    if status.scheduled_at or status.launched_at or status.provisioned_at:
        return True
    healthy = status.condition(ConditionType.HEALTHY)
    if healthy is None:
        return False
    return (healthy.status, healthy.reason) != BETWEEN_ATTEMPTS


def _require(caller: Caller, operation: str, server: Server) -> None:
    metadata = server.metadata
    if not caller.may(PERMISSION, operation, metadata.organization_id, metadata.project_id):
        raise Forbidden(f"{operation} on the server is not allowed")
