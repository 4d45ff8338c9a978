"""``serve``, ``database upgrade``, and ``openapi``: run the service, create its tables, write its API document."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

import click
import orjson
from flask import current_app
from flask.cli import AppGroup, with_appcontext

from app.apidoc.openapi import document_at
from app.commands.cli import OperatorCommand, startup_error
from app.config import ConfigurationError
from app.runtime import Runtime, runtime
from app.server import ServerEnvironment, read_server_environment
from app.storage.migrate import upgrade

SETTINGS = Path(__file__).parents[1] / "server" / "gunicorn_settings.py"
GUNICORN = ("-m", "gunicorn", "--config", str(SETTINGS), "wsgi:app")


@click.command("serve", cls=OperatorCommand)
@with_appcontext
@click.option(
    "--upgrade/--no-upgrade", "with_upgrade", default=True, help="Whether to create or update the tables first."
)
def serve(with_upgrade: bool) -> None:
    check_server()
    current_runtime = runtime()
    if with_upgrade:
        upgrade(current_runtime.database)
    run_server(current_runtime)


def check_server() -> ServerEnvironment:
    """Return the server's settings, after checking that the server can listen on its address.

    Raises:
        click.ClickException: A setting is invalid, or the address is not available.
    """
    try:
        environment = read_server_environment()
    except ConfigurationError as error:
        raise startup_error(error) from error
    if "LISTEN_FDS" in os.environ:  # Socket activation: systemd already listens.
        return environment
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            environment.host, environment.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As gunicorn does: otherwise, closed connections of an earlier run would make its port appear to be in use.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise click.ClickException(
            f"The service cannot listen on {environment.bind}: {error.strerror}. "
            "Set HOST or PORT to another address, such as PORT=8001."
        ) from error
    return environment


def run_server(runtime: Runtime) -> NoReturn:
    """Replace this process with gunicorn. Closes everything first, because gunicorn forks."""
    runtime.close()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *GUNICORN])  # noqa: S606 - our own command.


database_group = AppGroup("database")


@database_group.command("upgrade", cls=OperatorCommand)
def upgrade_database() -> None:
    """Create or update the tables."""
    upgrade(runtime().database)
    click.echo("The database is up to date.")


@click.command("openapi", cls=OperatorCommand)
@with_appcontext
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def openapi(file: Path | None) -> None:
    with current_app.test_request_context():
        described = document_at(runtime().settings.public_url)
    text = orjson.dumps(described, option=orjson.OPT_INDENT_2).decode() + "\n"
    if file is None:
        click.echo(text, nl=False)
    else:
        file.write_text(text)
        file.chmod(0o644)  # The document is public, unlike other files that the service writes.
