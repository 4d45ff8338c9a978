"""Tests specific to Meilisearch, for the fake and the real server."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
import requests

from backends.base import SearchBackend
from backends.errors import BackendRejected
from backends.query import Highlight, SearchSettings
from tests.backends.contract import SHOP, Case, page
from tests.backends.native_filters import NativeFilters
from tests.patience import PATIENCE_SECONDS


def direct(backend: SearchBackend, token: str, index: str) -> requests.Response:
    """Send a search as a client does, with its own token."""
    node = backend._transport.url.nodes[0]
    headers = {"Authorization": f"Bearer {token}"}
    return requests.post(
        f"{node}/multi-search",
        json={"queries": [{"indexUid": index, "q": "word"}]},
        headers=headers,
        timeout=PATIENCE_SECONDS,
    )


class MeilisearchPromises(NativeFilters):
    ANN: ClassVar[str] = 'author = "Ann"'
    BAD: ClassVar[tuple[str, ...]] = ("author:=Ann", "author = Ann AND", "(author = Ann", "author == ")
    UNKNOWN: ClassVar[tuple[str, int]] = ("author = Ann AND nope = 1", 17)

    @pytest.mark.parametrize(("expression", "expected"), [
        ("author IN [Ann, Bob]", {"lamp", "sofa", "shelf"}), ("tags = home AND stock = true", {"lamp"}),
        ("date > 1709251200", {"sofa", "stool"}), ("id = lamp", {"lamp"}), ("price = 5", {"chair", "stool"}),
    ])  # fmt: skip
    def test_native_filter_matches_documents_in_meilisearch_syntax(
        self, case: Case, expression: str, expected: set[str]
    ) -> None:
        case.add(*SHOP)
        assert set(self.native(case, expression)) == expected

    @pytest.mark.parametrize(("expression", "position"), [
        ("_key EXISTS", 0), ('author = Ann OR "_key" EXISTS', 16), ("NOT(_doc EXISTS)", 4), ("_vectors EXISTS", 0),
        ("author=\"_x\"AND'_date' > 1", 14), ("_geoRadius(1, 2, 3)", 0), ("author = Ann AND _n_price > 5", 17),
    ])  # fmt: skip
    def test_native_filter_on_an_internal_field_is_rejected(self, case: Case, expression: str, position: int) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match="no field") as caught:
            self.native(case, expression)
        assert (caught.value.parameter, caught.value.position) == ("filters", position)

    def test_filter_values_may_start_with_an_underscore(self, case: Case) -> None:
        case.add(page("a", "reading", brand="_key"), page("b", "reading", brand="other", author='_"(x'))
        assert self.native(case, "brand = _key") == ["a"]
        assert self.native(case, "brand IN [_doc, '_key']") == ["a"]
        assert self.native(case, 'author = "_\\"(x" AND brand NOT IN [_key]') == ["b"]
        assert self.native(case, "brand _a TO _z") in ([], ["a"])

    @pytest.mark.parametrize(("expression", "position"), [
        ("author CONTAINS Ann", 7), ("price > 5 AND author NOT CONTAINS b", 25),
    ])  # fmt: skip
    def test_filter_using_a_disabled_feature_is_rejected_with_its_position(
        self, case: Case, expression: str, position: int
    ) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match="feature") as caught:
            self.native(case, expression)
        assert (caught.value.parameter, caught.value.position) == ("filters", position)

    @pytest.mark.parametrize("expression", ["price > 99999999999999999999", "price < 1e39", "price = 1e400"])
    def test_filter_numbers_of_any_size_are_accepted_or_rejected(self, case: Case, expression: str) -> None:
        case.add(*SHOP)
        with contextlib.suppress(BackendRejected):
            self.native(case, expression)

    def test_index_created_before_full_folding_still_finds_its_documents(self, case: Case) -> None:
        backend: Any = case.backend
        settings = {"searchableAttributes": ["title", "excerpt", "content"]}
        backend._transport.wait(
            [backend._transport.change(case.index, "PATCH", f"/indexes/{case.index}/settings", settings)]
        )
        case.add(page("a", "ŋutsu Москва łódź café"))
        for text in ("ŋutsu", "москва", "Łódź", "cafe", "café"):
            for fields in ((), ("title",)):
                (hit,) = case.search(text, fields=fields, highlight=Highlight()).hits
                assert "<em>" in (hit.formatted or {})["title"]

    def test_pinned_document_comes_first_across_pages_and_must_pass_the_filter(self, case: Case) -> None:
        case.add(page("a", "word one"), page("b", "word two"), page("z", "other", color="red"), page("y", "other"))
        pinned = SearchSettings(pinned={"word": ("z", "gone", "b")})
        assert case.ids("word", settings=pinned) == ["z", "b", "a"]
        assert case.search("word", settings=pinned).total == 3
        pages = [case.ids("Word ", settings=pinned, limit=1, offset=offset) for offset in range(4)]
        assert pages == [["z"], ["b"], ["a"], []]
        assert case.ids("word", "color = red", settings=pinned) == ["z"]

    def test_hidden_document_is_not_found_even_if_pinned(self, case: Case) -> None:
        case.add(page("a", "word", color="red"), page("A", "word", color="red"), page("z", "other", color="blue"))
        hidden = SearchSettings(hidden={"word": ("a", "gone")}, pinned={"word": ("z", "a")})
        result = case.search(" WORD ", settings=hidden, facets=("color",))
        assert [hit.id for hit in result.hits] == ["z", "A"]
        assert result.total == 2
        assert case.ids("word", "color = red", settings=hidden) == ["A"]
        assert sorted(case.ids("wor", settings=hidden)) == ["A", "a"]

    def test_credential_searches_only_its_index_until_revoked(self, case: Case) -> None:
        case.add(page("a", "word"))
        soon = datetime.now(UTC) + timedelta(hours=1)
        first = case.backend.issue_credential(case.index, "key_1:v1", soon)
        again = case.backend.issue_credential(case.index, "key_1:v1", soon)
        other = case.backend.issue_credential(case.index, "key_2:v1", soon)
        late = case.backend.issue_credential(case.index, "key_1:v1", datetime.now(UTC) - timedelta(seconds=5))
        assert first.reference == again.reference != other.reference
        assert len(direct(case.backend, first.token, case.index).json()["results"][0]["hits"]) == 1
        assert direct(case.backend, first.token, "another_index").status_code in (400, 403)
        assert direct(case.backend, late.token, case.index).status_code == 403
        case.backend.revoke_credential(first.reference)
        case.backend.revoke_credential(first.reference)
        assert direct(case.backend, again.token, case.index).status_code == 403
        assert direct(case.backend, other.token, case.index).status_code == 200
        anew = case.backend.issue_credential(case.index, "key_1:v1", soon)
        assert direct(case.backend, anew.token, case.index).status_code == 200
        assert direct(case.backend, first.token, case.index).status_code == 403
        for reference in (anew.reference, other.reference):
            case.backend.revoke_credential(reference)

    def test_synonyms_follow_the_settings(self, case: Case) -> None:
        case.add(page("a", "laptop"), page("b", "notebook"))
        settings = SearchSettings(synonyms=(("laptop", "notebook"),))
        assert sorted(case.ids("laptop", settings=settings)) == ["a", "b"]
        assert case.ids("laptop") == ["a"]

    def test_words_matched_in_another_form_are_highlighted(self, case: Case) -> None:
        case.add(page("a", "Documentation", "A note book, laptops, and node.js"))
        settings = SearchSettings(synonyms=(("portable", "laptops"),))
        for text, marked in {
            "documantation": "<em>Documentation</em>",
            "documen": "<em>Documentation</em>",
            "notebook": "A <em>note</em> <em>book</em>, laptops, and node.js",
            "portable": "A note book, <em>laptops</em>, and node.js",
            "lap tops": "A note book, <em>laptops</em>, and node.js",
        }.items():
            (hit,) = case.search(text, settings=settings, highlight=Highlight()).hits
            assert hit.formatted is not None
            assert marked in (hit.formatted["title"], hit.formatted["content"]), text
