"""A database of either kind with two accounts, and a plain Python count to compare with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, delete, insert, text

from app.models import Account, Base, Site
from app.services.analytics.event_retention import remove_step
from app.services.analytics.events import Click, EventRecorder, SearchEvent, forget_site
from app.services.analytics.visitors import session_visitor
from app.storage.database import Database, normalized_url
from tests.postgres import PostgresServer

MOMENT = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
TODAY = MOMENT.date()
FIRST_ACCOUNT, SECOND_ACCOUNT = 1, 2
SITES = {1: FIRST_ACCOUNT, 2: FIRST_ACCOUNT, 3: SECOND_ACCOUNT}


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """URL of an empty database with a language's sort order, as in many installations: at TEST_DATABASE_URL, or a new
    server."""
    server = os.environ.get("TEST_DATABASE_URL", "")
    if server.startswith("postgres"):
        yield from _own_database(server)
        return
    own_server = PostgresServer()
    try:
        own_server.start()
        yield from _own_database(own_server.url)
    finally:
        own_server.remove()


def _own_database(server: str) -> Iterator[str]:
    name = f"events_test_{os.getpid()}"
    url = normalized_url(server)
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'"))
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('database') / 'service.db'}"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture(scope="module")
def module_database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    Base.metadata.drop_all(database.engine)
    Base.metadata.create_all(database.engine)
    yield database
    database.dispose()


@pytest.fixture
def database(module_database: Database) -> Database:
    start_afresh(module_database)
    return module_database


def start_afresh(database: Database) -> None:
    """Empty all tables and add the accounts and sites."""
    with database.write() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(delete(table))
        for account_id in sorted(set(SITES.values())):
            address = f"{account_id}@example.org"
            session.execute(
                insert(Account).values(
                    id=account_id,
                    name="A",
                    email=address,
                    email_key=address,
                    password_hash="",
                    plan="pro",
                    limit_overrides={},
                    created_at=MOMENT,
                )
            )
        for site_id, account_id in SITES.items():
            session.execute(
                insert(Site).values(
                    id=site_id,
                    account_id=account_id,
                    name="S",
                    url="https://example.org",
                    domain="example.org",
                    engine="memory",
                    field_kinds={},
                    search_settings={},
                    created_at=MOMENT,
                    updated_at=MOMENT,
                )
            )


def delete_site(database: Database, site_id: int, *, completely: bool = True) -> None:
    """Delete a site's events as deleting the site does."""
    with database.write() as session:
        session.execute(delete(Site).where(Site.id == site_id))
        forget_site(session, site_id)
    while completely and remove_step(database):
        pass


@dataclass(frozen=True)
class Recorded:
    """A recorder's journals."""

    directory: Path

    @property
    def journals(self) -> list[Path]:
        return sorted(self.directory.glob("*.journal"))


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "events")


@pytest.fixture
def make_recorder(recorded: Recorded, database: Database) -> Iterator[Callable[[], EventRecorder]]:
    """Create recorders that move events on request, and stop them at the end."""
    recorders: list[EventRecorder] = []

    def make() -> EventRecorder:
        recorders.append(EventRecorder(recorded.directory, database, background=False))
        return recorders[-1]

    yield make
    for recorder in recorders:
        recorder.stop()


@pytest.fixture
def recorder(make_recorder: Callable[[], EventRecorder]) -> EventRecorder:
    return make_recorder()


def search(
    query: str = "docs",
    *,
    site_id: int = 1,
    results: int = 1,
    session_id: str | None = None,
    response_ms: int | None = None,
    seconds: float = 0,
    matched: str | None = None,
    visitor: int | None = None,
    channel: str | None = None,
    page: str | None = None,
) -> SearchEvent:
    """Return a search ``seconds`` after the frozen moment. The visitor defaults to the session's, the channel to the
    box if there is a page."""
    if visitor is None and session_id:
        visitor = session_visitor(site_id, session_id)
    moment = MOMENT + timedelta(seconds=seconds)
    channel = channel or ("box" if page else None)
    return SearchEvent(site_id, query, results, moment, session_id, response_ms, matched, visitor, channel, page)


def click(
    query: str = "docs",
    document_id: str = "page-1",
    *,
    site_id: int = 1,
    search_key: int = 1,
    position: int | None = 1,
    anchor: str | None = None,
    seconds: float = 0,
) -> Click:
    """Return a click ``seconds`` after the frozen moment."""
    return Click(site_id, search_key, query, document_id, position, MOMENT + timedelta(seconds=seconds), anchor)
