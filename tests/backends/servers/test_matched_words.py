"""Reports which words a search matched, asking the server only if necessary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from backends.base import Matched
from backends.query import MATCH_ALL, SearchQuery
from backends.servers.matched_words import MAX_CORRECTED_WORDS, QueryWord, WordLookup, WordSearch
from backends.servers.tokenizer import query_parts

GUIDE = {"title": "Documentation guide", "content": "Search in München; C++ and 東京都 too. It's café-like, snake_case"}


class Server:
    """Returns prepared results and records the requested words."""

    def __init__(self, best: Mapping[str, str] | None = None, known: Sequence[str] = ()):
        self.best, self.known = best, known
        self.asked: list[list[str]] = []

    def ask(self, words: Sequence[QueryWord]) -> WordLookup:
        self.asked.append([each.word for each in words])
        return WordLookup(self.best, [each.word in self.known for each in words])


def told(
    text: str, best: Mapping[str, str] | None, server: Server, *, total: int = 1, pinned: bool = False
) -> tuple[Matched, str | None]:
    search = WordSearch(SearchQuery(text), tuple(query_parts(text)))
    return search.matched(total, pinned=pinned, best=best, ask=server.ask)


@pytest.mark.parametrize("text", [
    "documentation", "Guide documentation", "guide docu", "munchen", "MÜNCHEN guide", "c++", "東京 guide", "guide 京都",
    '"search in" guide', "guide -red", "cafe", "case", "snake", "it's", MATCH_ALL,
])  # fmt: skip
def test_best_hit_with_every_typed_word_needs_no_server_request(text: str) -> None:
    server = Server()
    assert told(text, GUIDE, server) == (Matched.ALL, None)
    assert server.asked == []


def test_empty_result_needs_no_server_request() -> None:
    server = Server()
    assert told("documentation", None, server, total=0) == (Matched.SOME, None)
    assert server.asked == []


@pytest.mark.parametrize(("text", "asked"), [
    ("docu guide", []), ("documentary guide", ["documentary"]), ("uide", []), ("guide ocumentation", ["ocumentation"]),
    ('"guide documantation"', []), ("guide documantation", ["documantation"]),
    (" ".join(["documantation", *(f"w{n}" for n in range(MAX_CORRECTED_WORDS))]), []),
])  # fmt: skip
def test_server_checks_only_missing_words_that_may_be_mistyped(text: str, asked: list[str]) -> None:
    server = Server()
    assert told(text, GUIDE, server) == (Matched.SOME, None)
    assert server.asked == [asked]


def test_word_beyond_the_scanned_part_of_a_long_text_is_checked_on_the_server() -> None:
    server = Server({"content": "found"})
    assert told("word", {"content": "x " * 50_000 + "word"}, server) == (Matched.ALL, None)
    assert server.asked == [[]]


def test_all_words_are_checked_on_the_server_when_no_hit_is_available() -> None:
    server = Server(GUIDE, ["search", "guide"])
    assert told("search guide", None, server) == (Matched.ALL, None)
    assert server.asked == [["search", "guide"]]


@pytest.mark.parametrize(("text", "corrected"), [
    ("documantation", "documentation"), ("Guide, Documantation!", "Guide, Documentation!"), ("münhcen", "münchen"),
    ("documne", "documentation"), ("guied docmuentation", "guide documentation"), ("serach -guied", "search -guied"),
])  # fmt: skip
def test_misspelled_word_is_corrected_to_the_most_similar_word_of_the_best_document(text: str, corrected: str) -> None:
    assert told(text, GUIDE, Server(GUIDE)) == (Matched.CORRECTED, corrected)


@pytest.mark.parametrize("text", ["manual", "telephone guide", "documantatoin", "docu guide"])
def test_dissimilar_word_is_not_reported_as_a_correction(text: str) -> None:
    assert told(text, None, Server({"title": "Guide"})) == (Matched.ALL, None)


def test_pinned_document_counts_as_matching_every_word() -> None:
    assert told("nothing here", GUIDE, Server(), pinned=True) == (Matched.ALL, None)
    assert told("nothing here", GUIDE, Server()) == (Matched.SOME, None)


def test_only_searched_fields_are_checked_for_words() -> None:
    search = WordSearch(SearchQuery("search", fields=("title",)), tuple(query_parts("search")))
    server = Server()
    assert search.matched(1, pinned=False, best=GUIDE, ask=server.ask) == (Matched.SOME, None)
    assert server.asked == [["search"]]
