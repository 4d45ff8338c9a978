"""Robots directives apply if they address all crawlers or ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine
from turbohtml import parse

from app.crawl.read.links import Directives, header_directives, meta_directives

BOTH = Directives(noindex=True, nofollow=True)
NOINDEX = Directives(noindex=True)
EXPIRES = Directives(expires=True)


@pytest.fixture(autouse=True)
def _today() -> Iterator[None]:
    with time_machine.travel("2026-05-01T12:00:00Z", tick=False):
        yield


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noindex", NOINDEX),
        ("NoIndex, NOFOLLOW", BOTH),
        ("none", BOTH),
        ("nofollow", Directives(nofollow=True)),
        ("SiteSearchBot: noindex", NOINDEX),
        ("otherbot: noindex", Directives()),
        ("otherbot: noindex, nofollow", Directives()),
        ("otherbot: nofollow, sitesearchbot: noindex", NOINDEX),
        ("noindex, otherbot: nofollow", NOINDEX),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", NOINDEX),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST", EXPIRES),
        ("unavailable_after: 25 Jun 2020 15:00:00 PST", NOINDEX),
        ("unavailable_after: Thursday, 25-Jun-20 15:00:00 UTC, nofollow", BOTH),
        ("unavailable_after: Thu, 25 Jun 2020 15:00:00 GMT", NOINDEX),
        ("unavailable_after: 2020-06-25T15:00:00+02:00", NOINDEX),
        ("unavailable_after: 2026-04-30", NOINDEX),
        ("unavailable_after: 2026-05-01", EXPIRES),
        ("unavailable_after: soon, nofollow", Directives(nofollow=True)),
        ("otherbot: unavailable_after: 2020-06-25", Directives()),
        ("max-snippet: 10, noindex", NOINDEX),
        ("noindexed", Directives()),
        ("", Directives()),
    ],
)
def test_x_robots_tag_directives_for_all_crawlers_and_ours_apply(value: str, expected: Directives) -> None:
    assert header_directives({"x-robots-tag": value}) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<meta name="robots" content="noindex, nofollow">', BOTH),
        ('<meta name="ROBOTS" content="NONE">', BOTH),
        ('<meta name="sitesearchbot" content="noindex">', NOINDEX),
        ('<meta name="otherbot" content="noindex">', Directives()),
        ('<meta name="robots" content="nofollow"><meta name="SiteSearchBot" content="noindex">', BOTH),
        ('<meta name="robots" content="index, follow, noarchive">', Directives()),
        ('<meta name="robots">', Directives()),
        ('<meta name="robots" content="unavailable_after: 2020-06-25">', NOINDEX),
        ('<meta name="googlebot" content="unavailable_after: 2020-06-25">', Directives()),
    ],
)
def test_robots_meta_tags_for_all_crawlers_and_ours_apply(html: str, expected: Directives) -> None:
    assert meta_directives(parse(html)) == expected
