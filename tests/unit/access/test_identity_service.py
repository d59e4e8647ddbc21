"""The identity service as the source of callers, against the stand-in over real HTTP (contract 5.2, 5.3, 5.5)."""

from __future__ import annotations

import base64
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from server_api import deadline
from server_api.access.acl import Acl, OrganizationGrants
from server_api.access.authentication import Credentials, ScopeRefused, Unauthenticated
from server_api.access.client_certificate import ClientCertificates, trusted_networks
from server_api.access.http_client import HttpClient
from server_api.access.identity_service import IdentityService
from server_api.access.passport import UnusablePassport
from server_api.access.principal import Principal
from server_api.access.source import CallerAuthenticator
from server_api.sandbox import certificates
from server_api.sandbox.identity_service import StandInIdentityService
from server_api.servers.ports import Missing, TimedOut, Unavailable
from tests.doubles.identity import known, person

O1, O2 = "10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000002"
P1, P2 = "20000000-0000-4000-8000-000000000001", "20000000-0000-4000-8000-000000000002"
SERVERS = "region:servers"
ALL = [{"name": SERVERS, "operations": ["create", "read", "update", "delete"]}]
READ = [{"name": SERVERS, "operations": ["read"]}]
ALICE = {"organizations": [{"id": O1, "projects": [{"id": P1, "endpoints": ALL}]}]}
ALICE_READS = {"organizations": [{"id": O1, "projects": [{"id": P1, "endpoints": READ}]}]}
BOB = {"organizations": [{"id": O2, "endpoints": READ}]}
PEOPLE = (
    person("alice", ALICE),
    person("bob", BOB),
    person("root", {"global": ALL}),
    person("robot", ALICE, account_type="service"),
    person("alices-weaker-token", ALICE_READS, subject="alice@example.com"),
)
SERVICES = {"unikorn-compute": {"global": ALL}, "unikorn-narrow": {"global": READ}}
PROJECTS = {O1: [P1], O2: [P2]}
DOCUMENT = known(*PEOPLE, services=SERVICES, projects=PROJECTS)


@pytest.fixture(scope="module")
def server() -> Iterator[StandInIdentityService]:
    with StandInIdentityService(DOCUMENT) as server:
        yield server


@pytest.fixture
def stand_in(server: StandInIdentityService) -> StandInIdentityService:
    server.know(DOCUMENT)
    server.app.calls.clear()
    server.app.seen.clear()
    return server


@pytest.fixture(scope="module")
def pems() -> dict[str, str]:
    authority = certificates.authority()
    return {name: quote(certificates.issued_by(authority, name).pem) for name in (*SERVICES, "unikorn-unknown")}


def source(server: StandInIdentityService, acl_seconds: float = 60.0, read_timeout: float = 5.0) -> CallerAuthenticator:
    http = HttpClient("identity", connect_timeout=1.0, read_timeout=read_timeout)
    return CallerAuthenticator(
        IdentityService(http, server.url, acl_seconds), ClientCertificates(trusted_networks("127.0.0.1"))
    )


def bearer(token: str, organization: str | None = None, project: str | None = None) -> Credentials:
    return Credentials(authorization=f"Bearer {token}", organization_id=organization, project_id=project)


def of_service(pem: str, principal: dict[str, Any], impersonate: str | None = None, **more: Any) -> Credentials:
    header = base64.urlsafe_b64encode(orjson.dumps(principal)).rstrip(b"=").decode()
    return Credentials(
        peer="127.0.0.1",
        certificate=pem,
        certificate_verified="SUCCESS",
        principal=header,
        impersonate=impersonate,
        **more,
    )


def allows(principal: Principal, operation: str, organization: str = O1, project: str = P1) -> bool:
    return principal.acl.allows(SERVERS, operation, organization, project)


def decoded(header: str) -> Any:
    return orjson.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))


