"""Backup files: a zip archive of every table's rows, independent of the kind of database.

``manifest.json`` comes last and lists the contents, so a file without it is incomplete. ``tables/<name>.jsonl`` has one
row per line, as a list in the order of the table's columns in the manifest. Bytes are encoded in base64.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import IO, Any

import orjson
from alembic import command
from alembic.migration import MigrationContext
from sqlalchemy import JSON, Connection, Date, LargeBinary, MetaData, Table, func, insert, inspect, select, text
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from app.storage.database import Database, is_unavailable
from app.storage.migrate import alembic_config, known_revisions

FORMAT = 1
"""Version of the archive's layout that this program writes, and the newest that it reads."""
_MANIFEST = "manifest.json"
_VERSIONS = "alembic_version"
_BATCH_ROWS = 500
_UNFINISHED = ".unfinished-backup-"
"""Prefix of the name of an unfinished backup."""


class BackupError(Exception):
    """A backup cannot be written or restored; the message explains why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup.

    Attributes:
        created_at: Time of the backup in ISO 8601, UTC.
        program: Version of the program that wrote the backup.
        revision: Alembic revision of the tables.
        columns: Columns of each table, in the order of the values.
        rows: Number of rows of each table.
        sequences: Highest ID ever assigned in each table.
        files: Names of further files, such as ``secret_key``.
        format: Version of the archive's layout.
    """

    created_at: str
    program: str
    revision: str
    columns: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    format: int = FORMAT


