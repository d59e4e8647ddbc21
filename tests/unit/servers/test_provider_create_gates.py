"""Which provider-create gates remain (contract 1.11 and 7.4)."""

from __future__ import annotations

import pytest

from server_api.servers.model import GateStatus, ServerStatus
from server_api.servers.provider_create_gates import remaining
from tests.unit.servers.builders import EARLIER, spec

A, B = "example.org/b-first", "example.org/a-second"


def recorded(condition_type: str, status: str) -> GateStatus:
    return GateStatus(condition_type, status, EARLIER, "an-actor", "Because", "")


@pytest.mark.parametrize(
    ("configured", "recorded_gates", "expected"),
    [
        pytest.param(None, (), None, id="g16 none configured"),
        pytest.param(None, (recorded(A, "False"),), None, id="none configured, one recorded"),
        pytest.param((), (), (), id="an empty list"),
        pytest.param((A,), (), (A,), id="g01 nothing recorded"),
        pytest.param((A, B), (), (A, B), id="in the order of the spec"),
        pytest.param((A,), (recorded(A, "True"),), (), id="g03 satisfied"),
        pytest.param((A,), (recorded(A, "False"),), (A,), id="False"),
        pytest.param((A,), (recorded(A, "Unknown"),), (A,), id="Unknown"),
        pytest.param((A, B), (recorded(A, "True"),), (B,), id="g11 one of two satisfied"),
        pytest.param((A, B), (recorded(B, "True"), recorded(A, "True")), (), id="both satisfied"),
        pytest.param((A,), (recorded(B, "True"),), (A,), id="another one satisfied"),
    ],
)
def test_g01_g03_g11_gates_remain_until_recorded_as_true(
    configured: tuple[str, ...] | None, recorded_gates: tuple[GateStatus, ...], expected: tuple[str, ...] | None
) -> None:
    status = ServerStatus(provider_create_gates=recorded_gates)

    assert remaining(spec(provider_create_gates=configured), status) == expected