def rules(*changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return DOCUMENT | {"rules": list(changes)} | more


# What is asked and what comes of it


def test_a_token_is_its_owner_with_its_rights(stand_in: StandInIdentityService) -> None:
    alice = source(stand_in).authenticate(bearer("alice"))

    assert (alice.subject, alice.account_type, alice.actor) == ("alice@example.com", "user", "")
    assert allows(alice, "create")
    assert not allows(alice, "read", O2, P2)
    assert stand_in.app.calls == {"exchange": 1, "acl": 1}
    path, headers = stand_in.app.seen[1]
    assert path == "/api/v1/acl"
    assert headers["Authorization"] == "Bearer alice"
    assert decoded(headers["X-Principal"]) == {"actor": "alice@example.com", "type": "user", "organizationIds": [O1]}
    assert "X-Impersonate" not in headers


def test_the_type_of_the_account_is_the_passports(stand_in: StandInIdentityService) -> None:
    assert source(stand_in).authenticate(bearer("robot")).account_type == "service"


def test_organization_and_project_of_the_path_go_along_and_are_attributed(stand_in: StandInIdentityService) -> None:
    alice = source(stand_in).authenticate(bearer("alice", O1, P1))

    assert (alice.organization_id, alice.project_id) == (O1, P1)
    path, headers = stand_in.app.seen[1]
    assert path == f"/api/v1/organizations/{O1}/acl"
    assert decoded(headers["X-Principal"]).items() >= {"organizationId": O1, "projectId": P1}.items()


def test_t08_a_token_that_is_not_accepted_is_refused(stand_in: StandInIdentityService) -> None:
    with pytest.raises(Unauthenticated, match="the token is not valid"):
        source(stand_in).authenticate(bearer("mallory"))

    assert stand_in.app.calls == {"exchange": 1}


@pytest.mark.parametrize("token", ["é", "a,b", "a;b", "a\x7fb", '"alice"', "=", "alice\r\nX: y"])
def test_b76_what_can_be_no_token_is_refused_without_asking(stand_in: StandInIdentityService, token: str) -> None:
    with pytest.raises(Unauthenticated):
        source(stand_in).authenticate(bearer(token))

    assert stand_in.app.calls == {}


def test_t07_a_scope_that_is_refused_is_told_apart(stand_in: StandInIdentityService) -> None:
    with pytest.raises(ScopeRefused):
        source(stand_in).authenticate(bearer("alice", O2))

    assert stand_in.app.calls == {"exchange": 1}


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 400, "body": "{}"},
        {"status": 400, "body": '{"error": "invalid_request"}'},
        {"status": 400, "body": "invalid_scope"},
        {"status": 400, "body": '["invalid_scope"]'},
        {"status": 403, "body": '{"error": "invalid_scope"}'},
        {"status": 404},
        {"status": 429},
        {"status": 500},
        {"status": 503},
        {"status": 302},
        {"drop": True},
    ],
    ids=str,
)
def test_whatever_else_the_exchange_answers_lets_nobody_in(
    stand_in: StandInIdentityService, rule: dict[str, Any]
) -> None:
    stand_in.know(rules({"endpoint": "exchange", **rule}))

    with capture_logs() as logs, pytest.raises(Unauthenticated, match="could not be verified"):
        source(stand_in).authenticate(bearer("alice"))

    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["the token exchange failed"]
    assert "acl" not in stand_in.app.calls


def test_an_identity_service_that_is_not_there_lets_nobody_in() -> None:
    with StandInIdentityService(DOCUMENT) as gone:
        pass
    with pytest.raises(Unauthenticated, match="could not be verified"):
        source(gone).authenticate(bearer("alice"))


@pytest.mark.parametrize(
    "rule",
    [
        {"claims": {"typ": "access"}},
        {"claims": {"sub": None}},
        {"claims": {"exp": 1}},
        {"status": 200, "body": "{}"},
        {"status": 200, "body": '{"access_token": "a.b.c"}'},
        {"status": 200, "body": "what"},
    ],
    ids=str,
)
def test_an_unusable_passport_is_a_failure_and_no_refusal(
    stand_in: StandInIdentityService, rule: dict[str, Any]
) -> None:
    stand_in.know(rules({"endpoint": "exchange", **rule}))

    with pytest.raises(UnusablePassport):
        source(stand_in).authenticate(bearer("alice"))


