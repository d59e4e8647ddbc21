"""The client certificate of a connection whose TLS ends here (contract 5.1)."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


def of(environ: WSGIEnvironment) -> bytes | None:
    """Return the client's certificate in DER, None without one.

    gunicorn hands over the connection itself. OpenSSL keeps a certificate only if it verified it: the shipped
    configuration asks for one, never without the authorities it has to be signed by, and ends the handshake otherwise.
    """
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, ssl.SSLSocket) or connection.context.verify_mode == ssl.CERT_NONE:
        return None
    return connection.getpeercert(binary_form=True)
