"""Running searches: compiled, with pins and ranks, the page, facets, and the words that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import orjson
from typesense.multi_search import MultiSearch

from backends.base import FacetStats, SearchResult, TitleMatch, distinct_titles
from backends.query import MATCH_ALL, SearchQuery
from backends.servers.backend import has_word_prefixes
from backends.servers.documents import encode_id, facet_text, number_in_order
from backends.servers.matched_words import MAX_CORRECTED_WORDS, QueryWord, WordLookup, WordSearch
from backends.servers.ranks import PREFERRED_OVER, WINDOW, HighestVersions, Ranks, with_explanations
from backends.servers.responses import count_in, hits_of, readable, within_budget
from backends.servers.scores import scored
from backends.servers.tokenizer import QueryPart
from backends.typesense.order import LIMITS, Ask, Order, columns, find_page_hits, in_order, read_page_hits
from backends.typesense.query import (
    COUNT_FIRST_OFFSET,
    FACET_VALUES,
    MORE_FACET_VALUES,
    CompiledQuery,
    compile_query,
    needs_types,
)
from backends.typesense.results import (
    WRONG_MAX,
    RejectedByTypesense,
    check_result,
    facets_unsettled,
    is_stale_schema,
    make_facets,
    make_hit,
    match_quality,
    rejection_of,
    searched_document,
)
from backends.typesense.sizes import PageSizes
from backends.typesense.transport import TypesenseTransport

_EXPLAINED_MEMBERS = ("text_match", "text_match_info")

Outcome = tuple[SearchResult, Sequence[Mapping[str, Any]], CompiledQuery]
"""A result without its hits, Typesense's hits of the page, and the query that found them."""


