"""Who calls: every request is authenticated before its view runs, unless the view says otherwise (contract 1.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import Flask, current_app, g, request

from server_api.access.authentication import Credentials
from server_api.access.authorization import AuthorizedCaller
from server_api.http import peer_certificate
from server_api.http.services import services

View = TypeVar("View", bound=Callable[..., Any])

_PUBLIC = "_needs_no_authentication"


def not_required(view: View) -> View:
    """Let anybody call a view. Decorates it."""
    setattr(view, _PUBLIC, True)
    return view


def install(app: Flask) -> None:
    """Authenticate the application's requests, those that ``binding`` let pass."""
    app.before_request(_authenticate)


def caller() -> AuthorizedCaller:
    """Return the caller of the request in hand, which was authenticated."""
    return cast(AuthorizedCaller, g.caller)


def subject() -> str | None:
    """Return the caller's subject; None when the request was not, or could not be, authenticated."""
    known: AuthorizedCaller | None = g.get("caller")
    return None if known is None else known.subject


def _authenticate() -> None:
    view = current_app.view_functions[cast(str, request.endpoint)]
    if request.method == "OPTIONS":
        # Flask itself answers with the path's methods, which is nothing to guard.
        return
    if not getattr(view, _PUBLIC, False):
        g.caller = AuthorizedCaller(services().authenticator.authenticate(_credentials()))


def _credentials() -> Credentials:
    header, path = request.headers.get, request.view_args or {}
    return Credentials(
        authorization=header("Authorization"),
        peer=request.environ.get("REMOTE_ADDR"),
        peer_certificate=peer_certificate.of(request.environ),
        certificate=header("Ssl-Client-Cert"),
        certificate_verified=header("Ssl-Client-Verify"),
        principal=header("X-Principal"),
        impersonate=header("X-Impersonate"),
        organization_id=path.get("organization_id"),
        project_id=path.get("project_id"),
    )
