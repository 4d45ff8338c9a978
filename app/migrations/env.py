"""Alembic's environment: runs migrations on the connection that the caller passes, or on a new one."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, text

from app.config import load_settings
from app.models import Base
from app.models.base import UtcDateTime
from app.storage.database import Database

database: Database = context.config.attributes.get("database") or Database(load_settings().database_url)


def _render_plain_types(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Render plain SQL types, so that migrations keep working when our own types change."""
    return "sa.BigInteger()" if kind == "type" and isinstance(item, UtcDateTime) else False


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=database.is_sqlite,
        render_item=_render_plain_types,
        # Alembic assumes that SQLite lacks transactional DDL. Then, other writers could come between two migrations.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(7202611201)"))
        context.run_migrations()


connection = context.config.attributes.get("connection")
if connection is not None:
    _migrate(connection)
else:
    with database.engine.execution_options(writes=True).connect() as opened:
        _migrate(opened)
