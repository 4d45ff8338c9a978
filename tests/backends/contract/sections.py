"""Sections: parts of a page that a hit links to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from backends.query import Highlight
from backends.sections import SectionHit
from tests.backends.contract.case import Case, page


def manual(id: str, title: str, *parts: tuple[str, int, str, str], opening: str = "") -> dict[str, Any]:
    """Return a page as a crawl creates it, where each section has an anchor, a level, a title, and text."""
    content, sections = opening, []
    for anchor, level, heading, text in parts:
        content += "\n\n" if content else ""
        sections.append({"anchor": anchor, "title": heading, "level": level, "start": len(content)})
        content += f"{heading}\n\n{text}"
    return page(id, title, content, sections=sections)


KEYS = manual(
    "keys",
    "Keys",
    ("create", 2, "Create a token", "Press the button. The token is shown once."),
    ("restrict", 2, "Restrict origins", "Name the origins of your website."),
    ("wildcards", 3, "Wildcards", "A star stands for any host below example.org. It never covers a port."),
    ("rotate", 2, "Rotate", "A new token takes over. Restrict the overlap to an hour."),
    opening="Servers and browsers call with a secret of theirs.",
)


def sections(case: Case, text: str, most: int = 3, id: str = "keys", **options: Any) -> Sequence[SectionHit]:
    (found,) = [hit.sections for hit in case.search(text, sections=most, **options).hits if hit.id == id]
    assert found is not None
    return found


def anchors(case: Case, text: str, most: int = 3, id: str = "keys") -> list[str]:
    return [found.section.anchor for found in sections(case, text, most, id)]


class SectionContract:
    def test_matching_section_is_returned_with_its_url_and_path(self, case: Case) -> None:
        case.add(KEYS)
        found = sections(case, "wildcards")[0]
        assert found.section == (found.section.anchor, "Wildcards", 3, KEYS["content"].index("Wildcards"))
        assert found.url == f"{KEYS['url']}#wildcards"
        assert found.path == ("Restrict origins",)
        assert found.formatted is None

    def test_sections_are_omitted_unless_requested(self, case: Case) -> None:
        case.add(KEYS)
        (hit,) = case.search("wildcards").hits
        assert hit.sections is None
        assert "sections" not in hit.document

    def test_document_without_sections_returns_an_empty_list(self, case: Case) -> None:
        case.add(page("keys", "Keys", "Wildcards"))
        assert sections(case, "wildcards") == []

    def test_section_titles_are_searched(self, case: Case) -> None:
        # A title is searched even if the content does not contain it.
        apart = {**page("keys", "Keys", "Nothing to see"), "sections": [
            {"anchor": "a", "title": "Quarantine rules", "level": 2, "start": 0}]}  # fmt: skip
        case.add(apart, page("other", "Other", "Nothing to hear"))
        assert case.ids("quarantine") == ["keys"]
        assert anchors(case, "quarantine") == ["a"]

    def test_match_in_a_section_title_ranks_above_a_match_in_its_text(self, case: Case) -> None:
        case.add(
            manual("text", "First", ("a", 2, "Other things", "Here we restore a backup every night.")),
            manual("title", "Second", ("b", 2, "Restore a backup", "Here it is said, every single night.")),
        )
        assert case.ids("restore backup") == ["title", "text"]

    def test_sections_rank_by_distinct_words_then_title_then_position(self, case: Case) -> None:
        case.add(KEYS)
        assert anchors(case, "restrict token")[0] == "rotate"
        assert anchors(case, "restrict") == ["restrict", "rotate"]
        assert anchors(case, "token") == ["create", "rotate"]

    def test_exact_word_ranks_a_section_above_an_inflected_form(self, case: Case) -> None:
        case.add(
            manual("keys", "Keys", ("a", 2, "One", "Rotating is easy."), ("b", 2, "Two", "How to rotate is here."))
        )
        assert anchors(case, "rotate")[0] == "b"

    def test_inflected_form_in_a_section_title_counts_in_addition_to_the_text(self, case: Case) -> None:
        case.add(manual("keys", "Keys", ("a", 2, "Storage", "One token."), ("b", 2, "Tokens", "Another token.")))
        assert anchors(case, "token")[0] == "b"

    def test_section_titled_with_the_whole_compound_word_ranks_first(self, case: Case) -> None:
        case.add(
            manual(
                "keys",
                "Settings",
                ("root", 2, "MEDIA_ROOT", "A folder. See MEDIA_URL, too."),
                ("url", 2, "MEDIA_URL", "An address. See MEDIA_ROOT, too."),
            )
        )
        assert anchors(case, "MEDIA_URL")[0] == "url"
        assert anchors(case, "MEDIA_ROOT")[0] == "root"

    def test_part_of_a_compound_word_in_the_page_title_does_not_replace_the_word(self, case: Case) -> None:
        case.add(manual("keys", "Media", ("a", 2, "Other", "Text."), ("b", 2, "MEDIA_URL", "An address.")))
        assert anchors(case, "MEDIA_URL") == ["b"]

    def test_number_of_sections_is_limited_as_requested(self, case: Case) -> None:
        case.add(manual("keys", "Keys", *((f"s{number}", 2, f"Part {number}", "A needle.") for number in range(9))))
        assert anchors(case, "needle", 1) == ["s0"]
        assert anchors(case, "needle", 5) == ["s0", "s1", "s2", "s3", "s4"]

    def test_no_section_is_returned_if_the_page_start_is_the_best_match(self, case: Case) -> None:
        case.add(KEYS)
        assert anchors(case, "servers browsers") == []
        # The page start also wins a tie.
        case.add(manual("even", "Even", ("a", 2, "Later", "A lighthouse."), opening="A lighthouse."))
        assert anchors(case, "lighthouse", id="even") == []

    def test_words_of_the_page_title_are_optional_in_sections(self, case: Case) -> None:
        case.add(KEYS)
        assert anchors(case, "keys wildcards")[0] == "wildcards"
        assert anchors(case, "keys") == []

    def test_top_level_heading_counts_as_the_page_start(self, case: Case) -> None:
        case.add(manual("keys", "Tokens", ("top", 1, "Secret tokens", "A hint."), ("more", 2, "More", "Text.")))
        assert anchors(case, "hint") == []
        assert sections(case, "more")[0].path == ()

    def test_section_snippet_contains_the_matching_sentence(self, case: Case) -> None:
        case.add(KEYS)
        found = sections(case, "wildcards port", highlight=Highlight())[0]
        assert found.formatted == {
            "title": "<em>Wildcards</em>",
            "content": "It never covers a <em>port</em>.",
        } or found.formatted == {
            "title": "<em>Wildcards</em>",
            "content": "A star stands for any host below example.org. It never covers a <em>port</em>.",
        }

    def test_section_snippet_is_escaped(self, case: Case) -> None:
        case.add(manual("keys", "Keys", ("a", 2, "The <b> tag", "Bold & <em>strong</em> text.")))
        formatted = sections(case, "strong tag", highlight=Highlight())[0].formatted
        assert formatted is not None
        assert formatted["title"] == "The &lt;b&gt; <em>tag</em>"
        assert formatted["content"] == "Bold &amp; &lt;em&gt;<em>strong</em>&lt;/em&gt; text."

    def test_section_ends_where_the_next_begins_and_may_be_empty(self, case: Case) -> None:
        content = "Both\n\nOne needle."
        case.add({**page("keys", "Keys", content), "sections": [
            {"anchor": "a", "title": "Alpha", "level": 2, "start": 6},
            {"anchor": "b", "title": "Beta", "level": 2, "start": 6},
            {"anchor": "c", "title": "Gamma", "level": 2, "start": len(content)}]})  # fmt: skip
        assert anchors(case, "needle") == ["b"]
        assert anchors(case, "gamma") == ["c"]

    def test_replaced_document_has_only_its_new_sections(self, case: Case) -> None:
        case.add(KEYS)
        case.add(manual("keys", "Keys", ("new", 2, "Wildcards", "Text.")))
        assert anchors(case, "wildcards") == ["new"]
        assert case.ids("restrict") == []

    def test_custom_field_named_sections_stays_unchanged(self, case: Case) -> None:
        case.add(page("keys", "Keys", "Text", sections=["north", "south"]))
        (hit,) = case.search("keys", "sections = north", sections=3).hits
        assert hit.document["sections"] == ["north", "south"]
        assert hit.sections == []

    @pytest.mark.parametrize("text", ["wildcrads", "wildcard"])
    def test_typos_and_prefixes_lead_to_the_section(self, case: Case, text: str) -> None:
        case.add(KEYS)
        assert anchors(case, text)[0] == "wildcards"

    def test_section_offsets_are_counted_in_characters(self, case: Case) -> None:
        case.add(
            manual("keys", "Keys", ("a", 2, "Ünïcödé 😀", "Größe 😀😀."), ("b", 2, "日本語の見出し", "Needle, ok."))
        )
        found = sections(case, "needle", highlight=Highlight())[0]
        assert found.section.anchor == "b"
        assert found.formatted == {"title": "日本語の見出し", "content": "<em>Needle</em>, ok."}
