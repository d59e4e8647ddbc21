"""Finding the server a request is about, and its project in the cloud (contract 1.6 step 1 and 6.8)."""

from __future__ import annotations

from server_api.servers.cloud_model import Instance
from server_api.servers.errors import Forbidden, InvalidRequest, NotFound
from server_api.servers.model import API_VERSION_2, Server
from server_api.servers.ports import Caller, Cloud, Compute, Directory, Missing, ServerStore, Tenancy
from server_api.servers.surroundings import Region

PERMISSION = "region:servers"
"""The permission for servers, in both generations of the API (contract 5.4)."""


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


def instance_of(compute: Compute, server: Server) -> Instance:
    """Return a server's instance. Raises NotFound."""
    instance = compute.find(server.metadata.name, server.id)
    if instance is None:
        raise NotFound("the server has no instance in the cloud")
    return instance


def _require(caller: Caller, operation: str, server: Server) -> None:
    metadata = server.metadata
    if not caller.may(PERMISSION, operation, metadata.organization_id, metadata.project_id):
        raise Forbidden(f"{operation} on the server is not allowed")
