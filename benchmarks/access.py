"""What the caches of tokens and rights are worth: requests per second with and without them, in one run.

    python -m benchmarks.access

GET /api/version, which asks for a caller and for nothing else, through the application in this process, with callers
from the stand-in identity service in another thread of it.
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from unittest.mock import Mock

from flask import Flask

from server_api.access.authentication import Credentials
from server_api.access.client_certificate import ClientCertificates
from server_api.access.digests import token_digest
from server_api.access.http_client import HttpClient
from server_api.access.identity_service import IdentityService
from server_api.access.principal import Principal
from server_api.access.source import CallerAuthenticator
from server_api.http.application import build_app
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.settings import Settings

TOKEN = "a-token"
REQUESTS = 1000
ACL_SECONDS = 60.0


@dataclass(frozen=True)
class Forgetful:
    """Authenticates as ``CallerAuthenticator`` does, and forgets everything each time."""

    http: HttpClient
    url: str

    def authenticate(self, credentials: Credentials) -> Principal:
        """Return who the credentials belong to."""
        return remembering(self.http, self.url).authenticate(credentials)


def remembering(http: HttpClient, url: str) -> CallerAuthenticator:
    """Return what the application uses."""
    return CallerAuthenticator(IdentityService(http, url, ACL_SECONDS), ClientCertificates(()))


def requests_per_second(app: Flask) -> float:
    """Return how many requests one client gets answered in a second."""
    client = app.test_client()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    began = time.perf_counter()
    for _ in range(REQUESTS):
        assert client.get("/api/version", headers=headers).status_code == 200
    return REQUESTS / (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    logging.disable(logging.CRITICAL)
    person = {"sha256": token_digest(TOKEN), "subject": "somebody", "accountType": "user", "acl": {}}
    with StandInIdentityService({"tokens": [person], "services": [], "organizations": []}) as identity:
        http = HttpClient("identity", connect_timeout=3.0, read_timeout=10.0)
        for name, authenticator in (
            ("with the caches", remembering(http, identity.url)),
            ("without them", Forgetful(http, identity.url)),
        ):
            rate = requests_per_second(build_app(Mock(authenticator=authenticator), Settings()))
            sys.stdout.write(f"{name:16} {rate:8.0f} requests a second\n")


if __name__ == "__main__":
    main()
