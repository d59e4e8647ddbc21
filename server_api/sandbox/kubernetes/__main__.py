"""`python -m server_api.sandbox.kubernetes`: the embedded Kubernetes API as a process."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import click

from .server import EmbeddedKubernetes

_ENDINGS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@click.option("--database", type=click.Path(dir_okay=False, path_type=Path), required=True, help="SQLite file.")
@click.option("--port", type=click.IntRange(0, 65535), required=True, help="Port on 127.0.0.1; 0 takes a free one.")
@click.option("--token", envvar="EMBEDDED_KUBERNETES_TOKEN", help="Bearer token that every request must carry.")
@click.option("--keep", type=click.IntRange(1), default=10_000, show_default=True, help="Changes a watch may miss.")
def main(database: Path, port: int, token: str | None, keep: int) -> None:
    """Serve a small Kubernetes API from a SQLite file until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)  # before there are other threads, which inherit it
    try:
        server = EmbeddedKubernetes(database, port=port, token=token, keep=keep)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    with server:
        click.echo(f"listening on {server.url}")
        signal.sigwait(_ENDINGS)


if __name__ == "__main__":
    main()
