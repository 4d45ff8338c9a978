"""A :class:`~backends.base.SearchQuery` as the searches of one ``/multi_search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backends.base import MATCH_ALL, SearchQuery, SortKey
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
from backends.servers.document_ids import encode_id
from backends.servers.matched_words import FORGIVEN_WORDS, SoughtWord
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
from backends.typesense.filters import NOTHING, FilterCompiler
from backends.typesense.native import check_native_filter, has_long_numbers
from backends.typesense.schema import FOLDING, SECTION_TITLES, STANDARD_SORTS, STORED_SECTIONS, native_name

FACET_VALUES = 250
"""Facet values asked for; 100 are shown, the others settle ties."""

MORE_FACET_VALUES = 10_000
"""Facet values asked for when 250 did not settle them."""

COUNT_FIRST_OFFSET = 10_000
"""Beyond this offset the total is asked first: Typesense never answers for some pages far past the end."""

_MAX_SORTS = 3
_WEIGHTS = {"title": 12, "excerpt": 6, "content": 3}
_SECTIONS_WEIGHT = "6"
_MAX_WEIGHT = 100
_TYPO_TOKENS_THRESHOLD = 20
_DROP_TOKENS_THRESHOLD = 20
_MAX_CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query as it is sent, without the page.

    Attributes:
        common: Parameters of every search.
        facets: Asked field to the Typesense fields that have its values and, for numbers, its bounds.
        id_facet: Whether values of ``id`` were asked for.
        parts: The words the person typed.
        fold: How they are folded.
        distinct: The Typesense field of whose values one hit each is shown; ``""`` for none.
        preferred: The Typesense field that decides which; ``""`` for none.
        alone: The filter of documents without a value to be distinct by.
        ranks: The ranks of hits.
        deciding: The Typesense fields that decide on them.
    """

    common: Mapping[str, str]
    facets: Mapping[str, tuple[str | None, str | None]]
    id_facet: bool
    parts: tuple[QueryPart, ...]
    fold: Fold
    distinct: str = ""
    preferred: str = ""
    alone: str = ""
    ranks: Ranks = NO_RANKS
    deciding: Sequence[str] = ()

    def search(self, *, page: int, per_page: int, pins: Sequence[str] = (), facet_values: int = 0) -> dict[str, str]:
        """One search of the ``/multi_search``: a page, with facets if ``facet_values`` is not 0."""
        search = {**self.common, "page": str(page), "per_page": str(per_page)}
        if pins:
            search["pinned_hits"] = ",".join(f"{encode_id(id)}:{at}" for at, id in enumerate(pins, 1))
        names = [name for pair in self.facets.values() for name in pair if name is not None]
        if facet_values and names:
            search |= {"facet_by": ",".join(dict.fromkeys(names)), "max_facet_values": str(facet_values)}
        return search

    def value_search(self, *, page: int, per_page: int, pins: Sequence[str], facet_values: int) -> dict[str, str]:
        """The search for ids and values of hits, nothing else of them."""
        search = self.search(page=page, per_page=per_page, pins=pins, facet_values=facet_values)
        fields = ",".join(name for name in ("_id", self.distinct, self.preferred, *self.deciding) if name)
        return {**search, "include_fields": fields, "highlight_fields": "none"}

    def count_searches(self) -> list[dict[str, str]]:
        """The searches for the number of values, in which documents without one are another, and of these documents."""
        search = self.search(page=1, per_page=0)
        alone = " && ".join(each for each in (search.get("filter_by"), self.alone) if each)
        return [{**search, "group_by": self.distinct, "group_limit": "1"}, {**search, "filter_by": alone}]

    def whole_search(self) -> dict[str, str]:
        """The search for the best document that has every word."""
        wanted = {"drop_tokens_threshold": "0", "sort_by": "_text_match:desc", "highlight_fields": "none"}
        wanted["include_fields"] = f"_doc,_id,{STORED_SECTIONS}"
        return {**self.search(page=1, per_page=1), **wanted}

    def part_searches(self) -> list[dict[str, str]]:
        """The searches for each of the words, or phrases, alone."""
        whole = {**self.search(page=1, per_page=0), "drop_tokens_threshold": "0"}
        return [{**whole, "q": _written(part)} for part in self.parts if not part.excluded]

    def word_search(self, sought: SoughtWord) -> dict[str, str]:
        """The search for documents of the index that have a word as typed."""
        names = ("collection", "query_by", "query_by_weights")
        shared = {name: self.common[name] for name in names}
        prefix = str(sought.is_open).lower()
        return {**shared, "q": sought.word, "num_typos": "0", "prefix": prefix, "page": "1", "per_page": "0"}


