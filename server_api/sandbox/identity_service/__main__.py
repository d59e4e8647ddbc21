"""`python -m server_api.sandbox.identity_service`: the stand-in as a process."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import click

from .server import StandInIdentityService

_ENDINGS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@click.option(
    "--known",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    required=True,
    help="File of what it knows.",
)
@click.option("--port", type=click.IntRange(0, 65535), required=True, help="Port on 127.0.0.1; 0 takes a free one.")
def main(known: Path, port: int) -> None:
    """Serve what a YAML file says of tokens, services and projects until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)  # before there are other threads, which inherit it
    try:
        server = StandInIdentityService(known, port=port)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    with server:
        click.echo(f"listening on {server.url}")
        signal.sigwait(_ENDINGS)


if __name__ == "__main__":
    main()
