"""What every error answer has to look like (contract 3.1)."""

from __future__ import annotations

import re

from werkzeug.test import TestResponse


def assert_error(response: TestResponse, status: int, code: str) -> str:
    """Fail unless the response is that error in the envelope; return its description."""
    assert response.status_code == status, response.text
    assert response.mimetype == "application/json"
    assert response.headers["Cache-Control"] == "no-cache"
    assert len(response.data) < 2048
    body = response.get_json()
    assert body["error"] == code
    assert body["error_description"]
    assert re.fullmatch("[0-9a-f]{32}", body["trace_id"])
    return str(body["error_description"])
