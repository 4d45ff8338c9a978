"""The migrations create exactly the tables that the models describe."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, select, text

from app.models import Base, EngineTask, Key, Member, Session, Site, Source
from app.storage.database import Database
from app.storage.migrate import MIGRATIONS, alembic_config, is_current, upgrade

OLD_ACCOUNT = {
    "id": 1, "name": "A", "email": "a@b.c", "email_key": "a@b.c", "password_hash": "", "plan": "free",
    "limit_overrides": "{}", "created_at": 1,
}  # fmt: skip
OLD_SITE = {
    "id": 7, "account_id": 1, "name": "S", "url": "https://a.b/", "domain": "a.b", "active": True, "created_at": 1,
    "updated_at": 1, "document_count": 0, "field_kinds": "{}", "search_settings": "{}", "public_epoch": 1,
    "revision": 5, "applied_revision": 5, "engine": "tantivy", "index_generation": 3, "rebuilding": False,
}  # fmt: skip


def old_database(folder: Path, revision: str, rows: dict[str, dict[str, Any]]) -> Database:
    """Create a database of an earlier release with one row in each of the given tables."""
    database = Database(f"sqlite:///{folder / 'old.db'}")
    command.upgrade(alembic_config(database), revision)
    with database.write() as session:
        for table, row in rows.items():
            names = ", ".join(row)
            session.execute(text(f"INSERT INTO {table} ({names}) VALUES (:{', :'.join(row)})"), row)
    return database


@pytest.fixture
def migrated(tmp_path: Path) -> Database:
    """A database created by the migrations."""
    database = Database(f"sqlite:///{tmp_path / 'migrated.db'}")
    upgrade(database)
    return database


@pytest.fixture
def models_db(tmp_path: Path) -> Database:
    """A database created from the models."""
    database = Database(f"sqlite:///{tmp_path / 'models.db'}")
    with database.engine.execution_options(writes=True).begin() as connection:
        Base.metadata.create_all(connection)
    return database


def definitions(database: Database) -> dict[str, str]:
    """Return every table and index by name, as defined in SQLite, in a normalized form."""
    with sqlite3.connect(str(database.url.database)) as connection:
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            " AND name <> 'alembic_version'"
        ).fetchall()
    connection.close()
    return {name: normalized(sql) for name, sql in rows}


def normalized(sql: str) -> str:
    """Remove irrelevant differences from a definition: white space, quotes, and the order of a table's lines."""
    text = re.sub(r"\s+", " ", sql.replace('"', "")).strip()
    text = re.sub(r"\s*([(),])\s*", r"\1", text)
    head, bracket, rest = text.partition("(")
    if not head.startswith("CREATE TABLE"):
        return text
    body, _, tail = rest.rpartition(")")
    return f"{head}{bracket}{','.join(sorted(_members(body)))}){tail}"


def _members(body: str) -> list[str]:
    """Split a text at commas outside brackets."""
    members, depth = [""], 0
    for character in body:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            members.append("")
        else:
            members[-1] += character
    return members


def _is_comparable(item: Any, name: str | None, kind: str, reflected: bool, compared_to: Any) -> bool:
    """Whether Alembic can read the index back from SQLite. It cannot for descending ones, which only the next test
    compares."""
    return not (kind == "index" and str(name).startswith("ix_query_windows_"))


def test_alembic_finds_no_difference_between_migrations_and_models(migrated: Database) -> None:
    with migrated.engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True, "include_object": _is_comparable}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_migrations_and_models_define_identical_tables_and_indexes(migrated: Database, models_db: Database) -> None:
    """Includes expressions and conditions of indexes, collations, and checks, which Alembic does not compare."""
    by_migrations, by_models = definitions(migrated), definitions(models_db)

    assert set(by_migrations) == set(by_models)
    for name, definition in by_models.items():
        assert by_migrations[name] == definition, name


