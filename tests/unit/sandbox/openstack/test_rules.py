"""Rules are written as a whole, matched by globs, counted, and turned into delays and failures of answers."""

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from server_api.sandbox.openstack import configuration, write_rules

Answer = tuple[str, dict[str, str], bytes]
Ask = Callable[..., Answer]

GET_SERVERS = {"service": "nova", "method": "GET", "path": "/v2.1/servers*"}


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the module of the runtime, which needs nothing of OpenStack, as the services do."""
    monkeypatch.syspath_prepend(configuration.RUNTIME)
    yield importlib.import_module("sandbox_runtime.faults")
    for name in [name for name in sys.modules if name.startswith("sandbox_runtime")]:
        del sys.modules[name]


class Service:
    """A stand-in of Nova behind the middleware."""

    def __init__(self, faults: ModuleType, rules: Path) -> None:
        self.rules = rules
        self.calls = 0
        self.slept: list[tuple[float, int]] = []
        self.disconnected = False
        self._disconnect = faults.DISCONNECT
        self._faults = faults.Faults(
            self._work,
            "nova",
            rules=faults.rule_book.__class__(rules),
            sleep=lambda seconds: self.slept.append((seconds, self.calls)),
        )

    def _work(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.calls += 1
        body = json.dumps({"servers": []}).encode()
        start_response("200 OK", [("Content-Length", str(len(body))), ("X-Request-Id", "req-1")])
        return [body]

    def ask(self, path: str = "/v2.1/servers", method: str = "GET") -> Answer:
        answer: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]]) -> None:
            answer.update(status=status, headers=dict(headers))

        def disconnect() -> None:
            self.disconnected = True

        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, self._disconnect: disconnect}
        body = b"".join(self._faults(environ, start_response))
        return answer["status"], answer["headers"], body


@pytest.fixture
def service(faults: ModuleType, tmp_path: Path) -> Service:
    return Service(faults, tmp_path / "rules.json")


def test_without_a_rules_file_requests_pass(service: Service) -> None:
    assert service.ask()[0] == "200 OK"


def test_a_rule_with_a_status_answers_instead_of_the_service(service: Service) -> None:
    write_rules(service.rules, [GET_SERVERS | {"status": 503, "headers": {"Retry-After": "3"}, "body": "later"}])
    status, headers, body = service.ask()
    assert (status, headers["Retry-After"], headers["Content-Length"], body) == (
        "503 Service Unavailable",
        "3",
        "5",
        b"later",
    )
    assert service.calls == 0


@pytest.mark.parametrize(
    "miss",
    [{"service": "neutron"}, {"method": "POST"}, {"path": "/v2.1/flavors"}, {"path": "/v2.1/SERVERS*"}],
)
def test_a_rule_that_differs_in_one_member_does_not_apply(service: Service, miss: dict[str, str]) -> None:
    write_rules(service.rules, [GET_SERVERS | {"status": 503} | miss])
    assert service.ask()[0] == "200 OK"


def test_members_are_globs_and_absent_ones_match_everything(service: Service) -> None:
    write_rules(service.rules, [{"path": "/v2.1/servers/*/action", "status": 409}])
    assert service.ask("/v2.1/servers/x/action", "POST")[0] == "409 Conflict"
    assert service.ask("/v2.1/servers/x", "POST")[0] == "200 OK"


def test_hypervisor_rules_say_nothing_about_requests(service: Service) -> None:
    write_rules(service.rules, [{"op": "*", "status": 503}])
    assert service.ask()[0] == "200 OK"


def test_a_rule_holds_from_the_moment_it_is_written_until_it_is_taken_out(service: Service) -> None:
    assert service.ask()[0] == "200 OK"
    write_rules(service.rules, [GET_SERVERS | {"status": 500}])
    assert service.ask()[0] == "500 Internal Server Error"
    write_rules(service.rules, [])
    assert service.ask()[0] == "200 OK"


@pytest.mark.parametrize("broken", ['[{"status"', '{"status": 500}', "[1]"])
def test_a_broken_file_leaves_the_rules_before_it(service: Service, broken: str) -> None:
    write_rules(service.rules, [GET_SERVERS | {"status": 500}])
    service.ask()
    service.rules.write_text(broken)
    assert service.ask()[0] == "500 Internal Server Error"


def test_delays_add_up_before_the_work(service: Service) -> None:
    write_rules(service.rules, [{"service": "nova", "delay": 2}, GET_SERVERS | {"delay": 0.5}])
    assert service.ask()[0] == "200 OK"
    assert service.slept == [(2.5, 0)]


def test_after_does_the_work_and_loses_the_answer(service: Service) -> None:
    write_rules(service.rules, [GET_SERVERS | {"status": 502, "after": True, "delay": 3}])
    assert service.ask()[0] == "502 Bad Gateway"
    assert service.calls == 1
    assert service.slept == [(3.0, 1)]


def test_a_delay_after_the_work_keeps_the_answer(service: Service) -> None:
    write_rules(service.rules, [GET_SERVERS | {"after": True, "delay": 3}])
    status, _, body = service.ask()
    assert (status, body, service.slept) == ("200 OK", b'{"servers": []}', [(3.0, 1)])


def test_truncate_sends_half_of_the_answer_with_its_own_length(service: Service) -> None:
    write_rules(service.rules, [GET_SERVERS | {"truncate": True}])
    status, headers, body = service.ask()
    assert (status, headers["Content-Length"], headers["X-Request-Id"]) == ("200 OK", str(len(body)), "req-1")
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(body)


@pytest.mark.parametrize(("after", "calls"), [(False, 0), (True, 1)])
def test_disconnect_closes_the_connection_before_or_after_the_work(service: Service, after: bool, calls: int) -> None:
    write_rules(service.rules, [GET_SERVERS | {"disconnect": True, "after": after}])
    service.ask()
    assert service.disconnected
    assert service.calls == calls


def test_the_first_rule_with_an_outcome_decides_and_uses_no_count_of_the_next(service: Service) -> None:
    first = GET_SERVERS | {"status": 503, "times": 1}
    second = GET_SERVERS | {"status": 500, "times": 1}
    write_rules(service.rules, [first, second])
    assert [service.ask()[0][:3] for _ in range(3)] == ["503", "500", "200"]


def test_a_counted_rule_starts_anew_with_another_id_only(service: Service) -> None:
    rule = GET_SERVERS | {"status": 503, "times": 1}
    write_rules(service.rules, [rule | {"id": "one"}])
    assert [service.ask()[0][:3] for _ in range(2)] == ["503", "200"]
    write_rules(service.rules, [rule | {"id": "one", "status": 500}])
    assert service.ask()[0][:3] == "200"
    write_rules(service.rules, [rule | {"id": "two"}])
    assert service.ask()[0][:3] == "503"


def test_writing_leaves_no_other_file_behind_even_if_a_rule_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    write_rules(path, [{"op": "spawn"}])
    with pytest.raises(TypeError):
        write_rules(path, [{"op": object()}])
    assert json.loads(path.read_text()) == [{"op": "spawn"}]
    assert list(tmp_path.iterdir()) == [path]
