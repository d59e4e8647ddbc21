"""The issuer's keys through rotation, abuse and outage."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from server_api import deadline
from server_api.access.http_client import HttpClient
from server_api.access.signing_keys import FRESH_SECONDS, PAUSE_SECONDS, USABLE_SECONDS, SigningKeys
from server_api.servers.ports import Unavailable
from tests.doubles.issuer import Issuer


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def keys(issuer: Issuer, time: Time) -> SigningKeys:
    return SigningKeys(http(), issuer.url, timer=time)


def http() -> HttpClient:
    return HttpClient("oidc", connect_timeout=1.0, read_timeout=1.0)


def found(keys: SigningKeys, key_id: str | None, algorithm: str = "ES256") -> str | None:
    key = keys.find(key_id, algorithm)
    return None if key is None else key.kid


def test_the_keys_are_where_the_issuer_says(issuer: Issuer, keys: SigningKeys) -> None:
    assert [found(keys, "first") for _ in range(3)] == ["first"] * 3
    assert issuer.calls == {"/.well-known/openid-configuration": 1, "/keys": 1}


def test_the_keys_may_be_said_to_be_elsewhere(issuer: Issuer) -> None:
    assert found(SigningKeys(http(), issuer.url, f"{issuer.url}/keys"), "first") == "first"
    assert issuer.calls == {"/keys": 1}


def test_a_new_key_is_found_by_the_first_token_that_names_it(issuer: Issuer, keys: SigningKeys, time: Time) -> None:
    found(keys, "first")
    issuer.rotate("second")
    time.now += PAUSE_SECONDS

    assert found(keys, "second") == "second"
    assert found(keys, "first") is None


def test_keys_that_nobody_has_are_not_asked_for_again_and_again(issuer: Issuer, keys: SigningKeys, time: Time) -> None:
    found(keys, "first")
    for number in range(50):
        assert found(keys, f"made up {number}") is None
    assert issuer.calls["/keys"] == 1

    time.now += PAUSE_SECONDS
    for number in range(50):
        assert found(keys, f"made up {number}") is None
    assert issuer.calls["/keys"] == 2


def test_a_key_that_was_withdrawn_stops_after_some_minutes(issuer: Issuer, keys: SigningKeys, time: Time) -> None:
    found(keys, "first")
    issuer.rotate("second")
    time.now += FRESH_SECONDS

    assert found(keys, "first") is None
    assert found(keys, "second") == "second"


def test_an_issuer_that_is_down_is_survived_for_an_hour_and_no_longer(
    issuer: Issuer, keys: SigningKeys, time: Time
) -> None:
    found(keys, "first")
    issuer.status = 503
    time.now += USABLE_SECONDS - 1
    assert found(keys, "first") == "first"

    time.now += 1
    for _ in range(2):
        with pytest.raises(Unavailable):
            found(keys, "first")

    issuer.status = 200
    time.now += 1
    assert found(keys, "first") == "first"


def test_an_issuer_that_is_down_is_not_asked_for_every_request(issuer: Issuer, keys: SigningKeys, time: Time) -> None:
    issuer.status = 503
    for _ in range(20):
        with pytest.raises(Unavailable):
            found(keys, "first")

    assert issuer.calls["/.well-known/openid-configuration"] == 1


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://other.example.com"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "http://example.com/k"},
    ],
)
def test_a_discovery_document_that_is_not_to_be_believed_is_refused(
    issuer: Issuer, keys: SigningKeys, discovery: dict[str, str | None]
) -> None:
    issuer.discovery = discovery

    with pytest.raises(Unavailable, match="discovery"):
        found(keys, "first")


def test_keys_that_cannot_verify_are_passed_over(issuer: Issuer, keys: SigningKeys) -> None:
    good = RSAKey.generate_key(2048, {"kid": "good"})
    issuer.publish(good)
    issuer.published += [
        OctKey.generate_key(256, {"kid": "symmetric"}).as_dict(private=True),  # type: ignore[list-item]
        ECKey.generate_key("P-256", {"kid": "encrypts", "use": "enc"}).as_dict(private=False),  # type: ignore[list-item]
        {"kty": "RSA", "kid": "broken", "n": "AQAB"},
        {"kty": "new", "kid": "unknown"},
        {"kid": "nothing"},
    ]
    issuer.published.append("what")  # type: ignore[arg-type]

    assert found(keys, "good", "RS256") == "good"
    for name in ("symmetric", "encrypts", "broken", "unknown", "nothing"):
        assert [found(keys, name, algorithm) for algorithm in ("HS256", "ES256", "RS256")] == [None] * 3


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_a_weak_key_is_passed_over(issuer: Issuer, keys: SigningKeys) -> None:
    weak = generate_private_key(65537, 1024).public_key()
    pem = weak.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    issuer.publish(RSAKey.import_key(pem, {"kid": "weak"}))

    assert found(keys, "weak", "RS256") is None


def test_a_key_is_good_for_its_own_algorithms_only(issuer: Issuer, keys: SigningKeys) -> None:
    issuer.publish(
        ECKey.generate_key("P-256", {"kid": "ec"}),
        RSAKey.generate_key(2048, {"kid": "rsa"}),
        RSAKey.generate_key(2048, {"kid": "ps", "alg": "PS256"}),
        OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    )

    algorithms = ["ES256", "ES384", "RS256", "PS256", "Ed25519"]
    good = {name: [alg for alg in algorithms if found(keys, name, alg)] for name in ("ec", "rsa", "ps", "ed")}
    assert good == {"ec": ["ES256"], "rsa": ["RS256", "PS256"], "ps": ["PS256"], "ed": ["Ed25519"]}


def test_a_token_may_leave_the_key_out_if_there_is_one_only(issuer: Issuer, keys: SigningKeys, time: Time) -> None:
    assert found(keys, None) == "first"

    issuer.publish(ECKey.generate_key("P-256", {"kid": "a"}), ECKey.generate_key("P-256", {"kid": "b"}))
    time.now += FRESH_SECONDS
    assert found(keys, None) is None


def test_b80_twenty_calls_at_once_are_one_fetch(issuer: Issuer, keys: SigningKeys) -> None:
    ready = threading.Barrier(20)

    def call(_: int) -> str | None:
        ready.wait()
        with deadline.within(5.0):
            return found(keys, "first")

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(call, range(20))) == {"first"}
    assert issuer.calls["/keys"] == 1
