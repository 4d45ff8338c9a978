"""``site-search``: the operator commands from any folder, without ``--app``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.cli import COMMANDS, OPEN_STORAGE, LazyGroup, startup_error
from app.config import ConfigurationError, load_settings

if TYPE_CHECKING:
    from flask import Flask

    from app.plans import PlanTable
    from app.storage.database import Database


def _create_app() -> Flask:
    from app.application import create_app

    try:
        return create_app()
    except ConfigurationError as error:
        raise startup_error(error) from error


def _open_storage() -> tuple[Database, PlanTable]:
    from app.plans import SHIPPED_PLANS, PlanTable
    from app.storage.database import Database

    try:
        settings = load_settings()
        database = Database(settings.database_url, busy_timeout_seconds=settings.database_timeout_seconds)
        return database, PlanTable(settings.plans_file or SHIPPED_PLANS)
    except ConfigurationError as error:
        raise startup_error(error) from error


@click.group(cls=LazyGroup, lazy_subcommands=COMMANDS)
@click.version_option(package_name="site-search-service")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run and maintain a site search service."""
    from flask.cli import ScriptInfo

    ctx.obj = ScriptInfo(create_app=_create_app)
    ctx.obj.data[OPEN_STORAGE] = _open_storage
