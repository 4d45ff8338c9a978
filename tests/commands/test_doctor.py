"""``doctor`` reports every problem with a remedy."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from click.testing import CliRunner
from sqlalchemy import update

from app import runtime
from app.clock import now
from app.commands.doctor import doctor
from app.counters.values import UncountedSearch
from app.models import EngineTask, Site, SourceRun
from app.operations import diagnosis, machine_checks
from app.runtime import Runtime
from app.services.emails.letters import Letter, queue_email
from app.services.embedding.local_server import ModelFile
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant
from tests.conftest import SECRET, close_app, make_app, make_settings
from tests.crawl.sources.rows import add_source
from tests.email_server import mail_server
from tests.identity_provider import identity_provider
from tests.services.asks.model_server import run_model_server, sending, writing
from tests.services.embedding.embedding_server import failing, run_server
from tests.services.embedding.fastembed_files import SMALL_MODEL, needs_fastembed, put_download

TOPICS = [
    "settings", "versions", "disk", "file modes", "proxies", "database", "counters", "engine", "sites", "clocks",
    "indexes", "runs", "tasks", "mail", "login", "embedder", "language model", "browser", "events",
    "accounts", "charges",
]  # fmt: skip


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Tenant]:
    """A tenant of an installation on one machine, with all its data in one folder."""
    folder = tmp_path / "data"
    settings = make_settings(
        folder,
        database_url=f"sqlite:///{folder / 'service.db'}",
        limits_url=f"sqlite:///{folder / 'counters.db'}",
        search_url=f"tantivy://{folder / 'indexes'}",
    )
    application = make_app(settings)
    tenant = register_tenant(application, "ann@example.com")
    tenant.index(page(1), page(2))
    part_of(tenant).engines.default.close()
    folder.chmod(0o700)
    for file in folder.iterdir():
        file.chmod(0o700 if file.is_dir() else 0o600)
    yield tenant
    close_app(application)


def part_of(tenant: Tenant) -> Runtime:
    part: Runtime = tenant.app.extensions["runtime"]
    return part


def examine(tenant: Tenant, **settings: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit status and the findings that are not ok, by topic. Asserts that all topics were checked."""
    environment = {"DATA_DIR": str(part_of(tenant).settings.data_path), "SECRET_KEY": SECRET, **settings}
    result = CliRunner().invoke(doctor, ["--json"], env=environment)
    findings = json.loads(result.output)
    wrong = {finding["topic"]: finding for finding in findings if finding["level"] != "ok"}
    if not settings:
        assert sorted({finding["topic"] for finding in findings}) == sorted(TOPICS)
    assert all(finding["remedy"] for finding in wrong.values()), "each problem must have a remedy"
    return result.exit_code, wrong


def test_healthy_installation_has_no_findings(installation: Tenant) -> None:
    assert examine(installation) == (0, {})


def test_plain_output_has_one_line_per_finding(installation: Tenant) -> None:
    folder = part_of(installation).settings.data_path
    (folder / "service.db").chmod(0o644)

    result = CliRunner().invoke(doctor, env={"DATA_DIR": str(folder), "SECRET_KEY": SECRET})

    assert result.exit_code == 1
    assert "ok       database: SQLite" in result.output
    assert f"PROBLEM  file modes: Other users of this machine can read {folder / 'service.db'}." in result.output
    assert f"Run `chmod -R go-rwx {folder}`." in result.output


def test_listable_data_directory_is_a_warning(installation: Tenant) -> None:
    folder = part_of(installation).settings.data_path
    folder.chmod(0o755)

    status, wrong = examine(installation)

    assert status == 0
    assert wrong["file modes"]["level"] == "warning"
    assert wrong["file modes"]["message"] == f"Other users of this machine can list {folder}."
    assert wrong["file modes"]["remedy"] == f"Run `chmod -R go-rwx {folder}`."


def test_group_readable_index_file_is_a_problem(installation: Tenant) -> None:
    folder = part_of(installation).settings.data_path
    file = next(path for path in (folder / "indexes").rglob("*") if path.is_file())
    file.chmod(0o640)

    status, wrong = examine(installation)

    assert status == 1
    assert wrong["file modes"]["message"] == f"Other users of this machine can read {file}."


