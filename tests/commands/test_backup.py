"""``backup`` and ``restore`` reproduce an installation on any database, and never lose data by mistake."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import orjson
import pytest
import time_machine
from alembic import command
from click.testing import Result
from flask import Flask
from sqlalchemy import Connection, Table, select, text

from app.models import Base, EngineCredential, Member, Site
from app.runtime import Runtime
from app.services.emails.letters import Letter, queue_email
from app.services.webhook_delivery import secret_of
from app.storage import backup_file
from app.storage.database import Database
from app.storage.migrate import alembic_config, is_current
from tests.callers import PASSWORD, ApiClient, Tenant, add_member, page, register_tenant
from tests.conftest import SECRET, close_app, make_app, make_settings
from tests.services.webhooks.receiver import add_webhook, send, tell

INDEX_COLUMNS = {"engine", "engine_index", "index_generation", "index_tag", "public_epoch", "rebuilding"}
"""Columns that differ after a restore, because the site gets a new index."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.zip"


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Flask]:
    """Another installation, with a SQLite file."""
    folder = tmp_path / "other"
    application = make_app(make_settings(folder, database_url=f"sqlite:///{folder / 'service.db'}"))
    yield application
    close_app(application)


@pytest.fixture
def filled(tenant: Tenant) -> Tenant:
    """A tenant with documents, a deleted document, a recorded search, a second member, and an invitation."""
    add_member(tenant, "bo@example.com", "viewer")
    assert tenant.private.post("/api/invitations", json={"email": "cy@example.com"}).status_code == 201
    tenant.index(page(1, tags=["a", "ö"]), page(2), page(3, note="\u2028 \U0001f50d"))
    assert tenant.private.post("/api/v1/documents/delete", json={"ids": ["page-2"]}).status_code == 200
    assert tenant.found_ids("page", session_id="s") == ["page-1", "page-3"]
    runtime_of(tenant.app).events.flush()
    return tenant


def runtime_of(app: Flask) -> Runtime:
    part: Runtime = app.extensions["runtime"]
    return part


