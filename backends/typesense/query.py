"""Compiling a :class:`~backends.query.SearchQuery` to the searches of one ``/multi_search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backends.distinct import distinct_field, preference
from backends.errors import BackendRejected
from backends.field_rules import (
    ONE_ERROR_FROM,
    TWO_ERRORS_FROM,
    check_filter,
    check_sort,
    facet_fields,
    searched_fields,
)
from backends.filters import Not, Presence
from backends.query import MATCH_ALL, SearchQuery, SortKey
from backends.servers.documents import encode_id
from backends.servers.matched_words import MAX_CORRECTED_WORDS, QueryWord
from backends.servers.ranks import NO_RANKS, Ranks
from backends.servers.tokenizer import (
    Fold,
    QueryPart,
    fold_word,
    fold_word_as_before,
    grams,
    query_parts,
    query_stop_words,
    without_stop_words,
)
from backends.standard_fields import TEXT_FIELDS
from backends.text import UNSPACED_RUN
from backends.typesense.filters import EVERYTHING, NOTHING, FilterCompiler, check_native_filter, has_long_numbers
from backends.typesense.schema import FOLDING, SECTION_TITLES, STANDARD_SORTS, STORED_SECTIONS, native_name

FACET_VALUES = 250
"""Number of facet values requested; 100 are returned, the others settle ties."""

MORE_FACET_VALUES = 10_000
"""Number of facet values requested if 250 did not settle ties."""

COUNT_FIRST_OFFSET = 10_000
"""Offset beyond which the total is requested first: Typesense hangs on some pages far past the end."""

_MAX_SORTS = 3
_WEIGHTS = {"title": 12, "excerpt": 6, "content": 3}
_SECTIONS_WEIGHT = "6"
_MAX_WEIGHT = 100
_TYPO_TOKENS_THRESHOLD = 20
_DROP_TOKENS_THRESHOLD = 20
_MAX_CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A compiled query, without the page.

    Attributes:
        common: Parameters of every search.
        facets: Requested field to the Typesense fields with its values and, for numbers, its bounds.
        largest: Numeric facet to the sortable Typesense fields with the largest number of a document.
        id_facet: Whether values of ``id`` were requested.
        parts: The words to search for, without stop words.
        fold: Folds a word.
        distinct: The Typesense field by which hits are grouped; ``""`` for none.
        preferred: The Typesense field that decides the preferred hit; ``""`` for none.
        alone: Filter for documents without a value to group by.
        ranks: The ranks of hits.
        deciding: The Typesense fields that the ranks depend on.
    """

    common: Mapping[str, str]
    facets: Mapping[str, tuple[str | None, str | None]]
    largest: Mapping[str, Sequence[str]]
    id_facet: bool
    parts: tuple[QueryPart, ...]
    fold: Fold
    distinct: str = ""
    preferred: str = ""
    alone: str = ""
    ranks: Ranks = NO_RANKS
    deciding: Sequence[str] = ()

    def search(self, *, page: int, per_page: int, pins: Sequence[str] = (), facet_values: int = 0) -> dict[str, str]:
        """Return a search of the ``/multi_search``: one page, with facets if ``facet_values`` is not 0."""
        search = {**self.common, "page": str(page), "per_page": str(per_page)}
        if pins:
            search["pinned_hits"] = ",".join(f"{encode_id(id)}:{index}" for index, id in enumerate(pins, 1))
        names = [name for pair in self.facets.values() for name in pair if name is not None]
        if facet_values and names:
            search |= {"facet_by": ",".join(dict.fromkeys(names)), "max_facet_values": str(facet_values)}
        return search

    def largest_searches(self, facet: str) -> list[dict[str, str]]:
        """Return searches that find the largest number of a facet: each returns one hit with one field, the number."""
        whole = self.search(page=1, per_page=1)
        return [
            {**whole, "sort_by": f"{name}(missing_values:last):desc", "include_fields": name}
            for name in self.largest[facet]
        ]

    def value_search(self, *, page: int, per_page: int, pins: Sequence[str], facet_values: int) -> dict[str, str]:
        """Return a search that returns only IDs and values of hits."""
        search = self.search(page=page, per_page=per_page, pins=pins, facet_values=facet_values)
        fields = ",".join(name for name in ("_id", self.distinct, self.preferred, *self.deciding) if name)
        return {**search, "include_fields": fields, "highlight_fields": "none"}

    def count_searches(self) -> list[dict[str, str]]:
        """Return two searches: for the number of groups, where all documents without a value are one group, and for the
        number of these documents.
        """
        search = self.search(page=1, per_page=0)
        alone = " && ".join(condition for condition in (search.get("filter_by"), self.alone) if condition)
        return [{**search, "group_by": self.distinct, "group_limit": "1"}, {**search, "filter_by": alone}]

    def whole_search(self) -> dict[str, str]:
        """Return a search for the best document that contains every word."""
        options = {"drop_tokens_threshold": "0", "sort_by": "_text_match:desc", "highlight_fields": "none"}
        options["include_fields"] = f"_doc,_id,{STORED_SECTIONS}"
        return {**self.search(page=1, per_page=1), **options}

    def part_searches(self) -> list[dict[str, str]]:
        """Return a search for each word or phrase alone."""
        whole = {**self.search(page=1, per_page=0), "drop_tokens_threshold": "0"}
        return [{**whole, "q": _written(part)} for part in self.parts if not part.excluded]

    def word_search(self, query_word: QueryWord) -> dict[str, str]:
        """Return a search for documents of the index that contain a word as typed."""
        return {**self.whole_word_search(query_word.word), "prefix": str(query_word.is_open).lower()}

    def whole_word_search(self, word: str) -> dict[str, str]:
        """Return a search for documents of the index that contain a folded word."""
        names = ("collection", "query_by", "query_by_weights")
        shared = {name: self.common[name] for name in names}
        return {**shared, "q": word, "num_typos": "0", "prefix": "false", "page": "1", "per_page": "0"}


