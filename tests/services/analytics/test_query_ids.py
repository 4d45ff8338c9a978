"""A query ID identifies one search of one site for 24 hours and cannot be forged."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from app.errors import ApiError
from app.services.analytics.clicks import make_query_id, read_query_id

from .conftest import MOMENT

SECRET = "s" * 40
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def rejection(text: str, *, secret: str = SECRET, site_id: int = 7, later: timedelta = timedelta()) -> str:
    """Return the error code for an ID."""
    with pytest.raises(ApiError) as caught:
        read_query_id(secret, site_id, text, MOMENT + later)
    assert caught.value.status == 400
    (detail,) = caught.value.details
    assert detail.field == "query_id"
    return detail.code


@pytest.mark.parametrize("query", ["harbor", " Harbor  CRUISE ", "日本 \U0001f600", "a" * 512, "İ" * 256])
def test_query_id_contains_the_normalized_query(query: str) -> None:
    made = make_query_id(SECRET, 7, query, MOMENT)

    assert re.fullmatch(r"[A-Za-z0-9_-]{1,4096}", made)
    assert read_query_id(SECRET, 7, made, MOMENT) == read_query_id(
        SECRET, 7, make_query_id(SECRET, 7, query.strip().lower(), MOMENT), MOMENT
    )


def test_two_searches_at_the_same_moment_get_different_query_ids() -> None:
    assert make_query_id(SECRET, 7, "a", MOMENT) != make_query_id(SECRET, 7, "a", MOMENT)


@pytest.mark.parametrize("made_ahead", [timedelta(), timedelta(minutes=-5)])
def test_query_id_expires_after_24_hours(made_ahead: timedelta) -> None:
    made = make_query_id(SECRET, 7, "a", MOMENT)

    assert read_query_id(SECRET, 7, made, MOMENT + timedelta(hours=24)) == "a"
    assert read_query_id(SECRET, 7, made, MOMENT + made_ahead) == "a", "another machine's clock may be ahead"
    assert rejection(made, later=timedelta(hours=24, microseconds=1)) == "expired"


def test_query_id_of_another_site_or_installation_is_rejected() -> None:
    made = make_query_id(SECRET, 7, "a", MOMENT)

    assert rejection(made, site_id=8) == "unknown"
    assert rejection(made, secret="t" * 40) == "unknown"


@pytest.mark.parametrize("text", ["x", "!", "é", "\ud800", "A" * 21, "A" * 60, "=", "A" * 64 + "=", " "])
def test_malformed_query_ids_are_rejected(text: str) -> None:
    assert rejection(text) == "unknown"


def test_query_id_with_any_changed_character_is_rejected() -> None:
    made = make_query_id(SECRET, 7, "harbor", MOMENT)

    for place, character in enumerate(made):
        other = LETTERS[LETTERS.index(character) ^ 1]
        assert rejection(made[:place] + other + made[place + 1 :]) == "unknown"
    assert rejection(made + "=") == "unknown", "a query ID must have only one spelling"
