"""Distinct: one hit for each value of a field, and the choice of that hit."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from backends.errors import BackendRejected
from backends.query import Highlight, Preferred, SearchSettings, SortKey
from tests.backends.contract.case import SHOP, Case, page


def manual(place: str, version: str, content: str = "How to brew tea", **fields: Any) -> dict[str, Any]:
    """Return a page of one version of a manual."""
    return page(f"{place}@{version}", f"About {place}", content, page=place, version=version, **fields)


MANUALS = (
    manual("pot", "1.9"),
    manual("pot", "1.10", "Tea, tea and once more tea"),
    manual("pot", "2.0rc1", "A pot is good for tea, among many other things that one might do with it"),
    manual("cup", "1.9", "A cup holds tea"),
    manual("cup", "stable", "A cup holds tea, as one says, if it is not broken and somebody has poured it in"),
    page("alone", "Tea alone", "Only about tea"),
    page("single", "Tea singly", "Only about tea, too"),
)
"""Two pages in several versions, and two pages without a version."""

LATEST = Preferred("version", "latest")


def settings(preferred: Preferred | None = None, distinct: str = "page", **more: Any) -> SearchSettings:
    return SearchSettings(distinct=distinct, preferred=preferred, **more)


class DistinctContract:
    def test_only_the_best_hit_of_each_distinct_value_is_returned(self, case: Case) -> None:
        case.add(*MANUALS)
        everything = case.ids("tea", limit=100)
        shown = case.ids("tea", limit=100, distinct="page")
        pots = [id for id in everything if id.startswith("pot")]
        cups = [id for id in everything if id.startswith("cup")]
        assert len(pots) == 3
        assert len(cups) == 2
        assert shown == [id for id in everything if id not in (*pots[1:], *cups[1:])]

    def test_hits_without_a_distinct_value_are_all_returned(self, case: Case) -> None:
        case.add(*MANUALS)
        assert {"alone", "single"} < set(case.ids("tea", distinct="page"))

    def test_search_without_distinct_returns_every_hit(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.search("tea").total == len(MANUALS)
        assert len(case.ids("tea", distinct="")) == len(MANUALS)

    def test_limit_and_offset_count_distinct_hits(self, case: Case) -> None:
        case.add(*MANUALS)
        everything = case.ids("tea", distinct="page")
        assert len(everything) == 4
        for offset in range(5):
            for limit in range(1, 4):
                assert case.ids("tea", distinct="page", offset=offset, limit=limit) == everything[offset:][:limit]

    def test_page_of_distinct_hits_is_full_despite_many_duplicates(self, case: Case) -> None:
        case.add(*(manual(f"p{number // 40}", f"1.{number}") for number in range(280)))
        found = case.search("tea", distinct="page", limit=5)
        assert len({hit.document["page"] for hit in found.hits}) == len(found.hits) == 5
        assert found.total == 7
        rest = case.search("tea", distinct="page", limit=5, offset=5)
        assert {hit.document["page"] for hit in (*found.hits, *rest.hits)} == {f"p{number}" for number in range(7)}

    def test_total_counts_distinct_hits_and_facets_count_all_documents(self, case: Case) -> None:
        case.add(*MANUALS)
        found = case.search("tea", distinct="page", facets=("page", "version"), limit=1)
        assert found.total == 4
        assert found.facets["page"] == {"pot": 3, "cup": 2}
        assert found.facets["version"]["1.9"] == 2
        nothing = case.search("tea", distinct="page", facets=("page",), limit=0)
        assert (nothing.hits, nothing.total, nothing.facets) == ((), 4, {"page": {"pot": 3, "cup": 2}})

    def test_distinct_total_is_exact_up_to_1000_and_estimated_beyond(self, case: Case) -> None:
        case.add(*(manual(f"p{number % 7}", str(number), "tea") for number in range(1100)))
        case.add(*MANUALS[-2:])
        few = case.search("tea", distinct="page", limit=20)
        assert (len(few.hits), few.total) == (9, 9)
        many = case.search("tea", distinct="version", limit=1, offset=1050)
        assert len(many.hits) == 1
        assert 1050 <= many.total <= 1155

    def test_offset_past_the_last_distinct_hit_returns_no_hits_and_the_total(self, case: Case) -> None:
        case.add(*MANUALS)
        for offset in (4, 5, 2147483647):
            found = case.search("tea", distinct="page", offset=offset)
            assert (found.hits, found.total) == ((), 4)

    def test_distinct_applies_in_every_sort_order_and_to_match_all(self, case: Case) -> None:
        case.add(*MANUALS)
        for options in ({"sort": (SortKey("title", descending=True),)}, {"sort": (SortKey("version"),)}, {}):
            everything = case.search("*", limit=100, **options).hits
            shown = case.search("*", limit=100, distinct="page", **options)
            seen: set[str] = set()
            expected = []
            for hit in everything:
                value = hit.document.get("page", hit.id)
                if value not in seen:
                    expected.append(hit.id)
                seen.add(value)
            assert [hit.id for hit in shown.hits] == expected
            assert shown.total == 4

    def test_filters_apply_before_distinct(self, case: Case) -> None:
        case.add(*MANUALS)
        found = case.search("tea", "version = 1.9", distinct="page")
        assert sorted(hit.id for hit in found.hits) == ["cup@1.9", "pot@1.9"]

    def test_standard_fields_and_numbers_can_be_distinct(self, case: Case) -> None:
        case.add(*SHOP)
        by_author = case.search("reading", distinct="author")
        assert by_author.total == len(by_author.hits) == 4
        dates = ("2024-03-01", "2024-03-01", "2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z")
        case.add(*(page(f"d{at}", "Dated", "calendar", date=date) for at, date in enumerate(dates)))
        by_date = case.search("calendar", distinct="date")
        assert by_date.total == len(by_date.hits) == 2
        case.add(page("a", "One", "reading", shelf=5), page("b", "Two", "reading", shelf=5.0))
        assert len({"a", "b"} & set(case.ids("reading", distinct="shelf"))) == 1

    @pytest.mark.parametrize("name", ["nothing", "title", "content", "id", "tags"])
    def test_distinct_on_an_unsupported_field_is_rejected(self, case: Case, name: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as refusal:
            case.search("reading", distinct=name)
        assert refusal.value.parameter == "distinct"
        assert name in str(refusal.value)

    def test_distinct_setting_with_an_unknown_field_has_no_effect(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.search("reading", settings=settings(LATEST)).total == len(SHOP)

    def test_distinct_in_the_query_overrides_the_settings(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.search("tea", settings=settings()).total == 4
        assert case.search("tea", settings=settings(), distinct="").total == len(MANUALS)
        assert case.search("tea", settings=settings(), distinct="version").total == 6

    def test_pinned_hit_represents_its_distinct_value(self, case: Case) -> None:
        case.add(*MANUALS)
        pins = SearchSettings(pinned={"tea": ("pot@2.0rc1", "cup@stable", "pot@1.9")}, preferred=LATEST)
        found = case.search("tea", distinct="page", settings=pins)
        assert [hit.id for hit in found.hits][:2] == ["pot@2.0rc1", "cup@stable"]
        assert sorted(hit.id for hit in found.hits)[:2] == ["alone", "cup@stable"]
        assert found.total == len(found.hits) == 4
        assert case.ids("tea", distinct="page", settings=pins, offset=1, limit=1) == ["cup@stable"]

    def test_matched_words_do_not_depend_on_distinct(self, case: Case) -> None:
        case.add(*MANUALS)
        for text in ("tea", "tea brew holds", "tea notaword"):
            assert case.search(text, distinct="page").matched == case.search(text).matched

    def test_latest_version_takes_the_position_of_the_best_hit(self, case: Case) -> None:
        case.add(*MANUALS)
        best = case.ids("tea", distinct="page")
        latest = case.ids("tea", settings=settings(LATEST))
        places = {"pot": "pot@2.0rc1", "cup": "cup@1.9"}
        shown = [places.get(id.partition("@")[0], id) for id in best]
        # The highest version of the site has rank 1, which may move it up.
        lifted = "pot@2.0rc1"
        assert latest.index(lifted) <= shown.index(lifted)
        assert [id for id in latest if id != lifted] == [id for id in shown if id != lifted]

    def test_explanation_names_the_better_hit_that_a_preferred_version_replaces(self, case: Case) -> None:
        case.add(*MANUALS)
        found = case.search("tea", settings=settings(Preferred("version", "1.9")), explain=True).hits
        told = {hit.id: (hit.explanation or {}).get("preferred_over") for hit in found}
        assert told.keys() == {"pot@1.9", "cup@1.9", "alone", "single"}
        better = {id: over for id, over in told.items() if over is not None}
        assert all(over != id and over.partition("@")[0] == id.partition("@")[0] for id, over in better.items())
        # Where ranks order the versions of a page, the preferred version is already the best and replaces no other.
        ranks = {hit.id: (hit.explanation or {}).get("rank") for hit in found}
        assert better or (ranks["pot@1.9"], ranks["cup@1.9"]) == (1, 1)

    def test_latest_version_is_chosen_only_among_matching_hits(self, case: Case) -> None:
        case.add(*MANUALS, manual("pot", "3.0", "Coffee"))
        assert "pot@2.0rc1" in case.ids("tea", settings=settings(LATEST))
        assert "pot@1.10" in case.ids("tea", "version != 2.0rc1", settings=settings(LATEST))

    def test_preferred_version_is_returned_where_it_exists(self, case: Case) -> None:
        case.add(*MANUALS)
        shown = case.ids("tea", settings=settings(Preferred("version", "1.9")))
        assert {"pot@1.9", "cup@1.9", "alone", "single"} == set(shown)
        shown = case.ids("tea", settings=settings(Preferred("version", "1.10")))
        assert "pot@1.10" in shown
        assert case.ids("tea", distinct="page") == case.ids("tea", settings=settings(Preferred("version", "7")))

    def test_preferred_hit_is_found_far_below_the_best_hit(self, case: Case) -> None:
        case.add(*(manual("far", f"0.{number}", "tea " * (1 + number % 3) + "x " * number) for number in range(300)))
        assert case.ids("tea", settings=settings(LATEST), limit=1) == ["far@0.299"]
        assert case.ids("tea", settings=settings(Preferred("version", "0.298")), limit=1) == ["far@0.298"]

    def test_document_with_a_list_in_the_distinct_field_is_always_returned(self, case: Case) -> None:
        case.add(*MANUALS, page("list", "Tea for all", "Tea", page=["pot", "cup"]), page("empty", "Tea", page=[]))
        everything = case.search("tea", distinct="page", limit=100)
        shown = [hit.id for hit in everything.hits]
        assert {"list", "empty", "alone", "single"} < set(shown)
        assert len(shown) == everything.total == 6
        assert [id.partition("@")[0] for id in shown].count("pot") == 1
        pages = [case.ids("tea", distinct="page", limit=2, offset=offset) for offset in (0, 2, 4)]
        assert [*chain(*pages)] == shown
        assert case.search("tea", distinct="page", limit=0).total == 6

    def test_preference_for_an_unknown_field_has_no_effect(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.ids("tea", settings=settings(Preferred("edition", "latest"))) == case.ids("tea", distinct="page")

    def test_preference_without_a_distinct_field_has_no_effect(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.ids("tea", settings=settings(LATEST, distinct="")) == case.ids("tea")

    def test_distinct_hits_are_complete_and_highlighted(self, case: Case) -> None:
        case.add(*MANUALS)
        for wishes in (settings(), settings(LATEST)):
            for hit in case.search("tea", settings=wishes, highlight=Highlight()).hits:
                assert hit.document["url"]
                assert hit.formatted is not None
                assert "<em>" in hit.formatted["content"]
