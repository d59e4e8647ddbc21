import orjson
import pytest
from gunicorn.http import errors

from server_api.http.gunicorn_worker import response, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidHeader("x"), 400),
        (errors.InvalidRequestLine("x"), 400),
        (errors.UnsupportedTransferCoding("x"), 400),
        (errors.InvalidChunkSize(b"x"), 400),
        (errors.LimitRequestLine(10, 5), 414),
        (errors.LimitRequestHeaders("x"), 431),
        (errors.InvalidResponseHeader("x"), 500),
        (RuntimeError("x"), 500),
    ],
)
def test_what_went_wrong_decides_the_status(error: Exception, status: int) -> None:
    assert status_of(error) == status


@pytest.mark.parametrize("status", [400, 414, 431, 500])
def test_the_response_is_whole(status: int) -> None:
    head, _, body = response(status, "f" * 32).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0].startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Connection: close" in lines
    assert f"Content-Length: {len(body)}".encode() in lines
    assert orjson.loads(body)["trace_id"] == "f" * 32
