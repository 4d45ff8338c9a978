"""Queries that are the address of a page."""

from __future__ import annotations

import pytest

from backends.base import Matched
from backends.query import SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

PHONE = {**page("phone", "Losing your phone"), "url": "https://www.example.com/help/reset-2fa"}
SITE = (
    PHONE,
    {**page("mention", "See https://www.example.com/help/reset-2fa"), "url": "https://www.example.com/other/"},
    {**page("home", "Home"), "url": "https://www.example.com/"},
    {**page("one", "Topic"), "url": "/topic.php?t=1"}, {**page("two", "Topic"), "url": "/topic.php?t=2"},
    {**page("about", "About"), "url": "/stra%C3%9Fe/über-uns"},
)  # fmt: skip


@pytest.mark.parametrize(("text", "id"), [
    ("https://www.example.com/help/reset-2fa", "phone"), ("http://www.example.com/help/reset-2fa/", "phone"),
    (" www.example.com/help/reset-2fa#step-2", "phone"), ("HTTPS://WWW.EXAMPLE.COM/help/reset-2fa", "phone"),
    ("/help/reset-2fa", "phone"), ("help/reset-2fa", "phone"), ("reset-2fa", "phone"),
    ("https://www.example.com/other", "mention"), ("https://www.example.com", "home"), ("/topic.php?t=2", "two"),
    ("/stra%C3%9Fe/über-uns", "about"), ("über-uns", "about"),
])  # fmt: skip
def test_address_of_a_page_finds_it_first(text: str, id: str) -> None:
    result = index_of(*SITE).search(text)
    assert (result.hits[0].id, result.matched, result.corrected_query) == (id, Matched.ALL, None)


@pytest.mark.parametrize("text", ["/help/reset", "/topic.php?t=3", "https://www.example.com/reset-2fa-again", "and/or"])
def test_unknown_url_does_not_find_the_page_of_a_similar_url(text: str) -> None:
    assert "phone" not in index_of(*SITE).ids(text, all_words=True)


def test_address_respects_filters_pins_and_hidden_pages() -> None:
    case, text = index_of(*SITE), "/help/reset-2fa"
    assert case.ids(text, filters='title = "Home"') == []
    assert case.ids(text, settings=SearchSettings(pinned={text: ("home",)})) == ["home", "phone", "mention"]
    assert case.ids(text, settings=SearchSettings(hidden={text: ("phone",)})) == ["mention"]
    assert case.search(text, explain=True).hits[0].id == "phone"
