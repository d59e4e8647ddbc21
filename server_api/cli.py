"""The command line. Every command imports what it needs itself, so that help comes at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from server_api.sandbox.region import Region
    from server_api.settings import Settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The life of compute servers in an OpenStack region."""


@main.command()
def controller() -> None:
    """Reconcile servers with the cloud until SIGTERM."""
    from server_api.controller_app import run_controller

    run_controller(_settings())


@main.command()
@click.option("--plan", is_flag=True, help="Say what would be done, and do nothing.")
def migrate(plan: bool) -> None:
    """Bring what the Kubernetes API holds up to this version."""
    from server_api.store.migration import migrate as run

    run(_settings(), plan=plan)


@main.command()
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@click.option("--all", "everything", is_flag=True, help="Promote every server there is.")
@click.option("--plan", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Form of the report on standard output; progress goes to standard error.",
)
def promote(servers: tuple[str, ...], everything: bool, plan: bool, output: str) -> None:
    """Make servers of v1, named by their IDs, servers of v2 where they stand.

    Only stored objects change; the cloud is read and never written. It may be run beside the API and the controller, be
    killed, and be run again. There is no way back: docs/v1-to-v2.md says why.

    Exits with 0 when every server is one of v2 afterwards (with --plan: can be), 1 when another run may do more, and 3
    when servers were refused, which another run alone does not change.
    """
    from server_api import promote_app
    from server_api.servers.ports import PortError

    if bool(servers) == everything:
        raise click.UsageError("name servers, or say --all")
    try:
        report = promote_app.promote(_settings(), servers, plan=plan, say=lambda line: click.echo(line, err=True))
    except (promote_app.UnknownServers, PortError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(report.json() if output == "json" else report.table())
    sys.exit(report.exit_code)


@main.command()
def settings() -> None:
    """Print every setting: its variable, default and meaning."""
    from server_api.settings import Settings

    rows = Settings.table()
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, default, meaning in rows:
        click.echo(f"{name:<{widths[0]}}  {default:<{widths[1]}}  {meaning}")


@main.command("hash-token")
def hash_token() -> None:
    """Read a token from standard input and print the digest that stands for it in the file of tokens."""
    from server_api.access.digests import token_digest

    token = sys.stdin.readline().rstrip("\r\n")
    if not token:
        raise click.ClickException("standard input holds no token")
    click.echo(token_digest(token))


@main.group(invoke_without_command=True)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".sandbox"),
    envvar="SERVER_API_SANDBOX_DIRECTORY",
    show_default=True,
    help="Where everything of the sandbox lies.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SERVER_API_SANDBOX_CACHE",
    help="Where what is made once lies.  [default: cache in the directory]",
)
@click.pass_context
def sandbox(context: click.Context, directory: Path, cache: Path | None) -> None:
    """A whole region on this machine; without a command: up."""
    from server_api.sandbox.layout import Layout
    from server_api.sandbox.progress import Progress
    from server_api.sandbox.region import Region

    context.obj = Region(Layout.at(directory, cache), Progress(click.echo))
    if context.invoked_subcommand is None:
        context.invoke(up)


@sandbox.command()
@click.option("--detach", is_flag=True, help="Return when everything is ready, and leave it running.")
@click.option(
    "--kubernetes",
    type=click.Choice(["embedded", "existing"]),
    default="embedded",
    show_default=True,
    help="Run an own Kubernetes API, or use the cluster of $KUBECONFIG.",
)
@click.option(
    "--identity",
    type=click.Choice(["file", "service"]),
    default="file",
    show_default=True,
    help="Take callers from a file of tokens, or run a stand-in for the identity service and ask that.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the API.  [default: 6080 if free]")
@click.pass_obj
def up(region: Region, detach: bool, kubernetes: str, identity: str, port: int | None) -> None:
    """Start everything and stay; Ctrl-C stops what was started."""
    from server_api.sandbox import foreground

    kubeconfig = _existing_kubeconfig() if kubernetes == "existing" else None
    with foreground.interruptible(), _failures():
        try:
            started = region.up(kubeconfig, port, identity_service=identity == "service")
        except foreground.Interrupted:
            raise click.ClickException("interrupted; what was started is stopped again") from None
        try:
            _show_ready(region, started)
            if started and not detach:
                click.echo("\nCtrl-C stops it.")
                foreground.stay(region, lambda line: click.echo(line, err=True))
        except foreground.Interrupted:
            click.echo("stopping")
            region.stop(started)
            click.echo("stopped")


@sandbox.command()
@click.pass_obj
def down(region: Region) -> None:
    """Stop everything that runs in the directory."""
    with _failures():
        stopped = region.down()
    click.echo(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


@sandbox.command()
@click.pass_obj
def status(region: Region) -> None:
    """Show each process; exit with 1 if something is down."""
    with _failures():
        rows = region.status()
    for row in rows:
        state = "up" if row.answering else "not answering" if row.pid else "down"
        click.echo(f"{row.name:<20} {state:<14} {row.pid or '-':<8} {row.url}")
    if not all(row.answering for row in rows):
        sys.exit(1)


@sandbox.command()
@click.pass_obj
def demo(region: Region) -> None:
    """Walk one server through its whole life on the running sandbox; exit with 1 if a step does not hold."""
    from server_api.sandbox.demo import Demo

    with _failures():
        Demo(region, click.echo).run()


def _show_ready(region: Region, started: list[str]) -> None:
    from server_api.sandbox import hints

    if started:
        click.echo(f"ready after {region.elapsed:.1f} s")
    else:
        click.echo("already running; the environment file is written anew")
    for line in hints.lines(region.environment(), str(region.layout.environment)):
        click.echo(line)


def _existing_kubeconfig() -> str:
    files = os.environ.get("KUBECONFIG", "")
    if not files:
        raise click.UsageError("--kubernetes existing needs KUBECONFIG to name the cluster's client configuration")
    # our processes run in another directory
    return os.pathsep.join(str(Path(file).absolute()) for file in files.split(os.pathsep) if file)


def _settings() -> Settings:
    from server_api.settings import Settings

    try:
        return Settings.from_environment()
    except ValueError as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def _failures() -> Iterator[None]:
    """Show what failed as one message and exit with 1."""
    from server_api.sandbox.errors import StepFailed

    try:
        yield
    except StepFailed as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
