"""Which source of callers an installation uses, by its settings (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Callable

from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.access.http_client import HttpClient, Observe, checked_url
from server_api.access.identity_service import IdentityService
from server_api.access.oidc import ALGORITHMS, OidcSource, TokenRules
from server_api.access.signing_keys import SigningKeys
from server_api.access.source import CallerAuthenticator, IdentitySource
from server_api.access.token_file import TokenFile
from server_api.settings import PREFIX, Settings


def authenticator(settings: Settings, observe: Observe | None = None) -> CallerAuthenticator:
    """Return what tells callers apart. ``observe`` is told of every request that is made for it.

    Raises ValueError, naming the setting, when it could tell nobody from another, or not for sure.
    """
    build = _SOURCES.get(settings.identity_source)
    if build is None:
        raise ValueError(f"{PREFIX}IDENTITY_SOURCE must be one of {', '.join(_SOURCES)}")
    try:
        proxies = trusted_networks(settings.trusted_proxies)
    except ValueError as error:
        raise ValueError(f"{PREFIX}TRUSTED_PROXIES: {error}") from None
    return CallerAuthenticator(build(settings, observe), ClientCertificates(proxies))


def _token_file(settings: Settings, _observe: Observe | None) -> IdentitySource:
    if settings.tokens_file is None:
        raise ValueError(f"{PREFIX}TOKENS_FILE is not set: nobody could be authenticated")
    return TokenFile(settings.tokens_file)


def _identity_service(settings: Settings, observe: Observe | None) -> IdentitySource:
    if settings.identity_client_key is not None and settings.identity_client_certificate is None:
        raise ValueError(f"{PREFIX}IDENTITY_CLIENT_KEY needs {PREFIX}IDENTITY_CLIENT_CERTIFICATE")
    http = HttpClient(
        "identity",
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        authorities=settings.identity_ca,
        certificate=settings.identity_client_certificate,
        key=settings.identity_client_key,
        observe=observe,
    )
    url = checked_url(settings.identity_url, f"{PREFIX}IDENTITY_URL")
    return IdentityService(http, url, settings.acl_cache_seconds)


def _oidc(settings: Settings, observe: Observe | None) -> IdentitySource:
    if settings.policy_file is None:
        raise ValueError(f"{PREFIX}POLICY_FILE is not set: nobody could do anything")
    if not settings.oidc_audience:
        raise ValueError(f"{PREFIX}OIDC_AUDIENCE is not set: tokens for other services would be accepted")
    algorithms = [name.strip() for name in settings.oidc_algorithms.split(",") if name.strip()]
    if not algorithms or not ALGORITHMS.issuperset(algorithms):
        raise ValueError(f"{PREFIX}OIDC_ALGORITHMS: only {', '.join(sorted(ALGORITHMS))}, with commas between")
    checked_url(settings.oidc_issuer, f"{PREFIX}OIDC_ISSUER")
    keys_url = settings.oidc_keys_url and checked_url(settings.oidc_keys_url, f"{PREFIX}OIDC_KEYS_URL")
    http = HttpClient(
        "oidc",
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        authorities=settings.identity_ca,
        proxies=True,
        observe=observe,
    )
    rules = TokenRules(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        algorithms=algorithms,
        subject_claim=settings.oidc_subject_claim,
        groups_claim=settings.oidc_groups_claim,
    )
    return OidcSource(SigningKeys(http, settings.oidc_issuer, keys_url), rules, settings.policy_file)


_SOURCES: dict[str, Callable[[Settings, Observe | None], IdentitySource]] = {
    "token-file": _token_file,
    "identity-service": _identity_service,
    "oidc": _oidc,
}
