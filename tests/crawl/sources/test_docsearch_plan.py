"""Regular expressions for URLs are converted to patterns or rejected."""

from __future__ import annotations

import pytest

from app.crawl.sources.docsearch_plan import NotAPattern, expand


@pytest.mark.parametrize(
    ("expression", "patterns"),
    [
        ("https://a.example/docs/", ["https://a.example/docs/"]),
        (r"https?://a\.example/\?page", ["http://a.example/?page", "https://a.example/?page"]),
        ("/(en|de)/.*?/api", ["/en/*/api", "/de/*/api"]),
        ("/v(?:1|2)?/", ["/v/", "/v1/", "/v2/"]),
        ("/blog/*", ["/blog"]),
        ("/.+.*x", ["/*x"]),
        (r"/a.{2,3}b", ["/a*b"]),
        ("/(?P<version>.*?)/guide", ["/v2/guide", "/v3/guide"]),
        ("/(?P<other>.*?)/guide", ["/*/guide"]),
    ],
)
def test_simple_regular_expressions_become_url_patterns(expression: str, patterns: list[str]) -> None:
    assert expand(expression, {"version": ["v2", "v3"]}) == patterns


@pytest.mark.parametrize(
    "expression",
    [
        "/docs/(?!v1)",
        "(?<!/)",
        r"/\d+/",
        "/[0-9]/",
        "/a+b",
        "/(open",
        "close)",
        "^/a",
        "/a$b",
        r"/\*",
        "/a\\",
        "(" * 999,
        "(a|b)" * 6,
        "/.*a" * 9,
    ],
)
def test_regular_expressions_beyond_patterns_are_rejected(expression: str) -> None:
    with pytest.raises(NotAPattern):
        expand(expression, {})