def test_invalid_settings_are_all_reported_and_other_checks_still_run(installation: Tenant) -> None:
    environment = {
        "DATA_DIR": str(part_of(installation).settings.data_path),
        "SECRET_KEY": "short",
        "LOG_LEVEL": "LOUD",
    }
    result = CliRunner().invoke(doctor, ["--json"], env=environment)

    findings = json.loads(result.output)
    assert [finding["message"] for finding in findings if finding["level"] == "problem"] == [
        "LOG_LEVEL must be DEBUG, INFO, WARNING, or ERROR.",
        "SECRET_KEY must have at least 32 characters.",
    ]
    assert sorted({finding["topic"] for finding in findings}) == sorted(TOPICS)
    assert result.exit_code == 1


def test_variable_that_resembles_a_setting_is_a_warning(installation: Tenant) -> None:
    status, wrong = examine(installation, CRAWL_PRIVATE_ADDRESS="true")

    assert status == 0
    assert wrong["settings"]["message"] == (
        "CRAWL_PRIVATE_ADDRESS is not a setting of this service; did you mean CRAWL_PRIVATE_ADDRESSES?"
    )


def test_unusable_data_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    result = CliRunner().invoke(doctor, ["--json"], env={"DATA_DIR": str(tmp_path / "file" / "data")})

    assert result.exit_code == 1
    assert "must be a folder" in json.loads(result.output)[0]["message"]


def test_unavailable_servers_are_reported_separately(installation: Tenant) -> None:
    status, wrong = examine(
        installation,
        SEARCH_URL="typesense://:key@127.0.0.1:1?timeout_seconds=1",
        LIMITS_URL="redis://127.0.0.1:1/0",
        LIMITS_TIMEOUT_SECONDS="0.2",
    )

    assert status == 1
    assert {"counters", "engine"} <= set(wrong)
    assert wrong["counters"]["level"] == wrong["engine"]["level"] == "problem"
    assert "disk" not in wrong


def test_outdated_database_is_reported_with_upgrade_as_remedy(installation: Tenant) -> None:
    part = part_of(installation)
    with part.database.write() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")

    status, wrong = examine(installation)

    assert status == 1
    assert wrong["database"]["remedy"] == "Run `database upgrade`."


def test_newer_database_is_reported_without_upgrade_as_remedy(installation: Tenant) -> None:
    part = part_of(installation)
    with part.database.write() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    status, wrong = examine(installation)

    assert status == 1
    assert "newer version" in wrong["database"]["message"]
    assert "upgrade" not in wrong["database"]["remedy"]


