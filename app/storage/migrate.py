"""Bringing the database's tables up to date with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.storage.database import Database

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


def alembic_config(database: Database) -> Config:
    """Alembic's configuration for ``database``."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["database"] = database
    return config


def upgrade(database: Database) -> None:
    """Create the tables or bring them up to date; harmless when they are, and when several do it at once."""
    if is_current(database):
        return
    command.upgrade(alembic_config(database), "head")


def is_current(database: Database) -> bool:
    """Tell whether the tables are those of this version of the program."""
    heads = set(ScriptDirectory(str(MIGRATIONS)).get_heads())
    with database.engine.connect() as connection:
        return set(MigrationContext.configure(connection).get_current_heads()) == heads