def compile_query(
    index: str, query: SearchQuery, types: Mapping[str, str], parts: Sequence[QueryPart] | None = None
) -> CompiledQuery:
    """Compile everything except the page.

    Args:
        types: The collection's fields; must be current if :func:`needs_types` of the query.
        parts: The words to search for; ``None`` for the query's own words.

    Raises:
        BackendRejected: A field of the filter, the order, or the facets is unknown or unsuitable, or Typesense would
            hang on the filter.
    """
    fold = fold_word if FOLDING in types else fold_word_as_before
    check_native_filter(query.native_filter, types)
    if parts is None:
        typed = () if query.text == MATCH_ALL else query_parts(query.text, fold)
        parts = without_stop_words(typed, query_stop_words(typed, query.settings))
    filters = [f"({query.native_filter})"] if query.native_filter else []
    condition = query.condition
    if condition is not None:
        check_filter(condition, query.kinds)
        filters.append(FilterCompiler(query.kinds, types).compile(condition))
    returned_fields = f"_doc,_id,{STORED_SECTIONS}" if query.needs_sections else "_doc,_id"
    common = {"collection": index, "include_fields": returned_fields, "highlight_fields": "none"}
    if query.text == MATCH_ALL:
        common["q"] = "*"
    elif not parts or not searched_fields(query):
        common["q"] = "*"
        filters.append(NOTHING)
    else:
        common |= _matching(parts, query, types)
    if any(".." in condition for condition in filters):
        # In a search for everything, 0.24.1 counts a document once for each of its numbers in a range, unless a second
        # condition follows.
        filters.append(EVERYTHING)
    if filters:
        common["filter_by"] = " && ".join(filters)
    common["sort_by"] = ",".join(_sorts(query, types))
    if query.shows_matches and parts:
        common |= {
            "highlight_fields": ",".join(query.fields or TEXT_FIELDS),
            "highlight_affix_num_tokens": "1",
            "snippet_threshold": "1",
        }
    facets = _facets(query, types)
    largest = {name: _largest_numbers(name, types) for name, (_, numbers) in facets.items() if numbers is not None}
    compiled = CompiledQuery(common, facets, largest, "id" in facets, tuple(parts), fold)
    distinct, preferred = distinct_field(query), preference(query)
    # A field that no document of the collection has yet is ignored.
    if not distinct or f"_v_{distinct}" not in types:
        return compiled
    decides = "" if preferred is None or f"_v_{preferred.field}" not in types else f"_v_{preferred.field}"
    alone = FilterCompiler(query.kinds, types).compile(Not(Presence(distinct, "exists")))
    return replace(compiled, distinct=f"_v_{distinct}", preferred=decides, alone=alone)


def needs_types(query: SearchQuery) -> bool:
    """Whether compiling the query requires the custom fields of the collection."""
    if not query.kinds:
        return False
    uses_fields = (
        query.sort or query.facets or query.portable_filter is not None or has_long_numbers(query.native_filter)
    )
    return bool(uses_fields or distinct_field(query) or not Ranks(query).are_neutral)


