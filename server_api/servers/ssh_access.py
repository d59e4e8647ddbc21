"""How a server lets its first user in (contract 1.7)."""

from __future__ import annotations

from server_api.servers.errors import Unprocessable
from server_api.servers.model import ServerSpec, SSHInjection


def resolve(mode: str | None, authority_id: str | None) -> SSHInjection:
    """Return the mode that applies: what was said, else ``ca`` with a certificate authority, else the key pair."""
    if mode is not None:
        return SSHInjection(mode)
    return SSHInjection.CA if authority_id else SSHInjection.IDENTITY_KEYPAIR


def resolved_mode(spec: ServerSpec) -> SSHInjection:
    """Return the mode of a stored server, also of one written before the field existed."""
    return resolve(spec.ssh_injection, spec.ssh_certificate_authority_id)


def check(mode: SSHInjection, authority_id: str | None, infrastructure_ref: str | None) -> None:
    """Check the mode against what else was asked for. Raises Unprocessable."""
    field = "spec.sshInjection"
    if mode is SSHInjection.CA and not authority_id:
        raise Unprocessable("ca requires sshCertificateAuthorityId", field)
    if mode is not SSHInjection.CA and authority_id:
        raise Unprocessable(f"{mode} excludes sshCertificateAuthorityId", field)
    if mode is SSHInjection.IDENTITY_KEYPAIR and infrastructure_ref:
        # The key pair belongs to the tenant's cloud user; a pinned instance is created by the region's.
        raise Unprocessable("identityKeypair is not available with infrastructureRef", field)
