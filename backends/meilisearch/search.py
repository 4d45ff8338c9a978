"""Running compiled queries: pins, ranks, the page, facets, and the words that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from backends.base import SearchResult, TitleMatch, distinct_titles
from backends.meilisearch.order import (
    MAX_READ,
    DistinctHits,
    EngineHit,
    HitPage,
    Order,
    PageRequest,
    Run,
    columns,
    first_of_each,
    in_order,
    in_order_of,
)
from backends.meilisearch.query import CompiledQuery, attribute, with_ids
from backends.meilisearch.results import (
    check_result,
    filter_rejection,
    make_facets,
    make_hit,
    merged_result,
    searched_document,
)
from backends.meilisearch.transport import MeilisearchTransport, RejectedByMeilisearch
from backends.query import SearchQuery
from backends.servers.backend import has_word_prefixes
from backends.servers.matched_words import QueryWord, WordLookup, WordSearch
from backends.servers.ranks import WINDOW, HighestVersions, Ranks, with_explanations
from backends.servers.responses import count_in, hits_of, readable, text_in, within_budget
from backends.servers.scores import scored

MIN_HITS_WITH_ALL_WORDS = 20
"""Number of hits below which documents with fewer words of a query also match."""

_EXPLAINED_MEMBERS = ("_rankingScore", "_rankingScoreDetails")


class Searches:
    """Runs searches on one Meilisearch server."""

    def __init__(self, transport: MeilisearchTransport):
        self._transport = transport
        self._highest = HighestVersions()

    def forget(self, name: str) -> None:
        """Discard all cached facts about an index."""
        self._highest.forget(name)

    def search(self, name: str, query: SearchQuery, compiled: CompiledQuery) -> SearchResult:
        """Run a compiled query; runs again with corrected words if these have synonyms that the typed words lack."""
        ranks = Ranks(query, self._highest.of(name, query, partial(self._values_of, name, query)))
        result, hits = self._find(query, compiled, ranks)
        corrected = WordSearch(query, compiled.parts).parts_with_synonyms(result)
        if corrected:
            compiled = compiled.for_parts(corrected)
            corrected_result, hits = self._find(query, compiled, ranks)
            result = replace(corrected_result, matched=result.matched, corrected_query=result.corrected_query)
        make = with_explanations(partial(make_hit, query=query, compiled=compiled), query, ranks, _EXPLAINED_MEMBERS)
        built = within_budget(hits_of(hits, make, query), query.max_bytes)
        return replace(result, hits=scored(built, hits, query, lambda hit: float(hit.get("_rankingScore", 0.0))))

    def _find(
        self, query: SearchQuery, compiled: CompiledQuery, ranks: Ranks
    ) -> tuple[SearchResult, Sequence[EngineHit]]:
        """Return a result without its hits, and the hits of its page."""
        pins = self._pinned_hits(query, compiled)
        others = [with_ids([hit["id"] for hit in pins], without=True)] if pins else []
        distinct_hits = DistinctHits(query, compiled) if compiled.distinct else None
        if distinct_hits is not None:
            with readable():
                pins, exclusions = distinct_hits.first_of(pins)
            others += exclusions
        request = PageRequest(query, compiled, ranks, max(0, query.offset - len(pins)), tuple(others))
        page = self._page(request, self._run)
        if compiled.endings and page.total < (1 if query.sort else MIN_HITS_WITH_ALL_WORDS):
            page = self._page(request, partial(self._run_loosely, compiled))
        pinned_hits = pins[query.offset : query.offset + query.limit]
        hits = page.hits[: query.limit - len(pinned_hits)]
        total = page.total + len(pins)
        with readable():
            facets, stats = make_facets(page.facet_result, compiled, query.facet_values) if query.facets else ({}, {})
            best = searched_document(page.hits[0]) if page.hits else None
            words = WordSearch(query, compiled.parts)
            ask = partial(self._ask, query, compiled, words)
            matched, corrected = words.matched(total, pinned=bool(pins), best=best, ask=ask)
            if distinct_hits is not None:
                hits = distinct_hits.prefer(hits, lambda request: self._run([request], query)[0]["hits"])
        result = SearchResult((), total, facets, stats, matched=matched, corrected_query=corrected)
        return result, [*pinned_hits, *hits]

    def find_titles(self, query: SearchQuery, compiled: CompiledQuery, limit: int) -> tuple[TitleMatch, ...]:
        """Return pages whose titles contain the query's words."""
        search = {**compiled.query(page=1, hits=query.limit), "attributesToRetrieve": ["title", "url"]}
        (result,) = self._run([search], query)
        words = query.text.split()
        with readable():
            # Meilisearch allows typing errors in all fields or in none.
            matches = [TitleMatch(text_in(hit["title"]), text_in(hit["url"])) for hit in result["hits"]]
            return distinct_titles((match for match in matches if has_word_prefixes(match.title, words)), limit)

    def count_documents(self, query: SearchQuery, compiled: CompiledQuery, words: Sequence[str]) -> Sequence[int]:
        """Return the number of all documents, followed by the number of documents with each word."""
        searches = [{**compiled.whole_word_query(word), "hitsPerPage": 0} for word in ("", *words)]
        results = self._run(searches, query)
        with readable():
            return [count_in(result["totalHits"]) for result in results]

    def _page(self, request: PageRequest, run: Run) -> HitPage:
        query, compiled, offset = request.query, request.compiled, request.offset
        limit, rest = query.limit, 0
        order = self._order(request, run) if request.is_ordered_here else None
        if order is not None:
            ids = order.ids[offset:][:limit]
            queries = [compiled.by_ids(ids)]
        else:
            # Only pages have exact totals in Meilisearch, so an offset between two pages needs both.
            page, rest = divmod(offset, limit) if limit else (0, 0)
            queries = [compiled.page(page=page + 1, hits=max(1, limit), extra_filters=request.others)]
            if rest:
                queries.append(compiled.page(page=page + 2, hits=limit, extra_filters=request.others))
        if query.facets and any(name is not None for name in compiled.facets.values()):
            # Facets also count the hits that are grouped away or pinned, so they need a query without those filters.
            queries.append(compiled.query(page=1, hits=0, facets=True))
        results = run(queries, query)
        with readable():
            if order is not None:
                return HitPage(in_order_of(ids, results[0]["hits"]), order.total, results[-1])
            hits = [hit for result in results[: 1 + bool(rest)] for hit in result["hits"]]
            return HitPage(hits[rest : rest + limit], results[0]["totalHits"], results[-1])

    def _order(self, request: PageRequest, run: Run) -> Order:
        """Return the order of the hits, if Meilisearch cannot sort them or cannot choose the hit of each group."""
        compiled = request.compiled
        names = [*columns(request.ranks), *([compiled.distinct] if compiled.distinct else [])]
        counting = [compiled.page(page=1, hits=1, extra_filters=request.others)] if compiled.distinct else []
        for limit in (WINDOW, MAX_READ):
            values = {
                **compiled.values_query(names, hits=limit, extra_filters=request.others),
                "showRankingScore": True,
            }
            results = run([values, *counting], request.query)
            with readable():
                hits = in_order(results[0]["hits"], request.ranks, compiled)
                groups = first_of_each(hits, compiled.distinct) if compiled.distinct else hits
                ids = [text_in(hit["id"]) for hit in groups]
                total = max(len(groups), results[-1]["totalHits"])
                is_all = len(hits) >= results[0]["totalHits"]
            if is_all or len(groups) >= request.offset + request.query.limit:
                break
        return Order(ids, len(groups) if is_all else total)

    def _values_of(self, name: str, query: SearchQuery, field: str) -> list[str]:
        search = {"indexUid": name, "q": "", "page": 1, "hitsPerPage": 0, "facets": [attribute(field)]}
        (result,) = self._run([search], query)
        with readable():
            return [str(value) for value in result["facetDistribution"].get(attribute(field), {})]

    def _ask(
        self, query: SearchQuery, compiled: CompiledQuery, words: WordSearch, query_words: Sequence[QueryWord]
    ) -> WordLookup:
        results = self._run([compiled.whole_query(), *map(compiled.word_query, query_words)], query)
        best, *others = [searched_document(result["hits"][0]) if result["hits"] else None for result in results]
        # A prefix is looked up with typing errors allowed; documents without errors come first.
        pairs = zip(query_words, others, strict=True)
        exists_as_typed = [
            other is not None and (not query_word.is_open or words.has(query_word, other))
            for query_word, other in pairs
        ]
        return WordLookup(best, exists_as_typed)

    def _pinned_hits(self, query: SearchQuery, compiled: CompiledQuery) -> list[EngineHit]:
        """Return the pinned documents that exist and pass the filter, in the order of the settings."""
        pins = query.pinned
        if not pins:
            return []
        search = {**compiled.query(page=1, hits=len(pins), extra_filters=[with_ids(pins)]), "q": ""}
        (result,) = self._run([search], query)
        with readable():
            by_id = {hit["id"]: hit for hit in result["hits"]}
        return [by_id[pin] for pin in pins if pin in by_id]

    def _run(self, queries: Sequence[Mapping[str, Any]], query: SearchQuery) -> list[dict[str, Any]]:
        response = self._multi_search({"queries": queries}, query)
        with readable():
            results: list[dict[str, Any]] = response["results"]
            if len(results) != len(queries):
                raise ValueError(f"{len(results)} results for {len(queries)} queries")
            for search, result in zip(queries, results, strict=True):
                check_result(result, search, result["indexUid"])
        return results

    def _run_loosely(
        self, compiled: CompiledQuery, queries: Sequence[Mapping[str, Any]], query: SearchQuery
    ) -> list[dict[str, Any]]:
        """Run queries that also match documents with any of the words; see :meth:`.CompiledQuery.loosely`."""
        results = []
        for search in queries:
            if not search["q"]:
                results += self._run([search], query)
                continue
            response = self._multi_search(compiled.loosely(search), query)
            with readable():
                results.append(merged_result(response, search))
        return results

    def _multi_search(self, body: Mapping[str, Any], query: SearchQuery) -> Any:
        try:
            return self._transport.ask("POST", "/multi-search", body)
        except RejectedByMeilisearch as error:
            rejection = filter_rejection(error, query)
            if rejection is not None:
                raise rejection from error
            raise
