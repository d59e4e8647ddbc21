"""Finalizers (contract 4.10 and 7.7)."""

from __future__ import annotations

import pytest

from server_api.servers.finalizers import FINALIZER, blocks_deletion, reference_edge
from tests.unit.servers.builders import server


@pytest.mark.parametrize(
    ("finalizers", "blocked"),
    [
        ((), False),
        (("unikorn",), False),
        (("foregroundDeletion",), True),
        (("unikorn", "foregroundDeletion"), True),
        (("unikorn", "volumes.region.unikorn-cloud.org/x"), True),
        (("someone.else/unikorn",), True),
    ],
)
def test_any_finalizer_but_our_own_blocks_the_deletion(finalizers: tuple[str, ...], blocked: bool) -> None:
    assert blocks_deletion(server(finalizers=finalizers)) is blocked


def test_the_names_are_those_of_the_contract() -> None:
    assert FINALIZER == "unikorn"
    assert reference_edge("abc") == "servers.region.unikorn-cloud.org/abc"
