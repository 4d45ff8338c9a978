"""The promises of :mod:`backends.base`, as one suite for every engine.

An engine's test module inherits :class:`BackendContract` and gives one fixture, ``backend``. What only an engine
that does its own matching can promise is in :class:`MatchingContract`. Filters are passed as trees, which every
engine compiles; an engine without a syntax of its own gets the text too.
"""

from __future__ import annotations

import html
import random
import threading
import unicodedata
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from backends.base import (
    MATCH_ALL,
    Document,
    FieldKind,
    Highlight,
    Hit,
    SearchBackend,
    SearchQuery,
    SearchResult,
    SearchSettings,
    SortKey,
)
from backends.errors import BackendRejected, IndexNotFound
from backends.filters import parse_filter
from backends.servers.latin import FOLDS

S, N, B = FieldKind.STRING, FieldKind.NUMBER, FieldKind.BOOLEAN
SL, NL = FieldKind.STRING_LIST, FieldKind.NUMBER_LIST


def kind_of(value: Any) -> FieldKind:
    if isinstance(value, bool):
        return B
    if isinstance(value, str):
        return S
    if isinstance(value, int | float):
        return N
    return NL if value and all(isinstance(item, int | float) for item in value) else SL


def kinds_of(documents: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[FieldKind]]:
    standard = {"id", "title", "content", "url", "excerpt", "author", "date"}
    kinds: dict[str, frozenset[FieldKind]] = {}
    for document in documents:
        for name, value in document.items():
            if name not in standard:
                kinds[name] = kinds.get(name, frozenset()) | {kind_of(value)}
    return kinds


