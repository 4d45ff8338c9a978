"""Numbers, times, and durations in sentences."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from app.wording import counted, day_text, duration, moment_text, printable


@pytest.mark.parametrize(
    ("value", "noun", "words"),
    [
        (0, "site", "0 sites"),
        (1, "site", "1 site"),
        (2_000, "site", "2,000 sites"),
        (1, "search", "1 search"),
        (2, "search", "2 searches"),
        (2, "index", "2 indexes"),
    ],
)
def test_counted_noun_is_plural_unless_the_count_is_one(value: int, noun: str, words: str) -> None:
    assert counted(value, noun) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (120, "120 seconds"),
        (121, "3 minutes"),
        (7_200, "120 minutes"),
        (7_201, "3 hours"),
        (172_801, "3 days"),
    ],
)
def test_duration_is_rounded_up(seconds: int, words: str) -> None:
    assert duration(seconds) == words


def test_dates_and_times_are_formatted_in_utc() -> None:
    late = datetime(2024, 5, 1, 23, 30, tzinfo=timezone(-timedelta(hours=1)))
    assert (day_text(late), moment_text(late)) == ("2 May 2024", "2 May 2024, 00:30 UTC")
    assert (day_text(date(2024, 5, 1)), moment_text(datetime(2024, 5, 1, 7, 3, tzinfo=UTC))) == (
        "1 May 2024",
        "1 May 2024, 07:03 UTC",
    )


def test_untrusted_text_is_printed_on_one_line_without_control_characters() -> None:
    assert printable("Zoë\x1b[31m & Söhne\r\n\x9b2J\u202e") == "Zoë�[31m & Söhne���2J�"
