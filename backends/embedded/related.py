"""Related pages: a search for the words of a page that are rare in the index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import orjson
import tantivy

from backends.base import Hit, select_fields
from backends.distinct import distinct_field
from backends.embedded.index.schema import ID
from backends.embedded.index.snapshots import Snapshot, compile_condition
from backends.embedded.query.ranking import RANKING
from backends.embedded.query.ranks import Ranks, score_of
from backends.embedded.results.distinct import FIRST_READ, read_document
from backends.errors import ResponseTooLarge
from backends.filters import OneOf
from backends.query import SearchQuery
from backends.related import (
    MAX_RANKED,
    MIN_SHARE,
    RANK_POWER,
    TITLE_BOOST,
    PageWord,
    different_pages,
    narrowed,
    page_with_first_value,
    page_words,
    weigh,
)

_CANDIDATES: Final = 40
"""Number of hits from which pages with different titles are chosen."""

_OTHER_FIELD_SHARE: Final = 0.3
"""Share of a word's score that counts in the second of title and content."""

_FIELDS: Final = {"title": TITLE_BOOST, "content": 1.0}

Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query


def find_related(snapshot: Snapshot, page: OneOf, query: SearchQuery) -> tuple[Hit, ...] | None:
    """Implement :meth:`backends.base.SearchBackend.find_related`."""
    if not snapshot.total:
        return None
    search = snapshot.searcher.search
    found = search(snapshot.filters.compile(page), limit=len(page.values), count=False).hits
    document = page_with_first_value((read_document(snapshot, address) for _, address in found), page)
    if document is None:
        return None
    query = narrowed(query, document)
    condition = compile_condition(snapshot, query)
    assert condition is not None
    used = page_words(document, query.settings)
    words = weigh(used, _rarities(snapshot, used))
    if not words:
        return ()
    queries = [_word_query(snapshot, word) for word in words]
    of_page = _Query.boolean_query([(Should, query) for query in queries])
    weights = _Query.boolean_query(
        [(Should, _Query.const_score_query(query, weight)) for query, (weight, _) in zip(queries, words, strict=True)]
    )
    min_weight = MIN_SHARE * sum([weight for weight, _ in words])
    itself = _Query.const_score_query(_Query.term_query(snapshot.schema, ID, document["id"]), 0.0)
    own = search(_Query.boolean_query([(Must, itself), (Must, of_page)]), limit=1, count=False).hits
    count = min(snapshot.total, FIRST_READ if distinct_field(query) else _CANDIDATES)
    hits = search(_Query.boolean_query([(Must, condition), (Must, of_page)]), limit=count, count=False).hits
    near = [(score, address) for score, address in hits if score >= MIN_SHARE * own[0][0]]
    ranks = Ranks(snapshot, query, RANKING)
    if not ranks.are_neutral:
        first = near[: MAX_RANKED * query.limit]
        first.sort(key=lambda hit: -hit[0] * ranks.factors(hit[1]).product ** RANK_POWER)
        near[: len(first)] = first
    related = (
        read_document(snapshot, address)
        for _, address in near
        if (score_of(weights, snapshot.searcher, address) or 0.0) >= min_weight
    )
    documents = different_pages(query, ((document, document) for document in related))
    found_hits = [Hit(document["id"], orjson.dumps(select_fields(document, query))) for document in documents]
    if query.max_bytes is not None and sum([len(hit.json) for hit in found_hits]) > query.max_bytes:
        raise ResponseTooLarge
    return tuple(found_hits)


def _rarities(snapshot: Snapshot, words: Sequence[PageWord]) -> list[float]:
    """Return the inverse document frequency of each word, computed once per distinct frequency."""
    frequency = snapshot.searcher.doc_freq
    frequencies = [
        max([frequency("content", form) or frequency("title", form) or 1 for form in forms]) for _, forms in words
    ]
    idf_of = {count: snapshot.idf(count) for count in set(frequencies)}
    return [idf_of[count] for count in frequencies]


def _word_query(snapshot: Snapshot, word: PageWord) -> tantivy.Query:
    """Return a query that scores a word by its weight and its frequency in a document, in the field that has most."""
    weight, forms = word
    term, boost = partial(_Query.term_query, snapshot.schema), _Query.boost_query
    choices = [
        boost(term(name, form), factor * weight / snapshot.idf(frequency))
        for form in forms
        for name, factor in _FIELDS.items()
        if (frequency := snapshot.frequency(name, form))
    ]
    return _Query.disjunction_max_query(choices, _OTHER_FIELD_SHARE)
