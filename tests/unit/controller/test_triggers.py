from __future__ import annotations

from typing import Any

import pytest

from server_api.controller.triggers import wakes
from server_api.servers.model import Phase
from tests.unit.controller.doubles import NOW, a_server


def test_a_new_server_wakes() -> None:
    assert wakes(None, a_server())


def test_a_server_that_is_gone_wakes() -> None:
    assert wakes(a_server(), None)


@pytest.mark.parametrize(
    "change",
    [{"generation": 2}, {"deleted_at": NOW}, {"uid": "another of the same name"}],
    ids=["spec", "deletion", "created again"],
)
def test_what_was_asked_for_changed(change: dict[str, Any]) -> None:
    assert wakes(a_server(), a_server(resource_version="2", **change))


@pytest.mark.parametrize(
    "change",
    [{"phase": Phase.RUNNING}, {"private_ip": "192.0.2.1"}, {"finalizers": ("unikorn",)}, {}],
    ids=["phase", "address", "finalizer", "nothing"],
)
def test_our_own_writes_do_not_wake(change: dict[str, Any]) -> None:
    assert not wakes(a_server(), a_server(resource_version="2", **change))