class Searches:
    """Runs searches on one Typesense cluster."""

    def __init__(self, transport: TypesenseTransport):
        self._transport = transport
        self._highest = HighestVersions()
        self._sizes = PageSizes()

    def forget(self, name: str) -> None:
        """Discard all cached facts about an index."""
        self._highest.forget(name)
        self._sizes.forget(name)

    def search(self, name: str, query: SearchQuery, types: Mapping[str, str]) -> SearchResult:
        """Run a query, and again with other words if nothing has all its words, or if corrected words have synonyms."""
        result, hits, compiled = self._find(name, query, types)
        other_parts = self._other_parts(name, query, types, result, compiled)
        if other_parts:
            other_result, hits, compiled = self._find(name, query, types, other_parts)
            result = replace(other_result, matched=result.matched, corrected_query=result.corrected_query)
        make = with_explanations(
            partial(make_hit, query=query, compiled=compiled), query, compiled.ranks, _EXPLAINED_MEMBERS, LIMITS
        )
        built = within_budget(hits_of(hits, make, query), query.max_bytes)
        return replace(result, hits=scored(built, hits, query, partial(match_quality, len(compiled.parts))))

    def _other_parts(
        self, name: str, query: SearchQuery, types: Mapping[str, str], result: SearchResult, compiled: CompiledQuery
    ) -> Sequence[QueryPart]:
        """Return the words for a second search; empty if the first search's hits are returned."""
        corrected = WordSearch(query, compiled.parts, compiled.fold).parts_with_synonyms(result)
        return corrected if corrected or result.total else self._existing_parts(name, query, types)

    def find_titles(self, name: str, query: SearchQuery, types: Mapping[str, str]) -> tuple[TitleMatch, ...]:
        """Return pages whose titles contain the query's words."""
        search = {**compile_query(name, query, types).search(page=1, per_page=query.limit), "num_typos": "0,0"}
        (result,) = self._run([search], query)
        words = query.text.split()
        with readable():
            # Typesense may have matched a synonym, which is not a prefix of a title's word.
            documents = (orjson.loads(hit["document"]["_doc"]) for hit in result["hits"])
            matches = (TitleMatch(document["title"], document["url"]) for document in documents)
            return distinct_titles((match for match in matches if has_word_prefixes(match.title, words)), query.limit)

    def count_documents(
        self, name: str, query: SearchQuery, types: Mapping[str, str], words: Sequence[str]
    ) -> Sequence[int]:
        """Return the number of all documents, followed by the number of documents with each word."""
        compiled = compile_query(name, query, types)
        results = self._run([compiled.whole_word_search(word) for word in (MATCH_ALL, *words)], query)
        with readable():
            return [count_in(result["found"]) for result in results]

    def _existing_parts(self, name: str, query: SearchQuery, types: Mapping[str, str]) -> Sequence[QueryPart]:
        """Return the words of a query that documents contain; empty if all or none of the words occur.

        Typesense drops words from the right and from the left, so it never searches for middle words alone, and not
        always for the mistyped one of two words.
        """
        compiled = compile_query(name, query, types)
        words = [part for part in compiled.parts if not part.excluded]
        if query.all_words or not 1 < len(words) <= MAX_CORRECTED_WORDS:
            return ()
        results = self._run(compiled.part_searches(), query)
        with readable():
            existing = [part for part, result in zip(words, results, strict=True) if result["found"]]
        return (
            [*existing, *(part for part in compiled.parts if part.excluded)] if 0 < len(existing) < len(words) else ()
        )

    def _find(
        self,
        name: str,
        query: SearchQuery,
        types: Mapping[str, str],
        parts: Sequence[QueryPart] | None = None,
    ) -> Outcome:
        ask = partial(self._run, query=query)
        ranks = Ranks(query, self._highest.of(name, query, partial(_values_of, ask, name, types)))
        compiled = replace(compile_query(name, query, types, parts), ranks=ranks, deciding=columns(ranks, types))
        pins = _existing_pins(ask, name, query, compiled)
        with readable():
            self._sizes.check(name, query, compiled, types, len(pins), ask)
        if compiled.distinct or not (ranks.are_neutral or query.offset >= WINDOW):
            order = list if ranks.are_neutral else partial(_in_order, ranks=ranks, types=types, pins=pins)
            return self._search_distinct(query, compiled, pins, order)
        offset, limit = query.offset, query.limit
        # One hit is read even for a limit of 0, because ``matched`` depends on the best one.
        if limit == 0 or offset > COUNT_FIRST_OFFSET:
            first = self._run([compiled.search(page=1, per_page=1, pins=pins, facet_values=FACET_VALUES)], query)
            if limit == 0 or offset >= first[0]["found"]:
                return self._result(query, compiled, first[0], pins, _hits(first)), (), compiled
        page, rest = divmod(offset, limit)
        searches = [compiled.search(page=page + 1, per_page=limit, pins=pins, facet_values=FACET_VALUES)]
        if rest:
            # Typesense has pages rather than offsets here, so an offset in between needs two pages.
            searches.append(compiled.search(page=page + 2, per_page=limit, pins=pins))
        results = self._run(searches, query)
        with readable():
            hits = _hits(results)
        result = self._result(query, compiled, results[0], pins, hits)
        return result, hits[rest : rest + limit], compiled

    def _search_distinct(
        self, query: SearchQuery, compiled: CompiledQuery, pins: Sequence[str], order: Order
    ) -> Outcome:
        """Run a search that shows only some of the hits, or shows them in another order than Typesense's."""
        ask = partial(self._run, query=query)
        with readable():
            page = find_page_hits(query, compiled, pins, ask, order)
            hits = read_page_hits(page, compiled, ask, explain=query.explain)
            # Between the two requests, a document may have been deleted.
            best = [hits[page.best]] if page.best in hits else []
        result = self._result(query, compiled, page.first, pins, best)
        replaced = {id: {PREFERRED_OVER: best} for id, best in page.replaced.items()}
        hits_with_rivals = [{**hits[id], **replaced.get(id, {})} for id in page.ids if id in hits]
        return replace(result, total=page.total), hits_with_rivals, compiled

    def _result(
        self,
        query: SearchQuery,
        compiled: CompiledQuery,
        first: Mapping[str, Any],
        pins: Sequence[str],
        hits: Sequence[Mapping[str, Any]],
    ) -> SearchResult:
        """Return the result without its hits.

        Args:
            first: Typesense's result with the facets.
            hits: The hits that have been read, best first.
        """
        with readable():
            counted = first.get("facet_counts", [])
            if facets_unsettled(counted, FACET_VALUES, query.facet_values):
                refined = self._run([compiled.search(page=1, per_page=0, facet_values=MORE_FACET_VALUES)], query)
                counted = refined[0]["facet_counts"]
            facets, stats = make_facets(counted, compiled, query.facet_values)
            stats |= {
                name: FacetStats(bounds.min, self._largest(name, query, compiled))
                for name, bounds in stats.items()
                if bounds.max == WRONG_MAX
            }
            if compiled.id_facet:
                facets["id"] = _id_facet(partial(self._run, query=query), compiled)
            total: int = first["found"]
            documents = (hit["document"] for hit in hits)
            best = next((searched_document(document) for document in documents if document["_id"] not in pins), None)
            words = WordSearch(query, compiled.parts, compiled.fold)
            ask = partial(self._ask, query, compiled)
            matched, corrected = words.matched(total, pinned=bool(pins), best=best, ask=ask)
            return SearchResult((), total, facets, stats, matched=matched, corrected_query=corrected)

    def _largest(self, facet: str, query: SearchQuery, compiled: CompiledQuery) -> float:
        results = self._run(compiled.largest_searches(facet), query)
        largest: int = max(value for hit in _hits(results) for value in hit["document"].values())
        return largest / 1_000_000 if facet == "date" else number_in_order(largest)

    def _ask(self, query: SearchQuery, compiled: CompiledQuery, words: Sequence[QueryWord]) -> WordLookup:
        searches = [compiled.whole_search(), *map(compiled.word_search, words)]
        whole, *others = self._run(searches, query)
        best = next((searched_document(hit["document"]) for hit in whole["hits"]), None)
        return WordLookup(best, [other["found"] > 0 for other in others])

    def _run(self, searches: Sequence[Mapping[str, str]], query: SearchQuery) -> list[dict[str, Any]]:
        with readable():
            request = cast(Any, {"searches": [dict(search) for search in searches]})
            response = cast(Any, MultiSearch(self._transport).perform(request))
            results: list[dict[str, Any]] = response["results"]
            if len(results) != len(searches):
                raise ValueError(f"{len(results)} results for {len(searches)} searches")
            for search, result in zip(searches, results, strict=True):
                if "error" in result:
                    error = RejectedByTypesense(int(result["code"]), str(result["error"]))
                    if error.is_missing_index or (is_stale_schema(error) and needs_types(query)):
                        raise error
                    raise rejection_of(error, query) from error
                check_result(result, search)
        return results