def test_normalized_definitions_differ_only_if_their_meaning_differs() -> None:
    one = normalized("CREATE INDEX i ON t (a, b) WHERE a IS NOT NULL")

    assert one == normalized('CREATE INDEX i ON "t"  (a,b)\nWHERE a IS NOT NULL')
    assert one != normalized("CREATE INDEX i ON t (a, b)")
    assert one != normalized("CREATE INDEX i ON t (a, b DESC) WHERE a IS NOT NULL")
    table = normalized("CREATE TABLE t (a INTEGER NOT NULL, b NUMERIC(1, 2), PRIMARY KEY (a, b)) WITHOUT ROWID")
    assert table == normalized("CREATE TABLE t (PRIMARY KEY (a,b), a INTEGER NOT NULL, b NUMERIC(1,2)) WITHOUT ROWID")
    assert table != normalized("CREATE TABLE t (a INTEGER NOT NULL, b NUMERIC(1, 2), PRIMARY KEY (a, b))")
    assert table != normalized("CREATE TABLE t (a INTEGER, b NUMERIC(1, 2), PRIMARY KEY (a, b)) WITHOUT ROWID")


def test_upgrading_twice_has_no_further_effect(migrated: Database) -> None:
    before = definitions(migrated)
    assert is_current(migrated)

    upgrade(migrated)

    assert definitions(migrated) == before


def test_upgrade_runs_in_one_transaction(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'service.db'}")
    ends: list[str] = []
    event.listen(database.engine, "commit", lambda _connection: ends.append("commit"))
    upgrade(database)
    assert ends == ["commit"]
    database.dispose()


def test_new_database_is_not_current(tmp_path: Path) -> None:
    assert not is_current(Database(f"sqlite:///{tmp_path / 'fresh.db'}"))


def test_migrations_form_a_single_line() -> None:
    script = ScriptDirectory(str(MIGRATIONS))

    assert len(script.get_heads()) == 1
    assert len(script.get_bases()) == 1


def test_migrated_sites_keep_index_names_without_folders(tmp_path: Path) -> None:
    rows = {
        "accounts": OLD_ACCOUNT,
        "sites": {**OLD_SITE, "engine": "tantivy:/old/var/indexes"},
        "engine_tasks": {"engine": "typesense:http://host:8108", "action": "delete_index", "subject": "site_7_2",
                         "attempts": 0, "due_at": 1, "created_at": 1},
    }  # fmt: skip
    database = old_database(tmp_path, "0001", rows)

    upgrade(database)

    with database.read() as session:
        site = session.get(Site, 7)
        task = session.scalars(select(EngineTask)).one()
    assert site is not None
    assert (site.engine, site.engine_index, task.engine) == ("tantivy", "site_7_3", "typesense")
    assert re.fullmatch("site_7_4_[0-9a-f]{10}", site.index_name(site.index_generation + 1))


def test_migrated_accounts_get_an_owner_and_keep_sessions(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'old.db'}")
    command.upgrade(alembic_config(database), "0007")
    with database.write() as session:
        for id, name in ((3, "a"), (8, "b")):
            session.execute(
                text(
                    "INSERT INTO accounts (id, name, email, email_key, password_hash, plan, limit_overrides,"
                    " created_at)"
                    " VALUES (:id, :name, :name || '@b.c', :name || '@b.c', 'hash of ' || :name, 'free', '{}', 1)"
                ),
                {"id": id, "name": name},
            )
        session.execute(
            text(
                "INSERT INTO sessions (token_hash, account_id, csrf_token, created_at, seen_at, expires_at)"
                " VALUES ('t', 8, 'c', 1, 1, 1)"
            )
        )

    upgrade(database)

    with database.read() as session:
        members = session.scalars(select(Member).order_by(Member.id)).all()
        login = session.scalars(select(Session)).one()
        assert [(m.account_id, m.name, m.email_key, m.password_hash, m.role) for m in members] == [
            (3, "a", "a@b.c", "hash of a", "owner"),
            (8, "b", "b@b.c", "hash of b", "owner"),
        ]
        assert all(member.email_confirmed and member.account.confirm_by is None for member in members)
        assert (login.token_hash, login.member.email, login.member.account.password_hash) == ("t", "b@b.c", "")

    command.downgrade(alembic_config(database), "0007")
    with database.read() as session:
        rows = session.execute(text("SELECT id, password_hash FROM accounts ORDER BY id")).all()
        assert [tuple(row) for row in rows] == [(3, "hash of a"), (8, "hash of b")]
        assert session.execute(text("SELECT token_hash FROM sessions")).scalars().all() == ["t"]


