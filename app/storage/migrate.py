"""Database migrations with Alembic, which is imported at first use because that takes a tenth of a second."""

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


class NewerTables(Exception):
    """A newer version of the program created the tables, so this version cannot update them."""

    def __init__(self) -> None:
        super().__init__("A newer version of the program created the database's tables. Run that version.")


class TablesState(StrEnum):
    """State of a database's tables compared with this version of the program."""

    CURRENT = "current"
    OLDER = "older"
    """The tables are missing or belong to an older version: ``database upgrade`` migrates them."""
    NEWER = "newer"
    """The tables belong to a version that this program does not know."""


def alembic_config(database: Database, connection: Connection | None = None) -> Config:
    """Return Alembic's configuration for ``database``.

    Args:
        connection: Connection whose transaction to use, instead of a new one.
    """
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes.update(database=database, connection=connection)
    return config


def upgrade(database: Database) -> None:
    """Create or migrate the tables. Safe to call when they are current, and from several processes simultaneously.

    Raises:
        NewerTables: The tables belong to a newer version.
    """
    from alembic import command

    state = tables_state(database)
    if state is TablesState.NEWER:
        raise NewerTables
    if state is TablesState.CURRENT:
        return
    command.upgrade(alembic_config(database), "head")


def is_current(database: Database) -> bool:
    """Whether the tables match this version of the program."""
    return tables_state(database) is TablesState.CURRENT


def tables_state(database: Database) -> TablesState:
    """Compare the tables with this version of the program."""
    from alembic.migration import MigrationContext

    with database.engine.connect() as connection:
        heads = set(MigrationContext.configure(connection).get_current_heads())
    if heads == {newest_revision()}:
        return TablesState.CURRENT
    return TablesState.OLDER if heads <= known_revisions() else TablesState.NEWER


@cache
def newest_revision() -> str:
    """Return the revision of the tables for this version of the program."""
    from alembic.script import ScriptDirectory

    return str(ScriptDirectory(str(MIGRATIONS)).get_current_head())


@cache
def known_revisions() -> frozenset[str]:
    """Return all revisions of the tables up to the newest."""
    from alembic.script import ScriptDirectory

    return frozenset(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())
