"""The passage of a site's documents that answers a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app.services.search.answers import MIN_ALL_WORDS, MIN_SHARE, MIN_WORDS, find_answer, may_have_answer
from backends.base import Hit
from backends.query import SearchQuery, SearchSettings, SortKey
from backends.sections import Passage
from tests.backends.embedded.in_memory import index_of

QUESTION = SearchQuery("what is refunded until noon", answers=True, settings=SearchSettings(answers=True))


def hit(id: str, words: int, share: float, ask: Callable[[], None] = lambda: None) -> Hit:
    def find_passage() -> Passage:
        ask()
        return Passage(f"Text of {id}.", "/x", "", words, share)

    return Hit(id, b"{}", find_passage=find_passage)


def answer(hits: Sequence[Hit]) -> str | None:
    found = find_answer(hits)
    return None if found is None else str(found["id"])


def test_answers_require_a_question_on_the_first_page_with_answers_enabled() -> None:
    assert may_have_answer(QUESTION)
    assert not may_have_answer(replace(QUESTION, answers=False))
    assert not may_have_answer(replace(QUESTION, settings=SearchSettings()))
    assert not may_have_answer(replace(QUESTION, offset=1))
    assert not may_have_answer(replace(QUESTION, sort=(SortKey("date"),)))
    assert not may_have_answer(replace(QUESTION, text="refund noon"))


def test_only_the_first_hit_is_searched_for_an_answer() -> None:
    asked: list[str] = []

    assert answer([hit("a", 3, 0.75, lambda: asked.append("a")), hit("b", 4, 1.0, lambda: asked.append("b"))]) == "a"
    assert asked == ["a"]
    assert answer([hit("a", 1, 0.1), hit("b", 4, 1.0)]) is None
    assert answer([Hit("a", b"{}"), hit("b", 4, 1.0)]) is None


def test_passage_with_too_few_words_is_not_an_answer() -> None:
    assert MIN_SHARE == 0.7
    assert answer([hit("a", 7, 0.7)]) == "a"
    assert answer([hit("a", 6, 0.69)]) is None
    assert answer([hit("a", MIN_WORDS - 1, 0.99)]) is None
    assert answer([hit("a", MIN_WORDS, 0.99)]) == "a"
    assert answer([hit("a", MIN_ALL_WORDS - 1, 1.0)]) is None
    assert answer([hit("a", MIN_ALL_WORDS, 1.0)]) == "a"
    assert answer([]) is None


@pytest.mark.parametrize("url", ["", "/tickets"])
def test_answer_contains_its_document_id_url_and_anchor(url: str) -> None:
    hit = Hit("a", b"{}", find_passage=lambda: Passage("Up to noon.", url, "refunds", 2, 1.0))

    assert find_answer([hit]) == {"text": "Up to noon.", "id": "a", "url": url, "anchor": "refunds"}


ROTOR = {
    "id": "rotor", "title": "Rotor", "url": "/rotor",
    "content": "Open the cover. Grease the rotor bearing with lithium grease every six months. The cover is blue.",
}  # fmt: skip
OTHERS = [{"id": f"{at}", "title": "Parts", "url": "/", "content": "The rotor has a bearing."} for at in range(20)]


def quoted(question: str) -> str | None:
    case = index_of(ROTOR, *OTHERS)
    answer = find_answer(case.backend.search("i", replace(QUESTION, text=question)).hits)
    return None if answer is None else answer["text"]


@pytest.mark.parametrize(
    "question",
    [
        "how do i grease the rotor bearing",
        "how often do i grease the rotor bearing",
        "how long do i grease the rotor bearing",
        "how oftten do i grease the rotor bearing",
    ],
)
def test_answer_need_not_contain_the_question_word(question: str) -> None:
    assert quoted(question) == "Grease the rotor bearing with lithium grease every six months."


@pytest.mark.parametrize(
    "question",
    [
        "how do i grease the zorblax",
        "how do i grease the zorblax bearing",
        "how do i clean the zorblax bearing of the rotor",
        "how do i halt the zebra on the rotor bearing with grease",
        "how often do i polish the rotor bearing",
        "how many zebras are in the rotor bearing",
        "what color is the rotor bearing",
        "how much does the new rotor cost in france",
    ],
)
def test_question_about_a_topic_on_no_page_has_no_answer(question: str) -> None:
    assert quoted(question) is None
