"""An installation of the first release is upgraded with all its data, and incompatible versions are reported.

``first_release.json`` contains the rows written by version 1.0.0 itself: an account with two sites, keys, documents
(one of them deleted), five searches, and a login; and the tokens that it issued.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from alembic import command
from sqlalchemy import MetaData

from app.storage.database import Database
from app.storage.migrate import alembic_config
from tests.postgres import PostgresServer
from tests.server import Server, running_server
from tests.service.clients import PASSWORD, Caller, NoAnswer, eventually, page, register
from tests.service.conftest import BACKINGS, COMMON
from tests.service.stored import change, rows

pytestmark = pytest.mark.service

FIRST = json.loads((Path(__file__).parent / "first_release.json").read_text())
WRITTEN_ON = date(2026, 11, 23)
"""Date of the recording; a test shifts its searches to today."""
JSON_COLUMNS = {"limit_overrides", "field_kinds", "search_settings"}


def as_of_today(column: str, value: Any) -> Any:
    """Return a recorded value with its date shifted to today."""
    passed = datetime.now(UTC).date() - WRITTEN_ON
    if value is None:
        return None
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    if column.endswith("_at"):
        return value + passed // timedelta(microseconds=1)
    if column == "day":
        return value + passed.days if isinstance(value, int) else date.fromisoformat(value) + passed
    if column in JSON_COLUMNS:
        return json.loads(value)
    return value


def fill(url: str) -> None:
    """Create the tables of the first release, with its rows."""
    database = Database(url)
    command.upgrade(alembic_config(database), "0001")
    with database.write() as session:
        connection = session.connection()
        tables = MetaData()
        tables.reflect(connection)
        for table in tables.sorted_tables:
            for row in FIRST["rows"].get(table.name, ()):
                connection.execute(table.insert(), {name: as_of_today(name, value) for name, value in row.items()})
        if not database.is_sqlite:
            for name in ("accounts", "sites", "search_events"):
                connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), 100)")
    database.dispose()


def leave_a_journal(folder: Path) -> None:
    """Leave the journal of a search that the old program had not yet moved into the database."""
    moment = int(datetime.now(UTC).timestamp() * 1_000_000)
    payload = orjson.dumps([1, moment, moment, 1, 4, None, "left behind"])
    events = folder / "events"
    events.mkdir(parents=True, mode=0o700)
    (events / f"{'0' * 32}.journal").write_bytes(b"%08x %b\n" % (zlib.crc32(payload), payload))


@pytest.fixture(params=BACKINGS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A stopped installation of the first release."""
    folder = tmp_path / "data"
    folder.mkdir()
    leave_a_journal(folder)
    settings: dict[str, str | int] = dict(COMMON)
    if request.param == "two machines":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        settings["database_url"] = postgres.create_database("first_release")
    fill(str(settings.get("database_url", f"sqlite:///{folder / 'service.db'}")))
    with running_server(folder, workers=1, started=False, **settings) as server:
        yield server


def test_first_release_returns_503_until_the_database_is_upgraded_and_keeps_its_data(old: Server) -> None:
    old.start(ready=False)
    search, private = (Caller([old], FIRST["tokens"][kind]) for kind in ("search", "private"))
    session = Caller([old], headers={"Cookie": FIRST["cookie"], "X-CSRF-Token": FIRST["csrf_token"]})

    def refuses() -> None:
        try:
            early = search.call("GET", "/readyz")
        except NoAnswer as error:
            raise AssertionError("it does not listen yet") from error
        assert (early.status, early.error) == (503, "database_unavailable")
        assert "must be upgraded" in early.body["message"]

    eventually(refuses)
    for early in (search.search("harbour"), private.index(page(1)), session.call("GET", "/sites")):
        assert (early.status, early.error) == (503, "database_unavailable"), early.body
        assert int(early.headers["Retry-After"]) >= 1
    assert "run `database upgrade`" in old.log

    old.run_here("database", "upgrade")

    def is_ready() -> None:
        assert search.call("GET", "/readyz").status == 200
        assert search.search("harbour").status == 200

    eventually(is_ready)
    assert search.found_ids("harbour") == {"harbour"}
    assert search.found_ids("ship") == {"harbour", "museum"}, "the synonyms must survive the upgrade"
    assert search.found_ids("grüße") == {"grüße"}
    assert search.found_ids("gone") == set()
    assert Caller([old], FIRST["tokens"]["public"]).must("GET", "/v1/client-info")["active"]
    filtered = private.must("POST", "/v1/search", {"q": "*", "filters": "price > 10", "facets": ["section"]})["results"]
    assert [hit["id"] for hit in filtered["hits"]] == ["harbour"]

    assert {site["name"] for site in session.must("GET", "/sites")["sites"]} == {"Pages", "Empty"}
    login = {"email": "ann@example.com", "password": PASSWORD}
    assert Caller([old]).call("POST", "/login", login).status == 200

    def analytics_are_there() -> None:
        told = private.must("GET", "/api/analytics?period=7d")
        counts = {entry["query"]: entry["count"] for entry in told["top_queries"]}
        assert counts.get("harbour", 0) >= 2
        assert counts.get("left behind") == 1
        assert {"museum", "nothing of this kind", "grüße"} <= counts.keys()

    eventually(analytics_are_there)
    assert private.must("GET", "/dashboard")["usage"]["indexed_pages"] == 3
    assert private.index(page("new")).status == 200
    assert search.found_ids('"page new"') == {"page-new"}
    fresh = session.must("POST", "/sites", {"name": "Third", "url": "https://third.example.com/"})["site"]
    assert fresh["id"] not in {site["id"] for site in FIRST["rows"]["sites"]}


def _newer_tables(server: Server) -> Callable[[], None]:
    """Change the tables as a newer version might: an unknown revision, and a renamed column. Returns a function to undo
    it."""
    ((revision,),) = rows(server, "SELECT version_num FROM alembic_version")
    change(
        server,
        "UPDATE alembic_version SET version_num = '9999'",
        "ALTER TABLE documents RENAME COLUMN body TO content",
    )

    def undo() -> None:
        change(
            server,
            f"UPDATE alembic_version SET version_num = '{revision}'",
            "ALTER TABLE documents RENAME COLUMN content TO body",
        )

    return undo


def test_process_older_than_the_tables_searches_and_rejects_incompatible_writes(
    servers: list[Server],
) -> None:
    customer = register(servers, f"older-{len(servers)}@example.com")
    assert customer.private.index(page(1)).status == 200
    undo = _newer_tables(servers[0])
    try:
        assert customer.search.search("page").status == 200
        rejected = customer.private.index(page(2))
        assert (rejected.status, rejected.error) == (503, "database_unavailable"), rejected.body
        assert int(rejected.headers["Retry-After"]) >= 1
        assert "newer version" in _doctor(servers[0])
    finally:
        undo()
    assert customer.private.index(page(2)).status == 200


def _doctor(server: Server) -> str:
    with pytest.raises(RuntimeError) as told:
        server.flask("doctor")
    return str(told.value)
