"""Variants of a word: joined, split, letters next to numbers, and synonyms."""

from __future__ import annotations

import pytest

from backends.query import Highlight, SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


@pytest.mark.parametrize(("text", "found"), [
    ("log in", ["split", "joined"]), ("login", ["joined", "split"]),
    ("how to log in here", ["split", "joined"]), ("data base", ["base"]), ("dat abase", ["base"]),
    ("data bas", ["base"]), ("data bas x", []), ("Data BASE tables", ["base"]), ("in to", ["split"]),
    ('"log in"', ["split"]), ("log -in", ["joined"]),
])  # fmt: skip
def test_joined_and_split_spellings_find_each_other(text: str, found: list[str]) -> None:
    case = index_of()
    case.add(
        page("split", "log in", content="Here is how to log in on the page."),
        page("joined", "login", content="The login is on the first page."),
        page("base", "database", content="Tables of a database"), page("into", "Page", content="Out of it, into it"),
    )  # fmt: skip
    assert case.ids(text, all_words=True) == found


@pytest.mark.parametrize("text", ["1.5 l", "1.5l", "1.5L", "bottle 1.5 l", "1.5 l bottle"])
def test_decimal_and_its_unit_are_found_joined_and_split(text: str) -> None:
    case = index_of()
    case.add(page("joined", "1.5L bottle"), page("split", "1.5 L bottle"), page("other", "A bottle of 1 l"))
    assert sorted(case.ids(text, all_words=True)) == ["joined", "split"]


def test_joined_and_split_spellings_are_highlighted() -> None:
    case = index_of()
    case.add(page("joined", "The login page"), page("split", "How to log in"))
    for text in ("log in", "login"):
        marked = {hit.id: (hit.formatted or {})["title"] for hit in case.search(text, highlight=Highlight()).hits}
        assert marked["joined"] == "The <em>login</em> page"
        assert "<em>log" in marked["split"]


@pytest.mark.parametrize(("text", "found"), [
    ("256gb", {"disk": "<em>256 GB</em> disk", "drive": "<em>256GB</em> drive"}),
    ("256 gb", {"disk": "<em>256</em> <em>GB</em> disk", "drive": "<em>256GB</em> drive"}),
    ("ipad2", {"tablet": "<em>iPad 2</em>"}), ("usbc", {"cable": "<em>USB-C</em>"}),
    ("abc1234xyz", {"part": "<em>ABC-1234-XYZ</em>"}), ("python3.11", {"python": "<em>Python 3.11</em>"}),
    ("usb 3.0", {"hub": "<em>USB3.0</em>"}), ("usb 3.", {"hub": "<em>USB3</em>.0"}),
    ("v3.11", {"python": "Python <em>3.11</em>"}), ("2.0.1", {"release": "App <em>v2.0.1</em>"}), ("2.0.2", {}),
    ("256tb", {}), ("gb256", {}),
])  # fmt: skip
def test_joined_and_split_letters_and_numbers_find_each_other(text: str, found: dict[str, str]) -> None:
    case = index_of(
        page("disk", "256 GB disk", "x"), page("drive", "256GB drive", "x"), page("tablet", "iPad 2", "x"),
        page("cable", "USB-C", "x"), page("part", "ABC-1234-XYZ", "x"), page("python", "Python 3.11", "x"),
        page("hub", "USB3.0", "x"), page("release", "App v2.0.1", "x"),
    )  # fmt: skip
    hits = case.search(text, all_words=True, highlight=Highlight()).hits
    assert {hit.id: (hit.formatted or {})["title"] for hit in hits} == found


def test_frequent_number_with_unit_also_matches_its_split_spelling() -> None:
    case = index_of(*(page(f"{number}", "Drive", "A drive of 256gb") for number in range(20)))
    case.add(page("apart", "Disk", "A disk of 256 GB"))
    assert "apart" in case.ids("256gb", limit=30)


def test_joined_spelling_is_found_among_longer_and_more_frequent_words() -> None:
    case = index_of()
    case.add(page("database", "Page", content="A database"))
    for number, word in enumerate(("databases", "databasename", "databaseserver") * 3):
        case.add(page(f"longer{number}", "Page", content=f"Some {word}"))
    found = case.ids("data base", all_words=True)
    assert found[0] == "database"
    assert len(found) == 10


@pytest.mark.parametrize(("text", "missing"), [
    ("a live request", "alive"), ("version 1 2", "v12"),
    ("log -out in", "login"), ('log "request" in', "login"), ("in put", "input"), ("plan a", "plana"),
])  # fmt: skip
def test_unrelated_adjacent_words_are_not_joined(text: str, missing: str) -> None:
    case = index_of()
    words = ("alive", "login", "input", "plana")
    case.add(*(page(word, "Page", content=f"{word}, said the request for the version") for word in words))
    case.add(page("v12", "Page", content="The version 12"), page("v1", "Page", content="The version 1, or 2"))
    assert missing in case.ids(missing if missing != "v12" else "version 12", all_words=True)
    assert missing not in case.ids(text, all_words=True, settings=SearchSettings(language="en"))


@pytest.mark.parametrize(("text", "marked"), [
    ("timezones", "the <em>time zone</em> of"), ("timezon", "the <em>time zone</em> of"),
    ("phonecases for", "A <em>phone case</em>"), ("rushhours", "the <em>rush hour</em>"),
])  # fmt: skip
def test_two_words_written_as_one_in_another_form_are_found(text: str, marked: str) -> None:
    case = index_of()
    case.add(
        page("a", "Page", content="Set the time zone of your account"),
        page("b", "Page", content="A phone case, but at the rush hour"),
        page("c", "Page", content="A zone in time, an hour of rush, and a case without a phone"),
    )
    (hit,) = case.search(text, highlight=Highlight(), all_words=True).hits
    assert hit.formatted is not None
    assert marked in hit.formatted["content"]


def test_existing_word_is_not_split_after_a_stop_word() -> None:
    case = index_of()
    case.add(page("upon", "Page", content="Once upon the time"), page("up", "Page", content="It is up on the roof"))
    case.add(page("setup", "Page", content="The setup"), page("set", "Page", content="How it is set up"))
    assert case.ids("upon") == ["upon"]
    assert case.ids("setup") == ["setup", "set"]
    assert case.ids("theroof") == ["up"]


@pytest.mark.parametrize(("text", "found"), [
    ("电脑", {"run", "word"}), ("计算机", {"run", "word"}), ("个人 电脑", {"run"}), ("plane", {"two", "one"}),
])  # fmt: skip
def test_synonyms_match_inside_text_without_spaces_and_across_words(text: str, found: set[str]) -> None:
    case = index_of(
        page("run", "x", "我的个人计算机很好"), page("word", "电脑", "x"), page("two", "x", "An air craft"),
        page("one", "x", "A plane"),
    )  # fmt: skip
    settings = SearchSettings(synonyms=(("电脑", "计算机"), ("plane", "air craft")))
    assert set(case.ids(text, settings=settings, all_words=True)) == found
