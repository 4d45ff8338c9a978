"""Exports the analytics lists as a file."""

from __future__ import annotations

import csv

import pytest

from tests.callers import Tenant, page
from tests.pages.people import Person, person_of


def test_download_link_returns_the_lists_as_csv(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    tenant.find("page")
    tenant.find('zeppelin, "red"')
    tenant.app.extensions["runtime"].events.flush()
    person.go(f"/api/analytics?site_id={tenant.site_id}&period=7d")

    person.follow("Download CSV")

    disposition = person.response.headers["Content-Disposition"]
    assert disposition == f'attachment; filename="analytics-site-{tenant.site_id}-7d.csv"'
    assert person.response.content_type == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(person.response.get_data(as_text=True).splitlines()))
    assert [(row["list"], row["query"], row["count"]) for row in rows][:3] == [
        ("top_queries", "page", "1"),
        ("top_queries", 'zeppelin, "red"', "1"),
        ("zero_result_queries", 'zeppelin, "red"', "1"),
    ]


def test_export_covers_one_site_or_the_whole_account(person: Person, tenant: Tenant, stranger: Tenant) -> None:
    assert person.call("GET", "/analytics/export").status_code == 200
    assert 'filename="analytics-28d.csv"' in person.response.headers["Content-Disposition"]
    eve = person_of(stranger)
    assert eve.call("GET", f"/analytics/export?site_id={tenant.site_id}").status_code == 404


@pytest.mark.parametrize("query", ["period=1d", "site_id=x"])
def test_export_with_invalid_parameters_returns_400(person: Person, query: str) -> None:
    assert person.call("GET", f"/analytics/export?{query}").status_code == 400