def compile_query(
    index: str, query: SearchQuery, types: Mapping[str, str], parts: Sequence[QueryPart] | None = None
) -> CompiledQuery:
    """Compile everything but the page.

    Args:
        types: The collection's fields; further ones as far as :func:`needs_types` of the query.
        parts: The words to search for; ``None`` for those of the query.

    Raises:
        BackendRejected: A field of the filter, the order or the facets is unknown or not fit for it, or Typesense would
            not answer the filter.
    """
    fold = fold_word if FOLDING in types else fold_word_as_before
    check_native_filter(query.filters, types)
    if parts is None:
        typed = () if query.text == MATCH_ALL else query_parts(query.text, fold)
        parts = without_stop_words(typed, query_stop_words(typed, query.settings))
    filters = [f"({query.filters})"] if query.filters else []
    condition = query.condition
    if condition is not None:
        check_filter(condition, query.kinds)
        filters.append(FilterCompiler(query.kinds, types).compile(condition))
    shown = f"_doc,_id,{STORED_SECTIONS}" if query.needs_sections else "_doc,_id"
    common = {"collection": index, "include_fields": shown, "highlight_fields": "none"}
    if query.text == MATCH_ALL:
        common["q"] = "*"
    elif not parts or not searched_fields(query):
        common["q"] = "*"
        filters.append(NOTHING)
    else:
        common |= _matching(parts, query, types)
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
    compiled = CompiledQuery(common, facets, "id" in facets, tuple(parts), fold)
    distinct, preferred = distinct_field(query), preference(query)
    # A field that no document of the collection has yet is none.
    if not distinct or f"_v_{distinct}" not in types:
        return compiled
    decides = "" if preferred is None or f"_v_{preferred.field}" not in types else f"_v_{preferred.field}"
    alone = FilterCompiler(query.kinds, types).compile(Not(Presence(distinct, "exists")))
    return replace(compiled, distinct=f"_v_{distinct}", preferred=decides, alone=alone)


def needs_types(query: SearchQuery) -> bool:
    """Tell whether compiling needs to know which further fields the collection has."""
    if not query.kinds:
        return False
    wanted = query.sort or query.facets or query.filter is not None or has_long_numbers(query.filters)
    return bool(wanted or distinct_field(query) or not Ranks(query).are_neutral)


def _matching(parts: Sequence[QueryPart], query: SearchQuery, types: Mapping[str, str]) -> dict[str, str]:
    """The words and how they match. The ``_g_`` fields have what Typesense folds otherwise.

    Titles of sections are searched with all text; collections that never had any have no field for them.
    """
    fields = searched_fields(query)
    words = [_written(part) for part in parts]
    weights = query.settings.weights
    points = [str(max(1, min(_MAX_WEIGHT, round(_WEIGHTS[name] * weights.get(name, 1.0))))) for name in fields]
    columns: list[tuple[str, str, str, str]] = []
    for name, point in zip(fields, points, strict=True):
        columns.append((name, point, "2" if sum(len(part.words) for part in parts) <= FORGIVEN_WORDS else "0", "true"))
    columns += [(f"_g_{name}", point, "0", "true") for name, point in zip(fields, points, strict=True)]
    if fields == TEXT_FIELDS and SECTION_TITLES in types:
        columns += [(SECTION_TITLES, _SECTIONS_WEIGHT, columns[0][2], "true")]
        columns += [(f"_g{SECTION_TITLES}", _SECTIONS_WEIGHT, "0", "true")]
    query_by, by_weight, typos, prefix = (",".join(column) for column in zip(*columns, strict=True))
    return {
        # A text that is a word and nothing else comes first, unless the site has its own idea of what counts.
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
    found: list[str] = []
    for key in query.sort:
        direction = "desc" if key.descending else "asc"
        found += [f"{name}{last}:{direction}" for name in _sort_fields(key, types)]
    if len(found) > _MAX_SORTS:
        raise BackendRejected("sort", "This search engine cannot sort by so many fields of mixed kinds.")
    if len(found) < _MAX_SORTS:
        found.append("_changed_at:desc" if query.text == MATCH_ALL else "_text_match:desc")
    return found


def _sort_fields(key: SortKey, types: Mapping[str, str]) -> list[str]:
    if key.field == "date":
        return ["_n_date"]
    if key.field in STANDARD_SORTS:
        return [STANDARD_SORTS[key.field]]
    # Numbers come before text, as they do in the embedded engine.
    return [name for name in (f"_n_{key.field}", f"_s_{key.field}") if name in types]


def _facets(query: SearchQuery, types: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    found: dict[str, tuple[str | None, str | None]] = {}
    for name in facet_fields(query.facets, query.kinds):
        if name == "author":
            found[name] = ("_v_author", None)
        elif name == "date":
            found[name] = ("_v_date", "date")
        elif name == "id":
            found[name] = (None, None)
        else:
            values = f"_v_{name}"
            native = native_name(name, "number", types)
            numbers = types.get(native) in ("int64[]", "float[]")
            found[name] = (values if values in types else None, native if numbers else None)
    return found
