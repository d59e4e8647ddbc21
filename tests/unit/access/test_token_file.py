"""The file of bearer tokens."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from server_api.access.authentication import Credentials, InvalidCredentials, Unauthenticated
from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.access.digests import token_digest
from server_api.access.principal import Principal
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.access.watched_file import UnusableFile
from server_api.sandbox import certificates


def entry(token: str = "s3cret", **changes: Any) -> dict[str, Any]:
    made = {
        "sha256": hashlib.sha256(token.encode()).hexdigest(),
        "subject": "alice@example.com",
        "accountType": "user",
        "acl": {"global": [{"name": "region:servers", "operations": ["read"]}]},
    }
    return {name: value for name, value in (made | changes).items() if value is not None}


def written(directory: Path, document: object) -> Path:
    path = directory / "tokens.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    path.chmod(0o600)
    return path


def owner(tokens: TokenFile, authorization: str | None) -> Principal:
    return CallerAuthenticator(tokens).authenticate(Credentials(authorization=authorization))


def test_a_token_in_the_file_is_its_principal(tmp_path: Path) -> None:
    other = entry("other", subject="bob@example.com", accountType="service", acl={})
    tokens = TokenFile(written(tmp_path, {"tokens": [entry(), other]}))

    alice, bob = owner(tokens, "Bearer s3cret"), owner(tokens, "bearer other")

    assert (alice.subject, alice.account_type) == ("alice@example.com", "user")
    assert alice.acl.allows("region:servers", "read", "O1", "P1")
    assert (bob.subject, bob.account_type) == ("bob@example.com", "service")
    assert not bob.acl.allows("region:servers", "read", "O1", "P1")


@pytest.mark.parametrize(
    "token", ["S3CRET", "s3cre", "s3cret0", hashlib.sha256(b"s3cret").hexdigest(), "\u00e4", "\udce4"]
)
def test_any_other_token_is_refused_without_being_repeated(tmp_path: Path, token: str) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry()]}))

    with pytest.raises(Unauthenticated, match="the token is not valid") as refusal:
        owner(tokens, f"Bearer {token}")

    assert token not in refusal.value.reason


@pytest.mark.parametrize("header", [None, "Basic s3cret", "Bearer"])
def test_t05_t06_a_header_that_holds_no_token_is_refused(tmp_path: Path, header: str | None) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry()]}))

    with pytest.raises(Unauthenticated):
        owner(tokens, header)


def test_an_empty_list_authenticates_nobody(tmp_path: Path) -> None:
    with pytest.raises(Unauthenticated):
        owner(TokenFile(written(tmp_path, {"tokens": []})), "Bearer s3cret")


def test_the_digest_of_a_token_is_its_sha256() -> None:
    assert token_digest("test") == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("", "a list named tokens"),
        ("- a", "a list named tokens"),
        ({}, "a list named tokens"),
        ({"tokens": {}}, "a list named tokens"),
        ({"tokens": None}, "a list named tokens"),
        ({"tokens": ["x"]}, r"tokens\[0\]: not an object"),
        ({"tokens": [entry(sha256=None)]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(sha256="s3cret")]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(sha256=token_digest("x").upper())]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(sha256=token_digest("x") + "0")]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(sha256=7)]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(), entry(subject="bob")]}, r"tokens\[1\]\.sha256: given twice"),
        ({"tokens": [entry(subject=None)]}, r"tokens\[0\]\.subject"),
        ({"tokens": [entry(subject="")]}, r"tokens\[0\]\.subject"),
        ({"tokens": [entry(subject=7)]}, r"tokens\[0\]\.subject"),
        ({"tokens": [entry(accountType=None)]}, r"tokens\[0\]\.accountType"),
        ({"tokens": [entry(accountType="robot")]}, r"tokens\[0\]\.accountType"),
        ({"tokens": [entry(acl=None)]}, r"tokens\[0\]\.acl: acl: not an object"),
        ({"tokens": [entry(), entry("b", acl={"global": {}})]}, r"tokens\[1\]\.acl: global: not a list"),
        ({"tokens": [], "service": []}, "service: only tokens and services"),
        ({"tokens": [], "services": {}}, "services: not a list"),
        ({"tokens": [], "services": ["x"]}, r"services\[0\]: not an object"),
        ({"tokens": [], "services": [{"acl": {}}]}, r"services\[0\]\.commonName"),
        ({"tokens": [], "services": [{"commonName": "c"}]}, r"services\[0\]\.acl: acl: not an object"),
        ({"tokens": [], "services": [{"commonName": "c", "acl": {}}] * 2}, r"services\[1\]\.commonName: given twice"),
        ("tokens: []\ntokens: []\n", "ConstructorError"),
    ],
)
def test_a_file_of_another_shape_is_refused_by_its_place(tmp_path: Path, document: object, place: str) -> None:
    with pytest.raises(UnusableFile, match=place) as refusal:
        TokenFile(written(tmp_path, document))

    assert "tokens.yaml" in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("account_type", ["user", "service", "system"])
def test_the_account_types_are_those_of_the_contract(tmp_path: Path, account_type: str) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry(accountType=account_type)]}))

    assert owner(tokens, "Bearer s3cret").account_type == account_type


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match="nowhere"):
        TokenFile(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["tokens: [", "tokens: \0", "!!python/object/apply:os.getpid []"])
def test_a_file_that_is_no_plain_yaml_is_refused_without_its_content(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnusableFile) as refusal:
        TokenFile(written(tmp_path, content))

    assert content not in str(refusal.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_bytes(b"\xff\xfe\xfa")
    path.chmod(0o600)

    with pytest.raises(UnusableFile):
        TokenFile(path)


def test_an_account_type_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile):
        TokenFile(written(tmp_path, {"tokens": [entry(accountType=["user"])]}))


def test_a_file_with_an_impossible_date_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile):
        TokenFile(written(tmp_path, "tokens: [{subject: 2026-13-01}]"))


def test_tokens_are_found_by_what_says_nothing_of_their_digests(tmp_path: Path) -> None:
    """How long a look-up takes depends on a key that is drawn anew for each version of the file, and on nothing else
    that anybody could know.
    """
    first, second = (TokenFile(written(tmp_path, {"tokens": [entry()]})) for _ in range(2))
    keys = [set(tokens._file.content._entries) for tokens in (first, second)]

    assert all(len(found) == 1 for found in keys)
    assert not keys[0] & keys[1]
    assert token_digest("s3cret").encode() not in keys[0] | keys[1]
    assert bytes.fromhex(token_digest("s3cret")) not in keys[0] | keys[1]


def test_a_token_that_is_taken_out_is_refused_from_then_on_and_a_new_one_accepted(tmp_path: Path) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry("old")]}))
    assert owner(tokens, "Bearer old").subject == "alice@example.com"

    written(tmp_path, {"tokens": [entry("new")]})

    assert owner(tokens, "Bearer new").subject == "alice@example.com"
    with pytest.raises(Unauthenticated):
        owner(tokens, "Bearer old")


def test_a_new_version_that_is_broken_leaves_every_token_as_it_was(tmp_path: Path) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry()]}))

    written(tmp_path, {"tokens": [entry(acl=None)]})

    assert owner(tokens, "Bearer s3cret").subject == "alice@example.com"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, {"tokens": [entry()]})
    path.chmod(mode)

    with pytest.raises(UnusableFile, match=r"tokens\.yaml: others than its owner may write it"):
        TokenFile(path)


# Services

READ = {"name": "region:servers", "operations": ["read"]}
ALL = {"name": "region:servers", "operations": ["create", "read", "update", "delete"]}


@pytest.fixture(scope="module")
def pems() -> dict[str, str]:
    authority = certificates.authority()
    return {name: quote(certificates.issued_by(authority, name).pem) for name in ("wide", "narrow", "local", "other")}


@pytest.fixture
def with_services(tmp_path: Path) -> CallerAuthenticator:
    document = {
        "tokens": [
            entry("a", acl={"organizations": [{"id": "O1", "endpoints": [ALL]}]}),
            entry("b", acl={"organizations": [{"id": "O2", "endpoints": [READ]}]}),
            entry("c", accountType="service", acl={"organizations": [{"id": "O3", "endpoints": [READ]}]}),
            entry("d", accountType="system", acl={"organizations": [{"id": "O4", "endpoints": [READ]}]}),
        ],
        "services": [
            {"commonName": "wide", "acl": {"global": [ALL]}},
            {"commonName": "narrow", "acl": {"global": [READ]}},
            {"commonName": "local", "acl": {"organizations": [{"id": "O1", "endpoints": [ALL]}]}},
        ],
    }
    proxies = ClientCertificates(trusted_networks("127.0.0.1"))
    return CallerAuthenticator(TokenFile(written(tmp_path, document)), proxies)


def calling(pem: str, principal: dict[str, str], impersonate: str | None = None, **more: Any) -> Credentials:
    return Credentials(
        peer="127.0.0.1",
        certificate=pem,
        certificate_verified="SUCCESS",
        principal=base64.urlsafe_b64encode(json.dumps(principal).encode()).decode(),
        impersonate=impersonate,
        **more,
    )


def granted(principal: Principal) -> set[tuple[str, str]]:
    """Return where principal may read and delete, of four organizations."""
    return {
        (operation, organization)
        for operation in ("read", "delete")
        for organization in ("O1", "O2", "O3", "O4")
        if principal.acl.allows("region:servers", operation, organization, "P")
    }


def test_a_service_has_the_rights_of_its_common_name(with_services: CallerAuthenticator, pems: dict[str, str]) -> None:
    principal = with_services.authenticate(calling(pems["narrow"], {"actor": "x", "organizationId": "O9"}))

    assert (principal.subject, principal.account_type, principal.actor) == ("narrow", "system", "x")
    assert (principal.organization_id, principal.project_id, principal.impersonating) == ("O9", None, False)
    assert granted(principal) == {("read", organization) for organization in ("O1", "O2", "O3", "O4")}


def test_an_unknown_service_has_no_rights(with_services: CallerAuthenticator, pems: dict[str, str]) -> None:
    assert granted(with_services.authenticate(calling(pems["other"], {}))) == set()


@pytest.mark.parametrize(
    ("service", "type_", "expected"),
    [
        ("wide", "", {("read", "O1"), ("delete", "O1"), ("read", "O2"), ("read", "O3")}),
        ("wide", "user", {("read", "O1"), ("delete", "O1"), ("read", "O2")}),
        ("wide", "service", {("read", "O3")}),
        ("narrow", "user", {("read", "O1"), ("read", "O2")}),
        # Only what a service may do everywhere counts.
        ("local", "user", set()),
        ("other", "user", set()),
    ],
)
def test_an_impersonating_service_may_do_what_both_may(
    with_services: CallerAuthenticator, pems: dict[str, str], service: str, type_: str, expected: set[tuple[str, str]]
) -> None:
    principal = with_services.authenticate(
        calling(pems[service], {"actor": "alice@example.com", "type": type_}, impersonate="true")
    )

    assert principal.impersonating
    assert granted(principal) == expected


def test_nobody_is_impersonated_who_is_not_known(with_services: CallerAuthenticator, pems: dict[str, str]) -> None:
    assert granted(with_services.authenticate(calling(pems["wide"], {"actor": "mallory"}, impersonate="true"))) == set()


def test_somebodys_token_is_not_combined_with_somebody_elses_name(
    with_services: CallerAuthenticator, pems: dict[str, str]
) -> None:
    with pytest.raises(InvalidCredentials, match="cannot be combined"):
        with_services.authenticate(
            calling(pems["wide"], {"actor": "bob"}, impersonate="true", authorization="Bearer a")
        )


def test_a_token_beside_a_certificate_is_whose_it_is(with_services: CallerAuthenticator, pems: dict[str, str]) -> None:
    principal = with_services.authenticate(calling(pems["wide"], {"actor": "bob"}, authorization="Bearer b"))

    assert (principal.subject, principal.actor) == ("alice@example.com", "bob")
    assert granted(principal) == {("read", "O2")}
