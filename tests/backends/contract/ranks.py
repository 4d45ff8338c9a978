"""Ranks and recency: the order of matching documents."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest

from backends.filters import parse_filter
from backends.query import Boost, Effects, Preferred, Recency, SearchSettings, SortKey
from tests.backends.contract.case import Case, page


def about(id: str, content: str = "How to brew tea", **fields: Any) -> dict[str, Any]:
    """Return a page that matches a query for tea as well as any other page."""
    return {**page(id, "Brewing", content, **fields), "url": f"https://example.com/{id}?all"}


PAGES = (about("docs/a", kind="manual"), about("docs/b", kind="manual", lang="en"), about("blog/c"), about("blog/d"))


def boost(rank: int, text: str) -> Boost:
    return Boost(rank, parse_filter(text))


def ranked(*boosts: Boost, **more: Any) -> SearchSettings:
    return SearchSettings(boosts=boosts, **more)


class RanksContract:
    def test_boost_by_filter_moves_documents_up_or_down(self, case: Case) -> None:
        case.add(*PAGES)
        up = case.ids("tea", settings=ranked(boost(1, "kind = manual")))
        down = case.ids("tea", settings=ranked(boost(-1, "kind = manual")))
        assert set(up[:2]) == {"docs/a", "docs/b"} == set(down[2:])
        assert len(up) == len(down) == len(PAGES)

    def test_boost_by_path_moves_documents_up_or_down(self, case: Case) -> None:
        case.add(*PAGES)
        assert set(case.ids("tea", settings=ranked(Boost(2, path="/BLOG/*")))[:2]) == {"blog/c", "blog/d"}
        assert case.ids("tea", settings=ranked(Boost(1, path="*/d?all")))[0] == "blog/d"
        assert set(case.ids("tea", settings=ranked(Boost(-1, path="/docs/*")))[2:]) == {"docs/a", "docs/b"}
        everything = case.ids("tea")
        assert case.ids("tea", settings=ranked(Boost(5, path="/log/*"), Boost(5, path="/docs"))) == everything

    @pytest.mark.parametrize(
        "path", ["/*a*a*a*b", "/*" + "*a" * 200 + "*b", "/*" + "ab" * 60 + "*" + "ba" * 60 + "*", "/*" + "ж" * 490]
    )
    def test_any_path_of_a_boost_is_matched_in_linear_time(self, case: Case, path: str) -> None:
        # Patterns beyond the limits for saving may have been saved before there were limits.
        case.add(
            *({**about(f"{number}"), "url": "/" + "a" * (1_500 + number)} for number in range(20)), about("docs/a")
        )
        begun = time.process_time()
        ids = case.ids("tea", limit=30, settings=ranked(Boost(5, path=path), Boost(1, path="/docs/*")))
        assert time.process_time() - begun < 2
        assert (len(ids), ids[0]) == (21, "docs/a")

    def test_rank_field_orders_documents_by_its_value(self, case: Case) -> None:
        case.add(about("a", rank=-1), about("b", rank=3), about("c"), about("d", rank=2), about("e", rank="5"))
        found = case.ids("tea", settings=SearchSettings(rank_field="rank"))
        assert found[:2] == ["b", "d"]
        assert set(found[2:4]) == {"c", "e"}
        assert found[4] == "a"

    def test_ranks_add_up_to_at_most_five(self, case: Case) -> None:
        case.add(about("a", kind="x"), about("b", kind="x", lang="en"), about("c", rank=5), about("d"))
        two = ranked(boost(2, "kind = x"), boost(1, "lang = en"), rank_field="rank")
        assert case.ids("tea", settings=two) == ["c", "b", "a", "d"]
        more = ranked(boost(4, "kind = x"), boost(4, "lang = en"), rank_field="rank")
        assert set(case.ids("tea", settings=more)[:2]) == {"b", "c"}
        far = ranked(boost(5, "kind = x"), boost(5, "lang = en"), boost(-5, "lang = en"), rank_field="rank")
        assert case.ids("tea", settings=far)[-1] == "d"

    def test_rule_boosts_rank_like_settings_boosts(self, case: Case) -> None:
        case.add(*PAGES)
        found = case.ids("tea", effects=Effects(boosts=(boost(1, "lang = en"),)))
        assert found[0] == "docs/b"

    def test_boost_by_an_unknown_field_has_no_effect(self, case: Case) -> None:
        case.add(*PAGES)
        settings = ranked(boost(1, "nothing = manual"), boost(1, "lang = en"), rank_field="nowhere")
        assert case.ids("tea", settings=settings)[0] == "docs/b"

    def test_pages_of_ranked_hits_join_without_gaps_or_duplicates(self, case: Case) -> None:
        case.add(*(about(f"{at}", kind="x" if at % 3 else "y") for at in range(12)))
        settings = ranked(boost(1, "kind = y"))
        everything = case.search("tea", settings=settings, limit=100)
        pages = [case.ids("tea", settings=settings, limit=5, offset=offset) for offset in (0, 5, 10)]
        assert [*chain(*pages)] == [hit.id for hit in everything.hits]
        assert everything.total == 12
        assert set(pages[0][:4]) == {"0", "3", "6", "9"}
        assert case.ids("tea", settings=settings, limit=5, offset=20) == []

    def test_pins_precede_ranks_and_an_explicit_sort_ignores_both(self, case: Case) -> None:
        case.add(*PAGES)
        settings = ranked(boost(5, "kind = manual"), pinned={"tea": ("blog/d",)})
        assert case.ids("tea", settings=settings)[0] == "blog/d"
        assert case.ids("tea", settings=settings, sort=(SortKey("id"),)) == sorted(each["id"] for each in PAGES)

    def test_ranks_do_not_change_facets_or_totals(self, case: Case) -> None:
        case.add(*PAGES)
        result = case.search("tea", settings=ranked(boost(5, "lang = en")), facets=("kind",), limit=1)
        assert result.total == len(PAGES)
        assert result.facets == {"kind": {"manual": 2}}

    def test_highest_ranked_hit_represents_its_distinct_value(self, case: Case) -> None:
        case.add(about("a", page="x"), about("b", page="x", lang="en"), about("c", page="y"), about("d"))
        found = case.search("tea", settings=ranked(boost(1, "lang = en")), distinct="page")
        assert found.hits[0].id == "b"
        assert found.total == 3

    def test_preferred_version_gets_rank_one(self, case: Case) -> None:
        case.add(
            about("a1", page="a", version="1"), about("b1", page="b", version="1"), about("b2", page="b", version="2"),
            about("c1", page="c", version="1"),
        )  # fmt: skip
        for value in ("latest", "2"):
            settings = SearchSettings(distinct="page", preferred=Preferred("version", value))
            assert case.ids("tea", settings=settings)[0] == "b2"
            assert len(case.ids("tea", settings=settings)) == 3

    def test_recency_setting_prefers_newer_documents(self, case: Case) -> None:
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

    def test_rank_outweighs_a_slightly_better_match_if_the_engine_has_scores(self, case: Case) -> None:
        titles = {id: {**about(id), "title": f"Brewing at {id}"} for id in ("home", "work")}
        case.add(*titles.values(), {**about("text", "Tea brewing"), "title": "Other"})
        found = case.ids("brewing", settings=ranked(boost(5, "id = text")))
        assert set(found) == {"home", "work", "text"}
        assert (found[0] == "text") == (not case.backend.rank_limits)

    @pytest.mark.parametrize("text", ["brewing", "opening hours", "opening hours of the pier"])
    def test_exact_title_match_ranks_above_a_mention_with_rank_three(self, case: Case, text: str) -> None:
        others = [page(f"{at}", f"Page {at}", "Other words " * 20) for at in range(20)]
        case.add(page("title", text.title(), "Something else"), page("text", "Other", f"About {text}"), *others)
        assert case.ids(text, settings=ranked(boost(3, "id = text")))[:2] == ["title", "text"]

    def test_explanations_report_pins_ranks_and_signals(self, case: Case) -> None:
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

    def test_rules_pin_and_hide_in_addition_to_the_settings(self, case: Case) -> None:
        case.add(*PAGES)
        effects = Effects(pinned=("blog/d", "docs/a"), hidden=("blog/c", "docs/a"))
        found = case.ids("tea", effects=effects, settings=SearchSettings(pinned={"tea": ("docs/b",)}))
        assert found == ["docs/b", "blog/d"]

    def test_settings_pin_by_the_query_as_typed(self, case: Case) -> None:
        case.add(*PAGES, about("other", "Coffee"))
        settings = SearchSettings(pinned={"tea": ("other",)})
        assert case.ids("brew", effects=Effects(typed="Tea"), settings=settings)[0] == "other"
        assert "other" not in case.ids("tea", effects=Effects(typed="brew"), settings=settings)
