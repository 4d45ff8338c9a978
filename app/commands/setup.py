"""``database upgrade``, ``demo`` and ``openapi``."""

from __future__ import annotations

import logging
from pathlib import Path

import click
import orjson
from flask import current_app
from flask.cli import AppGroup, with_appcontext

from app.apidoc.openapi import document_at
from app.commands.demo_data import make_demo
from app.commands.serve import check_server, run_server
from app.runtime import runtime
from app.storage.migrate import upgrade

database_group = AppGroup("database", help="Manage the SQL database.")


@database_group.command("upgrade")
def upgrade_database() -> None:
    """Create or update the tables."""
    upgrade(runtime().database)
    click.echo("The database is up to date.")


@click.command("demo")
@with_appcontext
@click.option("--base-url", help="URL at which the service will run. Default: the address on which it listens.")
@click.option("--serve/--no-serve", "serves", default=True, help="Whether to serve afterwards, as `serve` does.")
def demo(base_url: str | None, serves: bool) -> None:
    """Set up a demo account with documents, and serve.

    The command prints the account's password and keys, and a search to try.
    """
    if serves:
        environment = check_server()
        base_url = base_url or environment.base_url
    current_runtime = runtime()
    click.echo("Setting up the database …")
    upgrade(current_runtime.database)
    click.echo("Crawling the documentation into the demo's site: about ten seconds …")
    # The crawl requests the service's own pages and creates an index, both of which would be logged at INFO.
    logging.getLogger("app").setLevel(logging.WARNING)
    click.echo(make_demo(current_runtime, base_url or "http://127.0.0.1:8000"))
    if serves:
        click.echo("Starting the server. Press Ctrl+C to stop it.")
        run_server(current_runtime)


@click.command("openapi")
@with_appcontext
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def openapi(file: Path | None) -> None:
    """Write the OpenAPI document to FILE or print it."""
    with current_app.test_request_context():
        described = document_at(runtime().settings.public_url)
    text = orjson.dumps(described, option=orjson.OPT_INDENT_2).decode() + "\n"
    if file is None:
        click.echo(text, nl=False)
    else:
        file.write_text(text)
        file.chmod(0o644)  # The document is public, unlike other files that the service writes.
