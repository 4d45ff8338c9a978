"""The dashboard and its API report problems, the affected parts, and the start of each problem, without waiting for
hanging services."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from app.clock import isoformat, now
from app.counters.values import CountersUnavailable
from app.models import Site, SourceRun, StoredDocument
from app.models.base import to_microseconds
from app.runtime import Runtime
from app.services.health import COUNTERS, DATABASE, DISK, ENGINE, LATE, STUCK, ProbeResult
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.crawl.sources.rows import add_source
from tests.pages.people import person_of
from tests.responses import assert_ok


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Tenant]:
    app = make_app(make_settings(tmp_path, search_url=f"tantivy://{tmp_path / 'indexes'}"))
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1))
    yield tenant
    close_app(app)


@pytest.fixture
def since() -> datetime:
    return (now() - timedelta(minutes=7)).replace(microsecond=0)


def part_of(tenant: Tenant) -> Runtime:
    part: Runtime = tenant.app.extensions["runtime"]
    return part


def fail(tenant: Tenant, since: datetime, *dependencies: str) -> None:
    """Make the last check report these failures."""
    part_of(tenant).health._probe_results = {name: ProbeResult(since, 0.1) for name in dependencies}


def troubles(tenant: Tenant) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = assert_ok(tenant.private.get("/dashboard"))["troubles"]
    return listed


def banner(tenant: Tenant) -> str:
    """Return the problems on the dashboard's page."""
    person = person_of(tenant)
    found = person.go("/dashboard").all("section", aria_labelledby="troubles-title")
    return " ".join(section.text for section in found)


def test_dashboard_reports_no_troubles_while_everything_works(tenant: Tenant) -> None:
    part_of(tenant).health.check()

    assert troubles(tenant) == []
    assert banner(tenant) == ""


@pytest.mark.parametrize(
    ("dependency", "kind", "works"),
    [
        (ENGINE, "engine", "Searches of your site fail."),
        (DATABASE, "database", "Searches work"),
        (DISK, "disk", "Searches work"),
    ],
)
def test_failing_dependency_is_reported_with_its_effect_and_start(
    tenant: Tenant, since: datetime, dependency: str, kind: str, works: str
) -> None:
    fail(tenant, since, dependency)

    (trouble,) = troubles(tenant)

    assert (trouble["kind"], trouble["since"]) == (kind, isoformat(since))
    assert trouble["effect"].startswith(works)
    assert trouble["title"] in banner(tenant)
    assert trouble["effect"] in banner(tenant)


def test_dashboard_shows_the_copied_usage_while_counters_are_unavailable(
    tenant: Tenant, since: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.find("page")
    part_of(tenant).usage_copies.finish()
    person = person_of(tenant)

    def refuse(*_: object, **__: object) -> None:
        raise CountersUnavailable

    for step in ("usage_between", "usage_of_day", "consume"):
        monkeypatch.setattr(part_of(tenant).counters, step, refuse)
    fail(tenant, since, COUNTERS)

    shown = person.go("/dashboard")

    assert person.response.status_code == 200
    assert "Usage cannot be counted." in shown.text
    assert shown.all("div", class_="meter")[0].text.startswith("Searches today 1 of ")


def test_failing_engine_is_not_reported_if_no_site_of_the_account_uses_it(tenant: Tenant, since: datetime) -> None:
    fail(tenant, since, ENGINE)
    with part_of(tenant).database.write() as session:
        session.execute(update(Site).values(engine="typesense"))

    assert troubles(tenant) == []


def test_missing_index_is_reported_only_to_its_site_owner(tenant: Tenant, since: datetime) -> None:
    stranger = register_tenant(tenant.app, "eve@example.com")
    part_of(tenant).health._missing = {tenant.site_id: since}

    (trouble,) = troubles(tenant)

    assert (trouble["kind"], trouble["since"]) == ("index", isoformat(since))
    assert troubles(stranger) == []


def test_late_index_changes_are_reported_since_the_oldest_change(tenant: Tenant) -> None:
    late, early = now() - 2 * LATE, now() - LATE / 2
    with part_of(tenant).database.write() as session:
        session.execute(update(Site).values(revision=Site.revision + 1))
        session.execute(
            update(StoredDocument).values(revision=StoredDocument.revision + 1, changed_at=to_microseconds(early))
        )
    assert troubles(tenant) == []

    with part_of(tenant).database.write() as session:
        session.execute(update(StoredDocument).values(changed_at=to_microseconds(late)))

    (trouble,) = troubles(tenant)
    assert (trouble["kind"], trouble["since"]) == ("indexing", isoformat(late))


@pytest.mark.parametrize("status", ["queued", "running"])
def test_stuck_source_runs_are_reported_only_to_their_account(tenant: Tenant, status: str) -> None:
    stranger = register_tenant(tenant.app, "eve@example.com")
    source = add_source(tenant.app, tenant)
    long_ago, just_now = now() - 2 * STUCK, now() - STUCK / 2
    moments = {"waiting_since": just_now, "queued_at": just_now, "lease_until": just_now}
    with part_of(tenant).database.write() as session:
        session.add(SourceRun(id="run_1", source_id=source.id, status=status, options={}, **moments))
    assert troubles(tenant) == []

    with part_of(tenant).database.write() as session:
        session.execute(update(SourceRun).values(waiting_since=long_ago, lease_until=long_ago))

    (trouble,) = troubles(tenant)
    assert (trouble["kind"], trouble["since"]) == ("sources", isoformat(long_ago))
    assert troubles(stranger) == []


def test_troubles_are_sorted_by_severity(tenant: Tenant, since: datetime) -> None:
    fail(tenant, since, COUNTERS, DATABASE, DISK, ENGINE)

    assert [trouble["kind"] for trouble in troubles(tenant)] == ["engine", "disk", "database", "counters"]
