"""Merging the results of several sites into one.

Each site is searched twice: first for the scores of its best hits, without reading a document, which decides how many
hits of each site the page has; then for these hits. Between sites, hits are ordered by their scores, which engines
return in a form that is comparable between indexes (:class:`backends.base.Score`), times the weights of the sites. The
order within a site stays as it is, with its pins, ranks, meaning, and clicks.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import orjson

from app.services.access.credentials import SearchedSite
from backends.base import FacetStats, Hit, Matched, SearchResult
from backends.field_rules import first_values
from backends.filters import And, Comparison, Filter, Not, OneOf, Or, Presence, all_of, parse_filter
from backends.query import MATCH_ALL, Effects, SearchQuery, SortKey
from backends.values import fold_to_sort, fold_value, parse_instant, value_text

SITE: str = "site"
"""Field of hits, facet, and name in filters: the site that a hit is from."""

MAX_MERGED = 1_000
"""Maximum of ``offset`` plus ``limit`` in a search over several sites, each of which may have to rank as many hits."""

_SITE_MEMBER = f'"{SITE}":'.encode()

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best hits of one site, in its order, without their documents.

    Attributes:
        site: The site.
        query: The query with the site's settings and rules.
        result: The result, whose hits have scores.
    """

    site: SearchedSite
    query: SearchQuery
    result: SearchResult


def scores_query(query: SearchQuery) -> SearchQuery:
    """Return the query for what decides the positions of a site's hits: their scores, or the values to sort by."""
    fields = {key.field for key in _sort_keys(query)} | ({query.distinct} if query.distinct else set())
    return replace(
        query,
        offset=0,
        limit=query.offset + query.limit,
        highlight=None,
        sections=0,
        answers=False,
        explain=False,
        returned_fields=frozenset(fields),
        scored=True,
    )


def choose_page(ranked: Sequence[Ranked], offset: int, limit: int) -> list[tuple[int, int]]:
    """Return the hits of a page, each as the index of its site in ``ranked`` and its position there, from 0."""
    merged = heapq.merge(*map(_placed, range(len(ranked)), ranked), key=lambda item: item[:3])
    distinct = next((site.query.distinct for site in ranked), "") or ""
    chosen = ((number, position) for _, number, position, hit in _first_of_each(merged, distinct))
    return list(islice(chosen, offset, offset + limit))


def _placed(number: int, ranked: Ranked) -> list[tuple[Key, int, int, Hit]]:
    """Return a site's hits with their keys, and with the numbers of the site and of their positions."""
    return [
        (key, number, position, hit)
        for position, (key, hit) in enumerate(zip(_keys(ranked), ranked.result.hits, strict=True))
    ]


def count_hits(ranked: Sequence[Ranked]) -> int:
    """Return the number of hits of all sites.

    With ``distinct``, a value that several sites have counts once if all hits have been ranked, and otherwise once for
    each site.
    """
    total = sum(site.result.total for site in ranked)
    is_distinct = any(site.query.distinct for site in ranked)
    if is_distinct and all(site.result.total <= len(site.result.hits) for site in ranked):
        return len(choose_page(ranked, 0, total))
    return total


def _first_of_each(hits: Iterable[tuple[Key, int, int, Hit]], field: str) -> Iterable[tuple[Key, int, int, Hit]]:
    """Skip hits with a value of a field that an earlier hit, of any site, has."""
    values = set()
    for item in hits:
        value = item[3].document.get(field) if field else None
        if value is not None and not isinstance(value, list):
            folded = fold_value(value_text(value))
            if folded in values:
                continue
            values.add(folded)
        yield item


def _keys(ranked: Ranked) -> list[Key]:
    """Return what hits of different sites are ordered by. It never decreases from a hit to the next."""
    sort_keys = _sort_keys(ranked.query)
    keys: list[Key] = []
    highest: Key = ()
    for hit in ranked.result.hits:
        assert hit.score is not None, "the search is scored"
        if sort_keys:
            key: Key = tuple(_sort_value(key, hit.document.get(key.field)) for key in sort_keys)
        else:
            key = -hit.score.level, -hit.score.share * ranked.site.weight
        # An engine may sort values that this does not tell apart, but the order within a site stays.
        highest = max(highest, key) if highest else key
        keys.append(highest)
    return keys


def _sort_keys(query: SearchQuery) -> tuple[SortKey, ...]:
    return query.sort or ((SortKey("date", descending=True),) if query.text == MATCH_ALL else ())


@dataclass(frozen=True, slots=True)
class _Descending:
    """Reverses the order of a text."""

    text: str

    def __lt__(self, other: _Descending) -> bool:
        return self.text > other.text


