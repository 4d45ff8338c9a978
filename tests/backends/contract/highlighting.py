"""Highlighting: matches are marked, and everything else is escaped; hits can be passed to a callback."""

from __future__ import annotations

import pytest

from backends.errors import ResponseTooLarge
from backends.query import Highlight, SearchSettings
from tests.backends.contract.case import SHOP, Case, page


def formatted_content(case: Case, query: str) -> str:
    highlight = Highlight(pre_tag="[", post_tag="]")
    (hit,) = case.search(query, highlight=highlight, settings=SearchSettings(language="en")).hits
    assert hit.formatted is not None
    return str(hit.formatted["content"])


class HighlightContract:
    def test_matches_are_highlighted_and_everything_else_is_escaped(self, case: Case) -> None:
        case.add(page("a", "Fish & <b>chips</b>", "Eat chips", author="Chips > Co", tags=["chips", "a<b"]))
        formatted = case.search("chips", highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert formatted["title"] == "Fish &amp; &lt;b&gt;<em>chips</em>&lt;/b&gt;"
        assert formatted["content"] == "Eat <em>chips</em>"
        assert formatted["excerpt"] == ""
        assert formatted["tags"][1] == "a&lt;b"
        assert formatted["id"] == "a"

    def test_word_differing_in_its_first_letter_is_highlighted_only_without_a_better_match(self, case: Case) -> None:
        case.add(
            page("a", "Commit message", "A good commit message does not omit the message's reason."),
            page("b", "Omit a message", "Messages that one may omit."),
        )
        # Engines may order the two documents differently.
        (first,) = [hit.formatted for hit in case.search("comit message", highlight=Highlight()).hits if hit.id == "a"]
        case.backend.delete(case.index, ["a"])
        second = case.search("comit message", highlight=Highlight()).hits[0].formatted
        assert first is not None
        assert second is not None
        assert first["title"] == "<em>Commit</em> <em>message</em>"
        assert "<em>commit</em>" in first["content"]
        assert "omit" in first["content"]
        assert "<em>omit</em>" not in first["content"]
        # Engines may or may not match the document by that word.
        assert second["title"] in ("<em>Omit</em> a <em>message</em>", "Omit a <em>message</em>")

    @pytest.mark.parametrize("before", ["", "One of the things of a house and of a garden. " * 40])
    def test_stop_words_are_highlighted_only_beside_other_matches(self, case: Case, before: str) -> None:
        """Engines may or may not mark the ones beside other matches."""
        rest = "It is one of the things of a house."
        case.add(page("a", "Page", f"{before}A table has rows. {rest}"))
        marked = formatted_content(case, "the rows of a table")
        assert marked.endswith(("[A] [table] has [rows]. " + rest, "A [table] has [rows]. " + rest))
        assert marked.count("[") == marked[-len(rest) - 25 :].count("[")

    def test_query_of_stop_words_is_highlighted(self, case: Case) -> None:
        case.add(page("a", "Page", "To be, or not to be."))
        assert formatted_content(case, "to be or not to be") == "[To] [be], [or] [not] [to] [be]."

    def test_highlight_uses_the_requested_tags_and_escaping(self, case: Case) -> None:
        case.add(page("a", "Fish & chips", "Eat chips"))
        wish = Highlight(pre_tag="[[", post_tag="]]", escape=False, crop_fields={})
        formatted = case.search("chips", highlight=wish).hits[0].formatted
        assert formatted is not None
        assert formatted["title"] == "Fish & [[chips]]"

    def test_content_is_cropped_around_the_match(self, case: Case) -> None:
        content = " ".join(f"word{number}" for number in range(500)) + " needle " + "tail " * 500
        case.add(page("a", "title", content))
        formatted = case.search("needle", highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert "<em>needle</em>" in formatted["content"]
        assert len(formatted["content"].split()) <= 40
        assert formatted["content"].startswith("…")

    def test_only_requested_fields_are_formatted(self, case: Case) -> None:
        case.add(page("a", "Fish and chips", author="Ann Chips"))
        wish = Highlight(only_fields=frozenset({"title", "author", "date"}))

        (hit,) = case.search("chips", highlight=wish).hits

        assert hit.formatted is not None
        assert set(hit.formatted) == {"title", "author"}
        assert "<em>" in hit.formatted["title"]
        assert "content" in hit.document

    def test_page_with_a_word_of_100000_characters_is_highlighted(self, case: Case) -> None:
        case.add(page("a", "A zebra", f"The word zebra{'q' * 100_000} begins like it"))
        formatted = case.search("zebra", highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert formatted["title"] == "A <em>zebra</em>"

    def test_hits_contain_only_the_returned_fields(self, case: Case) -> None:
        case.add(page("1", "Shared word", "Text", author="Ann"))

        (hit,) = case.search("shared", returned_fields=frozenset({"title", "author", "missing"})).hits
        (marked,) = case.search("shared", returned_fields=frozenset({"id"}), highlight=Highlight()).hits

        assert (hit.id, hit.document) == ("1", {"title": "Shared word", "author": "Ann"})
        assert marked.document == {"id": "1"}
        assert marked.formatted is not None
        assert marked.formatted["title"] == "<em>Shared</em> word"

    def test_page_with_more_than_the_maximum_bytes_raises_reply_too_large(self, case: Case) -> None:
        case.add(*(page(f"{number}", "shared word", "x" * 500) for number in range(5)))
        whole = Highlight(crop_fields={})

        assert len(case.search("shared", max_bytes=5_000).hits) == 5
        assert len(case.search("shared", max_bytes=500, returned_fields=frozenset({"title"})).hits) == 5
        assert len(case.search("shared", max_bytes=9_000, highlight=whole).hits) == 5
        for options in ({"max_bytes": 2_000}, {"max_bytes": 4_000, "highlight": whole}):
            with pytest.raises(ResponseTooLarge):
                case.search("shared", **options)

    def test_hits_are_not_formatted_without_a_highlight(self, case: Case) -> None:
        case.add(*SHOP)
        assert all(hit.formatted is None for hit in case.search("reading").hits)

    @pytest.mark.parametrize("sign", ["\u0301", "a \u0301\u0301 b", "\u20e3", "\u0345", "1 \u0327", "\u2764\ufe0f"])
    def test_accent_without_a_base_letter_is_preserved(self, case: Case, sign: str) -> None:
        text = f"Signs {sign} and bicycles"
        case.add(page("a", text, text))
        for words in ("bicycles", "bicycels", f"signs {sign} bicycle", "bicycles missing"):
            (hit,) = case.search(words, highlight=Highlight()).hits
            assert hit.formatted is not None
            assert "<em>" in hit.formatted["title"]
            assert hit.formatted["title"].replace("<em>", "").replace("</em>", "") == text
