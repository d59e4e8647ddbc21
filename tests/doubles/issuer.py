"""An issuer of OpenID Connect tokens, over HTTP."""

from __future__ import annotations

import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

import orjson
from joserfc import jws, jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

from tests.doubles.http_server import HttpServer, answer

Key = ECKey | RSAKey | OKPKey


class Issuer:
    """Publishes ``published`` under its URL and signs with whatever key it is told; ``calls`` counts by path.

    ``status`` is what it answers with instead of 200; ``discovery`` are changes of its discovery document.
    """

    def __init__(self) -> None:
        self.published: list[dict[str, Any]] = []
        self.discovery: dict[str, Any] = {}
        self.status = 200
        self.calls: Counter[str] = Counter()
        self._server = HttpServer(self._handle)
        self.url = f"{self._server.url}/realm"
        self.key = self.rotate("first")

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.__exit__(*failure)

    def rotate(self, key_id: str) -> ECKey:
        """Sign with a new key from now on, and publish that one alone."""
        self.key = ECKey.generate_key("P-256", {"kid": key_id, "use": "sig"})
        self.publish(self.key)
        return self.key

    def publish(self, *keys: Key) -> None:
        """Publish these keys and no others."""
        self.published = [dict(key.as_dict(private=False)) for key in keys]

    def token(self, *, key: Any = None, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """Return a token for ``alice``; a claim that is ``...`` is left out, and so is such a member of the header."""
        key = key or self.key
        head = {"alg": "ES256", "kid": key.kid, "typ": "JWT", **(header or {})}
        claims = {"iss": self.url, "aud": "server-api", "sub": "alice", "exp": int(time.time()) + 300, **changes}
        registry = jws.JWSRegistry(algorithms=[head["alg"]], strict_check_header=False)
        return jwt.encode(
            {name: value for name, value in head.items() if value is not ...},
            {name: value for name, value in claims.items() if value is not ...},
            key,
            registry=registry,
            default_type=None,
        )

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.removeprefix("/realm")
        self.calls[path] += 1
        documents = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.discovery},
            "/keys": {"keys": self.published},
        }
        if path not in documents:
            answer(request, 404, b"")
        else:
            answer(request, self.status, orjson.dumps(documents[path]))
