"""The inbox lists queries from the counts of the last 30 days."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from flask import Flask
from sqlalchemy import insert

from app.clock import today
from app.models import IgnoredQuery, QueryDay, SiteDay
from app.models.events import QUERY_KINDS
from app.runtime import Runtime
from app.services import inbox
from app.services.inbox import Candidate, CurrentHit, CurrentResult, InboxItem, InboxKind, list_candidates
from app.services.sites import get_site
from backends.base import Matched
from tests.callers import Tenant

NO_RESULTS, PARTIAL, NO_CLICKS = InboxKind.NO_RESULTS, InboxKind.PARTIAL, InboxKind.NO_CLICKS


def part_of(tenant: Tenant) -> Runtime:
    part: Runtime = tenant.app.extensions["runtime"]
    return part


def count(tenant: Tenant, query: str, **counts: int) -> None:
    """Count a query today."""
    values = dict.fromkeys(QUERY_KINDS, 0) | counts
    with part_of(tenant).database.write() as session:
        session.execute(
            insert(QueryDay).values(
                site_id=tenant.site_id, day=(today() - date(1970, 1, 1)).days, query=query, **values
            )
        )


def missed(tenant: Tenant, query: str, visitors: int, searches: int | None = None) -> None:
    searches = visitors if searches is None else searches
    count(tenant, query, searches=searches, zero_results=searches, missed_visitors=visitors, visitors=visitors)


def unclicked(tenant: Tenant, query: str, visitors: int) -> None:
    count(tenant, query, searches=visitors + 1, found_visitors=visitors, visitors=visitors)


def report_click(tenant: Tenant, day: date) -> None:
    values = {column.name: 0 for column in SiteDay.__table__.columns}
    values |= {"site_id": tenant.site_id, "day": (day - date(1970, 1, 1)).days, "clicks": 1}
    with part_of(tenant).database.write() as session:
        session.execute(insert(SiteDay).values(values))


def candidates(tenant: Tenant, *, ignored: bool = False) -> list[Candidate]:
    with part_of(tenant).database.read() as session:
        site = get_site(session, tenant.account_id, tenant.site_id)
        return list_candidates(session, site, today(), ignored=ignored)


def queries(tenant: Tenant, *, ignored: bool = False) -> list[str]:
    return [candidate.query for candidate in candidates(tenant, ignored=ignored)]


class TestCandidates:
    """Queries that may belong in the inbox."""

    def test_candidates_are_sorted_by_visitors_then_searches_then_text(self, tenant: Tenant) -> None:
        missed(tenant, "often by one", 1, 40)
        missed(tenant, "b", 3)
        missed(tenant, "a", 3)
        missed(tenant, "twice", 2)
        count(tenant, "found", searches=9, found_visitors=9)
        count(tenant, "partly", searches=5, partial_results=4, found_visitors=5)

        assert queries(tenant) == ["partly", "a", "b", "twice", "often by one"]

    def test_candidates_exclude_queries_of_other_sites(self, tenant: Tenant, stranger: Tenant) -> None:
        missed(stranger, "theirs", 3)

        assert queries(tenant) == []

    def test_visitors_with_results_do_not_count_as_visitors_without_results(self, tenant: Tenant) -> None:
        count(tenant, "mixed", searches=20, zero_results=2, partial_results=3, found_visitors=17, missed_visitors=2)

        assert candidates(tenant) == [Candidate("mixed", 20, {NO_RESULTS: 2, PARTIAL: 3})]

    def test_no_click_candidates_need_five_visitors_and_recently_reported_clicks(self, tenant: Tenant) -> None:
        unclicked(tenant, "five", 5)
        unclicked(tenant, "four", 4)
        count(tenant, "clicked", searches=9, found_visitors=9, clicks=1)
        assert queries(tenant) == []

        report_click(tenant, today() - timedelta(days=30))
        assert queries(tenant) == [], "reported before the period"

        report_click(tenant, today() - timedelta(days=29))
        assert candidates(tenant) == [Candidate("five", 6, {NO_CLICKS: 5})]

    def test_visitors_with_partial_results_do_not_count_as_visitors_without_clicks(self, tenant: Tenant) -> None:
        report_click(tenant, today())
        count(tenant, "settled", searches=9, partial_results=5, found_visitors=9)
        count(tenant, "unclicked since", searches=14, partial_results=5, found_visitors=10)

        assert candidates(tenant) == [
            Candidate("unclicked since", 14, {PARTIAL: 5, NO_CLICKS: 5}),
            Candidate("settled", 9, {PARTIAL: 5}),
        ]

    def test_candidates_are_limited_to_one_hundred(self, tenant: Tenant) -> None:
        for number in range(103):
            missed(tenant, f"query {number}", 1 + number)

        assert queries(tenant) == [f"query {number}" for number in reversed(range(3, 103))]

    def test_frequent_searches_of_one_visitor_do_not_displace_queries_of_many_visitors(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox, "MAX_FREQUENT", 3)
        for number in range(4):
            missed(tenant, f"made up {number}", 1, searches=50 + number)
        missed(tenant, "refund", 5)
        missed(tenant, "opening hours", 3)

        assert queries(tenant)[:2] == ["refund", "opening hours"]

    def test_ignored_queries_do_not_use_up_the_candidate_limit(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox, "MAX_CANDIDATES", 2)
        for visitors, query in enumerate(["c", "b", "a"], 1):
            missed(tenant, query, visitors)
        with part_of(tenant).database.write() as session:
            inbox.ignore_query(session, tenant.account_id, tenant.site_id, "A", ignored=True)

        assert queries(tenant) == ["b", "c"]
        assert queries(tenant, ignored=True) == ["a"]


FIRST = CurrentHit("page-1", "Page 1", "/1")
NOTHING = CurrentResult(0, Matched.SOME, ())
SOME = CurrentResult(3, Matched.SOME, (FIRST,))
ALL = CurrentResult(3, Matched.ALL, (FIRST,))
CORRECTED = CurrentResult(3, Matched.CORRECTED, (FIRST,))


class TestJudging:
    """The inbox item of a candidate depends on its current results."""

    @pytest.mark.parametrize(
        ("visitors", "result", "kind"),
        [
            ({NO_RESULTS: 2}, NOTHING, NO_RESULTS),
            ({NO_RESULTS: 2}, SOME, None),
            ({NO_RESULTS: 2}, ALL, None),
            ({PARTIAL: 2}, SOME, PARTIAL),
            ({PARTIAL: 2}, ALL, None),
            ({PARTIAL: 2}, CORRECTED, None),
            ({NO_CLICKS: 5}, ALL, NO_CLICKS),
            ({NO_CLICKS: 5}, SOME, NO_CLICKS),
            ({PARTIAL: 2, NO_CLICKS: 5}, SOME, PARTIAL),
            ({PARTIAL: 2, NO_CLICKS: 5}, ALL, NO_CLICKS),
            ({NO_RESULTS: 2, PARTIAL: 3}, SOME, PARTIAL),
        ],
    )
    def test_item_kind_depends_on_the_current_results(
        self, visitors: dict[InboxKind, int], result: CurrentResult, kind: InboxKind | None
    ) -> None:
        item = Candidate("q", 9, visitors).judge(result)

        expected = None if kind is None else InboxItem("q", kind, 9, visitors[kind], result.total)
        assert item == expected

    @pytest.mark.parametrize("visitors", [{PARTIAL: 3}, {NO_CLICKS: 7}])
    def test_query_that_now_has_no_results_counts_all_its_visitors_as_missing(
        self, visitors: dict[InboxKind, int]
    ) -> None:
        item = Candidate("q", 9, visitors).judge(NOTHING)

        assert item == InboxItem("q", NO_RESULTS, 9, max(visitors.values()), 0)

    def test_pinned_page_in_the_results_resolves_a_query_without_clicks(self) -> None:
        candidate = Candidate("q", 9, {NO_CLICKS: 5})

        assert candidate.judge(ALL, ["page-1"]) is None
        assert candidate.judge(ALL, ["page-of-old"]) is not None


def test_ignored_queries_of_a_site_are_limited(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.errors import ApiError

    monkeypatch.setattr(inbox, "MAX_IGNORED", 1)

    def ignore(query: str, *, ignored: bool = True) -> None:
        with part_of(tenant).database.write() as session:
            inbox.ignore_query(session, tenant.account_id, tenant.site_id, query, ignored=ignored)

    ignore("a")
    ignore("A ")
    with pytest.raises(ApiError, match="at most 1 queries of a site"):
        ignore("b")
    ignore("a", ignored=False)
    ignore("b")


def test_purging_a_site_deletes_its_ignored_queries(app: Flask, tenant: Tenant) -> None:
    with part_of(tenant).database.write() as session:
        inbox.ignore_query(session, tenant.account_id, tenant.site_id, "a", ignored=True)

    tenant.browser.delete(f"/sites/{tenant.site_id}?purge=true")

    with part_of(tenant).database.read() as session:
        assert session.query(IgnoredQuery).count() == 0