@pytest.mark.parametrize(
    ("rule", "failure"),
    [
        ({"status": 401}, Unauthenticated),
        ({"status": 403}, ScopeRefused),
        ({"status": 404}, ScopeRefused),
        ({"status": 400}, Unavailable),
        ({"status": 429}, Unavailable),
        ({"status": 500}, Unavailable),
        ({"status": 200, "body": "what"}, Unavailable),
        ({"status": 200, "body": "[]"}, Unavailable),
        ({"status": 200, "body": '{"global": "all"}'}, Unavailable),
        ({"drop": True}, Unavailable),
    ],
    ids=str,
)
def test_rights_that_cannot_be_fetched_are_none(
    stand_in: StandInIdentityService, rule: dict[str, Any], failure: type[Exception]
) -> None:
    stand_in.know(rules({"endpoint": "acl", **rule}))

    with pytest.raises(failure):
        source(stand_in).authenticate(bearer("alice"))


@pytest.mark.parametrize("status", [403, 404])
def test_an_organization_that_grants_nothing_and_one_that_does_not_exist_are_the_same(
    stand_in: StandInIdentityService, status: int
) -> None:
    stand_in.know(rules({"endpoint": "acl", "status": status}))

    principal = source(stand_in).authenticate(bearer("alice", O1))

    assert principal.acl == Acl(organizations={O1: OrganizationGrants()})


@pytest.mark.parametrize(("endpoint", "failure"), [("exchange", Unauthenticated), ("acl", TimedOut)])
def test_b61_an_answer_that_is_late_is_waited_for_within_the_deadline(
    stand_in: StandInIdentityService, endpoint: str, failure: type[Exception]
) -> None:
    stand_in.know(rules({"endpoint": endpoint, "delay": 1.0}))

    with deadline.within(0.3), pytest.raises(failure):
        source(stand_in).authenticate(bearer("alice"))


# Projects


def test_c07_c08_projects_are_asked_for_with_the_callers_own_credentials(stand_in: StandInIdentityService) -> None:
    bob = source(stand_in).authenticate(bearer("bob"))

    bob.projects.check(O2, P2)
    with pytest.raises(Missing):
        bob.projects.check(O2, P1)
    path, headers = stand_in.app.seen[2]
    assert path == f"/api/v1/organizations/{O2}/projects/{P2}"
    assert headers["Authorization"] == "Bearer bob"


@pytest.mark.parametrize("rule", [{"status": 401}, {"status": 403}, {"status": 500}, {"drop": True}, {"status": 204}])
def test_a_project_that_cannot_be_looked_up_is_not_taken_to_exist(
    stand_in: StandInIdentityService, rule: dict[str, Any]
) -> None:
    bob = source(stand_in).authenticate(bearer("bob"))
    stand_in.know(rules({"endpoint": "project", **rule}))

    with pytest.raises(Unavailable):
        bob.projects.check(O2, P2)


@pytest.mark.parametrize("project", ["..", ".", "", "a/b", "%2e%2e", "x?y"])
def test_a_project_whose_id_is_another_path_is_not_asked_for(stand_in: StandInIdentityService, project: str) -> None:
    bob = source(stand_in).authenticate(bearer("bob"))

    with pytest.raises(Missing):
        bob.projects.check(O2, project)
    assert "project" not in stand_in.app.calls


# Services


def test_a_service_has_its_own_rights_and_hands_on_its_certificate(
    stand_in: StandInIdentityService, pems: dict[str, str]
) -> None:
    principal = {"actor": "alice@example.com", "organizationId": O1, "projectId": P1, "type": "user"}
    service = source(stand_in).authenticate(of_service(pems["unikorn-compute"], principal))

    assert (service.subject, service.account_type) == ("unikorn-compute", "system")
    assert (service.actor, service.organization_id, service.project_id) == ("alice@example.com", O1, P1)
    assert allows(service, "delete", O2, P2)
    assert not service.impersonating
    _, headers = stand_in.app.seen[0]
    assert headers["Unikorn-Client-Certificate"] == pems["unikorn-compute"]
    assert decoded(headers["X-Principal"]) == principal
    assert "Authorization" not in headers
    assert stand_in.app.calls == {"acl": 1}


def test_an_unknown_service_has_no_rights(stand_in: StandInIdentityService, pems: dict[str, str]) -> None:
    assert not allows(source(stand_in).authenticate(of_service(pems["unikorn-unknown"], {})), "read")


