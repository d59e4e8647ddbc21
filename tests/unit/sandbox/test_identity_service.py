"""The stand-in for the identity service: as strict as the real one where it matters, and as naughty as it is told."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from server_api.access.passport import read
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.sandbox.layout import REPOSITORY
from tests.doubles.identity import known, person

O1, P1 = "10000000-0000-4000-8000-000000000001", "20000000-0000-4000-8000-000000000001"
RIGHTS = {"organizations": [{"id": O1, "endpoints": [{"name": "region:servers", "operations": ["read"]}]}]}
ALICE = person("alice", RIGHTS)
DOCUMENT = known(ALICE, projects={O1: [P1]})
FORM = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token": "alice",
    "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    "requested_token_type": "urn:nscale:params:oauth:token-type:passport",
}
BEARER = {"Authorization": "Bearer alice"}


@pytest.fixture
def stand_in() -> Iterator[StandInIdentityService]:
    with StandInIdentityService(DOCUMENT) as server:
        yield server


def exchange(url: str, **changes: str) -> requests.Response:
    return requests.post(f"{url}/oauth2/v2/token", data=FORM | changes, timeout=5)


def test_an_exchange_that_says_everything_right_is_a_passport(stand_in: StandInIdentityService) -> None:
    passport = read(exchange(stand_in.url, x_organization_id=O1).json()["access_token"], time.time())

    assert (passport.subject, passport.account_type) == ("alice@example.com", "user")
    assert passport.organization_ids == (O1,)
    assert 290 < passport.expires_at - time.time() <= 300


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}, 400, "invalid_request"),
        ({"requested_token_type": "x"}, 400, "invalid_request"),
        ({"subject_token": "mallory"}, 401, "access_denied"),
        ({"x_organization_id": "elsewhere"}, 400, "invalid_scope"),
    ],
)
def test_any_other_exchange_is_refused(
    stand_in: StandInIdentityService, changes: dict[str, str], status: int, error: str
) -> None:
    answer = exchange(stand_in.url, **changes)

    assert (answer.status_code, answer.json()["error"]) == (status, error)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/v1/acl", BEARER, 200),
        (f"/api/v1/organizations/{O1}/acl", BEARER, 200),
        ("/api/v1/organizations/elsewhere/acl", BEARER, 404),
        (f"/api/v1/organizations/{O1}/projects/{P1}", BEARER, 200),
        (f"/api/v1/organizations/{O1}/projects/elsewhere", BEARER, 404),
        (f"/api/v1/organizations/{O1}/projects/{P1}", {}, 401),
        ("/api/v1/acl", {"Authorization": "Bearer mallory"}, 401),
        ("/api/v1/acl", {}, 401),
        ("/api/v1/users", BEARER, 404),
    ],
)
def test_there_are_these_endpoints_and_no_others(
    stand_in: StandInIdentityService, path: str, headers: dict[str, str], status: int
) -> None:
    assert requests.get(stand_in.url + path, headers=headers, timeout=5).status_code == status


def test_it_misbehaves_as_often_as_it_is_told(stand_in: StandInIdentityService) -> None:
    stand_in.know(DOCUMENT | {"rules": [{"endpoint": "acl", "status": 503, "times": 2}]})
    url = f"{stand_in.url}/api/v1/acl"

    assert [requests.get(url, headers=BEARER, timeout=5).status_code for _ in range(3)] == [503, 503, 200]
    assert exchange(stand_in.url).status_code == 200


def test_it_hangs_up(stand_in: StandInIdentityService) -> None:
    stand_in.know(DOCUMENT | {"rules": [{"endpoint": "acl", "drop": True}]})

    with pytest.raises(requests.ConnectionError):
        requests.get(f"{stand_in.url}/api/v1/acl", headers=BEARER, timeout=5)


def test_as_a_process_it_takes_up_what_its_file_says_at_once(tmp_path: Path) -> None:
    file = tmp_path / "identity.yaml"

    def write(document: dict[str, Any]) -> None:
        new = tmp_path / "new"
        new.write_text(yaml.safe_dump(document))
        new.replace(file)

    write(DOCUMENT)
    command = [sys.executable, "-m", "server_api.sandbox.identity_service", "--known", str(file), "--port", "0"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("listening on ").strip()
        assert exchange(url).status_code == 200
        write(DOCUMENT | {"revoked": [ALICE["sha256"]]})
        assert exchange(url).status_code == 401
        write(DOCUMENT | {"rules": [{"endpoint": "exchange", "status": 500}]})
        assert exchange(url).status_code == 500
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
