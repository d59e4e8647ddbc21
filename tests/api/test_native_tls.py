"""Service callers over TLS that gunicorn itself terminates, as it is shipped (contract 5.1)."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests
import yaml

from server_api.access.digests import token_digest
from server_api.sandbox import certificates
from server_api.sandbox.certificates import Issued
from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.store.client import KubernetesClient
from tests.api.service_caller import principal
from tests.api.world import EVERYTHING, NAMESPACE, PEOPLE, SERVERS, endpoints

REPOSITORY = Path(__file__).parents[2]
FOR_ALICE = {"X-Principal": principal({"actor": "alice"})}
USER = PEOPLE["USER"].headers


@dataclass
class Site:
    """A running gunicorn and what its callers need."""

    url: str
    authority: Issued
    directory: Path

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.crt")

    def client(self, name: str, parent: Issued | None = None) -> tuple[str, str]:
        """Return certificate and key of a service, as files."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        certificates.issued_by(parent or self.authority, name).write(certificate, key)
        return str(certificate), str(key)

    def get(self, path: str = "/api/v2/servers", **options: Any) -> requests.Response:
        return requests.get(f"{self.url}{path}", verify=self.ca, timeout=10, **options)


@pytest.fixture(scope="module")
def site(
    kubernetes: tuple[EmbeddedKubernetes, KubernetesClient], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("tls")
    kubernetes[0].kubeconfig(directory / "kubeconfig", NAMESPACE)
    authority = certificates.authority()
    (directory / "ca.crt").write_text(authority.pem)
    certificates.issued_by(authority, "localhost").write(directory / "server.crt", directory / "server.key")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "KUBECONFIG": directory / "kubeconfig",
        "NAMESPACE": NAMESPACE,
        "TOKENS_FILE": tokens(directory),
        "BIND": f"127.0.0.1:{port}",
        "WORKERS": 1,
        "DRAIN_SECONDS": 0,
        "TLS_CERTIFICATE": directory / "server.crt",
        "TLS_KEY": directory / "server.key",
        "TLS_CLIENT_CA": directory / "ca.crt",
    }
    environment = os.environ | {f"SERVER_API_{name}": str(value) for name, value in settings.items()}
    environment.pop("PROMETHEUS_MULTIPROC_DIR", None)
    with (directory / "log").open("wb") as log:
        command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", "wsgi:app"]
        process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log)
    found = Site(f"https://127.0.0.1:{port}", authority, directory)
    try:
        await_ready(found, process)
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def tokens(directory: Path) -> Path:
    user = PEOPLE["USER"]
    document = {
        "tokens": [
            {"sha256": token_digest(user.token), "subject": "user", "accountType": "user", "acl": dict(user.acl)}
        ],
        "services": [{"commonName": "unikorn-compute", "acl": {"global": endpoints({SERVERS: EVERYTHING})}}],
    }
    path = directory / "tokens.yaml"
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    return path


def await_ready(site: Site, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        try:
            if site.get("/readyz").status_code == 200:
                return
        except requests.RequestException:
            time.sleep(0.1)
    pytest.fail((site.directory / "log").read_text())


def test_a_service_is_known_by_the_certificate_of_its_connection(site: Site) -> None:
    response = site.get(cert=site.client("unikorn-compute"), headers=FOR_ALICE)

    assert (response.status_code, response.json()) == (200, [])
    end = time.monotonic() + 10
    while '"subject":"unikorn-compute"' not in (site.directory / "log").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_t10_a_service_without_a_principal(site: Site) -> None:
    response = site.get(cert=site.client("unikorn-compute"))

    assert response.status_code == 400
    assert "X-Principal" in response.json()["error_description"]


def test_a_user_needs_no_certificate(site: Site) -> None:
    assert site.get(headers=USER).status_code == 200
    assert site.get(headers=FOR_ALICE).status_code == 401


def test_a_service_may_send_a_users_token(site: Site) -> None:
    certificate = site.client("unikorn-compute")

    assert site.get(cert=certificate, headers=USER | FOR_ALICE).status_code == 200
    assert site.get(cert=certificate, headers=USER).status_code == 400
    assert site.get(cert=certificate, headers=FOR_ALICE | {"Authorization": "Bearer x"}).status_code == 401


def test_a_certificate_of_another_authority_does_not_get_through(site: Site) -> None:
    stranger = site.client("stranger", certificates.authority())

    with pytest.raises(requests.ConnectionError):
        site.get(cert=stranger, headers=FOR_ALICE)


def test_t09_headers_about_certificates_are_nobodys_to_send(site: Site) -> None:
    claim = {"Ssl-Client-Cert": quote(site.authority.pem), "Ssl-Client-Verify": "SUCCESS"}
    for options in ({}, {"cert": site.client("unikorn-compute")}):
        response = site.get(headers=claim | FOR_ALICE, **options)
        assert response.status_code == 400
        assert "not accepted from this address" in response.json()["error_description"]


@pytest.mark.parametrize("name", [b"Ssl_Client_Cert", b"Ssl_Client-Cert"])
def test_names_that_only_look_like_the_headers_do_not_count(site: Site, name: bytes) -> None:
    context = ssl.create_default_context(cafile=site.ca)
    request = (
        b"GET /api/v2/servers HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        + name
        + b": x\r\nX_Principal: e30\r\nAuthorization: Bearer user\r\n\r\n"
    )
    port = int(site.url.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(request)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
