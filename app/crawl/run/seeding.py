"""The URLs that a run starts with: from sitemaps, a feed, or a list of URLs; or the posts of a WordPress API."""

from __future__ import annotations

from collections.abc import Iterable

from app.crawl.fetch.addresses import parse_url
from app.crawl.fetch.feeds import fetch_feed
from app.crawl.fetch.sitemaps import Listed, walk_sitemaps
from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.fetch.wordpress import walk_posts
from app.crawl.run.crawl import add_post
from app.crawl.run.frontier import LATEST_CHANGE
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, is_failure
from app.crawl.run.page_documents import field_rules, page_of_post
from app.crawl.run.recorder import add_outcome
from app.crawl.run.state import RunFailed, RunState
from app.crawl.run.stored_run import add_discovered, change_run

STEP = 500


def seed(state: RunState) -> None:
    """Store the URLs to start with, or add the posts of a blog.

    Raises:
        RunFailed: The source cannot be read.
    """
    url = state.source.url
    if state.urls is not None:
        _add_entries(state, map(Listed, state.urls), depth=0)
    elif state.source.kind == "website":
        # The start page precedes all pages with a date in a sitemap.
        state.retry(add_discovered, [DiscoveredUrl(url, 0, modified=LATEST_CHANGE)])
        sitemaps = _sitemaps(state)
        found_on = sitemaps[0] if len(sitemaps) == 1 else None
        _add_entries(state, _walk(state, sitemaps), depth=1, found_on=found_on)
    elif state.source.kind == "sitemap":
        _add_entries(state, _walk(state, [url]), depth=0, found_on=url)
    elif state.source.kind == "feed":
        try:
            feed = fetch_feed(state.visitor.fetch_listing, url, state.parts.reader.read_feed)
            _add_entries(state, map(Listed, feed), depth=0, found_on=url)
        except NotIndexed as error:
            raise RunFailed(error.reason, error.message) from error
    else:
        _add_posts(state)


def _walk(state: RunState, sitemaps: Iterable[str]) -> Iterable[Listed]:
    return walk_sitemaps(
        state.visitor.fetch_listing,
        sitemaps,
        lambda url, error: _note_failed_sitemap(state, url, error),
        state.parts.reader.read_sitemap,
    )


def _add_entries(state: RunState, entries: Iterable[Listed], *, depth: int, found_on: str | None = None) -> None:
    step: list[DiscoveredUrl] = []
    for entry in entries:
        step.append(DiscoveredUrl(entry.url, depth, found_on, entry.modified))
        if len(step) == STEP:
            state.retry(add_discovered, step)
            state.control.check()
            step = []
    state.retry(add_discovered, step)


def _sitemaps(state: RunState) -> list[str]:
    """Return the sitemaps that the host's robots.txt lists, and ``/sitemap.xml``."""
    url = state.source.url
    try:
        listed = state.visitor.robots.rules(url).sitemaps(url)
    except NotIndexed:
        state.retry(change_run, complete=False)
        return []
    return list(dict.fromkeys((*listed, _default_sitemap(state))))


def _default_sitemap(state: RunState) -> str:
    return parse_url("/sitemap.xml", state.source.url).href


def _note_failed_sitemap(state: RunState, url: str, error: NotIndexed) -> None:
    """Report a sitemap that cannot be read. Unless it is permanently gone, the run doesn't remove documents."""
    if url == state.source.url and state.source.kind == "sitemap":
        raise RunFailed(error.reason, error.message)
    is_guess = state.source.kind == "website" and url == _default_sitemap(state)
    failure = is_failure(error.reason)
    if is_guess and (error.reason == Reason.BAD_SOURCE or not failure):
        return  # The host has no sitemap at this URL.
    if failure:
        state.retry(change_run, complete=False)
    add_outcome(state, Outcome(url, "failed" if failure else "skipped", error.reason))


def _add_posts(state: RunState) -> None:
    rules = field_rules(state.source)
    try:
        for post in walk_posts(state.visitor.fetch_listing, state.source.url, state.parts.reader.read_posts):
            add_post(state, post.url, page_of_post(post, rules))
            state.control.check()
    except NotIndexed as error:
        raise RunFailed(error.reason, error.message) from error
