"""``backup`` and ``restore`` are killed in every phase: no partial result remains, and both can be repeated."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.storage.backup_file import read_manifest
from tests.postgres import PostgresServer
from tests.server import PROJECT, Server, running_server
from tests.service.clients import PASSWORD, Caller, Customer, page, register
from tests.service.conftest import BACKINGS
from tests.service.stored import rows

pytestmark = pytest.mark.service

KILLED = -signal.SIGKILL
BACKUP_PLACES = [
    ("app.storage.backup_file:_write_rows", 1),
    ("app.storage.backup_file:_write_rows", 9),
    ("app.storage.backup_file:_sequences", 0),
    ("app.storage.backup_file:os.fsync", 1),
    ("app.storage.backup_file:os.link", 1),
]
"""Before the first table, in the middle, after the last table, and before and after the file is on disk."""
RESTORE_PLACES = [
    ("app.storage.backup_file:_drop_tables", 1),
    ("app.storage.backup_file:_drop_tables", 0),
    ("app.storage.backup_file:_load_rows", 1),
    ("app.storage.backup_file:_load_rows", 9),
    ("app.storage.backup_file:_set_sequences", 0),
    ("app.commands.backup:renew_indexes", 0),
    ("app.commands.backup:_replace", 1),
    ("app.commands.backup:_replace", 0),
]
"""Before and after the tables are dropped, while rows are loaded, before they are upgraded, and before the commit."""


def dying(server: Server, tasks: list[tuple[str, int, list[str]]]) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.dying", json.dumps(tasks)],
        cwd=PROJECT, env=server.environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return [int(line) for line in done.stdout.split()]


@dataclass
class Original:
    """An installation with 20 documents.

    Attributes:
        postgres: The server of its database; ``None`` for a file.
    """

    server: Server
    customer: Customer
    postgres: PostgresServer | None


@pytest.fixture(scope="module", params=BACKINGS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    postgres = None if request.param == "one machine" else request.getfixturevalue("postgres")
    url = "" if postgres is None else postgres.create_database("dying")
    with running_server(tmp_path_factory.mktemp("original"), workers=1, database_url=url) as server:
        customer = register([server], "ann@example.com")
        assert customer.private.index(*(page(number) for number in range(20))).status == 200
        yield Original(server, customer, postgres)


def test_killed_backup_is_complete_or_absent_and_the_next_one_cleans_up(original: Original, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    tasks = [(place, which, ["backup", str(folder / f"{n}.zip")]) for n, (place, which) in enumerate(BACKUP_PLACES)]
    at_the_end = ("app.storage.backup_file:os.link", 0, ["backup", str(folder / "end.zip")])

    assert dying(original.server, [*tasks, at_the_end]) == [KILLED] * (len(tasks) + 1)
    assert [path.name for path in folder.glob("*.zip")] == ["end.zip"]
    assert read_manifest(folder / "end.zip").rows["documents"] == 20
    assert original.customer.search.search("page").status == 200

    original.server.run_here("backup", str(folder / "next.zip"))
    assert sorted(path.name for path in folder.iterdir()) == ["end.zip", "next.zip"]


def test_killed_restore_changes_nothing_and_can_be_repeated(original: Original, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    original.server.run_here("backup", str(file))
    places = RESTORE_PLACES
    settings = {"secret_key": ""}
    if original.postgres is not None:  # Several machines have a configured secret, so that no secret file is written.
        places = RESTORE_PLACES[:-2]
        settings = {"database_url": original.postgres.create_database("dying_copy")}
    with running_server(tmp_path / "copy", workers=1, started=False, **settings) as copy:
        copy.run_here("database", "upgrade")
        copy.run_here("account", "create", "--email", "there@example.com", "--name", "There", "--password", PASSWORD)

        assert dying(copy, [(*place, ["restore", "--force", str(file)]) for place in places]) == [KILLED] * len(places)
        assert rows(copy, "SELECT email FROM accounts") == [("there@example.com",)]

        copy.run_here("restore", "--force", str(file))
        assert rows(copy, "SELECT email FROM accounts") == [("ann@example.com",)]
        assert [path.name for path in copy.folder.iterdir() if "restoring" in path.name] == []
        copy.start()
        assert len(Caller([copy], original.customer.tokens["search"]).found_ids("page")) == 20
