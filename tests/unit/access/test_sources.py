"""Which source of callers the settings choose, and what they are refused for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server_api.access.identity_service import IdentityService
from server_api.access.oidc import OidcSource
from server_api.access.sources import authenticator
from server_api.access.token_file import TokenFile
from server_api.settings import Settings


@pytest.fixture
def complete(tmp_path: Path) -> Settings:
    """Return settings that are complete for every source."""
    tokens, policy = tmp_path / "tokens.yaml", tmp_path / "policy.yaml"
    tokens.write_text("tokens: []")
    policy.write_text("{roles: {}, bindings: []}")
    for path in (tokens, policy):
        path.chmod(0o600)
    return Settings(
        tokens_file=tokens,
        identity_url="https://identity.example.com",
        oidc_issuer="https://issuer.example.com/realm",
        oidc_audience="server-api",
        policy_file=policy,
        trusted_proxies="10.0.0.0/24",
    )


@pytest.mark.parametrize(
    ("name", "kind"), [("token-file", TokenFile), ("identity-service", IdentityService), ("oidc", OidcSource)]
)
def test_the_setting_names_the_source(complete: Settings, name: str, kind: type) -> None:
    made = authenticator(replace(complete, identity_source=name))

    assert isinstance(made._source, kind)


def test_a_file_of_tokens_is_the_default() -> None:
    assert Settings().identity_source == "token-file"


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"identity_source": "ldap"}, "IDENTITY_SOURCE must be one of token-file, identity-service, oidc"),
        ({"tokens_file": None}, "TOKENS_FILE is not set"),
        ({"trusted_proxies": "everybody"}, "TRUSTED_PROXIES: "),
        ({"trusted_proxies": "0.0.0.0/0"}, "TRUSTED_PROXIES: "),
        ({"identity_source": "identity-service", "identity_url": ""}, "IDENTITY_URL must be a URL"),
        (
            {"identity_source": "identity-service", "identity_url": "http://identity.example.com"},
            "IDENTITY_URL must be",
        ),
        ({"identity_source": "identity-service", "identity_client_key": Path("k")}, "IDENTITY_CLIENT_KEY needs"),
        ({"identity_source": "oidc", "policy_file": None}, "POLICY_FILE is not set"),
        ({"identity_source": "oidc", "oidc_audience": ""}, "OIDC_AUDIENCE is not set"),
        ({"identity_source": "oidc", "oidc_issuer": ""}, "OIDC_ISSUER must be a URL"),
        ({"identity_source": "oidc", "oidc_issuer": "http://issuer.example.com"}, "OIDC_ISSUER must be https"),
        ({"identity_source": "oidc", "oidc_keys_url": "http://issuer.example.com/k"}, "OIDC_KEYS_URL must be https"),
        ({"identity_source": "oidc", "oidc_algorithms": "HS256"}, "OIDC_ALGORITHMS: only"),
        ({"identity_source": "oidc", "oidc_algorithms": "RS256,none"}, "OIDC_ALGORITHMS: only"),
        ({"identity_source": "oidc", "oidc_algorithms": " , "}, "OIDC_ALGORITHMS: only"),
    ],
    ids=str,
)
def test_settings_that_could_tell_nobody_apart_are_refused_by_name(
    complete: Settings, changes: dict[str, Any], setting: str
) -> None:
    with pytest.raises(ValueError, match=f"^SERVER_API_{setting}"):
        authenticator(replace(complete, **changes))


def test_a_file_that_cannot_be_used_stops_the_start(complete: Settings) -> None:
    assert complete.tokens_file is not None
    complete.tokens_file.chmod(0o666)

    with pytest.raises(ValueError, match=r"tokens\.yaml: others than its owner may write it"):
        authenticator(complete)
