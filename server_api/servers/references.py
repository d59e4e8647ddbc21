"""What a server may refer to: only what the caller can read, and only within the server's own scope (contract 1.5)."""

from __future__ import annotations

from collections.abc import Iterable

from server_api.servers.errors import Forbidden, NotFound, Unprocessable
from server_api.servers.model import API_VERSION_2
from server_api.servers.ports import Caller, Directory, Missing
from server_api.servers.surroundings import Network, SSHCertificateAuthority


def readable_network(directory: Directory, caller: Caller, network_id: str, field: str | None) -> Network:
    """Return the network if the caller may read it. Raises NotFound, Forbidden."""
    try:
        network = directory.network(network_id)
    except Missing:
        raise NotFound("the network does not exist", field) from None
    if not caller.may("region:networks:v2", "read", network.organization_id or "", network.project_id):
        raise Forbidden("reading the network is not allowed", field)
    return network


def certificate_authority(
    directory: Directory, caller: Caller, authority_id: str, network: Network
) -> SSHCertificateAuthority:
    """Return the certificate authority.

    It has to exist, be readable, and share the network's organization and project. Raises NotFound, Forbidden,
    Unprocessable.
    """
    field = "spec.sshCertificateAuthorityId"
    try:
        authority = directory.ssh_certificate_authority(authority_id)
    except Missing:
        raise NotFound("the SSH certificate authority does not exist", field) from None
    scope = (authority.organization_id, authority.project_id)
    if not caller.may("region:sshcertificateauthorities:v2", "read", scope[0] or "", scope[1]):
        raise Forbidden("reading the SSH certificate authority is not allowed", field)
    if authority.api_version != API_VERSION_2:
        raise NotFound("the SSH certificate authority does not exist", field)
    if scope != (network.organization_id, network.project_id):
        raise Unprocessable("the SSH certificate authority belongs to another project", field)
    return authority


def security_groups(
    directory: Directory, caller: Caller, group_ids: Iterable[str], network_id: str | None
) -> tuple[str, ...]:
    """Return the groups, each once, in order.

    Each has to exist, be readable, and belong to the server's network: being able to read a group of another tenancy
    must not be enough to attach it. Raises NotFound, Forbidden, Unprocessable.
    """
    unique = tuple(dict.fromkeys(group_ids))
    for index, group_id in enumerate(unique):
        field = f"spec.networking.securityGroups[{index}]"
        try:
            group = directory.security_group(group_id)
        except Missing:
            raise NotFound("the security group does not exist", field) from None
        if not caller.may("region:securitygroups:v2", "read", group.organization_id or "", group.project_id):
            raise Forbidden("reading the security group is not allowed", field)
        if group.api_version != API_VERSION_2:
            raise NotFound("the security group does not exist", field)
        if network_id is None or group.network_id != network_id:
            raise Unprocessable("the security group belongs to another network", field)
    return unique