def test_simultaneous_problems_are_all_reported(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Database, counters, and engine unavailable, an invalid setting, an open folder, a full disk, and leftover events
    at the same time."""
    folder = part_of(installation).settings.data_path
    folder.chmod(0o755)
    (folder / "events").mkdir(mode=0o700, exist_ok=True)
    left = folder / "events" / "left.journal"
    left.write_bytes(b"x")
    os.utime(left, (time.time() - 3600,) * 2)
    monkeypatch.setattr(machine_checks, "NO_SPACE", sys.maxsize)

    status, wrong = examine(
        installation,
        LOG_LEVEL="LOUD",
        DATABASE_URL="postgresql://nobody@127.0.0.1:1/none?connect_timeout=1",
        SEARCH_URL="typesense+https://:key@127.0.0.1:1?timeout_seconds=1",
        LIMITS_URL="rediss://127.0.0.1:1/0",
        LIMITS_TIMEOUT_SECONDS="0.2",
        PUBLIC_URL="https://127.0.0.1:1",
    )

    assert status == 1
    assert set(wrong) == {
        "settings", "disk", "file modes", "proxies", "events", "database", "counters", "engine",
        "sites", "clocks", "indexes", "runs", "tasks", "accounts",
    }  # fmt: skip
    assert wrong["engine"]["message"] == "typesense is unavailable: The search engine does not respond."


def test_damaged_database_is_reported_and_other_checks_still_run(installation: Tenant) -> None:
    part = part_of(installation)
    with part.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    part.database.dispose()
    file = part.settings.data_path / "service.db"
    content = bytearray(file.read_bytes())
    content[4096 * 3 : 4096 * 30] = os.urandom(4096 * 27)
    file.write_bytes(content)

    environment = {"DATA_DIR": str(part.settings.data_path), "SECRET_KEY": SECRET}
    findings = json.loads(CliRunner().invoke(doctor, ["--json"], env=environment).output)

    assert "problem" in {finding["level"] for finding in findings if finding["topic"] == "database"}
    assert {finding["topic"] for finding in findings} == set(TOPICS), "checks that need no database must run"


def test_missing_or_stale_indexes_are_a_warning(installation: Tenant) -> None:
    part = part_of(installation)
    with part.database.write() as session:
        session.execute(update(Site).values(engine_index="site_1_9_gone", revision=Site.revision + 1))

    status, wrong = examine(installation)

    assert status == 0, "a running service must repair it"
    assert wrong["indexes"]["level"] == "warning"
    assert "for sites 1" in wrong["indexes"]["message"]


def test_stale_index_is_reported_with_reason_and_time(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise BackendUnavailable("The search engine has not finished in time.")

    monkeypatch.setattr(part_of(installation).engines.default, "upsert", refuse)
    then = now().replace(second=0) - timedelta(minutes=30)
    with time_machine.travel(then):
        assert installation.private.post("/api/v1/index/bulk", json={"documents": [page(3)]}).status_code == 503

    status, wrong = examine(installation)

    assert status == 1
    assert wrong["indexes"]["level"] == "problem"
    minute = f"{then:%Y-%m-%d %H:%M} UTC"
    assert wrong["indexes"]["message"] == (
        f"The index of site {installation.site_id} lacks changes since {minute}, and could not be updated "
        f"at {minute}: The search engine has not finished in time."
    )
    assert "timeout_seconds" in wrong["indexes"]["remedy"]


def test_stuck_crawls_and_tasks_are_reported(installation: Tenant) -> None:
    part = part_of(installation)
    source = add_source(installation.app, installation)
    past = now() - timedelta(minutes=11)
    run = {"queued_at": past, "waiting_since": past, "lease": "x", "lease_until": past}
    task = {"engine": "x", "action": "delete_index", "subject": "i", "due_at": past, "created_at": past}
    with part.database.write() as session:
        session.add(SourceRun(id="run_1", source_id=source.id, status="running", **run))
        session.add(EngineTask(attempts=5, **task))

    _, wrong = examine(installation)

    assert wrong["runs"]["message"].startswith("1 crawl without a process")
    assert wrong["tasks"]["message"].startswith("1 task")


def test_unreachable_mail_server_and_delayed_email_are_reported(installation: Tenant) -> None:
    settings = {"MAIL_FROM": "search@example.com", "PUBLIC_URL": "http://search.example.com"}
    assert examine(installation, **settings, SMTP_URL="smtp://127.0.0.1:1")[1]["mail"]["level"] == "problem"
    with mail_server() as server:
        assert examine(installation, **settings, SMTP_URL=server.url) == (0, {})
        then = now() - timedelta(minutes=11)
        with time_machine.travel(then), part_of(installation).database.write() as session:
            queue_email(session, "bo@example.com", Letter("Late", ()), kind="test")
        status, wrong = examine(installation, **settings, SMTP_URL=server.url)

    assert status == 0
    assert wrong["mail"]["message"] == "1 email waiting for over ten minutes."


def test_invalid_mail_settings_are_reported_without_the_password(installation: Tenant) -> None:
    settings = {"SMTP_URL": "smtp://user:secret@", "MAIL_FROM": "nobody"}
    result = CliRunner().invoke(
        doctor, env={"DATA_DIR": str(part_of(installation).settings.data_path), "SECRET_KEY": SECRET, **settings}
    )

    assert result.exit_code == 1
    assert "PROBLEM  settings: SMTP_URL must be smtp://" in result.output
    assert "PROBLEM  settings: MAIL_FROM must be one ASCII address" in result.output
    assert "PROBLEM  settings: SMTP_URL requires PUBLIC_URL" in result.output
    assert "secret" not in result.output


def test_low_disk_space_is_reported(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "NO_SPACE", sys.maxsize)
    assert examine(installation)[1]["disk"]["level"] == "problem"
    monkeypatch.setattr(machine_checks, "NO_SPACE", 0)
    monkeypatch.setattr(machine_checks, "LITTLE_SPACE", sys.maxsize)
    assert examine(installation)[1]["disk"]["level"] == "warning"


def test_missing_and_outdated_packages_are_reported(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine_checks, "requires", lambda _: ["flask>=99", "no-such-package>=1", 'x>=1; extra == "dev"']
    )

    message = examine(installation)[1]["versions"]["message"]

    assert "flask" in message
    assert "no-such-package missing (needs >=1)" in message
    assert "x " not in message


def test_unprocessed_events_are_reported(installation: Tenant) -> None:
    folder = part_of(installation).settings.data_path / "events"
    folder.mkdir(mode=0o700, exist_ok=True)
    left = folder / "left.journal"
    left.write_bytes(b"x" * 2048)
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago, hour_ago))

    assert examine(installation)[1]["events"]["message"].startswith("2.0 KiB of search events")


def test_processed_events_in_a_remaining_journal_are_not_reported(installation: Tenant) -> None:
    """A process keeps appending to its journal until the file reaches its size limit."""
    part = part_of(installation)
    assert installation.search.get("/v1/search?q=page").status_code == 200
    part.events.flush()
    (journal,) = (part.settings.data_path / "events").glob("*.journal")
    assert journal.stat().st_size > 0
    hour_ago = time.time() - 3600
    os.utime(journal, (hour_ago, hour_ago))

    assert examine(installation) == (0, {})

    with journal.open("ab") as file:
        file.write(b"x" * 1024)
    os.utime(journal, (hour_ago, hour_ago))
    assert examine(installation)[1]["events"]["message"].startswith("1.0 KiB of search events")


@pytest.mark.parametrize(("ahead", "level"), [(0.0, None), (5.0, "warning"), (3600.0, "problem")])
def test_clock_differences_are_reported(
    installation: Tenant, monkeypatch: pytest.MonkeyPatch, ahead: float, level: str | None
) -> None:
    monkeypatch.setattr(diagnosis, "_redis_clock", lambda part: time.time() + ahead)
    _, wrong = examine(installation, LIMITS_URL="redis://127.0.0.1:1/0", LIMITS_TIMEOUT_SECONDS="0.2")

    assert (wrong["clocks"]["level"] if "clocks" in wrong else None) == level


def test_missing_trusted_proxies_setting_is_reported(installation: Tenant) -> None:
    found = examine(installation, PUBLIC_URL="https://search.example.com")[1]["proxies"]
    assert (found["level"], "TRUSTED_PROXIES is 0" in found["message"]) == ("warning", True)

    assert "proxies" not in examine(installation, PUBLIC_URL="https://search.example.com", TRUSTED_PROXIES="1")[1]


def test_uncharged_searches_are_reported(installation: Tenant) -> None:
    part = part_of(installation)
    part.late_charges.charge(UncountedSearch(1, None, now().timestamp(), None))

    assert "not charged yet" in examine(installation)[1]["charges"]["message"]
    part.late_charges.settle()
    assert "charges" not in examine(installation)[1]


def test_embedder_that_rejects_the_key_is_reported(installation: Tenant) -> None:
    with run_server() as server:
        environment = {"EMBEDDER": server.url, "EMBEDDER_MODEL": "small", "EMBEDDER_KEY": "a-key"}
        assert examine(installation, **environment) == (0, {})

        server.reply = failing(401)
        status, wrong = examine(installation, **environment)

    assert status == 1
    assert "responds with status 401" in wrong["embedder"]["message"]
    assert "EMBEDDER_KEY" in wrong["embedder"]["remedy"]
    assert "a-key" not in str(wrong)


def test_language_model_that_rejects_the_key_is_reported(installation: Tenant) -> None:
    with run_model_server() as server:
        environment = {"LLM_URL": server.url, "LLM_MODEL": "small", "LLM_KEY": "a-key"}
        assert examine(installation, **environment) == (0, {})

        server.respond = sending(b"{}", status=401, headers={})
        status, wrong = examine(installation, **environment)

    assert status == 1
    assert "responds with status 401" in wrong["language model"]["message"]
    assert "LLM_KEY" in wrong["language model"]["remedy"]


@pytest.mark.parametrize("name", ["EMBEDDER", "LLM_URL"])
@pytest.mark.parametrize(
    "url", ["http://me:hidden@127.0.0.1:9/v1", "http://127.0.0.1:99999/v1?key=hidden", "http://[::1/hidden"]
)
def test_invalid_url_of_a_model_is_reported_once_and_without_its_secrets(
    installation: Tenant, name: str, url: str
) -> None:
    status, wrong = examine(installation, **{name: url, f"{name.removesuffix('_URL')}_MODEL": "small"})

    assert (status, set(wrong)) == (1, {"settings"})
    assert wrong["settings"]["message"].startswith(f"{name} must")
    assert "hidden" not in str(wrong)


def test_keys_that_a_server_sends_back_are_not_printed(installation: Tenant) -> None:
    key = "sk-of-the-operator"
    settings = {"DATA_DIR": str(part_of(installation).settings.data_path), "SECRET_KEY": SECRET, "LLM_MODEL": "small"}
    with run_model_server() as server:
        for respond in (
            sending(b"", headers={"Content-Type": f"{'x' * 70}/{key}"}),
            writing(f"Your authorization header is: Bearer {key}"),
        ):
            server.respond = respond
            result = CliRunner().invoke(doctor, env={**settings, "LLM_URL": server.url, "LLM_KEY": key})
            (line,) = [line for line in result.output.splitlines() if " language model:" in line]
            assert "[se" in line
            assert key[:6] not in result.output


def test_missing_packages_of_an_embedder_are_reported(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "MINILM_PACKAGES", ("numpy", "no_such_package"))

    status, wrong = examine(installation, EMBEDDER="minilm")

    assert status == 1
    assert "site-search-service[minilm]" in wrong["settings"]["message"]
    assert "no_such_package cannot be found" in wrong["settings"]["message"]


def test_model_file_with_a_different_hash_is_reported(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "MINILM_PACKAGES", ("numpy",))
    monkeypatch.setattr(diagnosis, "MODEL", ModelFile("numpy", "__init__.py", "0" * 64))

    status, wrong = examine(installation, EMBEDDER="minilm")

    assert status == 1
    assert "is not the file that was tested" in wrong["embedder"]["message"]


def test_browser_that_cannot_be_started_is_reported(installation: Tenant) -> None:
    pytest.importorskip("playwright")
    for location, remedy in (("/no/chromium", "Correct CRAWL_BROWSER."), ("ws://127.0.0.1:9", "Start it, or correct")):
        status, wrong = examine(installation, CRAWL_BROWSER=location)
        assert status == 1
        assert "cannot be started" in wrong["browser"]["message"]
        assert remedy in wrong["browser"]["remedy"]


def test_missing_package_for_the_browser_is_reported(installation: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "BROWSER_PACKAGES", ("no_such_package",))
    status, wrong = examine(installation, CRAWL_BROWSER="/usr/bin/chromium")
    assert status == 1
    assert "CRAWL_BROWSER requires the extra browser" in wrong["settings"]["message"]


@needs_fastembed
def test_doctor_reports_missing_model_files_of_fastembed(installation: Tenant) -> None:
    environment = {"EMBEDDER": "fastembed", "EMBEDDER_MODEL": SMALL_MODEL.name}

    status, wrong = examine(installation, **environment)

    assert (status, wrong["embedder"]["level"]) == (0, "warning")
    assert "The model is not in" in wrong["embedder"]["message"]
    assert "Without internet access, put its files there" in wrong["embedder"]["remedy"]
    put_download(part_of(installation).settings.data_path / "models")
    assert examine(installation, **environment) == (0, {})


def test_login_provider_outage_or_misconfiguration_is_reported(installation: Tenant) -> None:
    with identity_provider() as provider:
        environment = {name.upper(): value for name, value in provider.settings().items()}
        assert "login" not in examine(installation, **environment)[1]

        provider.configuration = {"issuer": "https://other.example.com"}
        status, wrong = examine(installation, **environment)
        assert (status, wrong["login"]["level"]) == (1, "problem")
        assert "another issuer: 'https://other.example.com'" in wrong["login"]["message"]

        provider.configuration = {"jwks_uri": provider.issuer + "/nothing"}
        assert "/nothing returned 404" in examine(installation, **environment)[1]["login"]["message"]
    assert "is unavailable" in examine(installation, **environment)[1]["login"]["message"]
