"""Passages quoted as the answer to a question."""

from __future__ import annotations

import pytest

from backends.query import Highlight
from backends.sections import Passage
from tests.backends.contract.case import Case, page
from tests.backends.contract.sections import manual

REFUNDS = "When are tickets refunded?"


def passage(case: Case, content: str, text: str = REFUNDS) -> str | None:
    """Return the passage quoted from a page with this content."""
    case.add(page("a", "Page", content))
    found = find(case, text)
    return None if found is None else found.text


def find(case: Case, text: str, id: str = "a") -> Passage | None:
    (hit,) = [hit for hit in case.search(text, answers=True).hits if hit.id == id]
    assert hit.find_passage is not None
    return hit.find_passage()


class PassageContract:
    def test_passages_are_omitted_unless_requested(self, case: Case) -> None:
        case.add(page("a", "Page", "Tickets are refunded up to noon."))
        (hit,) = case.search("tickets refunded", highlight=Highlight(), sections=1).hits
        assert hit.find_passage is None

    @pytest.mark.parametrize(
        ("after", "quoted"),
        [
            ("After noon, they are not.", ""),
            ("After noon, tickets are not. The refunded money is yours. Bring a coat. Lost tickets are lost.",
             " After noon, tickets are not. The refunded money is yours."),
        ],
    )  # fmt: skip
    def test_passage_ends_before_a_sentence_without_words_of_the_question(
        self, case: Case, after: str, quoted: str
    ) -> None:
        content = f"We are open all year. Tickets are refunded up to noon. {after}\nBring a coat."
        assert passage(case, content) == f"Tickets are refunded up to noon.{quoted}"

    def test_passage_reaches_over_a_sentence_to_the_remaining_words(self, case: Case) -> None:
        content = "Tickets are sold here. Bring a coat. They are refunded up to noon. Never after."
        assert passage(case, content) == "Tickets are sold here. Bring a coat. They are refunded up to noon."

    def test_passage_counts_distinct_query_words_without_stop_words(self, case: Case) -> None:
        case.add(page("a", "Page", "Tickets, tickets, and once more tickets.\nMoney is refunded."))
        # So that each word is in one page, and weighs the same on every engine.
        case.add(page("b", "Other", "Ferries leave at noon."))
        found = find(case, "when are tickets for ferries refunded")
        assert found is not None
        assert (found.text, found.words) == ("Tickets, tickets, and once more tickets.", 1)
        assert round(found.share, 3) == 0.333

    def test_passage_has_whole_sentences_and_at_most_300_characters(self, case: Case) -> None:
        fitting = "Tickets are refunded " + "x" * 270 + ". "
        assert passage(case, fitting + "Short tickets.") == fitting.strip()
        assert passage(case, "Tickets are refunded " + "x" * 300 + ".") is None

    def test_passage_does_not_span_paragraphs(self, case: Case) -> None:
        found = passage(case, "Tickets are at the pier.\nMoney is refunded up to noon.")
        assert found == "Tickets are at the pier."

    def test_passage_continues_across_a_wrapped_line(self, case: Case) -> None:
        assert passage(case, "Tickets are\nrefunded up to noon.") == "Tickets are\nrefunded up to noon."

    def test_passage_of_a_question_includes_the_answer_that_follows(self, case: Case) -> None:
        found = passage(case, "When are tickets refunded?\nUp to noon. Ask at the desk.\nOther things.")
        assert found == "When are tickets refunded?\nUp to noon."
        assert passage(case, "When are tickets refunded?") is None

    def test_headings_commands_and_tables_are_not_quoted(self, case: Case) -> None:
        assert passage(case, "Tickets refunded\nThe pier.") is None
        assert passage(case, "refunded --tickets 3\nrefunded --tickets all") is None
        assert passage(case, "Tickets\tare refunded.\nFerries\tare not.") is None

    def test_passage_lies_in_one_section_and_has_its_anchor(self, case: Case) -> None:
        case.add(
            manual(
                "a",
                "Tickets",
                ("top", 1, "Tickets", "Tickets are sold here."),
                ("buy", 2, "Buy", "Press the button."),
                ("money", 2, "Money back", "Tickets are refunded up to noon. Never after."),
                ("end", 2, "after", "The end is near."),
            )
        )
        assert find(case, REFUNDS) == Passage("Tickets are refunded up to noon.", page("a")["url"], "money", 2, 1.0)
        found = find(case, "where are the tickets sold")
        assert found is not None
        assert (found.text, found.anchor) == ("Tickets are sold here.", "")

    def test_passage_is_sought_only_at_the_beginning_of_a_long_page(self, case: Case) -> None:
        rest = "Nothing is said here.\n" * 1000
        assert passage(case, "Tickets are refunded.\n" + rest) == "Tickets are refunded."
        assert passage(case, rest + "Tickets are refunded.") is None

    def test_content_without_query_words_has_no_passage(self, case: Case) -> None:
        case.add(page("a", "Tickets refunded", "The pier is closed."))
        assert find(case, REFUNDS) is None
