"""Current results of a query."""

from __future__ import annotations

from app.runtime import Runtime
from app.services.access.credentials import site_record
from app.services.inbox import CurrentHit, CurrentResult, search_now
from app.services.sites import get_site
from backends.base import Matched
from tests.callers import Tenant, page
from tests.responses import assert_ok


def now(tenant: Tenant, text: str, **options: int) -> CurrentResult:
    part: Runtime = tenant.app.extensions["runtime"]
    with part.database.read() as session:
        site = site_record(get_site(session, tenant.account_id, tenant.site_id))
    return search_now(part.searcher, site, text, **options)


def test_current_results_match_what_visitors_find_with_the_site_settings(tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Automobile clubs"), page(3, title="Bread"))
    tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"synonyms": [["car", "automobile"]]})

    found = now(tenant, "car", limit=1)

    assert found.total == 2
    assert found.matched is Matched.ALL
    assert [hit.id for hit in found.hits] == tenant.found_ids("car", limit=1)
    assert now(tenant, "bread").hits == (CurrentHit("page-3", "Bread", "/pages/3"),)


def test_current_results_search_is_neither_charged_nor_in_analytics(tenant: Tenant) -> None:
    tenant.index(page(1))
    now(tenant, "page")

    tenant.app.extensions["runtime"].events.flush()
    assert assert_ok(tenant.private.get("/api/analytics"))["total_searches"] == 0
    quota = assert_ok(tenant.search.get("/v1/search?q=page"))["remaining_quota"]
    assert quota["used_today"] == 1
