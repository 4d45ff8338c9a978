"""Applying the settings and rules of a site to a query."""

from __future__ import annotations

from dataclasses import replace

from app.clock import now
from app.services.access.credentials import SiteRecord
from app.services.search.answers import may_have_answer
from backends.query import SearchQuery


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
