"""Which clients of v1 the counter tells apart."""

from __future__ import annotations

import pytest

from server_api.http.v1.usage import Clients, product


def test_clients_are_told_apart_until_there_are_too_many() -> None:
    clients = Clients(subjects=2, agents=2)

    assert clients.labels("alice", "curl") == ("alice", "curl")
    assert clients.labels("bob", "curl") == ("bob", "curl")
    assert clients.labels("carol", "curl") == ("other", "other")
    assert clients.labels("alice", "terraform") == ("alice", "terraform")
    assert clients.labels("alice", "python-requests") == ("alice", "other")
    assert clients.labels("alice", "curl") == ("alice", "curl")
    assert clients.labels("bob", "python-requests") == ("bob", "python-requests")


def test_there_are_never_more_labels_than_room_for_them() -> None:
    clients = Clients(subjects=3, agents=2)
    labels = {clients.labels(f"subject-{n % 50}", f"agent-{n % 7}") for n in range(1000)}

    assert len(labels) <= 3 * (2 + 1) + 1


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [
        ("Terraform/1.9.0 (+https://example.com)", "Terraform"),
        ("python-requests/2.32.3", "python-requests"),
        ("curl", "curl"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla"),
        ("x" * 500, "x" * 40),
        ("", "none"),
        ('"}\n', "none"),
        ("日本", "none"),
    ],
)
def test_a_client_is_known_by_its_product(user_agent: str, expected: str) -> None:
    assert product(user_agent) == expected
