"""Ranks and recency: what comes before what, of documents that a query finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest

from backends.filters import parse_filter
from backends.query import Boost, Effects, Preferred, Recency, SearchSettings, SortKey
from tests.backends.contract.case import Case, page


def about(id: str, content: str = "How to brew tea", **fields: Any) -> dict[str, Any]:
    """A page that fits a query for tea as well as any other."""
    return {**page(id, "Brewing", content, **fields), "url": f"https://example.com/{id}?all"}


PAGES = (about("docs/a", kind="manual"), about("docs/b", kind="manual", lang="en"), about("blog/c"), about("blog/d"))


def boost(rank: int, text: str) -> Boost:
    return Boost(rank, parse_filter(text))


def ranked(*boosts: Boost, **more: Any) -> SearchSettings:
    return SearchSettings(boosts=boosts, **more)


class RanksContract:
    def test_documents_of_a_filter_move_up_or_down(self, case: Case) -> None:
        case.add(*PAGES)
        up = case.ids("tea", settings=ranked(boost(1, "kind = manual")))
        down = case.ids("tea", settings=ranked(boost(-1, "kind = manual")))
        assert set(up[:2]) == {"docs/a", "docs/b"} == set(down[2:])
        assert len(up) == len(down) == len(PAGES)

    def test_documents_of_a_path_do(self, case: Case) -> None:
        case.add(*PAGES)
        assert set(case.ids("tea", settings=ranked(Boost(2, path="/BLOG/*")))[:2]) == {"blog/c", "blog/d"}
        assert case.ids("tea", settings=ranked(Boost(1, path="*/d?all")))[0] == "blog/d"
        assert set(case.ids("tea", settings=ranked(Boost(-1, path="/docs/*")))[2:]) == {"docs/a", "docs/b"}
        everything = case.ids("tea")
        assert case.ids("tea", settings=ranked(Boost(5, path="/log/*"), Boost(5, path="/docs"))) == everything

    def test_documents_may_have_a_rank_of_their_own(self, case: Case) -> None:
        case.add(about("a", rank=-1), about("b", rank=3), about("c"), about("d", rank=2), about("e", rank="5"))
        found = case.ids("tea", settings=SearchSettings(rank_field="rank"))
        assert found[:2] == ["b", "d"]
        assert set(found[2:4]) == {"c", "e"}
        assert found[4] == "a"

    def test_ranks_add_up_and_no_further_than_five(self, case: Case) -> None:
        case.add(about("a", kind="x"), about("b", kind="x", lang="en"), about("c", rank=5), about("d"))
        two = ranked(boost(2, "kind = x"), boost(1, "lang = en"), rank_field="rank")
        assert case.ids("tea", settings=two) == ["c", "b", "a", "d"]
        more = ranked(boost(4, "kind = x"), boost(4, "lang = en"), rank_field="rank")
        assert set(case.ids("tea", settings=more)[:2]) == {"b", "c"}
        far = ranked(boost(5, "kind = x"), boost(5, "lang = en"), boost(-5, "lang = en"), rank_field="rank")
        assert case.ids("tea", settings=far)[-1] == "d"

    def test_rules_rank_as_settings_do(self, case: Case) -> None:
        case.add(*PAGES)
        found = case.ids("tea", effects=Effects(boosts=(boost(1, "lang = en"),)))
        assert found[0] == "docs/b"

    def test_a_boost_by_a_field_that_no_document_has_does_nothing(self, case: Case) -> None:
        case.add(*PAGES)
        settings = ranked(boost(1, "nothing = manual"), boost(1, "lang = en"), rank_field="nowhere")
        assert case.ids("tea", settings=settings)[0] == "docs/b"

    def test_pages_of_ranked_hits_join(self, case: Case) -> None:
        case.add(*(about(f"{at}", kind="x" if at % 3 else "y") for at in range(12)))
        settings = ranked(boost(1, "kind = y"))
        everything = case.search("tea", settings=settings, limit=100)
        pages = [case.ids("tea", settings=settings, limit=5, offset=offset) for offset in (0, 5, 10)]
        assert [*chain(*pages)] == [hit.id for hit in everything.hits]
        assert everything.total == 12
        assert set(pages[0][:4]) == {"0", "3", "6", "9"}
        assert case.ids("tea", settings=settings, limit=5, offset=20) == []

    def test_pins_come_before_ranks_and_orders_of_ones_own_know_none(self, case: Case) -> None:
        case.add(*PAGES)
        settings = ranked(boost(5, "kind = manual"), pinned={"tea": ("blog/d",)})
        assert case.ids("tea", settings=settings)[0] == "blog/d"
        assert case.ids("tea", settings=settings, sort=(SortKey("id"),)) == sorted(each["id"] for each in PAGES)

    def test_facets_and_totals_do_not_change(self, case: Case) -> None:
        case.add(*PAGES)
        result = case.search("tea", settings=ranked(boost(5, "lang = en")), facets=("kind",), limit=1)
        assert result.total == len(PAGES)
        assert result.facets == {"kind": {"manual": 2}}

    def test_of_one_value_the_highest_ranked_is_shown(self, case: Case) -> None:
        case.add(about("a", page="x"), about("b", page="x", lang="en"), about("c", page="y"), about("d"))
        found = case.search("tea", settings=ranked(boost(1, "lang = en")), distinct="page")
        assert found.hits[0].id == "b"
        assert found.total == 3

    def test_what_is_preferred_gets_rank_one(self, case: Case) -> None:
        case.add(
            about("a1", page="a", version="1"), about("b1", page="b", version="1"), about("b2", page="b", version="2"),
            about("c1", page="c", version="1"),
        )  # fmt: skip
        for value in ("latest", "2"):
            settings = SearchSettings(distinct="page", preferred=Preferred("version", value))
            assert case.ids("tea", settings=settings)[0] == "b2"
            assert len(case.ids("tea", settings=settings)) == 3

    def test_a_site_may_prefer_newer_documents(self, case: Case) -> None:
        today = datetime.now(UTC)
        days = {"old": 400, "new": 1, "older": 800, "middle": 100}
        dates = {id: today - timedelta(days=age) for id, age in days.items()}
        case.add(
            *(
                about(id, date=date.isoformat(), shown=date.date().isoformat(), seconds=int(date.timestamp()))
                for id, date in dates.items()
            ),
            about("undated"),
        )
        for field in ("date", "shown", "seconds"):
            found = case.ids("tea", settings=SearchSettings(recency=Recency(field, 100)))
            assert found == ["new", "middle", "old", "older", "undated"]

    def test_a_rank_outweighs_a_slightly_better_match_where_the_engine_has_scores(self, case: Case) -> None:
        titles = {id: {**about(id), "title": f"Brewing at {id}"} for id in ("home", "work")}
        case.add(*titles.values(), {**about("text", "Tea brewing"), "title": "Other"})
        found = case.ids("brewing", settings=ranked(boost(5, "id = text")))
        assert set(found) == {"home", "work", "text"}
        assert (found[0] == "text") == (not case.backend.rank_limits)

    @pytest.mark.parametrize("text", ["brewing", "opening hours", "opening hours of the pier"])
    def test_a_page_whose_title_is_the_query_comes_before_one_of_rank_three_that_mentions_it(
        self, case: Case, text: str
    ) -> None:
        others = [page(f"{at}", f"Page {at}", "Other words " * 20) for at in range(20)]
        case.add(page("title", text.title(), "Something else"), page("text", "Other", f"About {text}"), *others)
        assert case.ids(text, settings=ranked(boost(3, "id = text")))[:2] == ["title", "text"]

    def test_hits_tell_why_they_stand_where_they_do_if_asked(self, case: Case) -> None:
        case.add(*PAGES)
        settings = ranked(boost(2, "lang = en"), pinned={"tea": ("blog/d",)})
        hits = case.search("tea", settings=settings, explain=True).hits
        told = {hit.id: hit.explanation or {} for hit in hits}
        assert [told[hit.id]["pinned"] for hit in hits] == [True, False, False, False]
        assert told["docs/b"]["rank"] == 2
        assert told["docs/a"]["rank"] == 0
        assert bool(told["docs/a"].get("limits", "")) == bool(case.backend.rank_limits)
        assert told["docs/a"].get("engine") or told["docs/a"]["signals"]
        assert [hit.id for hit in hits] == case.ids("tea", settings=settings)
        assert case.search("tea", settings=settings).hits[0].explanation is None

    def test_rules_pin_and_hide_beside_the_settings(self, case: Case) -> None:
        case.add(*PAGES)
        effects = Effects(pinned=("blog/d", "docs/a"), hidden=("blog/c", "docs/a"))
        found = case.ids("tea", effects=effects, settings=SearchSettings(pinned={"tea": ("docs/b",)}))
        assert found == ["docs/b", "blog/d"]

    def test_settings_pin_by_what_was_typed(self, case: Case) -> None:
        case.add(*PAGES, about("other", "Coffee"))
        settings = SearchSettings(pinned={"tea": ("other",)})
        assert case.ids("brew", effects=Effects(typed="Tea"), settings=settings)[0] == "other"
        assert "other" not in case.ids("tea", effects=Effects(typed="brew"), settings=settings)
