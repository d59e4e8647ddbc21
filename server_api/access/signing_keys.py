"""The keys that an issuer of tokens signs with, as it publishes them (RFC 7517), through their rotation.

They are fetched anew after some minutes, and at once for a token whose key is not among them, but no more often than
every few seconds: anybody can send tokens that name keys nobody has. When the issuer cannot be reached, keys go on
being used for an hour, and no longer, since one that was withdrawn must stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import structlog
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from server_api import deadline
from server_api.access.http_client import HttpClient, checked_url
from server_api.servers.ports import PortError, Unavailable

FRESH_SECONDS = 300.0
USABLE_SECONDS = 3_600.0
PAUSE_SECONDS = 10.0
RETRY_SECONDS = 1.0

SigningKey = RSAKey | ECKey | OKPKey

_DISCOVERY = "/.well-known/openid-configuration"
_LEAST_RSA_BITS = 2_048
_LONGEST_WAIT = 60.0
# A symmetric key among them could verify what anybody signed who has read them.
_KINDS: dict[str, type[SigningKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}

_log = structlog.get_logger(__name__)


class SigningKeys:
    """The keys of ``issuer``, from ``url`` or, when that is empty, from where the issuer says they are. Thread-safe."""

    def __init__(
        self, http: HttpClient, issuer: str, url: str = "", timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._http = http
        self._issuer = issuer
        self._url = url
        self._timer = timer
        self._keys: Sequence[SigningKey] = ()
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._lock = Lock()

    def find(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        """Return the key that a token says it is signed with, None if the issuer has none such.

        A token may leave out which one, if only one comes into question. Raises Unavailable or TimedOut when the keys
        are not known and cannot be fetched.
        """
        key = _matching(self._current(), key_id, algorithm)
        if key is None and self._age(self._tried_at) >= PAUSE_SECONDS:
            self._refresh_unless_newer(self._fetched_at)
            key = _matching(self._keys, key_id, algorithm)
        return key

    def _current(self) -> Sequence[SigningKey]:
        age = self._age(self._fetched_at)
        if age >= USABLE_SECONDS:
            self._refresh_unless_newer(self._fetched_at)
        elif age >= FRESH_SECONDS and self._age(self._tried_at) >= RETRY_SECONDS and self._lock.acquire(blocking=False):
            # One thread asks; the others go on with what is known.
            try:
                self._fetch()
            except PortError as failure:
                _log.warning("the issuer's keys could not be fetched anew", detail=failure.detail)
            finally:
                self._lock.release()
        return self._keys

    def _refresh_unless_newer(self, seen: float | None) -> None:
        if not self._lock.acquire(timeout=deadline.remaining(_LONGEST_WAIT)):
            raise TimeoutError("the issuer's keys did not come in time")
        try:
            if self._fetched_at != seen:
                return
            if self._age(self._fetched_at) >= USABLE_SECONDS and self._age(self._tried_at) < RETRY_SECONDS:
                raise Unavailable("oidc", "the issuer's keys could not be fetched a moment ago")
            self._fetch()
        finally:
            self._lock.release()

    def _fetch(self) -> None:
        self._tried_at = self._timer()
        keys = _usable(self._document(self._url or self._discovered()))
        self._keys, self._fetched_at = keys, self._timer()

    def _discovered(self) -> str:
        document = self._document(self._issuer.rstrip("/") + _DISCOVERY)
        if document.get("issuer") != self._issuer:
            raise Unavailable("oidc", "the discovery document is of another issuer")
        try:
            return checked_url(str(document.get("jwks_uri")), "jwks_uri")
        except ValueError as error:
            raise Unavailable("oidc", f"the discovery document is not usable: {error}") from None

    def _document(self, url: str) -> dict[str, Any]:
        answer = self._http.send("GET", url)
        if answer.status != 200:
            raise Unavailable("oidc", f"the issuer answered {answer.status}", answer.retry_after)
        try:
            document = answer.document()
        except ValueError:
            raise Unavailable("oidc", "the issuer's answer is no JSON") from None
        if not isinstance(document, dict):
            raise Unavailable("oidc", "the issuer's answer is no object")
        return document

    def _age(self, since: float | None) -> float:
        return float("inf") if since is None else self._timer() - since


def _usable(document: dict[str, Any]) -> Sequence[SigningKey]:
    """Return the keys of a set that can verify signatures; the others are passed over, as RFC 7517 asks."""
    items = document.get("keys")
    if not isinstance(items, list):
        raise Unavailable("oidc", "the issuer's keys are no set of keys")
    keys = []
    for item in items:
        kind = _KINDS.get(str(item.get("kty"))) if isinstance(item, dict) else None
        if kind is None:
            continue
        try:
            key = kind.import_key({name: value for name, value in item.items() if name != "key_ops"})
            strong = not isinstance(key, RSAKey) or key.raw_value.key_size >= _LEAST_RSA_BITS
        except (JoseError, ValueError, TypeError):
            continue
        if strong:
            keys.append(key)
    return keys


def _matching(keys: Sequence[SigningKey], key_id: str | None, algorithm: str) -> SigningKey | None:
    fitting = [key for key in keys if _fits(key, algorithm) and (key_id is None or key.kid == key_id)]
    if key_id is None and len(fitting) != 1:
        return None
    return fitting[0] if fitting else None


def _fits(key: SigningKey, algorithm: str) -> bool:
    if key.alg not in (None, algorithm):
        return False
    try:
        jws.JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True
