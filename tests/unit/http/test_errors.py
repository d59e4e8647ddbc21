import orjson
import pytest

from server_api.http.errors import code_of, document


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "access_denied"),
        (403, "forbidden"),
        (404, "not_found"),
        (405, "method_not_allowed"),
        (409, "conflict"),
        (413, "request_entity_too_large"),
        (414, "invalid_request"),
        (415, "unsupported_media_type"),
        (422, "unprocessable_content"),
        (429, "too_many_requests"),
        (431, "invalid_request"),
        (500, "server_error"),
        (502, "server_error"),
        (504, "server_error"),
    ],
)
def test_every_status_has_a_code(status: int, code: str) -> None:
    assert code_of(status) == code


@pytest.mark.parametrize("description", ["x" * 500_000, "\x00" * 500_000, "💩" * 500_000])
def test_b60_a_description_is_cut(description: str) -> None:
    body = document(400, description, "f" * 32)
    assert len(body) < 2048
    assert orjson.loads(body)["error_description"].endswith("…")


def test_without_a_trace_there_is_no_trace_id() -> None:
    assert "trace_id" not in orjson.loads(document(400, "x", None))
