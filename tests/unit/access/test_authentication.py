"""The Authorization header (contract 5.1)."""

from __future__ import annotations

import pytest

from server_api.access.authentication import Unauthenticated, bearer_token


@pytest.mark.parametrize("header", ["Bearer abc", "bearer abc", "BEARER abc", "bEaReR abc"])
def test_the_token_of_a_bearer_header_is_returned(header: str) -> None:
    assert bearer_token(header) == "abc"


def test_the_case_of_a_token_counts() -> None:
    assert bearer_token("Bearer AbC.d-e_f~g+h/i=") == "AbC.d-e_f~g+h/i="


@pytest.mark.parametrize("header", [None, ""])
def test_t04_no_header_is_no_credentials(header: str | None) -> None:
    with pytest.raises(Unauthenticated, match="credentials are required"):
        bearer_token(header)


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        " Bearer",
        "Bearer  abc",
        "Bearer abc ",
        " Bearer abc",
        "Bearer a b",
        "Bearer\tabc",
        " ",
        "abc",
    ],
)
def test_t06_anything_but_two_words_is_refused(header: str) -> None:
    with pytest.raises(Unauthenticated, match="a scheme and a token"):
        bearer_token(header)


@pytest.mark.parametrize("header", ["Basic abc", "Digest abc", "Token abc", "Bearer: abc"])
def test_t05_another_scheme_is_refused(header: str) -> None:
    with pytest.raises(Unauthenticated, match="must be Bearer"):
        bearer_token(header)


@pytest.mark.parametrize("header", ["Basic hunter2", "Bearer hunter2 hunter2", "hunter2"])
def test_the_reason_never_repeats_what_was_sent(header: str) -> None:
    with pytest.raises(Unauthenticated) as refusal:
        bearer_token(header)

    assert "hunter2" not in refusal.value.reason
    assert "hunter2" not in str(refusal.value)


def test_the_reason_is_also_the_errors_text() -> None:
    assert str(Unauthenticated("credentials are required")) == "credentials are required"
