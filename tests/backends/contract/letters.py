"""Letters: found with and without accents, and highlighted as written."""

from __future__ import annotations

import unicodedata

import pytest

from backends.query import Highlight
from backends.servers.tokenizer import FOLDS
from tests.backends.contract.case import Case, page

LATIN = tuple(c for c in map(chr, range(0x80, 0x20000)) if c.isalpha() and "LATIN " in unicodedata.name(c, ""))


def latin_titles() -> list[list[str]]:
    """Return titles of up to ten short words, one word per Latin letter, that stay distinct without accents."""
    titles: list[dict[str, str]] = []
    for letter in LATIN:
        title = next((each for each in titles if len(each) < 10 and FOLDS[letter] not in each), {})
        if not title:
            titles.append(title)
        title[FOLDS[letter]] = letter + "q"
    return [list(title.values()) for title in titles]


class LetterContract:
    @pytest.mark.slow
    def test_every_latin_letter_is_found_with_and_without_accents_in_any_normal_form(self, case: Case) -> None:
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
    def test_matching_words_are_highlighted_as_written(self, case: Case, content: str, text: str, marked: str) -> None:
        case.add(page("a", "x", content), page("b", "other", "other"))
        (hit,) = case.search(text, all_words=True, highlight=Highlight(crop_fields={})).hits
        assert hit.document["content"] == content
        shown = str((hit.formatted or {})["content"])
        assert shown.replace("</em> <em>", " ") == marked.replace("</em> <em>", " ")
