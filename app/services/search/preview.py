"""Previews of a site's searches with other search settings. Previews are not saved, charged, or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate
from typing import Any, NamedTuple

import orjson
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.clock import today
from app.models import QueryDay, Site
from app.services.access.credentials import SiteRecord, site_record, with_settings
from app.services.search.encoding import encode_hit
from app.services.search.search import Searcher, TimedResult
from app.services.search.site_queries import for_site
from app.services.search_settings import Gains
from app.services.sites import site_inactive
from backends.base import SearchBackend
from backends.query import SearchQuery
from backends.servers.synonyms import SynonymChange

MAX_QUERIES = 50
"""Maximum number of queries in a preview."""

MAX_QUERY_BYTES = 4096
"""Maximum total size of the queries in a preview, in bytes."""

MAX_PREVIEWED_DOCUMENTS = 10
"""Maximum number of documents listed for each query, before and after."""

MAX_PREVIEWED_SECTIONS = 3
"""Maximum number of matching sections listed for each document, as in the search box."""

_PREVIEWED_FIELDS = frozenset({"id", "title"})
_FREQUENT_DAYS = 7
_EPOCH = date(1970, 1, 1)


class PreviewedSection(NamedTuple):
    """A matching section of a document: its URL, and its title with the headings above it."""

    title: str
    url: str


class PreviewedDocument(NamedTuple):
    """A document that a query finds, with its matching sections."""

    id: str
    title: str
    sections: tuple[PreviewedSection, ...] = ()


@dataclass(frozen=True, slots=True)
class PreviewedEffects:
    """Effects of a search that visitors see, apart from the documents.

    Attributes:
        notice: Text and URL of the notice above the results; the URL may be missing.
        redirect: URL that the search box opens instead of showing results; empty for none.
        answer: The quoted answer; empty for none.
        answer_from: URL of the answer's section or page, or the page's ID if it has no URL.
        links: Texts of the links that a search without results shows.
        is_mixed: Whether the documents are ordered by meaning as well as by words.
    """

    notice: Mapping[str, str] | None = None
    redirect: str = ""
    answer: str = ""
    answer_from: str = ""
    links: tuple[str, ...] = ()
    is_mixed: bool = False


NO_EFFECTS = PreviewedEffects()


@dataclass(frozen=True, slots=True)
class QueryPreview:
    """The results of a query with the current settings and with the previewed settings.

    Attributes:
        before, after: The first documents, best first.
        is_exact: Whether ``after`` will be the result once the settings are saved. ``False`` if the settings change
            synonyms of the query that the engine keeps in its index, which ``after`` does not reflect.
        effects_before, effects_after: Effects that visitors see, apart from the documents.
    """

    query: str
    before: Sequence[PreviewedDocument]
    after: Sequence[PreviewedDocument]
    is_exact: bool = True
    effects_before: PreviewedEffects = NO_EFFECTS
    effects_after: PreviewedEffects = NO_EFFECTS

    @property
    def changed(self) -> bool:
        """Whether the documents or their order would change."""
        return [document.id for document in self.before] != [document.id for document in self.after]

    @property
    def is_visible(self) -> bool:
        """Whether visitors would see a difference."""
        return self.before != self.after or self.effects_before != self.effects_after


def preview_settings(
    engine: SearchBackend,
    searcher: Searcher,
    site: Site,
    settings: Mapping[str, Any],
    queries: Sequence[str],
    learned: tuple[Gains, Gains] = ({}, {}),
) -> list[QueryPreview]:
    """Search with a site's current settings and with ``settings``.

    Engines that keep synonyms in the index use the saved synonyms, so changes of synonyms take effect only once they
    are saved.

    Args:
        engine: The site's engine.
        settings: Valid settings, as they would be stored.
        queries: At most :data:`MAX_QUERIES` texts.
        learned: The gains from clicks with the current settings and with ``settings``.

    Raises:
        ApiError: 403 ``site_inactive`` when the site is paused.
        BackendUnavailable: The engine is unavailable.
    """
    if not site.active:
        raise site_inactive()
    record = site_record(site, learned[0])
    changed_record = with_settings(record, settings, learned[1])
    searches = [
        SearchQuery(
            text.strip(),
            limit=MAX_PREVIEWED_DOCUMENTS,
            sections=MAX_PREVIEWED_SECTIONS,
            answers=True,
            is_preview=True,
            returned_fields=_PREVIEWED_FIELDS,
        )
        for text in queries
    ]
    links = [tuple(stored.get("no_results_links", ())) for stored in (site.search_settings, settings)]
    before = [_search(searcher, record, search, links[0]) for search in searches]
    if not engine.keeps_synonyms:
        after = [_search(searcher, changed_record, search, links[1]) for search in searches]
        return [_compare(*results) for results in zip(queries, before, after, strict=True)]
    change = SynonymChange(record.settings, changed_record.settings)
    comparable = replace(changed_record, settings=replace(changed_record.settings, synonyms=record.settings.synonyms))
    after = [_search(searcher, comparable, search, links[1]) for search in searches]
    exact = [not change.concerns(search.text) for search in searches]
    return [_compare(*results) for results in zip(queries, before, after, exact, strict=True)]


def frequent_queries(session: Session, site_id: int, *, only_found: bool = False) -> list[str]:
    """Return a site's most frequent searches in the last seven days including today, most frequent first.

    Their total size is at most :data:`MAX_QUERY_BYTES`.

    Args:
        only_found: Whether to leave out queries that never had results.
    """
    misses = func.sum(QueryDay.zero_results) if only_found else 0
    last = (today() - _EPOCH).days
    queries = session.scalars(
        select(QueryDay.query)
        .where(QueryDay.site_id == site_id, QueryDay.day.between(last - _FREQUENT_DAYS + 1, last))
        .group_by(QueryDay.query)
        .having(func.sum(QueryDay.searches) > misses)
        .order_by(func.sum(QueryDay.searches).desc(), QueryDay.query)
        .limit(MAX_QUERIES)
    ).all()
    sizes = accumulate(len(query.encode()) for query in queries)
    return [query for query, size in zip(queries, sizes, strict=True) if size <= MAX_QUERY_BYTES]


_Results = tuple[list[PreviewedDocument], PreviewedEffects]


def _compare(query: str, before: _Results, after: _Results, is_exact: bool = True) -> QueryPreview:
    return QueryPreview(query, before[0], after[0], is_exact, before[1], after[1])


def read_effects(query: SearchQuery, timed: TimedResult, links: Sequence[Mapping[str, str]]) -> PreviewedEffects:
    """Return the effects of a search that visitors see.

    Args:
        links: The site's links for searches without results.
    """
    answer = timed.answer or {"text": "", "url": "", "id": "", "anchor": ""}
    return PreviewedEffects(
        notice=query.effects.notice,
        redirect=query.effects.redirect,
        answer=answer["text"],
        answer_from=(answer["url"] or answer["id"]) + (f"#{answer['anchor']}" if answer["anchor"] else ""),
        links=() if timed.result.total else tuple(link["text"] for link in links),
        is_mixed=timed.result.mixed,
    )


def read_sections(hit: Mapping[str, Any]) -> tuple[PreviewedSection, ...]:
    """Return the matching sections of a hit."""
    return tuple(
        PreviewedSection(" › ".join([*section["path"], section["title"]]), section["url"])
        for section in hit.get("sections", ())
        if section["title"]
    )


def _search(
    searcher: Searcher, record: SiteRecord, search: SearchQuery, links: Sequence[Mapping[str, str]]
) -> _Results:
    query = for_site(search, record)
    timed = searcher.run(record, query)
    hits = map(orjson.loads, map(encode_hit, timed.result.hits))
    return [PreviewedDocument(hit["id"], hit["title"], read_sections(hit)) for hit in hits], read_effects(
        query, timed, links
    )
