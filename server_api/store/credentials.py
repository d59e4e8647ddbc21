"""The secrets that the cloud is reached with (contract 4.9 and 6.1). They are read when needed and not kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from server_api.servers.ports import Missing
from server_api.servers.surroundings import IdentityCredentials, Region, ServiceAccount
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.failures import KUBERNETES
from server_api.store.other_objects import pem
from server_api.store.tolerant import decoded, mapping, text


class KubernetesCredentials:
    """``ports.Credentials`` over OpenstackIdentity objects and the Secrets that regions name."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def identity_credentials(self, identity_id: str) -> IdentityCredentials:
        """Return an identity's cloud credentials. Raises Missing when there are none, or no project yet."""
        stored = self._client.get(kinds.OPENSTACK_IDENTITY, self._namespace, identity_id)
        spec = mapping(stored.get("spec"))
        subject = f"openstackidentities/{identity_id}"
        return IdentityCredentials(
            user_id=_required(spec, "userID", subject),
            password=_required(spec, "password", subject),
            project_id=_required(spec, "projectID", subject),
            ssh_key_name=text(spec.get("sshKeyName")),
            ssh_private_key=pem(spec.get("sshPrivateKey")),
        )

    def service_account(self, region: Region) -> ServiceAccount:
        """Return a region's own cloud credentials. Raises Missing when the Secret or a key in it is absent."""
        if not region.secret_name:
            raise Missing(KUBERNETES, f"regions/{region.id} names no service account secret")
        namespace = region.secret_namespace or self._namespace
        stored = self._client.get(kinds.SECRET, namespace, region.secret_name)
        encoded = mapping(stored.get("data"))
        data = {key: (decoded(value) or b"").decode("utf-8", "replace").strip() for key, value in encoded.items()}
        subject = f"secrets/{region.secret_name}"
        return ServiceAccount(
            domain_id=_required(data, "domain-id", subject),
            user_id=_required(data, "user-id", subject),
            password=_required(data, "password", subject),
            project_id=_required(data, "project-id", subject),
        )


def _required(fields: Mapping[str, Any], key: str, subject: str) -> str:
    value = text(fields.get(key))
    if value is None:
        raise Missing(KUBERNETES, f"{subject} has no {key}")
    return value