def test_an_impersonating_service_may_do_what_both_may(stand_in: StandInIdentityService, pems: dict[str, str]) -> None:
    principal = {"actor": "alice@example.com"}
    wide, narrow = (
        source(stand_in).authenticate(of_service(pems[name], principal, "true"))
        for name in ("unikorn-compute", "unikorn-narrow")
    )

    assert wide.impersonating
    assert allows(wide, "delete")
    assert not allows(wide, "delete", O2, P2)
    assert allows(narrow, "read")
    assert not allows(narrow, "delete")


def test_rights_of_a_service_are_fetched_once_for_all_it_works_for_but_not_for_those_it_impersonates(
    stand_in: StandInIdentityService, pems: dict[str, str]
) -> None:
    identity = source(stand_in)
    pem = pems["unikorn-compute"]
    for actor in ("alice@example.com", "bob@example.com", "alice@example.com"):
        identity.authenticate(of_service(pem, {"actor": actor}))
    assert stand_in.app.calls["acl"] == 1

    alice, bob, _ = (
        identity.authenticate(of_service(pem, {"actor": actor}, "true"))
        for actor in ("alice@example.com", "bob@example.com", "alice@example.com")
    )
    assert stand_in.app.calls["acl"] == 3
    assert (allows(alice, "read"), allows(alice, "read", O2, P2)) == (True, False)
    assert (allows(bob, "read"), allows(bob, "read", O2, P2)) == (False, True)


def test_a_token_that_a_service_sends_along_counts_and_the_principal_is_the_services_word(
    stand_in: StandInIdentityService, pems: dict[str, str]
) -> None:
    credentials = of_service(pems["unikorn-compute"], {"actor": "carol"}, authorization="Bearer alice")
    principal = source(stand_in).authenticate(credentials)

    assert (principal.subject, principal.account_type, principal.actor) == ("alice@example.com", "user", "carol")
    assert allows(principal, "create")
    assert not allows(principal, "create", O2, P2)


def test_a_user_cannot_impersonate(stand_in: StandInIdentityService) -> None:
    header = base64.urlsafe_b64encode(b'{"actor":"root@example.com"}').decode()
    credentials = Credentials(authorization="Bearer alice", principal=header, impersonate="true")
    alice = source(stand_in).authenticate(credentials)

    assert (alice.actor, alice.impersonating) == ("", False)
    assert not allows(alice, "read", O2, P2)
    assert all("X-Impersonate" not in headers for _, headers in stand_in.app.seen)
    assert decoded(stand_in.app.seen[1][1]["X-Principal"])["actor"] == "alice@example.com"


# What is kept, and for how long


def test_two_tokens_of_one_subject_have_each_their_own_rights(stand_in: StandInIdentityService) -> None:
    identity = source(stand_in)
    for _ in range(2):
        assert allows(identity.authenticate(bearer("alice")), "delete")
        assert not allows(identity.authenticate(bearer("alices-weaker-token")), "delete")


def test_a_second_request_asks_nobody(stand_in: StandInIdentityService) -> None:
    identity = source(stand_in)
    for _ in range(3):
        identity.authenticate(bearer("alice"))

    assert stand_in.app.calls == {"exchange": 1, "acl": 1}


def test_passports_are_by_organization_and_project_and_rights_by_organization(
    stand_in: StandInIdentityService,
) -> None:
    identity = source(stand_in)
    for organization, project in ((None, None), (O1, None), (O1, P1), (O1, P2), (O1, P1), (None, None)):
        identity.authenticate(bearer("alice", organization, project))

    assert stand_in.app.calls == {"exchange": 4, "acl": 2}


@pytest.mark.parametrize(("seconds", "exchanges"), [(9.0, 2), (10.0, 2), (60.0, 1)])
def test_a_passport_is_not_kept_to_its_very_end(
    stand_in: StandInIdentityService, seconds: float, exchanges: int
) -> None:
    stand_in.know(DOCUMENT | {"passportSeconds": seconds})
    identity = source(stand_in)
    for _ in range(2):
        identity.authenticate(bearer("alice"))

    assert stand_in.app.calls["exchange"] == exchanges


def test_rights_need_not_be_kept_at_all(stand_in: StandInIdentityService) -> None:
    identity = source(stand_in, acl_seconds=0.0)
    for _ in range(3):
        identity.authenticate(bearer("alice"))

    assert stand_in.app.calls == {"exchange": 1, "acl": 3}


