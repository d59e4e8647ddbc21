"""Whose word about a client certificate counts, and what is in one (contract 5.1)."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from server_api.access.authentication import Credentials, InvalidCredentials
from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.sandbox import certificates
from server_api.sandbox.certificates import Issued

PROXIES = trusted_networks("10.0.0.0/24, 192.0.2.7,2001:db8::/64")


@pytest.fixture(scope="module")
def authority() -> Issued:
    return certificates.authority()


@pytest.fixture(scope="module")
def service(authority: Issued) -> Issued:
    return certificates.issued_by(authority, "unikorn-compute")


def credentials(header: str | None, peer: str | None = "10.0.0.5", verified: str | None = "SUCCESS") -> Credentials:
    return Credentials(peer=peer, certificate=header, certificate_verified=verified)


@pytest.mark.parametrize("peer", ["10.0.0.5", "192.0.2.7", "2001:db8::1", "::ffff:10.0.0.5"])
def test_a_proxy_that_is_trusted_tells_of_a_certificate(service: Issued, peer: str) -> None:
    found = ClientCertificates(PROXIES).of(credentials(quote(service.pem), peer))

    assert found is not None
    assert found.common_name == "unikorn-compute"
    assert found.header == quote(service.pem)


@pytest.mark.parametrize("peer", ["10.0.1.5", "192.0.2.8", "127.0.0.1", "::1", "", None, "unix", "10.0.0.5,10.0.1.5"])
@pytest.mark.parametrize(("header", "verified"), [("x", "SUCCESS"), ("x", None), (None, "SUCCESS"), (None, "NONE")])
def test_the_headers_are_refused_from_anybody_else(peer: str | None, header: str | None, verified: str | None) -> None:
    with pytest.raises(InvalidCredentials, match="not accepted from this address"):
        ClientCertificates(PROXIES).of(credentials(header, peer, verified))


def test_with_no_proxy_configured_nobody_is_trusted(service: Issued) -> None:
    with pytest.raises(InvalidCredentials, match="not accepted"):
        ClientCertificates().of(credentials(quote(service.pem), "127.0.0.1"))


@pytest.mark.parametrize("peer", ["10.0.0.5", "10.0.1.5"])
def test_a_request_without_the_headers_has_no_certificate(peer: str) -> None:
    assert ClientCertificates(PROXIES).of(credentials(None, peer, None)) is None


@pytest.mark.parametrize("verified", ["NONE", "SUCCESS", "FAILED:expired", ""])
def test_a_proxy_that_had_no_certificate_says_so_without_harm(verified: str) -> None:
    assert ClientCertificates(PROXIES).of(credentials("", verified=verified)) is None


@pytest.mark.parametrize("verified", [None, "", "NONE", "FAILED:expired", "success", "SUCCESS,SUCCESS", " SUCCESS"])
def test_t09_a_certificate_that_was_not_verified_is_refused(service: Issued, verified: str | None) -> None:
    with pytest.raises(InvalidCredentials, match="not verified"):
        ClientCertificates(PROXIES).of(credentials(quote(service.pem), verified=verified))


@pytest.mark.parametrize("header", ["x", "%", "%ff%fe", quote("-----BEGIN CERTIFICATE-----\nMIIB\n")])
def test_what_is_no_certificate_is_refused(header: str) -> None:
    with pytest.raises(InvalidCredentials, match="cannot be read"):
        ClientCertificates(PROXIES).of(credentials(header))


def test_of_several_certificates_none_is_chosen(authority: Issued, service: Issued) -> None:
    with pytest.raises(InvalidCredentials, match="cannot be read"):
        ClientCertificates(PROXIES).of(credentials(quote(service.pem + authority.pem)))
    with pytest.raises(InvalidCredentials, match="cannot be read"):
        ClientCertificates(PROXIES).of(credentials(f"{quote(service.pem)},{quote(service.pem)}"))


@pytest.mark.parametrize("names", [(), ("a", "b"), (" ",)])
def test_a_certificate_has_exactly_one_common_name(authority: Issued, names: tuple[str, ...]) -> None:
    certificate = certificates.issued_by(authority, *names)

    with pytest.raises(InvalidCredentials, match="one common name"):
        ClientCertificates(PROXIES).of(credentials(quote(certificate.pem)))


def test_the_certificate_of_our_own_connection_counts_from_anywhere(service: Issued) -> None:
    der = service.certificate.public_bytes(Encoding.DER)
    native = ClientCertificates().of(Credentials(peer="198.51.100.1", peer_certificate=der))
    told = ClientCertificates(PROXIES).of(credentials(quote(service.pem, safe="")))

    assert native == told


def test_the_certificate_that_a_trusted_proxy_has_itself_is_nobodys_it_speaks_for(service: Issued) -> None:
    der = service.certificate.public_bytes(Encoding.DER)

    assert ClientCertificates(PROXIES).of(Credentials(peer="10.0.0.5", peer_certificate=der)) is None


def test_fingerprints_differ_between_certificates_of_one_name(authority: Issued) -> None:
    both = {
        ClientCertificates(PROXIES).of(credentials(quote(certificates.issued_by(authority, "twin").pem)))
        for _ in range(2)
    }
    assert len({found.fingerprint for found in both if found is not None}) == 2


@pytest.mark.parametrize("text", ["10.0.0.0/33", "proxy.example.com", "10.0.0.1/24", "10.0.0.0/24;10.0.1.0/24"])
def test_a_setting_that_names_no_networks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"networks such as 10\.0\.0\.0/24"):
        trusted_networks(text)


@pytest.mark.parametrize("text", ["0.0.0.0/0", "10.0.0.0/8,::/0"])
def test_a_setting_that_trusts_everybody_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="anybody could be any service"):
        trusted_networks(text)


def test_an_empty_setting_trusts_nobody() -> None:
    assert trusted_networks("") == trusted_networks(" , ") == ()
