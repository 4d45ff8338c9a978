"""The base class and column types of all tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, LargeBinary, MetaData, String, and_, or_
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute
from sqlalchemy.types import TypeDecorator

BigId = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit integer that SQLite can also generate as a row id."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time, stored as microseconds since the Unix epoch (exact and sortable in every database)."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return to_microseconds(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        return None if value is None else from_microseconds(value)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_ERROR = timedelta(days=366)
"""Times further in the future are intentional: the task waits for an operator."""


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds since the Unix epoch, without the rounding of floats."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_microseconds(value: int) -> datetime:
    """Return the aware UTC time ``value`` microseconds after the Unix epoch."""
    seconds, microseconds = divmod(value, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds)


def has_come(column: InstrumentedAttribute[Any], moment: datetime, longest: timedelta) -> ColumnElement[bool]:
    """Return the SQL condition that the time in a column has been reached.

    A time more than ``longest`` in the future was written by a machine with a wrong clock, so it counts as reached.

    Args:
        longest: Maximum duration from now to a valid time in the column.
    """
    return or_(column <= moment, and_(column > moment + longest, column < moment + _CLOCK_ERROR))


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012
        datetime: UtcDateTime,
        str: String,
        bytes: LargeBinary,
    }
