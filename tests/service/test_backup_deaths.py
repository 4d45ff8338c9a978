"""``backup`` and ``restore`` are killed in every phase: nothing half is left, and both can be repeated."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage.backup_file import read_manifest
from tests.postgres import PostgresServer
from tests.server import PROJECT, Server, running_server
from tests.service.clients import Caller, Customer, page, register
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
"""Before the first table, in the middle, after the last, before and after the file is on the disk."""
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
"""Before the tables are dropped, after it, while rows are loaded, before they are upgraded, and before the commit."""


def dying(server: Server, tasks: list[tuple[str, int, list[str]]]) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.dying", json.dumps(tasks)],
        cwd=PROJECT, env=server.environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return [int(line) for line in done.stdout.split()]


@pytest.fixture(params=BACKINGS)
def database_urls(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Of the original, and of the one that is restored; empty: a file."""
    if request.param == "one machine":
        return "", ""
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.create_database("dying"), postgres.create_database("dying_copy")


@pytest.fixture
def server(tmp_path: Path, database_urls: tuple[str, str]) -> Iterator[Server]:
    with running_server(tmp_path / "original", workers=1, database_url=database_urls[0]) as running:
        yield running


@pytest.fixture
def customer(server: Server) -> Customer:
    made = register([server], "ann@example.com")
    assert made.private.index(*(page(number) for number in range(20))).status == 200
    return made


def test_a_backup_that_is_killed_leaves_no_file_of_its_name_and_the_next_one_cleans_up(
    server: Server, customer: Customer, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    tasks = [(place, which, ["backup", str(folder / f"{n}.zip")]) for n, (place, which) in enumerate(BACKUP_PLACES)]

    assert dying(server, tasks) == [KILLED] * len(tasks)
    assert not list(folder.glob("*.zip"))
    assert customer.search.search("page").status == 200

    server.run_here("backup", str(folder / "whole.zip"))
    assert [path.name for path in folder.iterdir()] == ["whole.zip"]
    assert read_manifest(folder / "whole.zip").rows["documents"] == 20


def test_a_backup_that_is_killed_at_its_very_end_is_whole(server: Server, customer: Customer, tmp_path: Path) -> None:
    file = tmp_path / "backups" / "late.zip"
    file.parent.mkdir()

    assert dying(server, [("app.storage.backup_file:os.link", 0, ["backup", str(file)])]) == [KILLED]

    assert read_manifest(file).rows["documents"] == 20
    server.run_here("backup", str(file.with_name("next.zip")))
    assert sorted(path.name for path in file.parent.iterdir()) == ["late.zip", "next.zip"]


def test_a_restore_that_is_killed_changed_nothing_and_can_be_repeated(
    server: Server, customer: Customer, tmp_path: Path, database_urls: tuple[str, str]
) -> None:
    file = tmp_path / "backup.zip"
    server.run_here("backup", str(file))
    folder = tmp_path / "copy"
    # A machine with files has a secret of its own; several machines are told one.
    settings = {"database_url": database_urls[1]} if database_urls[1] else {"secret_key": ""}
    with running_server(folder, workers=1, **settings) as copy:
        there = register([copy], "there@example.com")
        assert there.private.index(page("kept")).status == 200
    places = RESTORE_PLACES if "secret_key" in settings else RESTORE_PLACES[:-2]

    for place, which in places:
        task = (place, which, ["restore", "--force", str(file)])
        assert dying(copy, [task]) == [KILLED], task
        assert rows(copy, "SELECT email FROM accounts") == [("there@example.com",)], task
        assert rows(copy, "SELECT id FROM documents") == [("page-kept",)], task
    copy.run_here("restore", "--force", str(file))

    assert rows(copy, "SELECT email FROM accounts") == [("ann@example.com",)]
    assert [path.name for path in folder.iterdir() if "restoring" in path.name] == []
    copy.start()
    try:
        assert len(Caller([copy], customer.tokens["search"]).found_ids("page")) == 20
    finally:
        copy.stop()

