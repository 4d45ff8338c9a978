"""The tests of ultimate-sitemap-parser, run against our crawler: `.ci/sitemaps.py FOLDER`, where FOLDER contains
a checkout of `ultimate-sitemap-parser`.

The tests run unchanged, but import replacements that call the crawler's functions. The comparison
covers the URLs of pages and of unreadable files. It ignores titles, dates, and priorities, since a
crawl reads them from pages."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import requests
from outside import judge, not_run

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.listings import read_sitemap, walk_sitemaps
from app.crawl.fetch.robots import RobotsRules
from app.crawl.fetch.values import Fetched, NotIndexed, http_reason


class Page:
    """A page of a sitemap, identified by its URL."""

    def __init__(self, url: str, **_: object):
        self.url = normalize_url(url)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Page) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)


class Node:
    """A site, a robots.txt, or a sitemap of any kind, with what it lists."""

    def __init__(self, url: str, sub_sitemaps: Sequence[Node] = (), pages: Sequence[Page] = (), reason: str = ""):
        self.url, self.sub_sitemaps, self.pages, self.failed = url, list(sub_sitemaps), list(pages), bool(reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.url)

    def __repr__(self) -> str:
        return repr(vars(self))

    def all_pages(self) -> Iterator[Page]:
        """Yield the pages of this file and the files below."""
        yield from self.pages
        for node in self.sub_sitemaps:
            yield from node.all_pages()

    def failures(self) -> Iterator[str]:
        """Yield the URLs of the files that cannot be read."""
        if self.failed:
            yield self.url
        for node in self.sub_sitemaps:
            yield from node.failures()


def fetch(url: str, **_: object) -> Fetched:
    """Fetch from the test's site, which is mocked in ``requests``."""
    response = requests.get(url, timeout=10)
    if response.status_code != 200:
        raise NotIndexed(http_reason(response.status_code), response.reason)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Fetched(normalize_url(url), 200, headers, response.content)


def sitemap_node(url: str) -> Node:
    """Return a sitemap with the files and pages that it lists."""
    try:
        sitemap = read_sitemap(fetch(url))
    except NotIndexed as error:
        return Node(url, reason=error.message)
    return Node(url, [sitemap_node(url) for url in sitemap.sitemaps], [Page(page) for page in sitemap.pages])


def site_node(homepage_url: str) -> Node:
    """Return a site's sitemaps: those in its robots.txt, and /sitemap.xml if it exists.

    Raises:
        AssertionError: A walk through all sitemaps, as in a crawl, finds different pages than reading each of them.
    """
    home = normalize_url(homepage_url)
    try:
        named = RobotsRules.read(fetch(f"{home}robots.txt").body).sitemaps(home)
        robots = Node(f"{home}robots.txt", [sitemap_node(url) for url in named])
    except NotIndexed as error:
        named, robots = (), Node(f"{home}robots.txt", reason=error.message)
    failed: list[str] = []
    walked = walk_sitemaps(fetch, named, lambda url, _: failed.append(url), read_sitemap)
    assert {page.url for page in walked} == {page.url for page in robots.all_pages()}
    assert not named or failed == list(robots.failures())
    usual = sitemap_node(f"{home}sitemap.xml")
    is_more = not usual.failed and usual.url not in named
    return Node(home, [robots, usual] if is_more else [robots])


def install_as_theirs(folder: Path) -> None:
    """Let the tests import our functions under their package's names."""
    kinds = ("IndexRobotsTxt", "PagesXML", "IndexXML", "Invalid", "PagesText", "IndexWebsite", "PagesRSS", "PagesAtom")
    names: dict[str, dict[str, Any]] = {
        "usp.log": {"create_logger": lambda _: None},
        "usp.objects.page": {
            "SitemapPage": Page,
            "SitemapNewsStory": SimpleNamespace,
            "SitemapPageChangeFrequency": SimpleNamespace(MONTHLY=None, ALWAYS=None),
        },
        "usp.objects.sitemap": {f"{kind}Sitemap": Node for kind in kinds},
        "usp.tree": {"sitemap_tree_for_homepage": site_node},
    }
    for name, values in names.items():
        module = ModuleType(name)
        vars(module).update(values)
        sys.modules[name] = module
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True


class Outcomes(unittest.TestResult):
    """The outcome of each test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, str | None] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.outcomes[test.id()] = None

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.outcomes[test.id()] = str(err[1])

    addError = addFailure


def main(folder: Path) -> int:
    """Run the tests. Returns the number of unexpected outcomes."""
    install_as_theirs(folder)
    result = Outcomes()
    unittest.defaultTestLoader.loadTestsFromName("tests.test_tree").run(result)
    others = not_run(folder, "tests/**/test_*.py", {"tests/test_tree.py"})
    return judge("ultimate-sitemap-parser", result.outcomes | others)


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1]) / "ultimate-sitemap-parser") else 0)
