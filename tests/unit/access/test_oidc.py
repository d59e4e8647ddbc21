"""Tokens of an OpenID Connect issuer: which are accepted, as whom, and with which rights."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
import yaml
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from server_api.access.authentication import Credentials, InvalidCredentials, Unauthenticated
from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.access.http_client import HttpClient
from server_api.access.oidc import ALGORITHMS, LEEWAY_SECONDS, OidcSource, TokenRules
from server_api.access.principal import Principal
from server_api.access.signing_keys import SigningKeys
from server_api.access.source import CallerAuthenticator
from server_api.access.watched_file import UnusableFile
from server_api.sandbox import certificates
from server_api.servers.ports import Unavailable
from tests.doubles.issuer import Issuer

ALL = [{"name": "region:servers", "operations": ["create", "read"]}]
POLICY: dict[str, Any] = {
    "roles": {"user": ALL, "reader": [{"name": "region:servers", "operations": ["read"]}]},
    "bindings": [
        {"role": "user", "subjects": ["alice"], "organization": "O1", "project": "P1"},
        {"role": "reader", "groups": ["auditors"], "organization": "O1"},
        {"role": "user", "services": ["unikorn-compute"], "everywhere": True},
        {"role": "reader", "services": ["unikorn-narrow"], "everywhere": True},
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[Issuer]:
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(server: Issuer) -> Issuer:
    server.status = 200
    server.rotate("first")
    return server


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    write(path, POLICY)
    return path


def write(path: Path, document: object) -> None:
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)


def source(issuer: Issuer, policy: Path, **rules: Any) -> CallerAuthenticator:
    http = HttpClient("oidc", connect_timeout=1.0, read_timeout=1.0)
    defaults = {"issuer": issuer.url, "audience": "server-api", "algorithms": ["ES256", "RS256"]}
    oidc = OidcSource(SigningKeys(http, issuer.url), TokenRules(**defaults | rules), policy)
    return CallerAuthenticator(oidc, ClientCertificates(trusted_networks("127.0.0.1")))


def owner(authenticator: CallerAuthenticator, token: str) -> Principal:
    return authenticator.authenticate(Credentials(authorization=f"Bearer {token}"))


def may(principal: Principal, operation: str, project: str = "P1") -> bool:
    return principal.acl.allows("region:servers", operation, "O1", project)


def test_a_token_is_its_subject_with_the_rights_of_the_policy(issuer: Issuer, policy: Path) -> None:
    alice = owner(source(issuer, policy), issuer.token())

    assert (alice.subject, alice.account_type) == ("alice", "user")
    assert may(alice, "create")
    assert not may(alice, "read", "P2")


def test_groups_bring_the_rights_of_groups(issuer: Issuer, policy: Path) -> None:
    authenticator = source(issuer, policy)

    for groups in (["auditors", "x"], "auditors"):
        assert may(owner(authenticator, issuer.token(groups=groups)), "read", "P2")
    for groups in ([], ["others"], {"auditors": True}, [["auditors"]], None, 7):
        assert not may(owner(authenticator, issuer.token(groups=groups)), "read", "P2")


def test_subject_and_groups_may_be_in_other_claims(issuer: Issuer, policy: Path) -> None:
    authenticator = source(issuer, policy, subject_claim="email", groups_claim="roles")
    principal = owner(authenticator, issuer.token(email="alice", sub="7", roles=["auditors"], groups=["x"]))

    assert principal.subject == "alice"
    assert may(principal, "read", "P2")


def test_a_subject_that_the_policy_does_not_know_has_no_rights(issuer: Issuer, policy: Path) -> None:
    assert not may(owner(source(issuer, policy), issuer.token(sub="bob")), "read")


def test_b64_a_token_of_twelve_kilobytes_is_accepted(issuer: Issuer, policy: Path) -> None:
    token = issuer.token(groups=[f"group-{number:05}" for number in range(650)])

    assert len(token) > 11_000
    assert owner(source(issuer, policy), token).subject == "alice"


FAR_AWAY = 4_000_000_000
"""A moment in the next century, in seconds: not one that passes while other tests run."""


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example.com"},
        {"iss": ...},
        {"iss": ["x"]},
        {"aud": "other"},
        {"aud": ["other", "another"]},
        {"aud": []},
        {"aud": ...},
        {"aud": {"server-api": True}},
        {"exp": ...},
        {"exp": "soon"},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"nbf": FAR_AWAY},
        {"nbf": "soon"},
        {"iat": FAR_AWAY},
        {"sub": ...},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["alice"]},
    ],
    ids=str,
)
def test_a_token_whose_claims_do_not_hold_is_refused(issuer: Issuer, policy: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated, match=r"^the token is not valid$"):
        owner(source(issuer, policy), issuer.token(**changes))


def test_a_token_that_has_expired_is_told_so(issuer: Issuer, policy: Path) -> None:
    with pytest.raises(Unauthenticated, match=r"^the token has expired$"):
        owner(source(issuer, policy), issuer.token(exp=int(time.time()) - LEEWAY_SECONDS - 5))


@pytest.mark.parametrize("claims", [{"exp": 3 - LEEWAY_SECONDS}, {"nbf": LEEWAY_SECONDS - 3}, {"nbf": -5}, {"iat": 3}])
def test_clocks_may_be_somewhat_apart(issuer: Issuer, policy: Path, claims: dict[str, int]) -> None:
    moments = {name: int(time.time()) + seconds for name, seconds in claims.items()}

    assert owner(source(issuer, policy), issuer.token(**moments)).subject == "alice"


def test_one_of_several_audiences_is_enough(issuer: Issuer, policy: Path) -> None:
    assert owner(source(issuer, policy), issuer.token(aud=["other", "server-api"])).subject == "alice"


@pytest.mark.parametrize("type_", [..., "JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_tokens_of_these_types_are_accepted(issuer: Issuer, policy: Path, type_: Any) -> None:
    assert owner(source(issuer, policy), issuer.token(header={"typ": type_})).subject == "alice"


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": ""},
        {"crit": ["b64"], "b64": False},
        {"crit": ["surprise"], "surprise": 1},
        {"kid": "nobody's"},
    ],
    ids=str,
)
def test_a_token_with_another_header_is_refused(issuer: Issuer, policy: Path, header: dict[str, Any]) -> None:
    try:
        token = issuer.token(header=header)
    except Exception:  # noqa: BLE001  what the library does not sign either is put together by hand
        parts = issuer.token().split(".")
        parts[0] = encoded({"alg": "ES256", "kid": "first", **header})
        token = ".".join(parts)

    with pytest.raises(Unauthenticated, match="not valid"):
        owner(source(issuer, policy), token)


def encoded(document: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(document)).rstrip(b"=").decode()


def test_a_token_signed_with_another_key_is_refused(issuer: Issuer, policy: Path) -> None:
    mine = ECKey.generate_key("P-256", {"kid": "first"})

    with pytest.raises(Unauthenticated, match="not valid"):
        owner(source(issuer, policy), issuer.token(key=mine))


def test_a_key_that_a_token_brings_along_is_not_used(issuer: Issuer, policy: Path) -> None:
    mine = ECKey.generate_key("P-256", {"kid": "mine"})
    public = dict(mine.as_dict(private=False))

    for header in ({"jwk": public}, {"jku": "https://mallory.example.com"}):
        with pytest.raises(Unauthenticated, match="not valid"):
            owner(source(issuer, policy), issuer.token(key=mine, header=header))


def test_algorithms_that_are_not_allowed_are_refused(issuer: Issuer, policy: Path) -> None:
    rsa = RSAKey.generate_key(2048, {"kid": "rsa"})
    issuer.publish(issuer.key, rsa)
    public_as_secret = OctKey.import_key({"kty": "oct", "k": encoded("x" * 64), "kid": "first"})
    authenticator = source(issuer, policy)

    assert owner(authenticator, issuer.token(key=rsa, header={"alg": "RS256"})).subject == "alice"
    for token in (
        issuer.token(key=rsa, header={"alg": "PS256"}),
        issuer.token(key=rsa, header={"alg": "RS512"}),
        issuer.token(key=public_as_secret, header={"alg": "HS256"}),
        ".".join([encoded({"alg": "none"}), issuer.token().split(".")[1], ""]),
        ".".join([encoded({"alg": "none", "kid": "first"}), *issuer.token().split(".")[1:]]),
    ):
        with pytest.raises(Unauthenticated, match="not valid"):
            owner(authenticator, token)


def test_no_algorithm_with_a_shared_secret_can_be_allowed() -> None:
    assert not [name for name in ALGORITHMS if name.startswith("HS") or name == "none"]


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize("algorithm", ["Ed25519", "EdDSA"])
def test_edwards_curves_can_be_allowed(issuer: Issuer, policy: Path, algorithm: str) -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": "ed"})
    issuer.publish(key)

    token = issuer.token(key=key, header={"alg": algorithm})
    assert owner(source(issuer, policy, algorithms=[algorithm]), token).subject == "alice"


@pytest.mark.parametrize(
    "token",
    [
        "s3cret",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "a.b.c.d.e",
        "é.é.é",
        "..",
        ".".join(["W10", "e30", "AA"]),
        ".".join([encoded({"alg": "ES256", "kid": 7}), "e30", "AA"]),
        ".".join([encoded({"alg": ["ES256"]}), "e30", "AA"]),
        ".".join([encoded({"alg": "ES256", "typ": ["JWT"]}), "e30", "AA"]),
        ".".join([base64.urlsafe_b64encode(b"[" * 9_000).decode(), "e30", "AA"]),
    ],
    ids=lambda token: token[:20],
)
def test_what_is_no_token_is_refused_and_not_repeated(issuer: Issuer, policy: Path, token: str) -> None:
    with pytest.raises(Unauthenticated, match=r"^the token is not valid$"):
        owner(source(issuer, policy), token)


def test_a_token_that_was_changed_is_refused(issuer: Issuer, policy: Path) -> None:
    head, _, signature = issuer.token().split(".")
    claims = {"iss": issuer.url, "aud": "server-api", "sub": "root", "exp": FAR_AWAY}

    with pytest.raises(Unauthenticated, match="not valid"):
        owner(source(issuer, policy), f"{head}.{encoded(claims)}.{signature}")


def test_an_issuer_that_is_down_is_a_failure_of_its_own(issuer: Issuer, policy: Path) -> None:
    issuer.status = 503

    with pytest.raises(Unavailable):
        owner(source(issuer, policy), issuer.token())


# The policy


def test_a_new_policy_holds_from_the_next_request_on(issuer: Issuer, policy: Path) -> None:
    authenticator = source(issuer, policy)
    assert may(owner(authenticator, issuer.token()), "create")

    write(policy, POLICY | {"bindings": POLICY["bindings"][1:]})
    assert not may(owner(authenticator, issuer.token()), "create")


def test_a_broken_policy_leaves_the_old_one_in_force(issuer: Issuer, policy: Path) -> None:
    authenticator = source(issuer, policy)

    write(policy, {"roles": {}, "bindings": [{"role": "missing"}]})

    assert may(owner(authenticator, issuer.token()), "create")


def test_a_policy_that_is_broken_at_the_start_is_refused_by_its_place(issuer: Issuer, policy: Path) -> None:
    write(policy, POLICY | {"bindings": [{"role": "root", "subjects": ["alice"], "organization": "O1"}]})

    with pytest.raises(UnusableFile, match=r"policy\.yaml: bindings\[0\]\.role: the name of one of the roles"):
        source(issuer, policy)


# Services


def of_service(name: str, principal: dict[str, str], impersonate: str | None = None, **more: Any) -> Credentials:
    pem = certificates.issued_by(certificates.authority(), name).pem
    return Credentials(
        peer="127.0.0.1",
        certificate=quote(pem),
        certificate_verified="SUCCESS",
        principal=encoded(principal),
        impersonate=impersonate,
        **more,
    )


def test_a_service_has_the_rights_that_the_policy_gives_its_name(issuer: Issuer, policy: Path) -> None:
    authenticator = source(issuer, policy)

    compute = authenticator.authenticate(of_service("unikorn-compute", {"actor": "alice"}))
    assert (compute.subject, compute.account_type, compute.actor) == ("unikorn-compute", "system", "alice")
    assert may(compute, "create", "P9")
    assert not may(authenticator.authenticate(of_service("alice", {})), "read")


def test_an_impersonating_service_may_do_what_both_may(issuer: Issuer, policy: Path) -> None:
    authenticator = source(issuer, policy)
    wide = authenticator.authenticate(of_service("unikorn-compute", {"actor": "alice"}, "true"))
    narrow = authenticator.authenticate(of_service("unikorn-narrow", {"actor": "alice"}, "true"))

    assert (may(wide, "create"), may(wide, "create", "P9")) == (True, False)
    assert (may(narrow, "create"), may(narrow, "read")) == (False, True)
    assert not may(authenticator.authenticate(of_service("unikorn-compute", {"actor": "bob"}, "true")), "read")


def test_somebodys_token_is_not_combined_with_somebody_elses_name(issuer: Issuer, policy: Path) -> None:
    credentials = of_service("unikorn-compute", {"actor": "bob"}, "true", authorization=f"Bearer {issuer.token()}")

    with pytest.raises(InvalidCredentials, match="cannot be combined"):
        source(issuer, policy).authenticate(credentials)