def write_backup(
    database: Database, path: Path, files: Mapping[str, str], *, created_at: str, program: str
) -> Manifest:
    """Write a consistent backup while other processes use the database.

    Args:
        path: Path of the new file. The file appears when it is complete, and only its owner may read it.
        files: Text of further files to include, by name.
        created_at: Current time in ISO 8601, UTC.
        program: Version of this program.

    Raises:
        BackupError: The file exists already, or the database has no tables.
        OSError: The file cannot be written.
    """
    if path.exists():
        raise BackupError(f"{path} exists; a backup never overwrites a file.")
    _remove_unfinished(path.parent)
    unfinished, descriptor = _create_unfinished(path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
                manifest = _write_tables(database, archive, created_at, program)
                for name, content in files.items():
                    archive.writestr(name, content)
                    manifest.files.append(name)
                # Last, so that an archive with a manifest is complete.
                archive.writestr(_MANIFEST, orjson.dumps(manifest, option=orjson.OPT_NON_STR_KEYS))
            file.flush()
            os.fsync(file.fileno())
        try:
            # Unlike a rename, a link never replaces an existing file.
            os.link(unfinished, path)
        except FileExistsError as error:
            raise BackupError(f"{path} exists; a backup never overwrites a file.") from error
    finally:
        unfinished.unlink()
    return manifest


def _create_unfinished(folder: Path) -> tuple[Path, int]:
    """Create a file that this process keeps locked while it is open. Returns its path and descriptor."""
    while True:
        path = folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # Another backup deleted it as abandoned, before it was locked.


def _remove_unfinished(folder: Path) -> None:
    """Delete unfinished backups of killed processes, which no process has locked."""
    for path in folder.glob(f"{_UNFINISHED}*"):
        # A backup in progress keeps its file locked.
        with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _write_tables(database: Database, archive: zipfile.ZipFile, created_at: str, program: str) -> Manifest:
    with _snapshot(database) as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
        if revision is None:
            raise BackupError("The database has no tables yet.")
        manifest = Manifest(created_at, program, revision)
        for table in _tables(connection):
            manifest.columns[table.name] = [column.name for column in table.columns]
            # The size of a stream is unknown in advance, and may exceed the 4 GiB of the old format.
            with archive.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as member:
                manifest.rows[table.name] = _write_rows(connection, table, member)
        manifest.sequences.update(_sequences(connection))
        return manifest


@contextlib.contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    """Yield a connection whose statements all see the same state."""
    engine = (
        # In SQLite, every transaction sees one state; PostgreSQL's default shows each statement the latest state.
        database.engine if database.is_sqlite else database.engine.execution_options(isolation_level="REPEATABLE READ")
    )
    with engine.connect() as connection:
        yield connection


def _tables(connection: Connection) -> list[Table]:
    """Return the existing tables, with referenced tables before the tables that refer to them."""
    metadata = MetaData()
    metadata.reflect(connection)
    for table in metadata.tables.values():
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type.none_as_null = True  # NULL differs from the JSON value null.
    # Alembic's table is not a part of the data: the manifest contains the revision, and the restore migrates to it.
    return [table for table in metadata.sorted_tables if table.name != _VERSIONS]


def _write_rows(connection: Connection, table: Table, member: IO[bytes]) -> int:
    binary = [index for index, column in enumerate(table.columns) if isinstance(column.type, LargeBinary)]
    count = 0
    # A server-side cursor: the documents of an installation may exceed the machine's memory.
    rows = connection.execution_options(yield_per=_BATCH_ROWS).execute(select(table))
    for row in rows:
        values = list(row)
        for index in binary:
            if values[index] is not None:
                values[index] = base64.b64encode(values[index]).decode()
        member.write(orjson.dumps(values) + b"\n")
        count += 1
    return count


def _sequences(connection: Connection) -> dict[str, int]:
    """Return the highest assigned ID of each table that never reuses IDs."""
    if connection.dialect.name == "sqlite":
        return {row.name: row.seq for row in connection.execute(text("SELECT name, seq FROM sqlite_sequence"))}
    sequence_values = {}
    for table, sequence in _owned_sequences(connection):
        number = connection.execute(
            text("SELECT last_value FROM pg_sequences WHERE sequencename = :name"), {"name": sequence}
        ).scalar()
        if number is not None:
            sequence_values[table] = int(number)
    return sequence_values


def _owned_sequences(connection: Connection) -> Sequence[tuple[str, str]]:
    rows = connection.execute(
        text(
            """
            SELECT owner.relname, sequence.relname
            FROM pg_depend
            JOIN pg_class AS sequence ON sequence.oid = pg_depend.objid AND sequence.relkind = 'S'
            JOIN pg_class AS owner ON owner.oid = pg_depend.refobjid
            WHERE pg_depend.deptype IN ('a', 'i') AND pg_table_is_visible(owner.oid)
            """
        )
    )
    return [(table, sequence) for table, sequence in rows]


def read_manifest(path: Path) -> Manifest:
    """Return the contents of a backup, after checking that it is complete and its checksums are correct.

    Raises:
        BackupError: The file is not a backup, is damaged, or is from a newer version of the program.
        OSError: The file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = Manifest(**orjson.loads(archive.read(_MANIFEST)))
            damaged = _damaged_member(archive)
            names = set(archive.namelist())
    except (zipfile.BadZipFile, KeyError, TypeError, orjson.JSONDecodeError, EOFError) as error:
        raise BackupError(f"{path} is not a complete backup: {error}") from error
    expected = {f"tables/{table}.jsonl" for table in manifest.columns} | set(manifest.files)
    if damaged is not None or not expected <= names:
        raise BackupError(f"{path} is damaged: {damaged or ', '.join(sorted(expected - names))}")
    if manifest.format > FORMAT or manifest.revision not in known_revisions():
        raise BackupError(f"{path} was written by a newer version of the service ({manifest.program}).")
    return manifest


def _damaged_member(archive: zipfile.ZipFile) -> str | None:
    try:
        return archive.testzip()
    except (zlib.error, EOFError) as error:  # Decompression failed before the checksum was compared.
        return str(error)


def read_file(path: Path, name: str) -> str:
    """Return a further file of a backup.

    Raises:
        KeyError: The backup has no such file.
    """
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


def is_in_use(database: Database) -> bool:
    """Whether a database has accounts."""
    with database.engine.connect() as connection:
        if not inspect(connection).has_table("accounts"):
            return False
        return connection.execute(text("SELECT 1 FROM accounts LIMIT 1")).first() is not None


@contextlib.contextmanager
def restored_tables(database: Database, path: Path, manifest: Manifest) -> Iterator[Session]:
    """Replace all tables with the tables of a backup, and migrate them. No other process may use the database.

    Everything is one transaction that ends with the block. Until then, or if the process is killed or the block raises,
    the database is unchanged.

    Args:
        manifest: Result of :func:`read_manifest`.

    Raises:
        BackupError: A row does not fit its table.
    """
    with database.write() as session:
        connection = session.connection()
        _drop_tables(connection)
        # First the tables as of the backup, so that its rows fit. They are migrated afterwards.
        command.upgrade(alembic_config(database, connection), manifest.revision)
        _load_tables(connection, path, manifest)
        command.upgrade(alembic_config(database, connection), "head")
        yield session


def _load_tables(connection: Connection, path: Path, manifest: Manifest) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for table in _tables(connection):
                if table.name in manifest.columns:
                    with archive.open(f"tables/{table.name}.jsonl") as member:
                        count = _load_rows(connection, table, manifest.columns[table.name], member)
                    if count != manifest.rows[table.name]:
                        raise BackupError(f"{path}: {table.name} has {count} of {manifest.rows[table.name]} rows.")
            _set_sequences(connection, manifest.sequences)
    except (KeyError, ValueError, StatementError) as error:
        if is_unavailable(error):
            raise
        raise BackupError(f"{path} does not match the tables of revision {manifest.revision}: {error}") from error


def _drop_tables(connection: Connection) -> None:
    metadata = MetaData()
    metadata.reflect(connection)
    metadata.drop_all(connection)


def _load_rows(connection: Connection, table: Table, columns: Sequence[str], lines: Iterable[bytes]) -> int:
    readers = [(name, reader) for name, reader in _readers(table).items() if name in columns]
    count = 0
    batch: list[dict[str, Any]] = []
    for line in lines:
        row = dict(zip(columns, orjson.loads(line), strict=True))
        for name, reader in readers:
            if row[name] is not None:
                row[name] = reader(row[name])
        batch.append(row)
        count += 1
        if len(batch) == _BATCH_ROWS:
            connection.execute(insert(table), batch)
            batch = []
    if batch:
        connection.execute(insert(table), batch)
    return count


def _readers(table: Table) -> dict[str, Callable[[str], Any]]:
    """Return converters, by column, for values that JSON does not support."""
    kinds: tuple[tuple[type, Callable[[str], Any]], ...] = (
        (LargeBinary, base64.b64decode),
        (Date, date.fromisoformat),
    )
    return {column.name: reader for column in table.columns for kind, reader in kinds if isinstance(column.type, kind)}


def _set_sequences(connection: Connection, sequences: Mapping[str, int]) -> None:
    if connection.dialect.name == "sqlite":
        for table, number in sequences.items():
            values = {"name": table, "seq": number}
            changed = connection.execute(
                text("UPDATE sqlite_sequence SET seq = max(seq, :seq) WHERE name = :name"), values
            )
            if not changed.rowcount and inspect(connection).has_table(table):
                connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), values)
        return
    metadata = MetaData()
    for table, sequence in _owned_sequences(connection):
        reflected = Table(table, metadata, autoload_with=connection)
        (key,) = reflected.primary_key.columns
        highest = connection.execute(select(func.max(key))).scalar() or 0
        # IDs of deleted rows must not be assigned again: old links, logs, and invoices still contain them.
        number = max(int(highest), sequences.get(table, 0))
        if number:
            connection.execute(
                text("SELECT setval(CAST(:name AS regclass), :number)"), {"name": sequence, "number": number}
            )