def test_a_token_that_was_withdrawn_is_found_out_when_rights_are_fetched_anew(
    stand_in: StandInIdentityService,
) -> None:
    identity = source(stand_in, acl_seconds=0.0)
    identity.authenticate(bearer("alice"))
    stand_in.know(DOCUMENT | {"revoked": [PEOPLE[0]["sha256"]]})

    with pytest.raises(Unauthenticated):
        identity.authenticate(bearer("alice"))
    with pytest.raises(Unauthenticated):
        identity.authenticate(bearer("alice"))

    # Its passport is not believed any longer either, so that the second time nothing but the exchange is asked.
    assert stand_in.app.calls == {"exchange": 2, "acl": 2}


def test_a_refusal_is_not_kept(stand_in: StandInIdentityService) -> None:
    identity = source(stand_in)
    stand_in.know(
        rules({"endpoint": "exchange", "status": 503, "times": 1}, {"endpoint": "acl", "status": 503, "times": 1})
    )

    with pytest.raises(Unauthenticated):
        identity.authenticate(bearer("alice"))
    with pytest.raises(Unavailable):
        identity.authenticate(bearer("alice"))
    assert identity.authenticate(bearer("alice")).subject == "alice@example.com"


def test_no_token_is_kept_anywhere(stand_in: StandInIdentityService) -> None:
    identity = source(stand_in)
    identity.authenticate(bearer("alice"))
    caches = [found for found in gc.get_objects() if type(found).__name__ == "TLRUCache"]

    assert any(len(cache) for cache in caches)
    keys = [str(key) for cache in caches for key in cache]
    assert all("Bearer" not in key and "'alice'" not in key for key in keys)


# Many at once


def at_once(credentials: list[Credentials], identity: CallerAuthenticator) -> list[Principal]:
    ready = threading.Barrier(len(credentials))

    def call(mine: Credentials) -> Principal:
        ready.wait()
        return identity.authenticate(mine)

    with ThreadPoolExecutor(len(credentials)) as pool:
        return list(pool.map(call, credentials))


def test_b80_twenty_calls_at_once_are_one_exchange_and_one_fetch_of_rights(stand_in: StandInIdentityService) -> None:
    stand_in.know(rules({"endpoint": "exchange", "delay": 0.1}, {"endpoint": "acl", "delay": 0.1}))

    found = at_once([bearer("alice")] * 20, source(stand_in))

    assert {principal.subject for principal in found} == {"alice@example.com"}
    assert stand_in.app.calls == {"exchange": 1, "acl": 1}


CALLERS = ("alice", "alices-weaker-token", "bob", "root", "as alice", "as bob", "compute", "narrow as alice")
RIGHTS = {
    "alice": {("read", O1), ("delete", O1)},
    "alices-weaker-token": {("read", O1)},
    "bob": {("read", O2)},
    "root": {("read", O1), ("delete", O1), ("read", O2), ("delete", O2)},
    "as alice": {("read", O1), ("delete", O1)},
    "as bob": {("read", O2)},
    "compute": {("read", O1), ("delete", O1), ("read", O2), ("delete", O2)},
    "narrow as alice": {("read", O1)},
}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(CALLERS), min_size=6, max_size=16), st.sampled_from([0.0, 60.0]))
def test_nobody_ever_gets_the_rights_of_another(
    stand_in: StandInIdentityService, pems: dict[str, str], callers: list[str], acl_seconds: float
) -> None:
    def credentials(caller: str) -> Credentials:
        service, _, actor = caller.rpartition("as ")
        if caller == "compute":
            return of_service(pems["unikorn-compute"], {"actor": "root@example.com"})
        if caller != actor:
            name = "unikorn-narrow" if service else "unikorn-compute"
            return of_service(pems[name], {"actor": f"{actor}@example.com"}, "true")
        return bearer(caller)

    identity = source(stand_in, acl_seconds)
    for _ in range(2):
        found = at_once([credentials(caller) for caller in callers], identity)
        for caller, principal in zip(callers, found, strict=True):
            allowed = {
                (operation, organization)
                for operation in ("read", "delete")
                for organization, project in ((O1, P1), (O2, P2))
                if allows(principal, operation, organization, project)
            }
            assert allowed == RIGHTS[caller], caller
