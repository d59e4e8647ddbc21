"""An authority of the sandbox's own, and certificates that it signs: for services, and for our own end of TLS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from server_api.sandbox.layout import write_private

LIFETIME = timedelta(days=3650)
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: RSAPrivateKey

    @property
    def pem(self) -> str:
        """The certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The key as PEM."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def write(self, certificate: Path, key: Path) -> None:
        """Write both to files that only their owner can read."""
        write_private(certificate, self.pem)
        write_private(key, self.key_pem)


def authority(common_name: str = "sandbox") -> Issued:
    """Return a new authority."""
    key = _new_key()
    name = _name(common_name)
    return Issued(_signed(name, name, key, key, x509.BasicConstraints(ca=True, path_length=0)), key)


def issued_by(parent: Issued, *common_names: str) -> Issued:
    """Return a new certificate that the authority has signed, good for a service and for a server on this machine."""
    key = _new_key()
    issuer = parent.certificate.subject
    plain = x509.BasicConstraints(ca=False, path_length=None)
    return Issued(_signed(_name(*common_names), issuer, key, parent.key, plain), key)


def ensured(directory: Path, common_name: str) -> tuple[Path, Path]:
    """Return the files of a service's certificate and key below `directory`, made if they are not there yet.

    The authority's certificate is beside them in `ca.crt`; its key is nowhere: nothing else is signed by it.
    """
    certificate, key = directory / f"{common_name}.crt", directory / f"{common_name}.key"
    if not (certificate.exists() and key.exists() and (directory / "ca.crt").exists()):
        parent = authority()
        issued_by(parent, common_name).write(certificate, key)
        write_private(directory / "ca.crt", parent.pem)
    return certificate, key


def _new_key() -> RSAPrivateKey:
    # RSA, because a service may sign its principal with PS512 (contract 5.7)
    return generate_private_key(public_exponent=65537, key_size=2048)


def _name(*common_names: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name) for name in common_names])


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: RSAPrivateKey,
    signer: RSAPrivateKey,
    constraints: x509.BasicConstraints,
) -> x509.Certificate:
    now = datetime.now(UTC)
    alternatives = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address(LOOPBACK))])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(constraints, critical=True)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, SHA256())
    )
