from typing import Any

import pytest

from server_api.logs import REDACTED, dict_config, redact


def redacted(**event: Any) -> dict[str, Any]:
    return dict(redact(None, "info", event))


@pytest.mark.parametrize(
    "name", ["authorization", "token", "user_data", "userData", "password", "privateKey", "admin_pass", "Set-Cookie"]
)
def test_values_of_secret_names_are_replaced_at_every_depth(name: str) -> None:
    assert redacted(**{name: "hunter2"}) == {name: REDACTED}
    assert redacted(headers=[{"inner": {name: b"hunter2"}}]) == {"headers": [{"inner": {name: REDACTED}}]}


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2.x-y",
        "X-Auth-Token: hunter2",
        "{'X-Subject-Token': 'hunter2'}",
        '{"user_data": "hunter2"}',
        '{"password": "hunter2"}',
        "http://console/vnc?token=hunter2&x=1",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
    ],
)
def test_secrets_inside_of_texts_are_replaced(text: str) -> None:
    cleaned = redacted(event=f"before {text} after")["event"]
    assert "hunter2" not in cleaned
    assert cleaned.startswith("before ")


def test_everything_else_stays() -> None:
    event = {"event": "request", "status": 200, "ok": True, "none": None, "ms": 1.5, "ids": {"server_id": "x"}}
    assert redacted(**event) == event


def test_libraries_that_print_whole_requests_are_never_at_debug() -> None:
    loggers = dict_config("debug")["loggers"]
    assert {loggers[name]["level"] for name in ("keystoneauth", "novaclient", "urllib3", "kubernetes")} == {"INFO"}


def test_unknown_level() -> None:
    with pytest.raises(ValueError, match="log level"):
        dict_config("loud")
