"""Searches for distinct values read no more documents than necessary."""

from __future__ import annotations

from typing import Any

import pytest

from backends.embedded.results import distinct
from tests.backends.contract import Case
from tests.backends.contract.case import page
from tests.backends.embedded.in_memory import index_of


@pytest.fixture
def shop() -> Case:
    """500 documents about tea, in three alternating shops and separate rooms."""
    return index_of(*(page(f"d{at}", "Tea", "Tea", shop=f"s{at % 3}", room=f"r{at}") for at in range(500)))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the address of each document that is read to get its distinct value."""
    read_document = distinct.read_document
    addresses: list[Any] = []

    def note(snapshot: Any, address: Any) -> dict[str, Any]:
        addresses.append(address)
        return read_document(snapshot, address)

    monkeypatch.setattr(distinct, "read_document", note)
    return addresses


def test_reading_stops_after_the_last_distinct_value_of_a_short_page(shop: Case, read: list[Any]) -> None:
    found = shop.search("tea", distinct="shop", limit=20)
    assert len(found.hits) == found.total == 3
    assert len(read) == 3


def test_reading_stops_when_the_page_is_full(shop: Case, read: list[Any]) -> None:
    assert len(shop.ids("tea", distinct="room", limit=20, offset=10)) == 20
    assert len(read) == 30


def test_no_document_is_read_without_distinct_or_past_the_last_page(shop: Case, read: list[Any]) -> None:
    shop.search("tea", limit=20)
    shop.search("tea", distinct="shop", limit=20, offset=3)
    assert read == []