def run(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(args=list(arguments))


def rows_of(app: Flask) -> dict[str, list[Any]]:
    """Return every row of every table, except columns about the location of indexes."""
    with runtime_of(app).database.read() as session:
        return {
            table.name: sorted(
                repr({name: value for name, value in row._mapping.items() if name not in INDEX_COLUMNS})
                for row in session.execute(select(table))
            )
            for table in Base.metadata.sorted_tables
            if table.name != EngineCredential.__tablename__
        }


def test_restored_installation_has_the_same_rows_and_searches(filled: Tenant, other: Flask, file: Path) -> None:
    before = rows_of(filled.app)
    written = run(filled.app, "backup", str(file))
    restored = run(other, "restore", str(file))

    assert written.exit_code == 0, written.output
    assert restored.exit_code == 0, restored.output
    assert "1 site" in restored.output
    assert rows_of(other) == before
    other.extensions["jobs"].run_all()
    answer = ApiClient(other, filled.tokens["search"]).get("/v1/search?q=page").get_json()
    assert sorted(hit["id"] for hit in answer["results"]["hits"]) == ["page-1", "page-3"]
    assert all(before[table] for table in ("members", "invitations", "audit_entries"))
    login = ApiClient(other).post("/login", json={"email": "bo@example.com", "password": PASSWORD})
    assert login.status_code == 200


@pytest.mark.slow
def test_backup_can_be_restored_between_database_kinds(
    filled: Tenant, other: Flask, file: Path, tmp_path: Path
) -> None:
    before = rows_of(filled.app)
    assert run(filled.app, "backup", str(file)).exit_code == 0
    assert run(other, "restore", str(file)).exit_code == 0
    second = tmp_path / "second.zip"
    assert run(other, "backup", str(second)).exit_code == 0
    result = run(filled.app, "restore", "--force", str(second))

    assert result.exit_code == 0, result.output
    assert rows_of(filled.app) == before


@pytest.mark.slow
def test_site_ids_are_not_reused_after_a_restore(filled: Tenant, other: Flask, file: Path) -> None:
    gone = filled.browser.post("/sites", json={"name": "Gone", "url": "https://gone.example.com"}).get_json()["site"][
        "id"
    ]
    assert filled.browser.delete(f"/sites/{gone}?purge=true").status_code == 200
    assert run(filled.app, "backup", str(file)).exit_code == 0
    assert run(other, "restore", str(file)).exit_code == 0

    fresh = register_tenant(other, "new@example.com")

    assert fresh.site_id > gone


@pytest.mark.slow
def test_queued_emails_are_not_restored(filled: Tenant, other: Flask, file: Path) -> None:
    with runtime_of(filled.app).database.write() as session:
        queue_email(session, "ann@example.com", Letter("Hello", ()), kind="test")

    run(filled.app, "backup", str(file))
    run(other, "restore", str(file))

    assert (len(rows_of(filled.app)["mails"]), rows_of(other)["mails"]) == (1, [])


@pytest.mark.slow
def test_webhooks_are_restored_without_pending_deliveries(filled: Tenant, other: Flask, file: Path) -> None:
    webhook, secret = add_webhook(filled, "https://example.com/hook", "quota.warning")
    part = runtime_of(filled.app)
    part.deliverer._post = lambda *_: 200  # type: ignore[method-assign]
    tell(filled)
    send(filled.app)
    tell(filled)

    run(filled.app, "backup", str(file))
    run(other, "restore", str(file))

    tables = rows_of(other)
    assert tables["webhooks"] == rows_of(filled.app)["webhooks"]
    (delivery,) = tables["webhook_deliveries"]
    assert "'delivered'" in delivery
    assert secret_of(webhook["id"], runtime_of(other).settings.secret_key) == secret


def test_restore_creates_new_indexes(filled: Tenant, other: Flask, file: Path) -> None:
    assert run(filled.app, "backup", str(file)).exit_code == 0
    assert run(other, "restore", str(file)).exit_code == 0

    def index_of(app: Flask) -> str:
        with runtime_of(app).database.read() as session:
            return session.scalars(select(Site)).one().engine_index

    assert index_of(other) != index_of(filled.app)


@pytest.mark.slow
def test_backup_is_a_consistent_snapshot_during_writes(
    filled: Tenant, other: Flask, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(filled.app)
    write_rows = backup_file._write_rows

    def write_while_others_do(connection: Connection, table: Table, member: IO[bytes]) -> int:
        filled.index(page(table.name))
        return write_rows(connection, table, member)

    monkeypatch.setattr(backup_file, "_write_rows", write_while_others_do)
    assert run(filled.app, "backup", str(file)).exit_code == 0
    assert run(other, "restore", str(file)).exit_code == 0

    assert rows_of(filled.app) != before
    assert rows_of(other) == before


def test_backup_is_readable_by_its_owner_only_and_overwrites_nothing(filled: Tenant, file: Path) -> None:
    assert run(filled.app, "backup", str(file)).exit_code == 0
    before = file.read_bytes()
    again = run(filled.app, "backup", str(file))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert again.exit_code == 1
    assert "never overwrites" in again.output
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if path.name.endswith(".zip") or "backup" in path.name] == [
        file.name
    ]


@pytest.mark.slow
def test_restore_replaces_existing_accounts_only_with_force(filled: Tenant, other: Flask, file: Path) -> None:
    register_tenant(other, "somebody@example.com")
    before = rows_of(other)
    assert run(filled.app, "backup", str(file)).exit_code == 0

    rejected = run(other, "restore", str(file))

    assert rejected.exit_code == 1
    assert "--force" in rejected.output
    assert rows_of(other) == before
    assert run(other, "restore", "--force", str(file)).exit_code == 0
    assert rows_of(other) == rows_of(filled.app)


@pytest.mark.slow
def test_restore_keeps_the_backups_secret_and_rejects_a_different_one(
    filled: Tenant, other: Flask, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(filled.app, "backup", str(file)).exit_code == 0
    monkeypatch.setenv("SECRET_KEY", "another secret that is long enough, too")
    rejected = run(other, "restore", str(file))
    monkeypatch.delenv("SECRET_KEY")
    assert run(other, "restore", str(file)).exit_code == 0

    assert "SECRET_KEY differs from the backup's" in rejected.output
    kept = runtime_of(other).settings.data_path / "secret_key"
    assert kept.read_text() == SECRET
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.slow
def test_restore_includes_the_plans_file(filled: Tenant, other: Flask, file: Path, tmp_path: Path) -> None:
    plans = tmp_path / "own.toml"
    plans.write_text((Path(__file__).parents[2] / "app" / "plans.toml").read_text())
    owner = make_app(make_settings(tmp_path / "owner", plans_file=str(plans)))
    try:
        register_tenant(owner, "owner@example.com")
        assert run(owner, "backup", str(file)).exit_code == 0
    finally:
        close_app(owner)

    result = run(other, "restore", str(file))

    kept = runtime_of(other).settings.data_path / "plans.toml"
    assert kept.read_text() == plans.read_text()
    assert "set PLANS_FILE to it" in result.output


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


def flip(path: Path) -> None:
    """Change a byte in the middle of the documents."""
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("tables/documents.jsonl")
    content = bytearray(path.read_bytes())
    content[member.header_offset + 90] ^= 0xFF
    path.write_bytes(content)


def without_sites(path: Path) -> None:
    rewrite(path, lambda name, content: None if name == "tables/sites.jsonl" else content)


def with_fewer_rows(path: Path) -> None:
    rewrite(path, lambda name, content: b"" if name == "tables/keys.jsonl" else content)


def of_the_future(path: Path) -> None:
    def change(name: str, content: bytes) -> bytes:
        return orjson.dumps({**orjson.loads(content), "revision": "9999"}) if name == "manifest.json" else content

    rewrite(path, change)


def no_archive(path: Path) -> None:
    path.write_text("documents\n")


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: change(name, archive.read(name)) for name in archive.namelist()}
    path.unlink()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (cut, "not a complete backup"),
        (flip, "damaged"),
        (without_sites, "damaged: tables/sites.jsonl"),
        (with_fewer_rows, "keys has 0 of 3 rows"),
        (of_the_future, "newer version"),
        (no_archive, "not a complete backup"),
        (os.unlink, "No such file"),
    ],
)
def test_incomplete_or_damaged_backup_is_rejected(
    filled: Tenant, other: Flask, file: Path, harm: Callable[[Path], None], told: str
) -> None:
    assert run(filled.app, "backup", str(file)).exit_code == 0
    harm(file)

    result = run(other, "restore", str(file))

    assert result.exit_code == 1
    assert told in result.output
    assert rows_of(other)["accounts"] == []