def _sort_value(key: SortKey, value: Any) -> Key:
    """``3`` -> ``(0, 0, 3)``: documents without a value come last; of the others, numbers come before texts."""
    if isinstance(value, str) and key.field == "date":
        value = parse_instant(value)
    if value is None or isinstance(value, list):
        return (1,)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, 1 if key.descending else 0, -value if key.descending else value)
    text = fold_to_sort(value_text(value))
    return (0, 0 if key.descending else 1, _Descending(text) if key.descending else text)


def merge_results(ranked: Sequence[Ranked], hits: Sequence[Hit], query: SearchQuery) -> SearchResult:
    """Return the result of a search over several sites.

    Args:
        hits: The hits of the page.
        query: The query without any site's settings.
    """
    results = [site.result for site in ranked]
    by_level = {result.matched: result for result in reversed(results) if result.total}
    best = by_level.get(Matched.ALL) or by_level.get(Matched.CORRECTED)
    facets: dict[str, Mapping[str, int]] = {}
    for name in dict.fromkeys(name for result in results for name in result.facets):
        counts: Counter[str] = Counter()
        for result in results:
            counts.update(result.facets.get(name, {}))
        facets[name] = first_values(counts, query.facet_values)
    if SITE in query.facets or "*" in query.facets:
        by_label: Counter[str] = Counter()
        for site in ranked:
            by_label[site.site.label] += site.result.total
        facets[SITE] = first_values({label: count for label, count in by_label.items() if count}, query.facet_values)
    stats: dict[str, FacetStats] = {}
    for result in results:
        for name, bounds in result.facet_stats.items():
            known = stats.get(name, bounds)
            stats[name] = FacetStats(min(known.min, bounds.min), max(known.max, bounds.max))
    return SearchResult(
        tuple(hits),
        count_hits(ranked),
        facets,
        stats,
        matched=Matched.SOME if best is None else best.matched,
        corrected_query=None if best is None else best.corrected_query,
    )


def merge_effects(effects: Iterable[Effects]) -> Effects:
    """Return what the rules of several sites do to a response: the first redirect, and the first notice."""
    merged = list(effects)
    return Effects(
        rules=tuple(dict.fromkeys(rule for each in merged for rule in each.rules)),
        redirect=next((each.redirect for each in merged if each.redirect), ""),
        notice=next((each.notice for each in merged if each.notice), None),
    )


def with_site(hit: Hit, site: SearchedSite) -> Hit:
    """Return a hit with the field ``site``, which takes the place of a custom field of that name."""
    source = hit.json
    if _SITE_MEMBER in source:
        source = orjson.dumps({name: value for name, value in hit.document.items() if name != SITE})
    member = _SITE_MEMBER + orjson.dumps({"id": site.record.id, "label": site.label})
    return replace(hit, json=source[:-1] + (b"," if len(source) > 2 else b"") + member + b"}")


def portable_condition(query: SearchQuery) -> Filter | None:
    """Return both filters of a query as one condition. Filters of collections always have the portable syntax, since
    their sites may be on different engines.

    Raises:
        BackendRejected: The filter cannot be parsed.
    """
    parsed = parse_filter(query.native_filter) if query.native_filter else None
    return all_of([each for each in (query.portable_filter, parsed) if each is not None])


def condition_for(condition: Filter | None, site: SearchedSite) -> Filter | bool | None:
    """Return what is left of a condition for the documents of one site, where ``site`` has a known value.

    Returns:
        The condition without ``site``; ``None`` if every document meets it, and ``False`` if none does.
    """
    narrowed = True if condition is None else _narrowed(condition, site)
    if narrowed is False:
        return False
    own = site.condition
    return all_of([each for each in (own, None if narrowed is True else narrowed) if each is not None])


def _narrowed(node: Filter, site: SearchedSite) -> Filter | bool:
    match node:
        case Not(operand):
            inner = _narrowed(operand, site)
            return not inner if isinstance(inner, bool) else Not(inner)
        case And(operands) | Or(operands):
            # A conjunction ends with the first False and ignores True; a disjunction the other way around.
            decisive = isinstance(node, Or)
            parts = [_narrowed(operand, site) for operand in operands]
            if decisive in parts:
                return decisive
            left = tuple(part for part in parts if not isinstance(part, bool))
            return (type(node)(left) if len(left) > 1 else left[0]) if left else not decisive
    if node.field != SITE:
        return node
    names = {fold_value(site.label), str(site.record.id)}
    match node:
        case OneOf(_, values):
            return any(fold_value(value) in names for value in values)
        case Comparison(operator="=" | "!="):
            return (fold_value(node.value) in names) == (node.operator == "=")
        case Presence(test=test):
            return test == "exists"
    return False
