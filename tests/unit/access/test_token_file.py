"""The file of bearer tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from server_api.access.authentication import Unauthenticated
from server_api.access.token_file import InvalidTokenFile, TokenFile, digest


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
    return path


def test_a_token_in_the_file_is_its_principal(tmp_path: Path) -> None:
    other = entry("other", subject="bob@example.com", accountType="service", acl={})
    tokens = TokenFile(written(tmp_path, {"tokens": [entry(), other]}))

    alice, bob = tokens.authenticate("Bearer s3cret"), tokens.authenticate("bearer other")

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
        tokens.authenticate(f"Bearer {token}")

    assert token not in refusal.value.reason


@pytest.mark.parametrize("header", [None, "Basic s3cret", "Bearer"])
def test_t05_t06_a_header_that_holds_no_token_is_refused(tmp_path: Path, header: str | None) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry()]}))

    with pytest.raises(Unauthenticated):
        tokens.authenticate(header)


def test_an_empty_list_authenticates_nobody(tmp_path: Path) -> None:
    with pytest.raises(Unauthenticated):
        TokenFile(written(tmp_path, {"tokens": []})).authenticate("Bearer s3cret")


def test_the_digest_of_a_token_is_its_sha256() -> None:
    assert digest("test") == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


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
        ({"tokens": [entry(sha256=digest("x").upper())]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(sha256=digest("x") + "0")]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(sha256=7)]}, r"tokens\[0\]\.sha256: 64"),
        ({"tokens": [entry(), entry(subject="bob")]}, r"tokens\[1\]\.sha256: given twice"),
        ({"tokens": [entry(subject=None)]}, r"tokens\[0\]\.subject"),
        ({"tokens": [entry(subject="")]}, r"tokens\[0\]\.subject"),
        ({"tokens": [entry(subject=7)]}, r"tokens\[0\]\.subject"),
        ({"tokens": [entry(accountType=None)]}, r"tokens\[0\]\.accountType"),
        ({"tokens": [entry(accountType="robot")]}, r"tokens\[0\]\.accountType"),
        ({"tokens": [entry(acl=None)]}, r"tokens\[0\]\.acl: acl: not an object"),
        ({"tokens": [entry(), entry("b", acl={"global": {}})]}, r"tokens\[1\]\.acl: global: not a list"),
    ],
)
def test_a_file_of_another_shape_is_refused_by_its_place(tmp_path: Path, document: object, place: str) -> None:
    with pytest.raises(InvalidTokenFile, match=place) as refusal:
        TokenFile(written(tmp_path, document))

    assert "tokens.yaml" in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("account_type", ["user", "service", "system"])
def test_the_account_types_are_those_of_the_contract(tmp_path: Path, account_type: str) -> None:
    tokens = TokenFile(written(tmp_path, {"tokens": [entry(accountType=account_type)]}))

    assert tokens.authenticate("Bearer s3cret").account_type == account_type


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenFile, match="nowhere"):
        TokenFile(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["tokens: [", "tokens: \0", "!!python/object/apply:os.getpid []"])
def test_a_file_that_is_no_plain_yaml_is_refused_without_its_content(tmp_path: Path, content: str) -> None:
    with pytest.raises(InvalidTokenFile) as refusal:
        TokenFile(written(tmp_path, content))

    assert content not in str(refusal.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_bytes(b"\xff\xfe\xfa")

    with pytest.raises(InvalidTokenFile):
        TokenFile(path)


def test_an_account_type_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenFile):
        TokenFile(written(tmp_path, {"tokens": [entry(accountType=["user"])]}))


def test_a_file_with_an_impossible_date_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenFile):
        TokenFile(written(tmp_path, "tokens: [{subject: 2026-13-01}]"))
