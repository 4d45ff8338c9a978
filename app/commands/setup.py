"""``database upgrade``, ``demo`` and ``openapi``."""

from __future__ import annotations

import logging
from pathlib import Path

import click
import orjson
from flask import current_app
from flask.cli import AppGroup, with_appcontext

from app import logs
from app.commands.demo_data import make_demo
from app.runtime import runtime
from app.storage.migrate import upgrade
from app.web.openapi import document_at

database_group = AppGroup("database", help="Manage the SQL database.")


@database_group.command("upgrade")
def upgrade_database() -> None:
    """Create or update the tables."""
    upgrade(runtime().database)
    click.echo("The database is up to date.")


@click.command("demo")
@with_appcontext
@click.option("--base-url", default="http://127.0.0.1:8000", help="URL at which the service will run.")
def demo(base_url: str) -> None:
    """Set up the demo account, its site, keys and documents, and print how to use them."""
    upgrade(runtime().database)
    # The requests for the documentation's pages are no visitors'.
    logs.access.setLevel(logging.WARNING)
    click.echo(make_demo(runtime(), base_url))


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
        file.chmod(0o644)  # For everyone, unlike what else the service writes.
