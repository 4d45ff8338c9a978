"""Comparison of document and filter values."""

from __future__ import annotations

import pytest

from backends.values import fold_value, number_text, parse_filter_instant, parse_instant, parse_number


@pytest.mark.parametrize(("text", "number"), [
    ("5", 5), ("-5", -5), ("5.0", 5.0), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("+5", 5), ("1e308", 1e308),
    ("inf", None), ("nan", None), ("", None), ("5a", None), ("1e999", None), ("٥", None), ("1_000", None),
    ("0x10", None), ("--5", None), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None),
    ("-9223372036854775809", None), ("9" * 1999, None),
])  # fmt: skip
def test_numeric_text_is_parsed_as_a_number_and_other_text_is_not(text: str, number: float | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(("text", "seconds"), [
    ("1970-01-01", 0), ("1970-01-02", 86400), ("1970-01-01T00:00:01", 1), ("1970-01-01T01:00:00+01:00", 0),
    ("1969-12-31T23:59:59Z", -1), ("2024-02-30", None), ("yesterday", None), ("", None), ("0001-01-01", -62135596800),
    ("9999-12-31T23:59:59Z", 253402300799), ("1970-01-01 00:00:02", 2),
])  # fmt: skip
def test_dates_are_parsed_into_instants(text: str, seconds: int | None) -> None:
    assert parse_instant(text) == (None if seconds is None else seconds * 1_000_000)


def test_filter_accepts_unix_seconds_as_a_date() -> None:
    assert parse_filter_instant("86400") == parse_filter_instant("1970-01-02") == 86_400_000_000
    assert parse_filter_instant("1.5") == 1_500_000
    assert parse_filter_instant("1e300") is None


def test_comparisons_ignore_case_and_numbers_have_one_spelling() -> None:
    assert fold_value(" STRASSE ") == fold_value("straße")
    assert fold_value("cafe\u0301") == fold_value("CAFÉ")
    assert fold_value("cafe") != fold_value("café")
    assert (number_text(5), number_text(5.0), number_text(0.5), number_text(10**18)) == ("5", "5", "0.5", str(10**18))
