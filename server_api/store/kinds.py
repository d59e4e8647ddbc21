"""The kinds of stored object and where the Kubernetes API serves them (contract 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

GROUP = "region.unikorn-cloud.org"
VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: ``group`` is empty for the core API."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, of one object, or of an object's subresource."""
        path = f"/{'apis' if self.group else 'api'}/{self.api_version}"
        if self.namespaced:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        if name is not None:
            path += f"/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


def _region_kind(plural: str, name: str) -> Kind:
    return Kind(GROUP, VERSION, plural, name)


SERVER = _region_kind("servers", "Server")
NETWORK = _region_kind("networks", "Network")
SECURITY_GROUP = _region_kind("securitygroups", "SecurityGroup")
SSH_CERTIFICATE_AUTHORITY = _region_kind("sshcertificateauthorities", "SSHCertificateAuthority")
IDENTITY = _region_kind("identities", "Identity")
OPENSTACK_IDENTITY = _region_kind("openstackidentities", "OpenstackIdentity")
REGION = _region_kind("regions", "Region")

SECRET = Kind("", "v1", "secrets", "Secret")
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
EVENT = Kind("", "v1", "events", "Event")
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
