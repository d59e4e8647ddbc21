"""Networks, security groups, certificate authorities, identities and regions, as stored."""

from __future__ import annotations

from server_api.servers.surroundings import Identity, Network, Region, SecurityGroup, SSHCertificateAuthority
from server_api.store import kinds, other_objects
from server_api.store.client import KubernetesClient, RawObject


class KubernetesDirectory:
    """``ports.Directory`` over custom resources of one namespace. Every method raises Missing for an absent object."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def network(self, network_id: str) -> Network:
        """Return one network."""
        return other_objects.network_from(self._get(kinds.NETWORK, network_id))

    def security_group(self, group_id: str) -> SecurityGroup:
        """Return one security group."""
        return other_objects.security_group_from(self._get(kinds.SECURITY_GROUP, group_id))

    def ssh_certificate_authority(self, authority_id: str) -> SSHCertificateAuthority:
        """Return one certificate authority."""
        stored = self._get(kinds.SSH_CERTIFICATE_AUTHORITY, authority_id)
        return other_objects.ssh_certificate_authority_from(stored)

    def identity(self, identity_id: str) -> Identity:
        """Return one identity."""
        return other_objects.identity_from(self._get(kinds.IDENTITY, identity_id))

    def region(self, region_id: str) -> Region:
        """Return one region."""
        return other_objects.region_from(self._get(kinds.REGION, region_id))

    def _get(self, kind: kinds.Kind, name: str) -> RawObject:
        return self._client.get(kind, self._namespace, name)
