"""For whom a service calls: X-Principal and X-Impersonate (contract 5.7)."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from joserfc import jws
from joserfc.jwk import OctKey, RSAKey

from server_api.access.authentication import Credentials, InvalidCredentials
from server_api.access.client_certificate import ClientCertificate, ClientCertificates, trusted_networks
from server_api.access.delegation import Delegation, decode
from server_api.sandbox import certificates
from server_api.sandbox.certificates import Issued

WHOLE = {
    "organizationId": "10000000-0000-4000-8000-000000000001",
    "organizationIds": ["10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000002"],
    "projectId": "20000000-0000-4000-8000-000000000001",
    "type": "user",
    "actor": "alice@example.com",
}


@pytest.fixture(scope="module")
def issued() -> Issued:
    return certificates.issued_by(certificates.authority(), "unikorn-compute")


@pytest.fixture(scope="module")
def certificate(issued: Issued) -> ClientCertificate:
    found = ClientCertificates(trusted_networks("127.0.0.1")).of(
        Credentials(peer="127.0.0.1", certificate=quote(issued.pem), certificate_verified="SUCCESS")
    )
    assert found is not None
    return found


def encoded(document: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(document)).rstrip(b"=").decode()


def signed(document: Any, key: Any, algorithm: str = "PS512") -> str:
    registry = jws.JWSRegistry(algorithms=[algorithm])
    return jws.serialize_compact({"alg": algorithm}, orjson.dumps(document), key, registry=registry)


def test_every_member_is_read(certificate: ClientCertificate) -> None:
    assert decode(encoded(WHOLE), None, certificate) == Delegation(
        actor="alice@example.com",
        type="user",
        organization_id="10000000-0000-4000-8000-000000000001",
        organization_ids=("10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000002"),
        project_id="20000000-0000-4000-8000-000000000001",
    )


def test_every_member_is_optional(certificate: ClientCertificate) -> None:
    assert decode(encoded({}), None, certificate) == Delegation()


def test_members_that_are_not_known_are_ignored(certificate: ClientCertificate) -> None:
    assert decode(encoded({"actor": "alice", "shoeSize": 43}), None, certificate) == Delegation(actor="alice")


def test_padding_does_no_harm(certificate: ClientCertificate) -> None:
    padded = base64.urlsafe_b64encode(orjson.dumps({"actor": "al"})).decode()
    assert padded.endswith("=")
    assert decode(padded, None, certificate).actor == "al"


@pytest.mark.parametrize("header", [None, ""])
def test_t10_a_service_without_a_principal_is_refused(certificate: ClientCertificate, header: str | None) -> None:
    with pytest.raises(InvalidCredentials, match="X-Principal is required"):
        decode(header, None, certificate)


@pytest.mark.parametrize(
    "header",
    [
        "alice",
        "{}",
        "e30!",
        "e30,e30",
        "e30 e30",
        "e3 0",
        encoded([]),
        encoded("alice"),
        encoded(None),
        "ew",
        "é",
        "a.b",
    ],
)
def test_what_cannot_be_decoded_is_refused(certificate: ClientCertificate, header: str) -> None:
    with pytest.raises(InvalidCredentials, match="cannot be decoded"):
        decode(header, None, certificate)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("actor", 7),
        ("actor", None),
        ("actor", "x" * 513),
        ("actor", "alice\nbob"),
        ("type", "robot"),
        ("type", ["user"]),
        ("organizationId", "../x"),
        ("organizationId", "x" * 64),
        ("organizationId", 7),
        ("organizationIds", "x"),
        ("organizationIds", ["a b"]),
        ("projectId", "-x"),
    ],
)
def test_a_member_of_another_shape_is_refused_by_its_name(
    certificate: ClientCertificate, member: str, value: Any
) -> None:
    with pytest.raises(InvalidCredentials, match=f"X-Principal: {member}"):
        decode(encoded(WHOLE | {member: value}), None, certificate)


def test_a_principal_signed_by_the_service_is_read(certificate: ClientCertificate, issued: Issued) -> None:
    text = signed(WHOLE, RSAKey.import_key(issued.key_pem))

    assert decode(text, None, certificate) == decode(encoded(WHOLE), None, certificate)


def test_a_principal_signed_by_somebody_else_is_refused(certificate: ClientCertificate) -> None:
    other = RSAKey.generate_key(2048)

    with pytest.raises(InvalidCredentials, match="cannot be decoded"):
        decode(signed(WHOLE, other), None, certificate)


def test_only_one_kind_of_signature_is_accepted(certificate: ClientCertificate, issued: Issued) -> None:
    key = RSAKey.import_key(issued.key_pem)
    secret = OctKey.generate_key(512)
    unsigned = ".".join([encoded({"alg": "none"}), encoded(WHOLE), ""])
    for text in (signed(WHOLE, key, "PS256"), signed(WHOLE, key, "RS512"), signed(WHOLE, secret, "HS512"), unsigned):
        with pytest.raises(InvalidCredentials, match="cannot be decoded"):
            decode(text, None, certificate)


@pytest.mark.parametrize(("header", "asks"), [(None, False), ("", False), ("false", False), ("true", True)])
def test_the_literal_true_asks_for_impersonation(
    certificate: ClientCertificate, header: str | None, asks: bool
) -> None:
    assert decode(encoded(WHOLE), header, certificate).impersonate is asks


@pytest.mark.parametrize("header", ["True", "TRUE", "1", "yes", "true,true", " true"])
def test_a_misspelt_wish_for_fewer_rights_is_not_answered_with_more(
    certificate: ClientCertificate, header: str
) -> None:
    with pytest.raises(InvalidCredentials, match="neither true nor false"):
        decode(encoded(WHOLE), header, certificate)


@pytest.mark.parametrize("principal", [{}, {"actor": ""}, {"type": "user"}])
def test_t11_impersonation_needs_an_actor(certificate: ClientCertificate, principal: dict[str, str]) -> None:
    with pytest.raises(InvalidCredentials, match="needs an actor"):
        decode(encoded(principal), "true", certificate)


def test_a_service_cannot_be_impersonated(certificate: ClientCertificate) -> None:
    with pytest.raises(InvalidCredentials, match="system"):
        decode(encoded({"actor": "unikorn-region", "type": "system"}), "true", certificate)


def test_what_is_handed_on_is_the_same_principal(certificate: ClientCertificate) -> None:
    delegation = decode(encoded(WHOLE), None, certificate)

    assert decode(delegation.header(), None, certificate) == delegation
    assert "=" not in delegation.header()
