"""Include and exclude globs match paths with queries."""

from __future__ import annotations

import pytest

from app.crawl.run.visits.admission import Rules


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("/docs/*", ["/docs/", "/docs/a/b", "/docs/?q=1"], ["/docs", "/x/docs/a"]),
        ("/docs", ["/docs"], ["/docs/", "/docs?a=1"]),
        ("*.html", ["/a.html", "/a/b.html"], ["/a.html?x=1", "/html"]),
        ("*?print=*", ["/a?print=1"], ["/a?x=print"]),
        ("/*/old/*", ["/a/old/b", "/a/b/old/c"], ["/old/b", "/a/old"]),
        ("*a*a*", ["/aa", "/banana"], ["/a", "/b"]),
        ("/ab*ba", ["/abba", "/abxba"], ["/aba"]),
        ("*", ["/", "/a?b"], []),
        ("**", ["/", "/a?b"], []),
        ("/[a]+", ["/[a]+"], ["/aa"]),
    ],
)
def test_star_in_a_glob_matches_any_characters(glob: str, matching: list[str], others: list[str]) -> None:
    rules = Rules([glob], [])
    assert [path for path in [*matching, *others] if rules.allow(f"https://example.com{path}")] == matching
    refusing = Rules([], [glob])
    assert [path for path in [*matching, *others] if refusing.allow(f"https://example.com{path}")] == others


def test_exclude_globs_take_precedence_over_include_globs() -> None:
    rules = Rules(["/docs/*"], ["/docs/old/*"])
    assert rules.allow("https://example.com/docs/a")
    assert not rules.allow("https://example.com/docs/old/a")


def test_glob_with_many_stars_is_matched_quickly() -> None:
    rules = Rules(["*a" * 1000 + "b"], [])
    assert not rules.allow("https://example.com/" + "a" * 2000)
