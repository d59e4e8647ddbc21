"""Certificates of services: from a proxy that terminates TLS in front, or from our own end of a connection (5.1).

Whoever may set the headers ``Ssl-Client-Cert`` and ``Ssl-Client-Verify`` can be any service, so they count only when a
configured proxy sends them. From anybody else they are refused, and not ignored: a proxy that is missing in the
configuration is found out by its first request, and so is a caller that tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote, unquote

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from server_api.access.authentication import Credentials, InvalidCredentials

VERIFIED = "SUCCESS"

Networks = Sequence[IPv4Network | IPv6Network]

_UNREADABLE = "the client certificate cannot be read"


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A verified certificate of a service.

    ``fingerprint`` is its SHA-256, in hexadecimal. ``header`` is the whole of it as it is handed on: PEM, URL-encoded.
    """

    common_name: str
    fingerprint: str
    header: str = field(repr=False)
    public_key: CertificatePublicKeyTypes = field(repr=False, compare=False)


def trusted_networks(text: str) -> Networks:
    """Return the networks in a list of addresses and prefixes with commas between. Raises ValueError naming none."""
    networks = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        try:
            network = ip_network(item)
        except ValueError:
            raise ValueError("it must be addresses and networks such as 10.0.0.0/24, with commas between") from None
        if network.prefixlen == 0:
            raise ValueError("it must not trust every address: anybody could be any service")
        networks.append(network)
    return tuple(networks)


class ClientCertificates:
    """Finds the certificate of a request's caller; ``trusted`` are the proxies that may tell of one."""

    def __init__(self, trusted: Networks = ()) -> None:
        self._trusted = trusted

    def of(self, credentials: Credentials) -> ClientCertificate | None:
        """Return the caller's certificate, None when it has none. Raises InvalidCredentials."""
        told = credentials.certificate or credentials.certificate_verified
        if not self._is_trusted(credentials.peer):
            if told:
                raise InvalidCredentials("headers about client certificates are not accepted from this address")
            return None if credentials.peer_certificate is None else _from_der(credentials.peer_certificate)
        # A proxy speaks for others. The certificate it may have for its own connection is none of theirs.
        if not credentials.certificate:
            return None
        if credentials.certificate_verified != VERIFIED:
            raise InvalidCredentials("the client certificate was not verified")
        return _from_header(credentials.certificate)

    def _is_trusted(self, peer: str | None) -> bool:
        try:
            address = ip_address((peer or "").partition("%")[0])
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._trusted)


@lru_cache(maxsize=128)
def _from_der(der: bytes) -> ClientCertificate:
    try:
        certificate = x509.load_der_x509_certificate(der)
    except ValueError:
        raise InvalidCredentials(_UNREADABLE) from None
    return _described(certificate, quote(certificate.public_bytes(Encoding.PEM).decode(), safe=""))


@lru_cache(maxsize=128)
def _from_header(header: str) -> ClientCertificate:
    try:
        # Of a chain nobody could say which certificate was meant.
        (certificate,) = x509.load_pem_x509_certificates(unquote(header, errors="strict").encode())
    except ValueError:
        raise InvalidCredentials(_UNREADABLE) from None
    return _described(certificate, header)


def _described(certificate: x509.Certificate, header: str) -> ClientCertificate:
    try:
        names = [name.value for name in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
        public_key = certificate.public_key()
    except ValueError:
        raise InvalidCredentials(_UNREADABLE) from None
    if len(names) != 1 or not isinstance(names[0], str) or not names[0].strip():
        raise InvalidCredentials("the client certificate must have one common name")
    return ClientCertificate(names[0], certificate.fingerprint(SHA256()).hex(), header, public_key)
