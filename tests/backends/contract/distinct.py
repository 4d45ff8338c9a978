"""Distinct: one hit of each value of a field, and which."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from backends.errors import BackendRejected
from backends.query import Highlight, Preferred, SearchSettings, SortKey
from tests.backends.contract.case import SHOP, Case, page


def manual(place: str, version: str, content: str = "How to brew tea", **fields: Any) -> dict[str, Any]:
    """A page of one version of a manual."""
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
"""Two pages in several versions, and two pages without one."""

LATEST = Preferred("version", "latest")


def settings(preferred: Preferred | None = None, distinct: str = "page", **more: Any) -> SearchSettings:
    return SearchSettings(distinct=distinct, preferred=preferred, **more)


class DistinctContract:
    def test_of_hits_with_one_value_only_the_best_is_shown(self, case: Case) -> None:
        case.add(*MANUALS)
        everything = case.ids("tea", limit=100)
        shown = case.ids("tea", limit=100, distinct="page")
        pots = [id for id in everything if id.startswith("pot")]
        cups = [id for id in everything if id.startswith("cup")]
        assert len(pots) == 3
        assert len(cups) == 2
        assert shown == [id for id in everything if id not in (*pots[1:], *cups[1:])]

    def test_hits_without_a_value_stand_for_themselves(self, case: Case) -> None:
        case.add(*MANUALS)
        assert {"alone", "single"} < set(case.ids("tea", distinct="page"))

    def test_without_being_asked_for_nothing_is_left_out(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.search("tea").total == len(MANUALS)
        assert len(case.ids("tea", distinct="")) == len(MANUALS)

    def test_pages_and_offsets_count_what_is_shown(self, case: Case) -> None:
        case.add(*MANUALS)
        everything = case.ids("tea", distinct="page")
        assert len(everything) == 4
        for offset in range(5):
            for limit in range(1, 4):
                assert case.ids("tea", distinct="page", offset=offset, limit=limit) == everything[offset:][:limit]

    def test_a_page_is_full_however_many_hits_are_left_out(self, case: Case) -> None:
        case.add(*(manual(f"p{number // 40}", f"1.{number}") for number in range(280)))
        found = case.search("tea", distinct="page", limit=5)
        assert len({hit.document["page"] for hit in found.hits}) == len(found.hits) == 5
        assert found.total == 7
        rest = case.search("tea", distinct="page", limit=5, offset=5)
        assert {hit.document["page"] for hit in (*found.hits, *rest.hits)} == {f"p{number}" for number in range(7)}

    def test_the_total_counts_what_is_shown_and_facets_count_documents(self, case: Case) -> None:
        case.add(*MANUALS)
        found = case.search("tea", distinct="page", facets=("page", "version"), limit=1)
        assert found.total == 4
        assert found.facets["page"] == {"pot": 3, "cup": 2}
        assert found.facets["version"]["1.9"] == 2
        nothing = case.search("tea", distinct="page", facets=("page",), limit=0)
        assert (nothing.hits, nothing.total, nothing.facets) == ((), 4, {"page": {"pot": 3, "cup": 2}})

    def test_the_total_is_exact_up_to_1000_shown_hits_and_an_estimate_beyond(self, case: Case) -> None:
        case.add(*(manual(f"p{number % 7}", str(number), "tea") for number in range(1100)))
        case.add(*MANUALS[-2:])
        few = case.search("tea", distinct="page", limit=20)
        assert (len(few.hits), few.total) == (9, 9)
        many = case.search("tea", distinct="version", limit=1, offset=1050)
        assert len(many.hits) == 1
        assert 1050 <= many.total <= 1155

    def test_past_the_last_shown_hit_there_is_nothing(self, case: Case) -> None:
        case.add(*MANUALS)
        for offset in (4, 5, 2147483647):
            found = case.search("tea", distinct="page", offset=offset)
            assert (found.hits, found.total) == ((), 4)

    def test_it_holds_in_every_order_and_without_words(self, case: Case) -> None:
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

    def test_filters_hold_before(self, case: Case) -> None:
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
    def test_a_field_that_is_unknown_or_holds_no_single_values_is_refused(self, case: Case, name: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as refusal:
            case.search("reading", distinct=name)
        assert refusal.value.part == "distinct"
        assert name in str(refusal.value)

    def test_a_field_of_the_settings_that_no_document_has_changes_nothing(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.search("reading", settings=settings(LATEST)).total == len(SHOP)

    def test_the_query_wins_over_the_settings(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.search("tea", settings=settings()).total == 4
        assert case.search("tea", settings=settings(), distinct="").total == len(MANUALS)
        assert case.search("tea", settings=settings(), distinct="version").total == 6

    def test_a_pinned_hit_is_the_one_that_is_shown(self, case: Case) -> None:
        case.add(*MANUALS)
        pins = SearchSettings(pinned={"tea": ("pot@2.0rc1", "cup@stable", "pot@1.9")}, preferred=LATEST)
        found = case.search("tea", distinct="page", settings=pins)
        assert [hit.id for hit in found.hits][:2] == ["pot@2.0rc1", "cup@stable"]
        assert sorted(hit.id for hit in found.hits)[:2] == ["alone", "cup@stable"]
        assert found.total == len(found.hits) == 4
        assert case.ids("tea", distinct="page", settings=pins, offset=1, limit=1) == ["cup@stable"]

    def test_what_words_were_found_does_not_depend_on_it(self, case: Case) -> None:
        case.add(*MANUALS)
        for text in ("tea", "tea brew holds", "tea notaword"):
            assert case.search(text, distinct="page").matched == case.search(text).matched

    def test_the_highest_version_is_shown_at_the_place_of_the_best(self, case: Case) -> None:
        case.add(*MANUALS)
        best = case.ids("tea", distinct="page")
        latest = case.ids("tea", settings=settings(LATEST))
        places = {"pot": "pot@2.0rc1", "cup": "cup@1.9"}
        shown = [places.get(id.partition("@")[0], id) for id in best]
        # The site's highest version has rank 1, which may lift it.
        lifted = "pot@2.0rc1"
        assert latest.index(lifted) <= shown.index(lifted)
        assert [id for id in latest if id != lifted] == [id for id in shown if id != lifted]

    def test_a_hit_at_the_place_of_a_better_one_says_so_if_asked(self, case: Case) -> None:
        case.add(*MANUALS)
        found = case.search("tea", settings=settings(Preferred("version", "1.9")), explain=True).hits
        told = {hit.id: (hit.explanation or {}).get("preferred_over") for hit in found}
        assert told.keys() == {"pot@1.9", "cup@1.9", "alone", "single"}
        better = {id: over for id, over in told.items() if over is not None}
        assert all(over != id and over.partition("@")[0] == id.partition("@")[0] for id, over in better.items())
        # Where ranks order the versions of a page, the preferred one is the best already, and at no other's place.
        ranks = {hit.id: (hit.explanation or {}).get("rank") for hit in found}
        assert better or (ranks["pot@1.9"], ranks["cup@1.9"]) == (1, 1)

    def test_the_highest_is_taken_among_the_hits_only(self, case: Case) -> None:
        case.add(*MANUALS, manual("pot", "3.0", "Coffee"))
        assert "pot@2.0rc1" in case.ids("tea", settings=settings(LATEST))
        assert "pot@1.10" in case.ids("tea", "version != 2.0rc1", settings=settings(LATEST))

    def test_a_version_that_is_named_is_shown_where_there_is_one(self, case: Case) -> None:
        case.add(*MANUALS)
        shown = case.ids("tea", settings=settings(Preferred("version", "1.9")))
        assert {"pot@1.9", "cup@1.9", "alone", "single"} == set(shown)
        shown = case.ids("tea", settings=settings(Preferred("version", "1.10")))
        assert "pot@1.10" in shown
        assert case.ids("tea", distinct="page") == case.ids("tea", settings=settings(Preferred("version", "7")))

    def test_a_preferred_hit_is_found_far_behind_the_best(self, case: Case) -> None:
        case.add(*(manual("far", f"0.{number}", "tea " * (1 + number % 3) + "x " * number) for number in range(300)))
        assert case.ids("tea", settings=settings(LATEST), limit=1) == ["far@0.299"]
        assert case.ids("tea", settings=settings(Preferred("version", "0.298")), limit=1) == ["far@0.298"]

    def test_a_document_with_a_list_is_shown_whatever_values_it_has(self, case: Case) -> None:
        case.add(*MANUALS, page("list", "Tea for all", "Tea", page=["pot", "cup"]), page("empty", "Tea", page=[]))
        everything = case.search("tea", distinct="page", limit=100)
        shown = [hit.id for hit in everything.hits]
        assert {"list", "empty", "alone", "single"} < set(shown)
        assert len(shown) == everything.total == 6
        assert [id.partition("@")[0] for id in shown].count("pot") == 1
        pages = [case.ids("tea", distinct="page", limit=2, offset=offset) for offset in (0, 2, 4)]
        assert [*chain(*pages)] == shown
        assert case.search("tea", distinct="page", limit=0).total == 6

    def test_a_preference_for_what_no_document_has_changes_nothing(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.ids("tea", settings=settings(Preferred("edition", "latest"))) == case.ids("tea", distinct="page")

    def test_without_a_distinct_field_nothing_is_preferred(self, case: Case) -> None:
        case.add(*MANUALS)
        assert case.ids("tea", settings=settings(LATEST, distinct="")) == case.ids("tea")

    def test_shown_hits_are_marked_and_complete(self, case: Case) -> None:
        case.add(*MANUALS)
        for wishes in (settings(), settings(LATEST)):
            for hit in case.search("tea", settings=wishes, highlight=Highlight()).hits:
                assert hit.document["url"]
                assert hit.formatted is not None
                assert "<em>" in hit.formatted["content"]

    def test_shown_hits_can_be_taken_one_by_one(self, case: Case) -> None:
        case.add(*MANUALS)
        taken: list[str] = []
        query = case.query("tea", distinct="page")
        result = case.backend.search(case.index, query, lambda hit: taken.append(hit.id))
        assert result.hits == ()
        assert taken == case.ids("tea", distinct="page")
