"""The passage of a site's documents that answers a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app.services.search.hits import ANSWERING_HITS, MIN_SHARE, MIN_WORDS, AnswerFinder, asks
from backends.base import Hit
from backends.query import SearchQuery, SearchSettings, SortKey
from backends.sections import Passage

QUESTION = SearchQuery("what is refunded until noon", answers=True, settings=SearchSettings(answers=True))


def hit(id: str, words: int, share: float, ask: Callable[[], None] = lambda: None) -> Hit:
    def find_passage() -> Passage:
        ask()
        return Passage(f"Text of {id}.", "", words, share)

    return Hit(id, b'{"url": "/x"}', find_passage=find_passage)


def answer(hits: Sequence[Hit]) -> str | None:
    shown: list[Hit] = []
    finder = AnswerFinder(shown.append)
    for each in hits:
        finder.take(each)
    assert shown == list(hits)
    return None if finder.answer is None else str(finder.answer["id"])


def test_answers_require_a_question_on_the_first_page_with_answers_enabled() -> None:
    assert asks(QUESTION)
    assert not asks(replace(QUESTION, answers=False))
    assert not asks(replace(QUESTION, settings=SearchSettings()))
    assert not asks(replace(QUESTION, offset=1))
    assert not asks(replace(QUESTION, sort=(SortKey("date"),)))
    assert not asks(replace(QUESTION, text="refund noon"))


def test_passage_with_the_most_words_in_the_first_five_hits_is_the_answer() -> None:
    assert answer([hit("a", 3, 0.75), hit("b", 4, 1.0), hit("c", 4, 1.0)]) == "b"
    assert answer([hit(str(number), 4, 1.0 if number == ANSWERING_HITS else 0.75) for number in range(9)]) == "0"
    assert answer([hit(str(number), 4, 1.0 if number == ANSWERING_HITS - 1 else 0.75) for number in range(9)]) == "4"


def test_passage_with_too_few_words_is_not_an_answer() -> None:
    assert MIN_SHARE == 0.7
    assert answer([hit("a", 7, 0.7)]) == "a"
    assert answer([hit("a", 6, 0.69)]) is None
    assert answer([hit("a", MIN_WORDS - 1, 1.0)]) is None
    assert answer([hit("a", MIN_WORDS, 1.0)]) == "a"
    assert answer([Hit("a", b"{}")]) is None
    assert answer([]) is None


def test_passages_are_searched_only_in_the_first_hits() -> None:
    asked: list[int] = []

    answer([hit(str(number), 1, 0.1, lambda: asked.append(1)) for number in range(20)])

    assert len(asked) == ANSWERING_HITS


@pytest.mark.parametrize("url", ["", "/tickets"])
def test_answer_contains_its_document_id_url_and_anchor(url: str) -> None:
    finder = AnswerFinder(lambda hit: None)
    body = f'{{"url": "{url}"}}'.encode()

    finder.take(Hit("a", body, find_passage=lambda: Passage("Up to noon.", "refunds", 2, 1.0)))

    assert finder.answer == {"text": "Up to noon.", "id": "a", "url": url, "anchor": "refunds"}