def _in_order(
    hits: Sequence[Mapping[str, Any]], ranks: Ranks, types: Mapping[str, str], pins: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the hits ordered by rank; pinned hits stay first."""
    others = [hit for hit in hits if hit["document"]["_id"] not in pins]
    return [*hits[: len(hits) - len(others)], *in_order(others, ranks, types)]


def _values_of(ask: Ask, name: str, types: Mapping[str, str], field: str) -> list[str]:
    column = f"_v_{field}"
    if column not in types:
        return []
    search = {"collection": name, "q": "*", "per_page": "0", "facet_by": column, "max_facet_values": "1000"}
    (result,) = ask([search])
    with readable():
        return [facet_text(item["value"]) for facet in result["facet_counts"] for item in facet["counts"]]


def _id_facet(ask: Ask, compiled: CompiledQuery) -> dict[str, int]:
    search = {**compiled.search(page=1, per_page=100), "sort_by": "_s_id:asc", "include_fields": "_id"}
    (result,) = ask([search])
    return dict.fromkeys(sorted(hit["document"]["_id"] for hit in result["hits"]), 1)


def _existing_pins(ask: Ask, name: str, query: SearchQuery, compiled: CompiledQuery) -> tuple[str, ...]:
    """Return the pinned IDs that exist and pass the filter; Typesense would show all, with gaps for the others."""
    pins = query.pinned
    if not pins:
        return ()
    conditions = [f"id:=[{','.join(encode_id(pin) for pin in pins)}]"]
    if "filter_by" in compiled.common:
        conditions.insert(0, compiled.common["filter_by"])
    search = {
        "collection": name,
        "q": "*",
        "filter_by": " && ".join(conditions),
        "include_fields": "_id",
        "per_page": "250",
    }
    (result,) = ask([search])
    with readable():
        passed = {hit["document"]["_id"] for hit in result["hits"]}
    return tuple(pin for pin in pins if pin in passed)


def _hits(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [hit for result in results for hit in result["hits"]]