@pytest.mark.slow
def test_restore_migrates_a_backup_of_the_first_release(other: Flask, file: Path, tmp_path: Path) -> None:
    old = make_app(make_settings(tmp_path / "old", database_url=f"sqlite:///{tmp_path / 'old.db'}"))
    database = Database(f"sqlite:///{tmp_path / 'old.db'}")
    command.upgrade(alembic_config(database), "0001")
    with database.write() as session:
        session.execute(
            text(
                "INSERT INTO accounts (id, name, email, email_key, password_hash, plan, limit_overrides, created_at)"
                " VALUES (7, 'Ann', 'ann@example.com', 'ann@example.com', 'x', 'pro', '{\"sites\": 3}', 1)"
            )
        )
        session.execute(
            text(
                "INSERT INTO sites (id, account_id, name, url, domain, active, created_at, updated_at, document_count,"
                " field_kinds, search_settings, public_epoch, revision, applied_revision, engine, index_generation,"
                " rebuilding) VALUES (5, 7, 'Pages', 'https://example.com', 'example.com', 1, 1, 1, 0, '{}', '{}', 1,"
                " 0, 0, 'memory', 1, 0)"
            )
        )
    try:
        assert run(old, "backup", str(file)).exit_code == 0
    finally:
        database.dispose()
        close_app(old)

    result = run(other, "restore", str(file))

    assert result.exit_code == 0, result.output
    part = runtime_of(other)
    assert is_current(part.database)
    with part.database.read() as session:
        site = session.scalars(select(Site)).one()
        assert (site.id, site.account_id, site.name, site.active) == (5, 7, "Pages", True)
        owner = session.scalars(select(Member)).one()
        assert (owner.account_id, owner.email, owner.password_hash, owner.role) == (7, "ann@example.com", "x", "owner")


def test_backup_of_a_database_without_tables_fails(tmp_path: Path, file: Path) -> None:
    empty = make_app(make_settings(tmp_path / "empty", database_url=f"sqlite:///{tmp_path / 'empty.db'}"))
    try:
        result = run(empty, "backup", str(file))
    finally:
        close_app(empty)

    assert result.exit_code == 1
    assert "no tables" in result.output
    assert not file.exists()


def test_backup_into_a_folder_is_named_after_the_time_and_deletes_only_old_backups(
    tenant: Tenant, tmp_path: Path
) -> None:
    old, recent, foreign = (
        tmp_path / name
        for name in ("site-search-2026-11-13T023000Z.zip", "site-search-2026-11-15T023000Z.zip", "photos.zip")
    )
    for path in (old, recent, foreign):
        path.write_bytes(b"")

    with time_machine.travel("2026-11-28T02:30:00+00:00", tick=False):
        done = run(tenant.app, "backup", "--keep-days", "14", str(tmp_path))
        again = run(tenant.app, "backup", "--keep-days", "14", str(tmp_path))

    assert done.exit_code == 0, done.output
    assert "Deleted 1 old backup." in done.output
    names = {path.name for path in tmp_path.glob("*.zip")}
    assert names == {recent.name, foreign.name, "site-search-2026-11-28T023000Z.zip"}
    assert again.exit_code == 1
    assert "never overwrites" in again.output


def test_failed_backup_deletes_no_old_backup(tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "site-search-2020-01-01T000000Z.zip"
    old.write_bytes(b"")

    def fail(*arguments: Any, **keywords: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("app.commands.backup.write_backup", fail)
    assert run(tenant.app, "backup", "--keep-days", "1", str(tmp_path)).exit_code == 1
    assert old.exists()


def test_days_to_keep_need_a_folder(tenant: Tenant, file: Path) -> None:
    rejected = run(tenant.app, "backup", "--keep-days", "14", str(file))
    assert rejected.exit_code == 2
    assert not file.exists()
