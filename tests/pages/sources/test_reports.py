"""Describes the outcome of a run in words."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import Reason
from app.models import SourceRun
from app.pages.sources.reports import (
    CHOICES,
    DEAD_LINKS,
    EXPLANATIONS,
    REMARKS,
    divide,
    explain_failure,
    explain_reason,
    summarize,
)


def a_run(**counts: int) -> SourceRun:
    return SourceRun(**{"indexed": 0, "unchanged": 0, "removed": 0, **counts})


@pytest.mark.parametrize(
    ("run", "reasons", "sentence"),
    [
        (a_run(), {}, "0 pages indexed."),
        (a_run(indexed=1), {}, "1 page indexed."),
        (a_run(unchanged=1200), {}, "1,200 pages indexed (unchanged)."),
        (a_run(indexed=12, unchanged=200, removed=3), {}, "212 pages indexed (12 new or changed), 3 removed."),
        (
            a_run(indexed=212),
            {"robots": 9, "http_404": 5, "http_410": 1},
            "212 pages indexed, 9 skipped: 9 blocked by robots.txt. 6 dead links found.",
        ),
        (a_run(indexed=53), {"http_404": 1}, "53 pages indexed. 1 dead link found."),
        (
            a_run(indexed=1),
            {"http_500": 4, "http_502": 4, "robots": 3, "noindex": 2, "trap": 1, "empty": 1, "http_418": 1},
            "1 page indexed, 16 skipped: 8 with a server error, 3 blocked by robots.txt, 2 marked noindex, "
            "1 in an endless list, 2 for other reasons.",
        ),
    ],
)
def test_run_is_summarized_in_one_sentence(run: SourceRun, reasons: dict[str, int], sentence: str) -> None:
    assert summarize(run, reasons) == sentence


def test_bar_divides_all_urls_and_shows_dead_links_apart_from_skipped_pages() -> None:
    reasons = {"excluded": 20, "duplicate": 5, "http_500": 25, "http_404": 40, "http_410": 10, "wrong_canonical": 3}

    parts = divide(a_run(indexed=60, unchanged=40), reasons)

    assert [(part.name, part.count, part.start, part.width) for part in parts] == [
        ("indexed", 100, 0.0, 50.0),
        ("choice", 25, 50.0, 12.5),
        ("trouble", 25, 62.5, 12.5),
        ("dead", 50, 75.0, 25.0),
    ]
    assert [(part.name, part.width) for part in divide(a_run(), {"http_404": 1})] == [("dead", 100.0)]
    assert divide(a_run(), {}) == []


def test_reasons_of_the_bar_are_reasons_of_the_crawler() -> None:
    assert set(Reason) | {"http_404", "http_410"} >= CHOICES | DEAD_LINKS | REMARKS


def test_every_skip_reason_has_an_explanation() -> None:
    assert set(Reason) <= set(EXPLANATIONS)


def test_unlisted_http_statuses_have_explanations() -> None:
    assert explain_reason("http_418").short == "with HTTP status 418"
    assert "The next run tries again" in explain_reason("http_502").remedy


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "Something went wrong in this service."),
        ({"code": "internal_error", "message": "It broke."}, "Something went wrong in this service."),
        ({"code": "sync_removes_too_much", "message": "max_removed_percent"}, "Nothing was removed."),
        ({"code": "bad_source", "message": "This is no feed."}, "This is no feed. Check that the URL is correct"),
        (
            {"code": "incomplete", "message": "37 of 41 pages could not be read."},
            "37 of 41 pages could not be read. The next run tries again; a page that was indexed before stays "
            "searchable. Nothing was removed.",
        ),
        ({"code": "site_inactive", "message": "The site is paused."}, "The site is paused."),
    ],
)
def test_run_failure_explains_what_to_do(error: dict[str, str] | None, text: str) -> None:
    assert text in explain_failure(error)
    assert "max_removed_percent" not in explain_failure(error)