def _matching(parts: Sequence[QueryPart], query: SearchQuery, types: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters for the words of the query: the fields to search, weights, typing errors, prefixes.

    Collections that never had sections lack the field with their titles.
    """
    fields = searched_fields(query)
    words = [_written(part) for part in parts]
    weights = query.settings.weights
    points = [str(max(1, min(_MAX_WEIGHT, round(_WEIGHTS[name] * weights.get(name, 1.0))))) for name in fields]
    columns: list[tuple[str, str, str, str]] = []
    for name, point in zip(fields, points, strict=True):
        columns.append(
            (name, point, "2" if sum(len(part.words) for part in parts) <= MAX_CORRECTED_WORDS else "0", "true")
        )
    columns += [(f"_g_{name}", point, "0", "true") for name, point in zip(fields, points, strict=True)]
    if fields == TEXT_FIELDS and SECTION_TITLES in types:
        columns += [(SECTION_TITLES, _SECTIONS_WEIGHT, columns[0][2], "true")]
        columns += [(f"_g{SECTION_TITLES}", _SECTIONS_WEIGHT, "0", "true")]
    query_by, by_weight, typos, prefix = (",".join(column) for column in zip(*columns, strict=True))
    return {
        # A text that equals the query comes first, unless the site sets its own weights.
        "prioritize_exact_match": str(not weights).lower(),
        "q": " ".join(words),
        "query_by": query_by,
        "query_by_weights": by_weight,
        "num_typos": typos,
        "prefix": prefix,
        "min_len_1typo": str(ONE_ERROR_FROM),
        "min_len_2typo": str(TWO_ERRORS_FROM),
        "typo_tokens_threshold": str(_TYPO_TOKENS_THRESHOLD),
        "drop_tokens_threshold": "0" if query.all_words else str(_DROP_TOKENS_THRESHOLD),
        "max_candidates": str(_MAX_CANDIDATES),
    }


def _written(part: QueryPart) -> str:
    tokens: list[str] = []
    for word in part.words:
        tokens += grams(word, single=False) if UNSPACED_RUN.match(word) else [word]
    minus = "-" if part.excluded else ""
    if part.phrase or (part.excluded and len(tokens) > 1):
        return f'{minus}"{" ".join(tokens)}"'
    return minus + " ".join(tokens)


def _sorts(query: SearchQuery, types: Mapping[str, str]) -> list[str]:
    last = "(missing_values:last)"
    if not query.sort:
        if query.text == MATCH_ALL:
            return [f"_n_date{last}:desc", "_changed_at:desc"]
        return ["_text_match:desc", f"_n_date{last}:desc", "_changed_at:desc"]
    check_sort(query.sort, query.kinds)
    sorts: list[str] = []
    for key in query.sort:
        direction = "desc" if key.descending else "asc"
        sorts += [f"{name}{last}:{direction}" for name in _sort_fields(key, types)]
    if len(sorts) > _MAX_SORTS:
        raise BackendRejected("sort", "This search engine cannot sort by so many fields of mixed kinds.")
    if len(sorts) < _MAX_SORTS:
        sorts.append("_changed_at:desc" if query.text == MATCH_ALL else "_text_match:desc")
    return sorts


def _sort_fields(key: SortKey, types: Mapping[str, str]) -> list[str]:
    if key.field == "date":
        return ["_n_date"]
    if key.field in STANDARD_SORTS:
        return [STANDARD_SORTS[key.field]]
    # Numbers come before text, as in the embedded engine.
    return [name for name in (f"_n_{key.field}", f"_s_{key.field}") if name in types]


def _largest_numbers(field: str, types: Mapping[str, str]) -> list[str]:
    return [name for name in (f"_n_{field}", f"_hi_{field}") if name in types]


def _facets(query: SearchQuery, types: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    facets: dict[str, tuple[str | None, str | None]] = {}
    for name in facet_fields(query.facets, query.kinds):
        if name == "author":
            facets[name] = ("_v_author", None)
        elif name == "date":
            facets[name] = ("_v_date", "date")
        elif name == "id":
            facets[name] = (None, None)
        else:
            values = f"_v_{name}"
            native = native_name(name, "number", types)
            numbers = types.get(native) in ("int64[]", "float[]")
            facets[name] = (values if values in types else None, native if numbers else None)
    return facets