def test_migrated_keys_keep_all_permissions(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'old.db'}")
    command.upgrade(alembic_config(database), "0007")
    with database.write() as session:
        session.execute(
            text(
                "INSERT INTO accounts (id, name, email, email_key, password_hash, plan, limit_overrides, created_at)"
                " VALUES (1, 'A', 'a@b.c', 'a@b.c', '', 'free', '{}', 1)"
            )
        )
        session.execute(
            text(
                "INSERT INTO sites (id, account_id, name, url, domain, active, created_at, updated_at, document_count,"
                " field_kinds, search_settings, public_epoch, revision, applied_revision, engine, index_generation,"
                " rebuilding) VALUES (7, 1, 'S', 'https://a.b/', 'a.b', 1, 1, 1, 0, '{}', '{}', 1, 0, 0, '', 1, 0)"
            )
        )
        for kind in ("public", "search", "private"):
            session.execute(
                text(
                    "INSERT INTO keys (id, account_id, site_id, name, type, token_hash, last4, token_version, active,"
                    f" created_at, updated_at) VALUES ('{kind}', 1, 7, 'K', '{kind}', '{kind}', 'abcd', 1, 1, 1, 1)"
                )
            )

    upgrade(database)

    with database.read() as session:
        keys = session.scalars(select(Key)).all()
        told = {(key.scopes, key.site_only, key.allowed_origins, key.exposed_at) for key in keys}
    assert len(keys) == 3
    assert told == {(None, False, None, None)}


def test_migration_of_webhooks_keeps_their_deliveries(tmp_path: Path) -> None:
    webhook = {
        "id": "whk_1", "account_id": 1, "url": "https://a.b/", "events": "[]", "active": True, "created_at": 1,
        "updated_at": 1,
    }  # fmt: skip
    delivery = {
        "id": "msg_1", "webhook_id": "whk_1", "event": "run.failed", "payload": "{}", "status": "waiting",
        "attempts": 2, "due_at": 5, "created_at": 1,
    }  # fmt: skip
    rows = {"accounts": OLD_ACCOUNT, "webhooks": webhook, "webhook_deliveries": delivery}
    database = old_database(tmp_path, "0033", rows)

    upgrade(database)

    with database.write() as session:
        kept = session.execute(text("SELECT webhook_id, status, attempts, due_at FROM webhook_deliveries")).all()
        assert kept == [("whk_1", "waiting", 2, 5)]
        session.execute(text("DELETE FROM accounts"))
        assert session.execute(text("SELECT count(*) FROM webhook_deliveries")).scalar() == 0


def test_migration_ends_sessions_from_before_two_factor_authentication(tmp_path: Path) -> None:
    member = {"id": 3, "account_id": 1, "name": "A", "email": "a@b.c", "email_key": "a@b.c", "password_hash": "",
              "role": "owner", "created_at": 1, "codes_since": 20}  # fmt: skip
    database = old_database(tmp_path, "0035", {"accounts": OLD_ACCOUNT, "members": member})
    with database.write() as session:
        for name, created_at in (("before", 10), ("after", 25)):
            session.execute(
                text(
                    "INSERT INTO sessions (token_hash, account_id, member_id, csrf_token, created_at, seen_at,"
                    f" expires_at) VALUES ('{name}', 1, 3, '', {created_at}, 30, 99)"
                )
            )

    upgrade(database)

    with database.read() as session:
        kept = session.execute(text("SELECT token_hash, opened_with, code_at FROM sessions")).all()
    assert kept == [("after", "", None)]


def test_migrated_sources_get_hooks(tmp_path: Path) -> None:
    rows = {
        "accounts": OLD_ACCOUNT,
        "sites": OLD_SITE,
        "sources": {"id": "src_0123456789abcdef", "site_id": 7, "kind": "feed", "url": "http://a.b:8080/feed?x=/",
                    "schedule": "none", "include": "[]", "exclude": "[]", "selectors": "{}", "headers": "{}",
                    "created_at": 1, "updated_at": 1},
    }  # fmt: skip
    database = old_database(tmp_path, "0020", rows)

    upgrade(database)

    with database.read() as session:
        source = session.scalars(select(Source)).one()
        assert (source.hook_salt, source.next_options) == ("", None)
