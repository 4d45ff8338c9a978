"""Meilisearch as a search engine.

Tried with 1.50. Where it does less than :mod:`backends.base` says: weights of fields are not used (their order counts:
title, excerpt, content), the language is recognised by Meilisearch itself, words match in other forms only as far as
prefixes and typing errors reach, and facet values that differ only in case are counted as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import orjson

from backends.base import (
    Document,
    FacetStats,
    FieldKinds,
    Hit,
    SearchQuery,
    SearchResult,
    TakeHit,
    TitleMatch,
    distinct_titles,
    hand_over,
)
from backends.distinct import distinct_field
from backends.errors import BackendRejected, BackendUnavailable
from backends.field_rules import first_values
from backends.meilisearch.distinct import DistinctHits
from backends.meilisearch.keys import MeilisearchKeys
from backends.meilisearch.query import CompiledQuery, attribute, compile_query, with_ids
from backends.meilisearch.schema import (
    FOLDED_FIELDS,
    PRIMARY_KEY,
    STORED_SECTIONS,
    engine_document,
    index_settings,
    widened,
)
from backends.meilisearch.transport import MeilisearchTransport, RefusedByMeilisearch
from backends.servers.backend import ServerBackend, engine_ids
from backends.servers.batches import batches, time_shares
from backends.servers.document_ids import checked_index_name
from backends.servers.highlighter import Matcher, matched_hit
from backends.servers.matched_words import AskedWords, SoughtWord, WordSearch, searched_document
from backends.servers.ranks import WINDOW, HighestVersions, Ranks, explaining
from backends.servers.replies import hits_of, readable, translated
from backends.servers.server_url import ServerUrl
from backends.servers.titles import has_beginnings, title_query
from backends.servers.tokenizer import split_words

_PAGE = 1000
_TOLD = ("_rankingScore", "_rankingScoreDetails")
_PLACE = re.compile(r"^(\d+):\d+ ", re.MULTILINE)


class MeilisearchBackend(ServerBackend):
    """One Meilisearch server."""

    name = "meilisearch"
    default_port = 7700

    def __init__(self, url: ServerUrl):
        if len(url.nodes) != 1:
            raise ValueError("Meilisearch is one server: its URL names one host.")
        super().__init__(url)
        self._transport = MeilisearchTransport(url)
        self._pool = self._transport.pool
        self._keys = MeilisearchKeys(self._transport)
        self._filterable: dict[str, frozenset[str]] = {}
        self._folded: dict[str, bool] = {}
        self._synonyms: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._highest = HighestVersions()

    # --- indexes

    def create_index(self, index: str) -> None:
        name = checked_index_name(index)
        with translated(index), readable():
            made = self._transport.change("POST", "/indexes", {"uid": name, "primaryKey": PRIMARY_KEY})
            try:
                self._transport.wait([made])
            except RefusedByMeilisearch as error:
                if error.code != "index_already_exists":
                    raise
            if "_key" not in self._settings(name)["filterableAttributes"]:
                settings = index_settings(round(self._transport.url.timeout_seconds * 1000) + 1000)
                self._transport.wait([self._transport.change("PATCH", f"/indexes/{name}/settings", settings)])
                self._settings(name)

    def delete_index(self, index: str) -> None:
        name = checked_index_name(index)
        self._filterable.pop(name, None)
        self._folded.pop(name, None)
        self._synonyms.pop(name, None)
        self._highest.forget(name)
        with translated(index):
            try:
                self._transport.wait([self._transport.change("DELETE", f"/indexes/{name}")])
            except RefusedByMeilisearch as error:
                if error.code != "index_not_found":
                    raise

    def list_indexes(self) -> list[str]:
        found: list[tuple[str, str | None]] = []
        with translated(), readable():
            while True:
                params = {"limit": str(_PAGE), "offset": str(len(found))}
                page = self._transport.ask("GET", "/indexes", params=params)
                found += [(each["uid"], each["primaryKey"]) for each in page["results"]]
                if len(found) >= page["total"] or not page["results"]:
                    # An index that is not of this service's making is none of its business.
                    return [name for name, key in found if key == PRIMARY_KEY]

    # --- documents

    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        name = checked_index_name(index)
        with translated(index):
            self._transport.await_earlier(name)
            # Adding documents would make an index that is not there.
            with readable():
                changes = widened(self._settings(name), kinds)
            if changes:
                self._transport.wait([self._transport.change("PATCH", f"/indexes/{name}/settings", changes)])
            tasks: list[int] = []
            shares = 0
            for batch in batches(orjson.dumps(engine_document(each)) for each in documents):
                body = [orjson.Fragment(each) for each in batch]
                path, params = f"/indexes/{name}/documents", {"primaryKey": PRIMARY_KEY}
                tasks.append(self._transport.change("POST", path, body, params=params))
                shares += time_shares(sum(map(len, batch)))
            self._transport.wait(tasks, shares)

    def delete(self, index: str, ids: Sequence[str]) -> None:
        name = checked_index_name(index)
        keys = engine_ids(ids)
        with translated(index), readable():
            if keys:
                task = self._transport.change("POST", f"/indexes/{name}/documents/delete-batch", keys)
                self._transport.wait([task])
            else:
                self._settings(name)

    def count(self, index: str) -> int:
        with translated(index), readable():
            stats = self._transport.ask("GET", f"/indexes/{checked_index_name(index)}/stats")
            return int(stats["numberOfDocuments"])

    def document_ids(self, index: str) -> Iterator[str]:
        path = f"/indexes/{checked_index_name(index)}/documents/fetch"
        offset = 0
        while True:
            with translated(index), readable():
                page = self._transport.ask("POST", path, {"fields": ["id"], "limit": _PAGE, "offset": offset})
                found, total = [str(each["id"]) for each in page["results"]], int(page["total"])
            yield from found
            offset += _PAGE
            if offset >= total:
                return

    # --- searching

    def search(self, index: str, query: SearchQuery, take: TakeHit | None = None) -> SearchResult:
        name = checked_index_name(index)
        with translated(index), readable():
            self._keep_synonyms(name, query.settings.synonyms)
            filterable = self._filterable_of(name, query)
        compiled = compile_query(name, query, filterable, folded=self._folded[name])
        with translated(index):
            return self._search(name, query, compiled, take)

    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        name = checked_index_name(index)
        query = title_query(text, 2 * limit, within)
        with translated(index), readable():
            filterable = self._filterable_of(name, query or SearchQuery(""))
            if query is None:
                return ()
            compiled = compile_query(name, query, filterable, folded=self._folded[name])
            (result,) = self._run(
                [{**compiled.query(page=1, hits=query.limit), "attributesToRetrieve": ["title", "url"]}], query
            )
            words = query.text.split()
            # Meilisearch forgives typing errors in every field or in none.
            found = [TitleMatch(hit["title"], hit["url"]) for hit in result["hits"]]
            return distinct_titles((each for each in found if has_beginnings(each.title, words)), limit)

    # --- readiness

    def check(self) -> None:
        with translated(), readable():
            health = self._transport.ask("GET", "/health")
            # Without a master key every route but this one is open to everybody.
            keys = self._transport.ask("GET", "/keys", params={"limit": "1"})
            if health["status"] != "available" or not isinstance(keys["results"], list):
                raise BackendUnavailable("The search engine is not available.")

    def index_bytes(self) -> int | None:
        with translated(), readable():
            return int(self._transport.ask("GET", "/stats")["databaseSize"])

    def version(self) -> str:
        with translated(), readable():
            return str(self._transport.ask("GET", "/version")["pkgVersion"])

    # --- parts

    def _settings(self, name: str) -> dict[str, Any]:
        settings: dict[str, Any] = self._transport.ask("GET", f"/indexes/{name}/settings")
        self._folded[name] = FOLDED_FIELDS["title"] in settings["searchableAttributes"]
        self._filterable[name] = frozenset(each for each in settings["filterableAttributes"] if isinstance(each, str))
        return settings

    def _filterable_of(self, name: str, query: SearchQuery) -> Set[str]:
        known = self._filterable.get(name)
        uses_fields = query.facets or query.filter is not None or query.sort or distinct_field(query)
        needed = set(query.kinds) if uses_fields else set()
        if known is not None and needed <= known:
            return known
        self._settings(name)
        return self._filterable[name]

    def _keep_synonyms(self, name: str, groups: tuple[tuple[str, ...], ...]) -> None:
        """Meilisearch takes synonyms from the index: look when this process first searches it, and when they change."""
        if self._synonyms.get(name) == groups:
            return
        found: dict[str, set[str]] = {}
        for group in groups:
            phrases = {" ".join(split_words(phrase)) for phrase in group} - {""}
            for phrase in phrases:
                found.setdefault(phrase, set()).update(phrases - {phrase})
        wanted = {phrase: sorted(others) for phrase, others in found.items() if others}
        if self._transport.ask("GET", f"/indexes/{name}/settings/synonyms") != wanted:
            self._transport.wait([self._transport.change("PUT", f"/indexes/{name}/settings/synonyms", wanted)])
        self._synonyms[name] = groups

    def _search(self, name: str, query: SearchQuery, compiled: CompiledQuery, take: TakeHit | None) -> SearchResult:
        pins = self._pinned_hits(query, compiled)
        others = [with_ids([hit["id"] for hit in pins], without=True)] if pins else []
        shows_each = DistinctHits(query, compiled) if compiled.distinct else None
        if shows_each is not None:
            with readable():
                pins, taken = shows_each.first_of(pins)
            others += taken
        offset, limit = max(0, query.offset - len(pins)), query.limit
        shown = pins[query.offset : query.offset + limit]
        page, rest = divmod(offset, limit) if limit else (0, 0)
        ranks = Ranks(query, self._highest.of(name, query, partial(self._values_of, name, query)))
        queries = [compiled.page(page=page + 1, hits=max(1, limit), more=others)]
        if is_ranked := not ranks.are_neutral and offset < WINDOW:
            rest = 0
            ranked = compiled.page(page=1, hits=WINDOW, more=others)
            queries = [{**compiled.only_values(ranked, ranks.fields), "showRankingScore": True}]
        if rest:
            queries.append(compiled.page(page=page + 2, hits=limit, more=others))
        if query.facets and any(name is not None for name in compiled.facets.values()):
            queries.append(compiled.query(page=1, hits=0, facets=True))
        results = self._run(queries, query)
        with readable():
            pages = results[: 1 + bool(rest)]
            hits = [hit for result in pages for hit in result["hits"]]
            if is_ranked:
                hits = self._by_rank(query, compiled, ranks, hits, offset, others)
            found = hits[rest : max(rest, rest + limit - len(shown))]
            total = int(results[0]["totalHits"]) + len(pins)
            facets, stats = _facets(results[-1], compiled, query.facet_values) if query.facets else ({}, {})
            best = _searched_document(hits[0]) if hits else None
            words = WordSearch(query, compiled.parts)
            ask = partial(self._ask, query, compiled, words)
            matched, corrected = words.matched(total, pinned=bool(pins), best=best, ask=ask)
            if shows_each is not None:
                found = shows_each.prefer(found, lambda wanted: self._run([wanted], query)[0]["hits"])
        make = explaining(partial(_hit, query=query, compiled=compiled), query, ranks, _TOLD)
        shown_hits = hand_over(hits_of([*shown, *found], make), take)
        return SearchResult(shown_hits, total, facets, stats, matched=matched, corrected_query=corrected)

    def _by_rank(
        self,
        query: SearchQuery,
        compiled: CompiledQuery,
        ranks: Ranks,
        hits: Sequence[Mapping[str, Any]],
        offset: int,
        others: Sequence[str],
    ) -> list[dict[str, Any]]:
        """The hits of the page, whole, and behind those with a score others as Meilisearch has them.

        Args:
            hits: The first ones, with their scores and what decides on their ranks.
            offset: Of the page.
        """

        def score(hit: Mapping[str, Any]) -> float:
            values = {name: hit[attribute(name)] for name in ranks.fields if attribute(name) in hit}
            return -float(hit["_rankingScore"]) * ranks.factor(values)

        wanted = [hit["id"] for hit in sorted(hits, key=score)][offset : offset + query.limit]
        queries = [compiled.query(page=1, hits=max(1, len(wanted)), more=[with_ids(wanted)])] if wanted else []
        missing = query.limit - len(wanted)
        if missing and len(hits) == WINDOW:
            beyond = compiled.page(page=1, hits=WINDOW + query.limit, more=others)
            queries.append(beyond)
        results = self._run(queries, query) if queries else []
        whole = {hit["id"]: hit for result in results[:1] for hit in result["hits"]}
        found = [whole[id] for id in wanted if id in whole]
        return found + [hit for result in results[1:] for hit in result["hits"][WINDOW : WINDOW + missing]]

    def _values_of(self, name: str, query: SearchQuery, field: str) -> list[str]:
        """The values of a field, the most frequent ones."""
        asked = {"indexUid": name, "q": "", "page": 1, "hitsPerPage": 0, "facets": [attribute(field)]}
        (result,) = self._run([asked], query)
        with readable():
            return [str(value) for value in result["facetDistribution"].get(attribute(field), {})]

    def _ask(
        self, query: SearchQuery, compiled: CompiledQuery, words: WordSearch, sought: Sequence[SoughtWord]
    ) -> AskedWords:
        results = self._run([compiled.whole_query(), *map(compiled.word_query, sought)], query)
        best, *others = [_searched_document(result["hits"][0]) if result["hits"] else None for result in results]
        # A beginning is looked up with typing errors, those without coming first.
        pairs = zip(sought, others, strict=True)
        known = [other is not None and (not each.is_open or words.has(each, other)) for each, other in pairs]
        return AskedWords(best, known)

    def _pinned_hits(self, query: SearchQuery, compiled: CompiledQuery) -> list[dict[str, Any]]:
        """The pinned documents that are there and pass the filter, in the order of the settings."""
        pins = query.pinned
        if not pins:
            return []
        wanted = {**compiled.query(page=1, hits=len(pins), more=[with_ids(pins)]), "q": ""}
        (result,) = self._run([wanted], query)
        with readable():
            found = {hit["id"]: hit for hit in result["hits"]}
        return [found[pin] for pin in pins if pin in found]

    def _run(self, queries: Sequence[Mapping[str, Any]], query: SearchQuery) -> list[dict[str, Any]]:
        try:
            answer = self._transport.ask("POST", "/multi-search", {"queries": queries})
        except RefusedByMeilisearch as error:
            if error.code == "invalid_search_filter" and query.filters:
                raise _filter_rejection(error, query) from error
            raise
        with readable():
            results: list[dict[str, Any]] = answer["results"]
            if len(results) != len(queries):
                raise ValueError(f"{len(results)} results for {len(queries)} queries")
        return results


def _searched_document(found: Mapping[str, Any]) -> dict[str, Any]:
    return searched_document(found["_doc"], found.get(STORED_SECTIONS))


def _hit(found: Mapping[str, Any], query: SearchQuery, compiled: CompiledQuery) -> Hit:
    source: str = found["_doc"]
    if not query.shows_matches:
        return Hit(str(found["id"]), source.encode())
    document = orjson.loads(source)
    words = []
    for name, places in (found.get("_matchesPosition") or {}).items():
        written = document.get(name, found.get(name))
        if not isinstance(written, str):
            continue  # The places in a list are of its members.
        text = written.encode()
        words += [text[at["start"] : at["start"] + at["length"]].decode(errors="ignore") for at in places]
    matcher = Matcher.of(compiled.parts, words, language=query.settings.language)
    return matched_hit(str(found["id"]), source, found.get(STORED_SECTIONS), query, matcher)


def _facets(
    result: Mapping[str, Any], compiled: CompiledQuery, most: int
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    counted, bounds = result.get("facetDistribution", {}), result.get("facetStats", {})
    facets: dict[str, dict[str, int]] = {}
    stats: dict[str, FacetStats] = {}
    for name, field in compiled.facets.items():
        facets[name] = first_values({str(value): int(count) for value, count in counted.get(field, {}).items()}, most)
        if name in bounds:
            stats[name] = FacetStats(float(bounds[name]["min"]), float(bounds[name]["max"]))
    return facets, stats


def _filter_rejection(error: RefusedByMeilisearch, query: SearchQuery) -> BackendRejected:
    place = _PLACE.search(error.message)
    position = int(place[1]) - 1 if place else None
    unknown = re.search(r"Attribute `([^`]*)` is not filterable", error.message)
    if unknown:
        found = query.filters.find(unknown[1])
        message = f"The documents have no field {unknown[1]!r} to filter by."
        return BackendRejected("filters", message, position=found if found >= 0 else position)
    return BackendRejected("filters", "The filter is not valid in Meilisearch's filter syntax.", position=position)
