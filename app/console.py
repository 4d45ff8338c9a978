"""``site-search``: the operator commands from anywhere, without ``--app``."""

from __future__ import annotations

import click
from flask import Flask
from flask.cli import FlaskGroup

from app import create_app
from app.config import ConfigurationError


def _create_app() -> Flask:
    try:
        return create_app()
    except ConfigurationError as error:
        raise click.ClickException(f"The service cannot start: {error}") from error


class _Commands(FlaskGroup):
    """The operator commands. Those of Flask and its extensions work, but are not offered."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in super().list_commands(ctx) if name not in NOT_OFFERED]


NOT_OFFERED = frozenset({"limiter", "routes", "run", "shell"})
main = _Commands(name="site-search", create_app=_create_app, help="Run and look after a site search service.")
