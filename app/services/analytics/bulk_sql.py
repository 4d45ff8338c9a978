"""Many rows in one statement: a JSON array of arrays as a table, on SQLite and PostgreSQL.

One parameter and one statement text, whatever the number of rows; and unlike ``executemany`` it can be joined and
can return rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson
from sqlalchemy import CursorResult, TextClause, text
from sqlalchemy.orm import Session


def execute_rows(
    session: Session, statement: str, columns: str, rows: Iterable[Sequence[Any]], **parameters: Any
) -> CursorResult[*tuple[Any, ...]]:
    """Run ``statement``, in which ``{rows}`` stands for a table of ``rows``.

    Args:
        columns: The table's columns, ``name:type name:type``; a type is ``int`` or ``text``. The table has a
            column ``row_number`` too, which keeps the order of ``rows``.
        parameters: Values of the statement's other parameters.
    """
    clause = _compiled(statement, columns, session.get_bind().dialect.name)
    result = session.execute(clause, {"rows": orjson.dumps(list(rows)).decode(), **parameters})
    assert isinstance(result, CursorResult)
    return result


def upsert(table: str, key: Sequence[str], numbers: Sequence[str]) -> str:
    """The statement that adds numbers to the rows of a table, and makes the rows that are not there."""
    columns = ", ".join((*key, *numbers))
    return f"""
        INSERT INTO {table} ({columns}) SELECT {columns} FROM {{rows}} AS changed WHERE true
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET {", ".join(f"{n} = {table}.{n} + excluded.{n}" for n in numbers)}
    """  # noqa: S608 - made of constants


def integers(names: Iterable[str]) -> str:
    """Columns of :func:`execute_rows` that are numbers."""
    return " ".join(f"{name}:int" for name in names)


@cache
def _compiled(statement: str, columns: str, dialect: str) -> TextClause:
    fields = [column.split(":") for column in columns.split()]
    if dialect == "sqlite":
        picked = [f"json_extract(value, '$[{i}]') AS {name}" for i, (name, _) in enumerate(fields)]
        table = f"(SELECT key AS row_number, {', '.join(picked)} FROM json_each(:rows))"  # noqa: S608
    else:
        types = {"int": "bigint", "text": "text"}
        picked = [f"CAST(value ->> {i} AS {types[kind]}) AS {name}" for i, (name, kind) in enumerate(fields)]
        source = "jsonb_array_elements(CAST(:rows AS jsonb)) WITH ORDINALITY AS elements (value, row_number)"
        table = f"(SELECT row_number, {', '.join(picked)} FROM {source})"  # noqa: S608
    return text(statement.replace("{rows}", table))
