"""Headers that hold browsers to little: an answer is what its content type says, loads nothing and leads nowhere.

Whoever serves a page says more (``documentation``), and whoever answers with a secret that it may not be kept
(``responses.NO_STORE``). Strict-Transport-Security is for whoever ends TLS to send.
"""

from __future__ import annotations

from flask import Flask, Response

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


def install(app: Flask) -> None:
    """Put the headers on every answer of the application that does not have its own."""

    def protect(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    app.after_request(protect)
