"""Migrations of the database with Alembic, which is imported at first use: that takes a tenth of a second."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from app.storage.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


class TablesState(StrEnum):
    """The state of a database's tables, compared with those that this version of the program works with."""

    CURRENT = "current"
    OLDER = "older"
    """They are missing, or of an older version: ``database upgrade`` brings them up to date."""
    NEWER = "newer"
    """Of a version that this program does not know."""


def alembic_config(database: Database, connection: Connection | None = None) -> Config:
    """Alembic's configuration for ``database``.

    Args:
        connection: In whose transaction to work, instead of one of its own.
    """
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes.update(database=database, connection=connection)
    return config


def upgrade(database: Database) -> None:
    """Create the tables or bring them up to date; harmless when they are, and when several do it at once."""
    from alembic import command

    if is_current(database):
        return
    command.upgrade(alembic_config(database), "head")


def is_current(database: Database) -> bool:
    """Whether the tables match this version of the program."""
    return tables_state(database) is TablesState.CURRENT


def tables_state(database: Database) -> TablesState:
    """Compare the tables with those of this version of the program."""
    from alembic.migration import MigrationContext

    with database.engine.connect() as connection:
        heads = set(MigrationContext.configure(connection).get_current_heads())
    if heads == {newest_revision()}:
        return TablesState.CURRENT
    return TablesState.OLDER if heads <= known_revisions() else TablesState.NEWER


@cache
def newest_revision() -> str:
    """The revision of the tables that this version of the program works with."""
    from alembic.script import ScriptDirectory

    return str(ScriptDirectory(str(MIGRATIONS)).get_current_head())


@cache
def known_revisions() -> frozenset[str]:
    """Every revision of the tables up to the newest."""
    from alembic.script import ScriptDirectory

    return frozenset(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())
