from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import MagicMock, create_autospec

import pytest

from server_api import deadline
from server_api.controller.election import Elector, LostLeadership, Term
from server_api.controller.fencing import Fence
from server_api.servers.ports import (
    Baremetal,
    Cloud,
    Compute,
    Networking,
    Placement,
    References,
    ServerStore,
    Tenancy,
    TenancyImages,
    TimedOut,
)
from tests.unit.controller.doubles import FakeTime, FixedClock, MemoryLeases

WRITES = {
    ServerStore: {"create", "update", "patch_status", "delete"},
    References: {"hold", "release"},
    Compute: {
        "create",
        "delete",
        "start",
        "stop",
        "soft_reboot",
        "hard_reboot",
        "rebuild",
        "console_url",
        "create_image",
    },
    Networking: {
        "create_port",
        "update_port",
        "delete_port",
        "create_floating_ip",
        "delete_floating_ip",
    },
    TenancyImages: {"publish", "delete"},
}
READS = {
    ServerStore: {"get", "list"},
    References: {"of_identity", "ssh_certificate_authority"},
    Compute: {"find", "get", "instances", "last_rebuild", "console_output"},
    Networking: {"network_id", "security_group_id", "ports_named", "floating_ips"},
    TenancyImages: set(),
}


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def elector(time: FakeTime) -> Elector:
    elector = Elector(MemoryLeases(), "lease", "me", Term(15, 10, 2), FixedClock(), monotonic=time)
    elector.attempt()
    return elector


def fenced(port: type[Any], elector: Elector) -> tuple[Any, MagicMock]:
    """The fenced port, and the double behind it."""
    inner = create_autospec(port, instance=True)
    fence = Fence(elector)
    if port is ServerStore:
        return fence.servers(inner), inner
    if port is References:
        return fence.references(inner), inner
    cloud = create_autospec(Cloud, instance=True)
    other = MagicMock()
    cloud.tenancy.return_value = Tenancy(
        compute=inner if port is Compute else other,
        networking=inner if port is Networking else other,
        images=inner if port is TenancyImages else other,
        placement=other,
        baremetal=other,
        ssh_key_name="key",
    )
    tenancy = fence.cloud(cloud).tenancy(MagicMock(), "identity")
    assert tenancy.ssh_key_name == "key"
    outer = {Compute: tenancy.compute, Networking: tenancy.networking, TenancyImages: tenancy.images}
    return outer[port], inner


def arguments(port: Any, method: str) -> list[str]:
    return [f"argument {number}" for number in range(len(inspect.signature(getattr(port, method)).parameters))]


def call(port: Any, method: str) -> Any:
    return getattr(port, method)(*arguments(port, method))


EACH_WRITE = [(port, method) for port, methods in WRITES.items() for method in sorted(methods)]
EACH_READ = [(port, method) for port, methods in READS.items() for method in sorted(methods)]


@pytest.mark.parametrize("port", WRITES)
def test_every_method_of_a_port_is_known_to_read_or_to_write(port: type[Any]) -> None:
    methods = {name for name in vars(port) if not name.startswith("_")}
    assert methods == WRITES[port] | READS[port]


@pytest.mark.parametrize(("port", "reads"), [(Placement, {"providers"}), (Baremetal, {"provision_state"})])
def test_ports_that_are_handed_on_without_a_fence_only_read(port: type[Any], reads: set[str]) -> None:
    assert {name for name in vars(port) if not name.startswith("_")} == reads


@pytest.mark.parametrize(("port", "method"), EACH_WRITE)
def test_a_write_happens_while_leading(port: type, method: str, elector: Elector) -> None:
    outer, inner = fenced(port, elector)
    result = call(outer, method)
    behind = getattr(inner, method)
    behind.assert_called_once_with(*arguments(outer, method))
    assert result in (behind.return_value, None)


@pytest.mark.parametrize(("port", "method"), EACH_WRITE)
def test_no_write_happens_after_the_lead_is_lost(port: type, method: str, elector: Elector, time: FakeTime) -> None:
    outer, inner = fenced(port, elector)
    time.passes(10)
    with pytest.raises(LostLeadership):
        call(outer, method)
    assert inner.mock_calls == []


@pytest.mark.parametrize(("port", "method"), EACH_READ)
def test_reads_pass_for_everybody(port: type, method: str, elector: Elector, time: FakeTime) -> None:
    outer, inner = fenced(port, elector)
    time.passes(10)
    assert call(outer, method) is getattr(inner, method).return_value


def test_the_catalogue_is_read_by_everybody(elector: Elector, time: FakeTime) -> None:
    cloud = create_autospec(Cloud, instance=True)
    time.passes(10)
    assert Fence(elector).cloud(cloud).catalogue(MagicMock()) is cloud.catalogue.return_value


def test_a_write_gets_no_more_time_than_until_another_may_lead(elector: Elector, time: FakeTime) -> None:
    time.passes(9)
    with Fence(elector).effect():
        assert deadline.remaining(60) == pytest.approx(6, abs=0.5)


def test_a_write_gets_no_more_time_than_its_pass_has_left(elector: Elector) -> None:
    with deadline.within(1), Fence(elector).effect():
        assert deadline.remaining(60) <= 1


def test_a_pass_that_has_used_up_its_time_writes_nothing_and_may_say_so(elector: Elector) -> None:
    outer, inner = fenced(ServerStore, elector)
    with deadline.within(-1), pytest.raises(TimedOut):
        outer.delete("s1")
    assert inner.mock_calls == []