def page(id: str, title: str = "", content: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": id, "title": title, "content": content, "url": f"/{uuid.uuid5(uuid.NAMESPACE_URL, id)}", **fields}


SHOP = (
    page(
        "lamp",
        "Desk lamp",
        "Light for reading",
        author="Ann",
        date="2024-03-01",
        price=20,
        brand="Acme",
        tags=["light", "home"],
        stock=True,
        sizes=[1, 2],
    ),
    page(
        "sofa",
        "Sofa",
        "Soft seat for reading",
        author="Bob",
        date="2024-03-01T12:00:00+02:00",
        price=300.5,
        brand="acme",
        tags=["seat", "home"],
        stock=False,
        note="",
    ),
    page(
        "shelf",
        "Book shelf",
        "Wood for reading",
        author="Ann",
        date="2023-12-31",
        price=120,
        brand="Börde",
        tags=[],
        stock=True,
        sizes=[10],
    ),
    page("chair", "Chair", "Wood to sit and reading", price="5", brand="Zebra"),
    page("stool", "Stool", "Steel, reading", date="2025-01-01T00:00:00Z", price=5, brand="acme co", code=7),
)
"""A little shop: every document has the word ``reading``; ``price`` is a number or a string, much is missing."""

FILTERS: tuple[tuple[str, set[str]], ...] = (
    ("price = 5", {"chair", "stool"}),
    ('price = "5"', {"chair", "stool"}),
    ("price = 5.0", {"stool"}),
    ("price > 5", {"lamp", "sofa", "shelf"}),
    ("price >= 5 AND price < 300", {"lamp", "shelf", "stool"}),
    ("price <= 20", {"lamp", "stool"}),
    ("price 20 TO 120", {"lamp", "shelf"}),
    ("price = 300.5", {"sofa"}),
    ("brand = acme", {"lamp", "sofa"}),
    ("brand = 'ACME CO'", {"stool"}),
    ("brand = börde", {"shelf"}),
    ("brand != acme", {"shelf", "chair", "stool"}),
    ("author != Ann", {"sofa", "chair", "stool"}),
    ("author = ann", {"lamp", "shelf"}),
    ("NOT author = Ann", {"sofa", "chair", "stool"}),
    ("author IN [ann, bob]", {"lamp", "sofa", "shelf"}),
    ("author NOT IN [Ann]", {"sofa", "chair", "stool"}),
    ("author IN []", set()),
    ("tags = home", {"lamp", "sofa"}),
    ("tags = home AND tags = seat", {"sofa"}),
    ("tags != home", {"shelf", "chair", "stool"}),
    ("sizes = 2", {"lamp"}),
    ("sizes > 5", {"shelf"}),
    ("sizes 2 TO 9", {"lamp"}),
    ("stock = true", {"lamp", "shelf"}),
    ("stock = false", {"sofa"}),
    ("stock != true", {"sofa", "chair", "stool"}),
    ("tags EXISTS", {"lamp", "sofa", "shelf"}),
    ("tags NOT EXISTS", {"chair", "stool"}),
    ("tags IS EMPTY", {"shelf"}),
    ("note IS EMPTY", {"sofa"}),
    ("tags IS NOT EMPTY", {"lamp", "sofa", "chair", "stool"}),
    ("tags IS NULL", set()),
    ("tags IS NOT NULL", {"lamp", "sofa", "shelf", "chair", "stool"}),
    ("content EXISTS", {"lamp", "sofa", "shelf", "chair", "stool"}),
    ("author EXISTS", {"lamp", "sofa", "shelf"}),
    ("date EXISTS", {"lamp", "sofa", "shelf", "stool"}),
    ("date NOT EXISTS", {"chair"}),
    ("id = lamp", {"lamp"}),
    ("id IN [lamp, sofa, none]", {"lamp", "sofa"}),
    ("title = 'desk lamp'", {"lamp"}),
    ("date = 2024-03-01", {"lamp"}),
    ("date = '2024-03-01T10:00:00Z'", {"sofa"}),
    ("date > 2024-03-01", {"sofa", "stool"}),
    ("date >= 2024-03-01", {"lamp", "sofa", "stool"}),
    ("date < 2024-03-01", {"shelf"}),
    ("date 2023-12-31 TO 2024-03-01", {"lamp", "shelf"}),
    ("date != 2024-03-01", {"sofa", "shelf", "chair", "stool"}),
    ("date > '2024-12-31T23:59:59.999Z'", {"stool"}),
    ("author = Ann OR brand = Zebra", {"lamp", "shelf", "chair"}),
    ("(author = Ann OR brand = Zebra) AND NOT price = 20", {"shelf", "chair"}),
    ("author = Ann AND (price > 100 OR (stock = true AND tags = light))", {"lamp", "shelf"}),
    ("NOT (author = Ann OR author = Bob)", {"chair", "stool"}),
    ("NOT NOT author = Ann", {"lamp", "shelf"}),
    ("author NOT EXISTS AND NOT price > 100", {"chair", "stool"}),
    ("code = 7 OR price = 20", {"lamp", "stool"}),
)


def has_native_filters(backend: SearchBackend) -> bool:
    """Whether ``SearchQuery.filters`` is in a syntax of the engine's own, not the portable grammar."""
    return backend.name in ("typesense", "meilisearch")


LATIN = tuple(c for c in map(chr, range(0x80, 0x20000)) if c.isalpha() and "LATIN " in unicodedata.name(c, ""))


def latin_titles() -> list[list[str]]:
    """Every Latin letter in a short word, ten words a title, of which no two are the same without accents."""
    titles: list[dict[str, str]] = []
    for letter in LATIN:
        title = next((each for each in titles if len(each) < 10 and FOLDS[letter] not in each), {})
        if not title:
            titles.append(title)
        title[FOLDS[letter]] = letter + "q"
    return [list(title.values()) for title in titles]


class Case:
    """One index of one backend, with the few words the tests are written in."""

    def __init__(self, backend: SearchBackend, index: str):
        self.backend = backend
        self.index = index
        self.kinds: dict[str, frozenset[FieldKind]] = {}
        self.clock = 1_700_000_000_000_000

    def add(self, *documents: Mapping[str, Any]) -> None:
        for name, kinds in kinds_of(documents).items():
            self.kinds[name] = self.kinds.get(name, frozenset()) | kinds
        batch = []
        for fields in documents:
            self.clock += 1
            batch.append(Document(fields["id"], dict(fields), self.clock))
        self.backend.upsert(self.index, batch, self.kinds)

    def search(self, text: str, filters: str = "", **options: Any) -> SearchResult:
        if filters and has_native_filters(self.backend):
            options["filter"] = parse_filter(filters)
        elif filters:
            options["filters"] = filters
        return self.backend.search(self.index, SearchQuery(text, kinds=self.kinds, **options))

    def ids(self, text: str, filters: str = "", **options: Any) -> list[str]:
        return [hit.id for hit in self.search(text, filters, **options).hits]


@pytest.fixture(name="case")
def case_fixture(backend: SearchBackend) -> Iterator[Case]:
    index = f"t_{uuid.uuid4().hex}"
    backend.create_index(index)
    yield Case(backend, index)
    backend.delete_index(index)


class Enough(Exception):
    """What ends a search from outside."""


class BackendContract:
    """What every engine promises."""

    # --- indexes

    def test_a_new_index_is_listed_and_empty(self, case: Case) -> None:
        assert case.index in case.backend.list_indexes()
        assert case.backend.count(case.index) == 0
        assert list(case.backend.document_ids(case.index)) == []
        assert case.search(MATCH_ALL).total == 0
        assert case.search("word").hits == ()

    def test_making_an_index_again_keeps_its_documents(self, case: Case) -> None:
        case.add(page("a"))
        case.backend.create_index(case.index)
        assert case.backend.count(case.index) == 1

    def test_a_deleted_index_is_gone_with_its_documents(self, case: Case) -> None:
        case.add(page("a", "word"))
        case.backend.delete_index(case.index)
        assert case.index not in case.backend.list_indexes()
        with pytest.raises(IndexNotFound):
            case.search("word")
        case.backend.create_index(case.index)
        assert case.backend.count(case.index) == 0

    def test_deleting_an_index_that_is_not_there_does_nothing(self, backend: SearchBackend) -> None:
        backend.delete_index(f"t_{uuid.uuid4().hex}")

    def test_every_method_on_an_unknown_index_raises_index_not_found(self, backend: SearchBackend) -> None:
        name = f"t_{uuid.uuid4().hex}"
        for call in (
            lambda: backend.upsert(name, [Document("a", page("a"), 1)], {}),
            lambda: backend.delete(name, ["a"]),
            lambda: backend.search(name, SearchQuery("word")),
            lambda: backend.count(name),
            lambda: list(backend.document_ids(name)),
        ):
            with pytest.raises(IndexNotFound) as caught:
                call()
            assert caught.value.index == name
        assert name not in backend.list_indexes()

    def test_indexes_do_not_see_each_other(self, case: Case, backend: SearchBackend) -> None:
        other = Case(backend, f"t_{uuid.uuid4().hex}")
        backend.create_index(other.index)
        try:
            case.add(page("a", "shared word"))
            other.add(page("a", "shared other"), page("b", "shared word"))
            assert case.ids("shared") == ["a"]
            assert case.ids("other") == []
            case.backend.delete(case.index, ["b"])
            assert sorted(other.ids("shared")) == ["a", "b"]
        finally:
            backend.delete_index(other.index)

    def test_tidying_changes_nothing_that_is_found(self, case: Case) -> None:
        case.backend.run_maintenance()
        case.add(page("a", "word"), page("b", "word"))
        case.backend.delete(case.index, ["b"])
        case.backend.run_maintenance()
        assert case.ids("word") == ["a"]

    def test_a_closed_backend_can_be_used_again(self, case: Case) -> None:
        case.add(page("a", "word"))
        case.backend.close()
        assert case.ids("word") == ["a"]

    def test_check_returns_when_the_engine_is_there(self, backend: SearchBackend) -> None:
        backend.check()

    # --- letters

    def test_every_latin_letter_composed_or_not_is_found_with_and_without_its_accent(self, case: Case) -> None:
        titles = {}
        for at, words in enumerate(latin_titles()):
            for form in ("NFC", "NFD"):
                titles[f"{form}{at}"] = [unicodedata.normalize(form, word) for word in words]
        case.add(*(page(id, " ".join(words)) for id, words in titles.items()))
        missed = []
        for at, words in enumerate(latin_titles()):
            plain = [FOLDS[word[0]] + "q" for word in words]
            written = " ".join(words)
            for text in {written, written.lower(), unicodedata.normalize("NFD", written), " ".join(plain)}:
                hits = case.search(text, limit=100, all_words=True, highlight=Highlight()).hits
                found = {hit.id: hit for hit in hits}
                for id in (f"NFC{at}", f"NFD{at}"):
                    marked = " ".join(f"<em>{word}</em>" for word in titles[id])
                    shown = (found[id].formatted or {})["title"] if id in found else None
                    if shown != marked or found[id].document["title"] != " ".join(titles[id]):
                        missed.append(f"{titles[id]} by {text}: {shown}")
        assert not missed, "\n".join(missed)

    @pytest.mark.parametrize(("content", "text", "marked"), [
        ("Tiếng Việt, đà", "viet da", "Tiếng <em>Việt</em>, <em>đà</em>"),
        ("Fußball in der Hauptstraße", "HAUPTSTRASSE", "Fußball in der <em>Hauptstraße</em>"),
        ("Zażółć gęślą jaźń w Łodzi", "zazolc lodzi", "<em>Zażółć</em> gęślą jaźń w <em>Łodzi</em>"),
        ("Cafe\u0301 ouvert", '"café ouvert"', "<em>Cafe\u0301</em> <em>ouvert</em>"),
        ("Ёлка и чай", "елка", "<em>Ёлка</em> и чай"), ("Ёлка и чай", "Чай", "Ёлка и <em>чай</em>"),
        ("यह क्या है", "क्या", "यह <em>क्या</em> है"),
    ])  # fmt: skip
    def test_a_word_is_found_and_marked_as_it_is_written(
        self, case: Case, content: str, text: str, marked: str
    ) -> None:
        case.add(page("a", "x", content), page("b", "other", "other"))
        (hit,) = case.search(text, all_words=True, highlight=Highlight(crop_fields={})).hits
        assert hit.document["content"] == content
        shown = str((hit.formatted or {})["content"])
        assert shown.replace("</em> <em>", " ") == marked.replace("</em> <em>", " ")

    # --- writes

    def test_documents_are_found_as_soon_as_upsert_returns(self, case: Case) -> None:
        for number in range(5):
            case.add(page(str(number), f"fresh{number} bread"))
            assert case.ids(f"fresh{number}")[:1] == [str(number)]
            assert case.backend.count(case.index) == number + 1

    def test_an_update_replaces_the_whole_document(self, case: Case) -> None:
        case.add(page("a", "alpha", "beta", author="Ann", color="red"), page("b", "gamma"))
        case.add(page("a", "delta"))
        assert case.ids("alpha") == case.ids("beta") == []
        hit = case.search("delta").hits[0]
        assert "author" not in hit.document
        assert "color" not in hit.document
        assert case.ids(MATCH_ALL, "color = red") == []
        assert case.backend.count(case.index) == 2

    def test_repeating_an_upsert_changes_nothing(self, case: Case) -> None:
        case.add(*SHOP)
        case.add(*SHOP)
        assert case.backend.count(case.index) == len(SHOP)
        assert case.search(MATCH_ALL).total == len(SHOP)

    def test_an_empty_batch_is_harmless(self, case: Case) -> None:
        case.backend.upsert(case.index, [], {})
        case.backend.delete(case.index, [])
        assert case.backend.count(case.index) == 0

    @pytest.mark.parametrize("id", [
        "1", "a/b", "../a", "a b", " a ", "A", "ä", "日本語", "%2F", "a?b#c&d=e", '"quoted"', "it's", "a,b`c", "*",
        "-a", "x" * 512, "日" * 512, "\\", "a\nb", "'; DROP", "[a]", "😀", "a:b", "null", "\u00e9", "e\u0301",
    ])  # fmt: skip
    def test_any_id_can_be_written_found_replaced_and_deleted(self, case: Case, id: str) -> None:
        case.add(page(id, "needle"), page("other", "needle"))
        case.add(page(id, "needle two"))
        assert sorted(case.ids("needle")) == sorted([id, "other"])
        assert case.search("two").hits[0].document["id"] == id
        assert sorted(case.backend.document_ids(case.index)) == sorted([id, "other"])
        case.backend.delete(case.index, [id])
        assert list(case.backend.document_ids(case.index)) == ["other"]

    def test_ids_are_compared_exactly(self, case: Case) -> None:
        case.add(page("A", "one"), page("a", "two"), page("ａ", "three"), page(" a", "four"))
        assert case.backend.count(case.index) == 4
        case.backend.delete(case.index, ["a"])
        assert sorted(case.backend.document_ids(case.index)) == sorted(["A", "ａ", " a"])

    def test_deleted_documents_are_gone_at_once_and_unknown_ids_are_passed_over(self, case: Case) -> None:
        case.add(*SHOP)
        case.backend.delete(case.index, ["lamp", "nobody", "sofa", "lamp"])
        assert case.backend.count(case.index) == 3
        assert sorted(case.backend.document_ids(case.index)) == ["chair", "shelf", "stool"]
        assert case.search("reading").total == 3

    def test_a_large_batch_is_whole(self, case: Case) -> None:
        case.add(*(page(f"p{number}", f"page {number}", "common text") for number in range(1000)))
        assert case.backend.count(case.index) == 1000
        assert case.search("common").total == 1000
        assert sorted(case.backend.document_ids(case.index)) == sorted(f"p{number}" for number in range(1000))
        case.backend.delete(case.index, [f"p{number}" for number in range(0, 1000, 2)])
        assert case.backend.count(case.index) == 500

    # --- hits

    def test_a_hit_is_the_document_as_sent_with_empty_strings_for_what_it_must_have(self, case: Case) -> None:
        sent = page(
            "a",
            "Title",
            "Some content",
            author="Ann",
            date="2024-03-01",
            price=1.5,
            count=7,
            ok=True,
            tags=["x", "Ÿ"],
            numbers=[1, 2.5],
            text='<b>"bold"</b> 日本',
            **{"with-dash": "d", "under_score": 0},
        )
        case.add(sent)
        document = case.search("title").hits[0].document
        assert document == {**sent, "excerpt": ""}
        assert type(document["count"]) is int

    def test_a_long_document_comes_back_whole_and_its_last_word_is_found(self, case: Case) -> None:
        words = " ".join(f"filler{number % 700}" for number in range(5600))
        content = words[:63_900] + " lastword"
        case.add(page("long", "Long", content))
        hit = case.search("lastword").hits[0]
        assert hit.document["content"] == content

    def test_limit_and_offset_page_through_all_hits_once(self, case: Case) -> None:
        case.add(*(page(f"p{number:02}", "same word", f"text {number}") for number in range(53)))
        for text in ("word", MATCH_ALL):
            seen: list[str] = []
            for offset in range(0, 60, 10):
                result = case.search(text, limit=10, offset=offset)
                assert result.total == 53
                seen += [hit.id for hit in result.hits]
            assert sorted(seen) == [f"p{number:02}" for number in range(53)]

    @pytest.mark.parametrize("offset", [5, 1000, 10_000, 2_147_483_647])
    def test_past_the_end_there_are_no_hits_and_the_true_total(self, case: Case, offset: int) -> None:
        case.add(*SHOP)
        for options in ({}, {"sort": (SortKey("price"),)}, {"filters": "author = Ann"}):
            result = case.search("reading", offset=offset, **options)
            assert result.hits == ()
            assert result.total == (2 if "filters" in options else 5)

    def test_a_limit_of_none_gives_the_total_and_101_gives_101(self, case: Case) -> None:
        case.add(*(page(str(number), "word") for number in range(120)))
        empty = case.search("word", limit=0)
        assert (empty.hits, empty.total) == ((), 120)
        assert len(case.search("word", limit=101).hits) == 101
        assert case.search("word", limit=0, facets=("author",)).facets == {"author": {}}

    def test_everything_comes_by_date_newest_first_then_undated_by_last_change(self, case: Case) -> None:
        case.add(
            page("u1"),
            page("old", date="2001-01-01"),
            page("u2"),
            page("new", date="2024-01-01T00:00:01Z"),
            page("mid", date="2024-01-01"),
            page("ancient", date="0001-01-01"),
        )
        case.add(page("u1"))
        assert case.ids(MATCH_ALL) == ["new", "mid", "old", "ancient", "u1", "u2"]
        assert case.ids(MATCH_ALL, limit=2, offset=3) == ["ancient", "u1"]

    @pytest.mark.parametrize("text", ["...", "-", "?!", '"', '""', "---", "😀", "\\", "( )", "。"])
    def test_only_punctuation_finds_nothing(self, case: Case, text: str) -> None:
        case.add(page("a", "Word ... - 😀 ( ) 。", "more"))
        result = case.search(text)
        assert (result.hits, result.total) == ((), 0)

    @pytest.mark.parametrize("text", [
        '"unbalanced', "a" * 512, "ab " * 170, "title:", "title:x", "* *", "[a TO b]", "AND OR NOT", "a && b", "\\\"",
        "https://example.com/a?b=c&d=e#f", "f()", "<script>alert(1)</script>", "../../etc/passwd",
        "'; DROP TABLE x; --", "𝕬𝖇𝖈", "\u200b", "é" * 250, "日" * 170, "ﬁ ß İ", "a-b-c-d-e", "+++", "++", "#",
        "c++ c# .net", "1.2.3.4.5.6.7.8", "\u0301", "\u202eabc", "x\ty", "-a -b -c", '-"', '"" ""', "กกก", "ا" * 200,
        "- - -",
        "a\u00a0b", "\ufdfa", "~1",
    ])  # fmt: skip
    def test_any_text_is_a_query(self, case: Case, text: str) -> None:
        case.add(*SHOP)
        result = case.search(text, highlight=Highlight())
        assert 0 <= len(result.hits) <= result.total <= len(SHOP)

    # --- matching that every engine has

    def test_case_and_accents_are_ignored(self, case: Case) -> None:
        case.add(page("a", "Café Münster ÉCOLE"))
        for text in ("cafe", "CAFÉ", "münster", "MUNSTER", "école", "ecole"):
            assert case.ids(text) == ["a"], text

    def test_the_last_word_matches_as_a_prefix(self, case: Case) -> None:
        case.add(page("a", "Installation guide"), page("b", "Uninstall"))
        assert case.ids("inst") == ["a"]
        assert case.ids("installation gui") == ["a"]

    def test_one_typing_error_from_five_characters(self, case: Case) -> None:
        case.add(page("a", "Document search"), page("b", "Ship"))
        for text in ("serch", "seaarch", "seorch", "saerch"):
            assert case.ids(text) == ["a"], text
        assert case.ids("shup x9q") == []

    def test_documents_with_all_words_come_first(self, case: Case) -> None:
        case.add(page("one", "apple"), page("two", "apple", "banana"), page("three", "cherry"))
        assert case.ids("apple banana")[0] == "two"

    def test_a_title_match_beats_a_content_match(self, case: Case) -> None:
        case.add(page("content", "other thing", "the walrus"), page("title", "the walrus", "other thing"))
        assert case.ids("walrus") == ["title", "content"]

    # --- filters

    @pytest.mark.parametrize(("expression", "expected"), FILTERS)
    def test_filters_keep_exactly_the_matching_documents(self, case: Case, expression: str, expected: set[str]) -> None:
        case.add(*SHOP)
        for text in (MATCH_ALL, "reading"):
            result = case.search(text, expression)
            assert {hit.id for hit in result.hits} == expected
            assert result.total == len(expected)

    def test_a_filter_tree_and_a_filter_text_are_both_held(self, case: Case) -> None:
        if has_native_filters(case.backend):
            pytest.skip("the text is in the engine's own syntax")
        case.add(*SHOP)
        assert case.ids("reading", "author = Ann", filter=parse_filter("price > 100")) == ["shelf"]

    @pytest.mark.parametrize(("expression", "position"), [
        ("price >", 7), ("(price = 1", 10), ("price = 1)", 9), ("= 1", 0), ("price = 'x", 8),
        ("price = 1 brand = 2", 10), ("unknown = 1", 0), ("price = 1 AND unknown EXISTS", 14),
        ("NOT " * 60 + "price = 1", 200), ("(" * 60, 50),
    ])  # fmt: skip
    def test_a_bad_filter_is_rejected_with_the_place(self, case: Case, expression: str, position: int) -> None:
        if has_native_filters(case.backend):
            pytest.skip("the text is in the engine's own syntax")
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", expression)
        assert (caught.value.part, caught.value.position) == ("filters", position)

    def test_an_unknown_field_in_a_filter_tree_is_rejected(self, case: Case) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", filter=parse_filter("price = 1 OR unknown = 2"))
        assert caught.value.part == "filters"

    @pytest.mark.parametrize("expression", [
        "price > cheap", "date > yesterday", "price a TO 2", "date 1 TO soon", "price > 9223372036854775808",
        "NOT price <= -9223372036854775809", f"sizes 1 TO {'9' * 400}", f"date > {'9' * 30}", "price > 1e400",
        "price > nan",
    ])  # fmt: skip
    def test_a_value_that_cannot_be_compared_is_rejected(self, case: Case, expression: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", filter=parse_filter(expression))
        assert caught.value.part == "filters"

    @pytest.mark.parametrize(("expression", "expected"), [
        ("price < 1e39", {"lamp", "sofa", "shelf", "stool"}), ("sizes >= -1e308", {"lamp", "shelf"}),
        ("price -1e39 TO 1e-7", set()), ("price > 9223372036854775807", set()), (f"brand = {'9' * 30}", set()),
        ("date < 1e11", {"lamp", "sofa", "shelf", "stool"}),
    ])  # fmt: skip
    def test_large_and_small_numbers_are_compared(self, case: Case, expression: str, expected: set[str]) -> None:
        case.add(*SHOP)
        assert set(case.ids(MATCH_ALL, expression)) == expected

    def test_known_fields_without_documents_can_be_filtered_by(self, case: Case) -> None:
        assert case.ids(MATCH_ALL, "author = Ann OR date > 2024-01-01") == []

    # --- sorting

    @pytest.mark.parametrize(("keys", "expected"), [
        ((SortKey("date"),), ["shelf", "lamp", "sofa", "stool", "chair"]),
        ((SortKey("date", True),), ["stool", "sofa", "lamp", "shelf", "chair"]),
        ((SortKey("title"),), ["shelf", "chair", "lamp", "sofa", "stool"]),
        ((SortKey("title", True),), ["stool", "sofa", "lamp", "chair", "shelf"]),
        ((SortKey("author"), SortKey("date", True)), ["lamp", "shelf", "sofa", "stool", "chair"]),
        ((SortKey("author", True), SortKey("title")), ["sofa", "shelf", "lamp", "chair", "stool"]),
        ((SortKey("code"), SortKey("author", True), SortKey("date")), ["stool", "sofa", "shelf", "lamp", "chair"]),
        ((SortKey("id"),), ["chair", "lamp", "shelf", "sofa", "stool"]),
        ((SortKey("stock", True), SortKey("id")), ["lamp", "shelf", "sofa", "chair", "stool"]),
    ])  # fmt: skip
    def test_sorting_puts_missing_values_last(self, case: Case, keys: tuple[SortKey, ...], expected: list[str]) -> None:
        case.add(*SHOP)
        for text in (MATCH_ALL, "reading"):
            assert case.ids(text, sort=keys) == expected
            assert case.ids(text, sort=keys, limit=2, offset=2) == expected[2:4]

    def test_numbers_sort_as_numbers(self, case: Case) -> None:
        prices = [5, -3, 20, 100, 3.5, 0, 1e10, -100.25, 7]
        case.add(*(page(str(number), "word", price=price) for number, price in enumerate(prices)), page("none", "word"))
        ascending = [str(prices.index(price)) for price in sorted(prices)]
        assert case.ids("word", sort=(SortKey("price"),)) == [*ascending, "none"]
        assert case.ids("word", sort=(SortKey("price", True),)) == [*reversed(ascending), "none"]

    @pytest.mark.parametrize("key", ["content", "tags", "unknown"])
    def test_what_is_no_sort_key_is_rejected(self, case: Case, key: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", sort=(SortKey(key),))
        assert caught.value.part == "sort"

    def test_ties_are_broken_by_relevance_across_pages(self, case: Case) -> None:
        case.add(
            *(
                page(f"{shelf}{number}", "walrus" if number == 3 else "other", "the walrus", shelf=shelf)
                for shelf in "ab"
                for number in range(6)
            )
        )
        ordered: list[str] = []
        for offset in range(0, 12, 5):
            ordered += case.ids("walrus", sort=(SortKey("shelf"),), limit=5, offset=offset)
        assert [id[0] for id in ordered] == ["a"] * 6 + ["b"] * 6
        assert (ordered[0], ordered[6]) == ("a3", "b3")
        assert sorted(ordered) == sorted(set(ordered))

    # --- facets

    def test_facets_count_the_values_of_all_matches(self, case: Case) -> None:
        case.add(*SHOP)
        result = case.search("reading", facets=("author", "tags", "stock", "sizes"), limit=1)
        assert dict(result.facets["author"]) == {"Ann": 2, "Bob": 1}
        assert dict(result.facets["tags"]) == {"home": 2, "light": 1, "seat": 1}
        assert list(result.facets["tags"]) == ["home", "light", "seat"]
        assert dict(result.facets["stock"]) == {"true": 2, "false": 1}
        assert dict(result.facets["sizes"]) == {"1": 1, "10": 1, "2": 1}
        assert dict(case.search("reading", "author = Ann", facets=("tags",)).facets["tags"]) == {"home": 1, "light": 1}

    def test_number_and_date_facets_have_their_bounds(self, case: Case) -> None:
        case.add(*SHOP)
        stats = case.search("reading", facets=("price", "date", "author")).facet_stats
        assert (stats["price"].min, stats["price"].max) == (5, 300.5)
        assert (stats["date"].min, stats["date"].max) == (1703980800, 1735689600)
        assert "author" not in stats

    def test_more_than_a_hundred_values_are_counted_if_wished(self, case: Case) -> None:
        case.add(*(page(str(number), "word", color=f"c{number:03}") for number in range(320)))
        every = [f"c{number:03}" for number in range(320)]
        assert list(case.search("word", facets=("color",), facet_values=1000).facets["color"]) == every
        assert list(case.search("word", facets=("color",), facet_values=300).facets["color"]) == every[:300]
        assert list(case.search("word", facets=("color",)).facets["color"]) == every[:100]

    def test_a_star_counts_every_field_that_can_be_a_facet(self, case: Case) -> None:
        case.add(*SHOP)
        facets = case.search("reading", facets=("*",)).facets
        assert {"author", "date", "price", "brand", "tags", "stock", "sizes", "note", "code"} <= set(facets)
        assert not {"content", "excerpt", "title", "url"} & set(facets)

    def test_at_most_100_values_by_count_then_value(self, case: Case) -> None:
        case.add(*(page(str(number), "word", color=f"c{number % 150:03}") for number in range(310)))
        values = case.search("word", facets=("color",)).facets["color"]
        assert list(values.items()) == [(f"c{n:03}", 3) for n in range(10)] + [(f"c{n:03}", 2) for n in range(10, 100)]

    @pytest.mark.parametrize("field", ["content", "excerpt", "title", "url", "unknown"])
    def test_what_is_no_facet_is_rejected(self, case: Case, field: str) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            case.search("reading", facets=(field,))
        assert caught.value.part == "facets"

    def test_facets_of_no_match_are_empty(self, case: Case) -> None:
        case.add(*SHOP)
        assert case.search("reading", "author = nobody", facets=("author",)).facets == {"author": {}}

    # --- highlighting

    def test_matches_are_marked_and_everything_else_is_escaped(self, case: Case) -> None:
        case.add(page("a", "Fish & <b>chips</b>", "Eat chips", author="Chips > Co", tags=["chips", "a<b"]))
        formatted = case.search("chips", highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert formatted["title"] == "Fish &amp; &lt;b&gt;<em>chips</em>&lt;/b&gt;"
        assert formatted["content"] == "Eat <em>chips</em>"
        assert formatted["excerpt"] == ""
        assert formatted["tags"][1] == "a&lt;b"
        assert formatted["id"] == "a"

    def test_a_highlight_uses_the_tags_and_the_escaping_it_is_given(self, case: Case) -> None:
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

    def test_only_the_fields_that_are_shown_are_formatted(self, case: Case) -> None:
        case.add(page("a", "Fish and chips", author="Ann Chips"))
        wish = Highlight(shown=frozenset({"title", "author", "date"}))

        (hit,) = case.search("chips", highlight=wish).hits

        assert hit.formatted is not None
        assert set(hit.formatted) == {"title", "author"}
        assert "<em>" in hit.formatted["title"]
        assert "content" in hit.document

    def test_hits_are_handed_over_one_by_one_to_whoever_takes_them(self, case: Case) -> None:
        case.add(*(page(f"{number}", "shared word") for number in range(5)))
        query = SearchQuery("shared", limit=4, facets=("id",), highlight=Highlight(), kinds=case.kinds)
        expected = case.backend.search(case.index, query)
        taken: list[Hit] = []

        result = case.backend.search(case.index, query, taken.append)

        assert result.hits == ()
        assert tuple(taken) == expected.hits
        assert (result.total, result.facets) == (expected.total, expected.facets)

    def test_what_the_taker_raises_ends_the_search(self, case: Case) -> None:
        case.add(*(page(f"{number}", "shared word") for number in range(5)))
        taken: list[Hit] = []

        def take(hit: Hit) -> None:
            taken.append(hit)
            if len(taken) == 2:
                raise Enough

        with pytest.raises(Enough):
            case.backend.search(case.index, SearchQuery("shared", kinds=case.kinds), take)

        assert len(taken) == 2

    def test_without_a_highlight_nothing_is_formatted(self, case: Case) -> None:
        case.add(*SHOP)
        assert all(hit.formatted is None for hit in case.search("reading").hits)

    # --- many at once

    def test_searches_go_on_while_documents_are_written(self, case: Case) -> None:
        case.add(*(page(f"base{number}", "steady word") for number in range(20)))
        failures: list[BaseException] = []
        done = threading.Event()

        def read() -> None:
            try:
                while not done.is_set():
                    result = case.search("steady", highlight=Highlight())
                    assert len(result.hits) == 20
                    assert result.total == 20
            except BaseException as error:  # noqa: BLE001 - told to the test below
                failures.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            for number in range(10):
                case.add(page(f"new{number}", f"moving {number}"))
        finally:
            done.set()
            for reader in readers:
                reader.join()
        assert failures == []
        assert case.backend.count(case.index) == 30

    def test_different_indexes_are_written_at_the_same_time(self, backend: SearchBackend) -> None:
        cases = [Case(backend, f"t_{uuid.uuid4().hex}") for _ in range(3)]
        failures: list[BaseException] = []

        def write(case: Case) -> None:
            try:
                backend.create_index(case.index)
                for number in range(5):
                    case.add(page(str(number), "word"))
                assert case.search("word").total == 5
            except BaseException as error:  # noqa: BLE001 - told to the test below
                failures.append(error)

        writers = [threading.Thread(target=write, args=(case,)) for case in cases]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        for case in cases:
            backend.delete_index(case.index)
        assert failures == []


class MatchingContract:
    """What an engine promises whose matching is ours."""

    CJK: ClassVar[tuple[tuple[str, str], ...]] = (
        ("東京都は日本の首都です。", "首都"), ("東京都は日本の首都です。", "東京"), ("黑豹队的防守只丢了", "防守"),
        ("대화상자를 닫습니다", "대화상자"), ("대화상자를 닫습니다", "상자"), ("กรุงเทพเป็นเมืองหลวง", "เมือง"),
        ("データベースの検索", "検索"), ("猫", "猫"), ("これは猫", "猫"), ("猫です", "猫"),
        ("全文検索エンジン", "エンジン"),
    )  # fmt: skip

    @pytest.mark.parametrize(("content", "text"), CJK)
    def test_text_without_spaces_is_found_by_its_parts(self, case: Case, content: str, text: str) -> None:
        case.add(page("a", "", content), page("b", "Other", "Latin words 無関係 무관 อื่น"))
        result = case.search(text, highlight=Highlight())
        assert [hit.id for hit in result.hits] == ["a"]
        formatted = result.hits[0].formatted
        assert formatted is not None
        assert f"<em>{text}</em>" in formatted["content"]

    @pytest.mark.parametrize(("text", "wanted"), [
        ("node.js", "node"), ("Node.JS", "node"), ("C++", "cpp"), ("c++", "cpp"), ("C#", "csharp"), ("c#", "csharp"),
        (".net", "dotnet"), (".NET", "dotnet"), ("3.11.7", "python"), ("jo@example.com", "mail"),
        ("https://example.com/docs/start?x=1", "link"), ("e-mail", "mail2"), ("snake_case_name", "snake"),
    ])  # fmt: skip
    def test_technical_terms_are_found_as_written(self, case: Case, text: str, wanted: str) -> None:
        case.add(
            page("node", "Node.js guide", "Install node.js first."),
            page("cpp", "Learn C++", "C++ and more"),
            page("csharp", "Learn C#", "C# and more"),
            page("dotnet", "Use .NET today", "With .net you can"),
            page("python", "Python 3.11.7", "Version 3.11.7 is out"),
            page("py2", "Python 3.12.1", "11 of 7"),
            page("mail", "Contact", "Write to jo@example.com now"),
            page("mail2", "E-mail", "How e-mail works"),
            page("link", "Address", "See https://example.com/docs/start?x=1 for more"),
            page("snake", "Names", "call snake_case_name() here"),
            page("c", "Vitamin C", "c is net worth it"),
        )
        assert case.ids(text)[0] == wanted

    def test_a_version_does_not_match_its_parts_elsewhere(self, case: Case) -> None:
        case.add(page("a", "Python 3.11.7"), page("b", "Python", "7 of 11 in 3"))
        assert case.ids("3.11.7") == ["a"]

    def test_a_phrase_matches_only_in_order(self, case: Case) -> None:
        case.add(
            page("a", "x", "the quick brown fox"), page("b", "x", "brown and quick"), page("c", "x", "quick brown")
        )
        assert sorted(case.ids('"quick brown"')) == ["a", "c"]
        assert case.ids('"quick brown" fox')[0] == "a"
        assert case.ids('"brown quick"') == []
        assert case.ids('"quick"') != []

    @pytest.mark.parametrize("phrase", ["이 암호를", "암호를 국립도서관", "时候 开放", "เปิดเมื่อไร แต่ย้าย", "राम के घर"])
    def test_a_phrase_of_several_words_is_found_in_any_script(self, case: Case, phrase: str) -> None:
        first, _, rest = phrase.partition(" ")
        case.add(page("a", "x", f"x {phrase} y"), page("b", "x", f"{rest} x {first}"))
        assert case.ids(f'"{phrase}"') == ["a"]

    def test_the_sign_of_a_hebrew_abbreviation_opens_no_phrase(self, case: Case) -> None:
        case.add(page("a", "x", 'פעולות צה"ל מול ארה"ב'), page("b", "x", "ל וארה"))
        assert case.ids('צה"ל ארה"ב') == ["a"]

    def test_a_minus_leaves_documents_out(self, case: Case) -> None:
        case.add(page("a", "red apple"), page("b", "green apple"), page("c", "apple", "a red one"))
        assert case.ids("apple -red") == ["b"]
        assert sorted(case.ids('apple -"red apple"')) == ["b", "c"]
        assert sorted(case.ids("-red")) == ["b"]
        assert sorted(case.ids("apple - red"))[0] == "a"

    def test_exact_beats_prefix_beats_typo(self, case: Case) -> None:
        case.add(
            page("typo", "x", "a serch here"),
            page("prefix", "x", "a searchlight here"),
            page("exact", "x", "a search here"),
        )
        assert case.ids("search") == ["exact", "prefix", "typo"]

    @pytest.mark.parametrize(("text", "found"), [
        ("documantation", True), ("docmentation", True), ("documnetation", True), ("documentatoin", True),
        ("docmentatoin", True), ("odcumentation", True), ("docuxxxtation", False), ("documant", True),
        ("docunentat", True), ("guode", True), ("giude", True), ("gude", False), ("guidee", True),
    ])  # fmt: skip
    def test_typing_errors_are_forgiven_by_length(self, case: Case, text: str, found: bool) -> None:
        case.add(page("a", "Documentation guide"), page("b", "Something else"))
        assert case.ids(text) == (["a"] if found else [])

    def test_title_beats_excerpt_beats_content(self, case: Case) -> None:
        filler = "one two three four five"
        case.add(
            page("content", filler, f"walrus {filler}", excerpt=filler),
            page("title", f"walrus {filler}", filler, excerpt=filler),
            page("excerpt", filler, filler, excerpt=f"walrus {filler}"),
        )
        assert case.ids("walrus") == ["title", "excerpt", "content"]

    def test_more_words_beat_a_better_field(self, case: Case) -> None:
        case.add(
            page("both", "other", "a walrus and also an otter in a pond"),
            page("one", "walrus", "walrus walrus"),
            page("two", "otter", "otter"),
        )
        assert case.ids("walrus otter")[0] == "both"

    def test_all_words_can_be_demanded(self, case: Case) -> None:
        case.add(page("both", "x", "walrus otter"), page("one", "walrus"))
        assert case.ids("walrus otter") == ["both", "one"]
        assert case.ids("walrus otter", all_words=True) == ["both"]

    def test_the_searched_fields_can_be_chosen(self, case: Case) -> None:
        case.add(
            page("t", "walrus", "x", excerpt="y"),
            page("c", "x", "walrus", excerpt="y"),
            page("e", "x", "y", excerpt="walrus"),
        )
        assert case.ids("walrus", fields=("title",)) == ["t"]
        assert case.ids("walrus", fields=("content",)) == ["c"]
        assert sorted(case.ids("walrus", fields=("excerpt", "content"))) == ["c", "e"]
        assert case.ids("walrus", fields=("url",)) == []

    @pytest.mark.parametrize(("content", "text"), [
        ("He was running through the houses", "house run"), ("Die Häuser wurden gebaut", "Haus"),
        ("Las aplicaciones son nuevas", "aplicación"), ("La aplicación es nueva", "aplicaciones"),
        ("Les chevaux nationaux", "national"), ("Новые документы", "документ"), ("I gatti dormono nella casa", "gatto"),
    ])  # fmt: skip
    def test_other_forms_of_a_word_are_found(self, case: Case, content: str, text: str) -> None:
        case.add(page("a", "", content), page("b", "zzz"))
        assert case.ids(text) == ["a"]

    def test_stop_words_need_not_match(self, case: Case) -> None:
        case.add(page("a", "Install the server", "Simple steps"), page("b", "How to", "How do I do this to the"))
        assert case.ids("how do i install the server")[0] == "a"
        assert case.ids("the")[0] in ("a", "b")

    @pytest.mark.parametrize(("content", "text"), [
        ("Ελληνικά κείμενα", "ελληνικα"), ("ΑΘΗΝΑ", "αθήνα"), ("Ёлка зелёная", "елка"), ("مُحَمَّد كتب", "محمد"),
        ("İSTANBUL", "istanbul"), ("Straße", "strasse"), ("ﬁle ｆｕｌｌ", "full"), ("cafe\u0301", "café"),
        ("Łódź", "lodz"), ("שָׁלוֹם עולם", "שלום"), ("हिन्दी भाषा", "भाषा"),
    ])  # fmt: skip
    def test_scripts_fold(self, case: Case, content: str, text: str) -> None:
        case.add(page("a", "", content), page("b", "zzz"))
        assert case.ids(text) == ["a"]

    def test_synonyms_stop_words_pins_and_weights_are_settings(self, case: Case) -> None:
        case.add(
            page("a", "Laptop", "portable"),
            page("b", "Notebook computer", "portable"),
            page("c", "Phone", "a laptop is no phone"),
            page("z", "Nothing", "to see"),
        )
        plain = case.ids("laptop")
        assert plain[0] == "a"
        assert "b" not in plain
        synonyms = SearchSettings(synonyms=(("laptop", "notebook computer"),))
        assert {"a", "b"} <= set(case.ids("laptop", settings=synonyms))
        assert {"a", "b"} <= set(case.ids("notebook computer", settings=synonyms))
        pinned = SearchSettings(pinned={"laptop": ("z", "gone", "c")})
        result = case.search(" LAPTOP ", settings=pinned)
        assert [hit.id for hit in result.hits] == ["z", "c", "a"]
        assert result.total == 3
        assert case.ids("laptop", settings=pinned, limit=1, offset=1) == ["c"]
        assert case.ids("laptop", settings=pinned, limit=5, offset=2) == ["a"]
        weights = SearchSettings(weights={"title": 0.01, "content": 10.0})
        assert case.ids("laptop", settings=weights)[0] == "c"
        stops = SearchSettings(stop_words=frozenset({"laptop"}))
        assert case.ids("laptop phone", settings=stops)[0] == "c"

    def test_a_pinned_document_still_obeys_the_filter(self, case: Case) -> None:
        case.add(page("a", "walrus", color="red"), page("b", "walrus", color="blue"), page("z", "x", color="red"))
        pinned = SearchSettings(pinned={"walrus": ("z", "b")})
        assert case.ids("walrus", "color = red", settings=pinned) == ["z", "a"]

    def test_newer_wins_when_all_else_is_equal(self, case: Case) -> None:
        case.add(
            page("old", "walrus", date="2010-01-01"),
            page("new", "walrus", date="2025-01-01"),
            page("mid", "walrus", date="2018-01-01"),
        )
        assert case.ids("walrus") == ["new", "mid", "old"]

    @pytest.mark.parametrize(("content", "text", "marked"), [
        ("Installation guide", "instal", "<em>Installation</em> guide"),
        ("A documentation page", "documantation", "A <em>documentation</em> page"),
        ("Many houses here", "house", "Many <em>houses</em> here"),
        ("Le café noir", "cafe", "Le <em>café</em> noir"),
        ("Use node.js & more", "node.js", "Use <em>node.js</em> &amp; more"),
        ("Learn C++ now", "c++", "Learn <em>C++</em> now"),
    ])  # fmt: skip
    def test_every_kind_of_match_is_marked(self, case: Case, content: str, text: str, marked: str) -> None:
        case.add(page("a", "", content))
        formatted = case.search(text, highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert formatted["content"] == marked

    def test_unmarked_highlights_give_back_the_text(self, case: Case) -> None:
        texts = [
            "<b>İstanbul</b> ﬁle & ß",
            "x́́ cafe\u0301 'quote' \"double\"",
            "日本語 English 한국어",
            "\u202e a \u200b b",
        ]
        case.add(*(page(str(number), text, text) for number, text in enumerate(texts)))
        for query in ("istanbul", "file", "cafe", "日本", "english", "한국"):
            for hit in case.search(query, highlight=Highlight(crop_fields={})).hits:
                assert hit.formatted is not None
                for name in ("title", "content"):
                    plain = html.unescape(hit.formatted[name].replace("<em>", "").replace("</em>", ""))
                    assert plain == hit.document[name]

    def test_sorting_agrees_with_a_plain_model_on_any_page(self, case: Case) -> None:
        chance = random.Random(7)
        documents = []
        for number in range(300):
            fields: dict[str, Any] = {}
            if chance.random() < 0.8:
                fields["rank"] = chance.choice([1, 2, 2.5, 3, -1])
            if chance.random() < 0.7:
                fields["color"] = chance.choice(["red", "Green", "blue"])
            if chance.random() < 0.5:
                fields["date"] = chance.choice(["2020-01-01", "2021-06-01", "2022-01-01T10:00:00Z"])
            documents.append(page(f"d{number:03}", "word", **fields))
        case.add(*documents)
        keys = (SortKey("rank", True), SortKey("color"), SortKey("id"))

        def by(document: Mapping[str, Any]) -> tuple[Any, ...]:
            rank, color = document.get("rank"), document.get("color")
            return (rank is None, -(rank or 0), color is None, (color or "").lower(), document["id"])

        expected = [document["id"] for document in sorted(documents, key=by)]
        for offset in (0, 7, 95, 205, 290):
            assert case.ids("word", sort=keys, limit=20, offset=offset) == expected[offset : offset + 20]
