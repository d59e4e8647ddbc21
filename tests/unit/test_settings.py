"""Settings and how they are read."""

from __future__ import annotations

from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest

from server_api.settings import PREFIX, Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()
    assert (Settings().request_deadline, Settings().monitor_seconds, Settings().retry_seconds) == (10.0, 10.0, 10.0)


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("SERVER_API_NAMESPACE", "elsewhere", "namespace", "elsewhere"),
        ("SERVER_API_WORKERS", "7", "workers", 7),
        ("SERVER_API_REQUEST_DEADLINE", "2.5", "request_deadline", 2.5),
        ("SERVER_API_REQUEST_DEADLINE", "3", "request_deadline", 3.0),
        ("SERVER_API_TOKENS_FILE", "/etc/tokens.yaml", "tokens_file", Path("/etc/tokens.yaml")),
        ("SERVER_API_KUBECONFIG", "k", "kubeconfig", Path("k")),
        ("SERVER_API_STRICT_AUTHORIZATION", "true", "strict_authorization", True),
        ("SERVER_API_STRICT_AUTHORIZATION", "True", "strict_authorization", True),
        ("SERVER_API_STRICT_AUTHORIZATION", "1", "strict_authorization", True),
        ("SERVER_API_STRICT_AUTHORIZATION", "false", "strict_authorization", False),
        ("SERVER_API_STRICT_AUTHORIZATION", "0", "strict_authorization", False),
        ("SERVER_API_V1_SUNSET", "2030-06-01", "v1_sunset", date(2030, 6, 1)),
        ("SERVER_API_LOG_LEVEL", "", "log_level", "info"),
        ("SERVER_API_TOKENS_FILE", "", "tokens_file", None),
    ],
)
def test_a_variable_sets_its_setting_in_the_type_of_the_setting(
    variable: str, text: str, name: str, value: object
) -> None:
    settings = Settings.from_environment({variable: text})

    assert getattr(settings, name) == value
    assert type(getattr(settings, name)) is type(value)


@pytest.mark.parametrize(
    ("variable", "text", "type_"),
    [
        ("SERVER_API_WORKERS", "many-s3cret", "int"),
        ("SERVER_API_WORKERS", "2.5", "int"),
        ("SERVER_API_REQUEST_DEADLINE", "soon-s3cret", "float"),
        ("SERVER_API_STRICT_AUTHORIZATION", "yes-s3cret", "bool"),
        ("SERVER_API_V1_SUNSET", "2030-06-31-s3cret", "date"),
    ],
)
def test_a_value_that_cannot_be_understood_is_refused_by_name_and_not_repeated(
    variable: str, text: str, type_: str
) -> None:
    with pytest.raises(ValueError, match=f"{variable} is not a valid {type_}") as refusal:
        Settings.from_environment({variable: text})

    assert "s3cret" not in str(refusal.value)


def test_variables_that_are_no_settings_are_ignored() -> None:
    assert Settings.from_environment({"SERVER_API_URL": "http://x", "NAMESPACE": "x"}) == Settings()


def test_the_process_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_API_LEASE_NAME", "another")

    assert Settings.from_environment().lease_name == "another"


def test_the_table_names_every_setting_with_default_and_meaning() -> None:
    table = Settings.table()

    assert [variable for variable, _, _ in table] == [PREFIX + setting.name.upper() for setting in fields(Settings)]
    assert ("SERVER_API_WORKERS", "2", "gunicorn worker processes.") in table
    assert [default for variable, default, _ in table if variable == "SERVER_API_TOKENS_FILE"] == [""]
    assert all(meaning.endswith(".") for _, _, meaning in table)


def test_the_defaults_let_a_leader_stop_acting_before_it_is_replaced() -> None:
    assert Settings().lease_renew_seconds < Settings().lease_seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0"])
def test_a_number_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="SERVER_API_REQUEST_DEADLINE"):
        Settings.from_environment({"SERVER_API_REQUEST_DEADLINE": text})


@pytest.mark.parametrize("name", ["drain_seconds", "flavor_cache_seconds", "image_cache_seconds"])
def test_what_can_be_switched_off_may_be_zero_but_not_less(name: str) -> None:
    assert getattr(Settings.from_environment({PREFIX + name.upper(): "0"}), name) == 0.0
    with pytest.raises(ValueError, match=name.upper()):
        Settings.from_environment({PREFIX + name.upper(): "-0.5"})


def test_a_count_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="SERVER_API_WORKERS is not a valid int"):
        Settings.from_environment({"SERVER_API_WORKERS": "0"})


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("1", 1), ("0", 0), ("-2", -2)])
def test_any_whole_number_of_create_attempts_is_taken(text: str, value: int) -> None:
    assert Settings.from_environment({"SERVER_API_CREATE_ATTEMPTS": text}).create_attempts == value


def test_three_creates_may_fail_by_default() -> None:
    assert Settings().create_attempts == 3
