"""Applying the settings and rules of a site to a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.clock import now
from app.services.access.credentials import SiteRecord
from app.services.search.answers import may_have_answer
from backends.query import Effects, SearchQuery


def for_site(query: SearchQuery, site: SiteRecord, max_bytes: int | None = None) -> SearchQuery:
    """Return a query with a site's field types, settings, and rules applied.

    Args:
        max_bytes: Maximum size of the hits; ``None`` for no limit.
    """
    max_bytes = query.max_bytes if max_bytes is None else max_bytes
    answers = query.answers and site.settings.answers
    site_query = replace(query, kinds=site.kinds, settings=site.settings, answers=answers, max_bytes=max_bytes)
    site_query = site.rules.apply(site_query, now)
    return replace(site_query, answers=False) if answers and not may_have_answer(site_query) else site_query


def merge_effects(effects: Iterable[Effects]) -> Effects:
    """Return what the rules of several sites do to a response: the first redirect, and the first notice."""
    merged = list(effects)
    return Effects(
        rules=tuple(dict.fromkeys(rule for each in merged for rule in each.rules)),
        redirect=next((each.redirect for each in merged if each.redirect), ""),
        notice=next((each.notice for each in merged if each.notice), None),
    )
