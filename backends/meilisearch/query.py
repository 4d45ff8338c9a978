"""Compiling a :class:`~backends.query.SearchQuery` and portable filters to the queries of one ``/multi-search``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from backends.distinct import distinct_field
from backends.errors import BackendRejected
from backends.field_rules import (
    SCALAR_KINDS,
    check_filter,
    check_sort,
    facet_fields,
    instant_of,
    number_of,
    searched_fields,
)
from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence
from backends.meilisearch.schema import (
    BLANK_FIELDS,
    FOLDED_FIELDS,
    STORED_SECTIONS,
    blank_token,
    id_token,
    seconds_of,
)
from backends.query import MATCH_ALL, SearchQuery
from backends.servers.matched_words import QueryWord
from backends.servers.tokenizer import QueryPart, query_parts, query_stop_words, without_stop_words
from backends.standard_fields import STANDARD_FIELDS
from backends.values import parse_filter_instant

NOTHING = '"_key" NOT EXISTS'
EVERYTHING = '"_key" EXISTS'

_SEARCHED_TEXTS = ["_doc", STORED_SECTIONS]
_TOKEN = re.compile(r"""(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[\w./-]+|\S)""", re.DOTALL)
MAX_ENDINGS = 6
"""Maximum number of shortened queries, each of which lacks further first words and is a separate search."""

_OF_FEDERATION = frozenset({"page", "hitsPerPage", "facets", "distinct"})
_BEFORE_A_NAME = frozenset({"", "(", "AND", "OR", "NOT"})


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A compiled query, without the page.

    Attributes:
        common: Members of every query.
        filters: Expressions that must all hold.
        facets: Requested field to the Meilisearch field with its values; ``None`` if the index does not have it yet.
        typed: The words of the query.
        parts: The words to search for: without stop words.
        distinct: The field by which hits are grouped; ``""`` for none.
        has_lists: Whether documents may have lists in that field, of which Meilisearch compares every member.
        endings: The query, the query without its first word, and so on, each with the share of the words that remain;
            empty if the query contains a phrase or a single word, or must match as a whole.
        folded: Whether the index also searches the folded fields.
    """

    common: dict[str, Any]
    filters: tuple[str, ...]
    facets: dict[str, str | None]
    typed: tuple[QueryPart, ...]
    parts: tuple[QueryPart, ...]
    distinct: str = ""
    has_lists: bool = False
    endings: tuple[tuple[str, float], ...] = ()
    folded: bool = True

    def for_parts(self, parts: Sequence[QueryPart]) -> CompiledQuery:
        """Return the query with other words."""
        common = {**self.common, "q": " ".join(_written(part, self.folded) for part in parts)}
        endings = tuple(_endings(parts, self.folded)) if self.endings else ()
        return replace(self, common=common, typed=tuple(parts), parts=tuple(parts), endings=endings)

    def page(self, *, page: int, hits: int, extra_filters: Sequence[str] = ()) -> dict[str, Any]:
        """Return a query for a page of hits, or of groups in a distinct search; arguments as for :meth:`query`."""
        options = {"distinct": attribute(self.distinct)} if self.distinct else {}
        return {**self.query(page=page, hits=hits, extra_filters=extra_filters), **options}

    def values_query(self, names: Iterable[str], *, hits: int, extra_filters: Sequence[str]) -> dict[str, Any]:
        """Return a query that returns only IDs and some fields of the hits."""
        fields = list(dict.fromkeys(["id", *map(attribute, names)]))
        return {**self.query(page=1, hits=hits, extra_filters=extra_filters), "attributesToRetrieve": fields}

    def query(self, *, page: int, hits: int, facets: bool = False, extra_filters: Sequence[str] = ()) -> dict[str, Any]:
        """Return a query of a ``/multi-search`` for one page of hits.

        Args:
            page: Number of the page, from 1.
            hits: Hits per page.
            facets: Whether to count the requested facets.
            extra_filters: Filters in Meilisearch's syntax that hits must meet in addition to :attr:`filters`.
        """
        query = {**self.common, "page": page, "hitsPerPage": hits, "filter": [*self.filters, *extra_filters]}
        names = {name for name in self.facets.values() if name is not None}
        if facets and names:
            query["facets"] = sorted(names | ({"date"} if "_date" in names else set()))
        return query

    def by_ids(self, ids: Sequence[str]) -> dict[str, Any]:
        """Return a query for whole documents by ID; searches for the words only if the hits are to be explained."""
        query = self.query(page=1, hits=max(1, len(ids)), extra_filters=[with_ids(ids)])
        return query if "showRankingScoreDetails" in query else {**query, "q": ""}

    def loosely(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return a federated search that also finds documents with any of the query's words.

        By itself, Meilisearch drops words from a query, but never the rarest one, and none if all are equally rare. So
        the query is also run without its first word, without its first two words, and so on. In each, the first
        remaining word is required and later words are not. Documents with the same number of words get similar scores,
        whichever query finds them.
        """
        federation = {"page": query["page"], "hitsPerPage": query["hitsPerPage"]}
        if "facets" in query:
            federation["facetsByIndex"] = {query["indexUid"]: query["facets"]}
        each = {name: value for name, value in query.items() if name not in _OF_FEDERATION}
        endings = [
            {**each, "q": text, "matchingStrategy": "last", "federationOptions": {"weight": share}}
            for text, share in self.endings
        ]
        return {"federation": federation, "queries": [each, *endings]}

    def whole_query(self) -> dict[str, Any]:
        """Return a query for the best document that contains every word."""
        query = {
            **self.query(page=1, hits=1),
            "matchingStrategy": "all",
            "attributesToRetrieve": _SEARCHED_TEXTS,
        }
        # Meilisearch applies an order before the quality of matches, so the best match would not come first.
        return {name: value for name, value in query.items() if name != "sort"}

    def word_query(self, query_word: QueryWord) -> dict[str, Any]:
        """Return a query for the best document of the index that contains a word; as typed, unless it is a prefix."""
        whole = self.whole_word_query(query_word.word)
        return {**whole, "q": query_word.word} if query_word.is_open else whole

    def whole_word_query(self, word: str) -> dict[str, Any]:
        """Return a query for the best document of the index that contains a folded word; the best of all for ``""``."""
        shared = {name: value for name, value in self.common.items() if name in ("indexUid", "attributesToSearchOn")}
        # In quotes, Meilisearch allows no typing errors and completes no words.
        q = f'"{word}"' if word else ""
        return {**shared, "q": q, "page": 1, "hitsPerPage": 1, "attributesToRetrieve": _SEARCHED_TEXTS}


def compile_query(index: str, query: SearchQuery, filterable: Set[str], *, folded: bool) -> CompiledQuery:
    """Compile everything except the page.

    Args:
        filterable: Filterable fields of the index; a known field that is missing here matches no document.
        folded: Whether the index also searches the folded fields.

    Raises:
        BackendRejected: A field of the filter, the order, or the facets is unknown or unsuitable.
    """
    check_native_filter(query.native_filter)
    typed = () if query.text == MATCH_ALL else tuple(query_parts(query.text))
    parts = without_stop_words(typed, query_stop_words(typed, query.settings))
    common: dict[str, Any] = {
        "indexUid": index,
        "q": " ".join(_written(part, folded) for part in parts),
        "attributesToRetrieve": ["id", "_doc", *([STORED_SECTIONS] if query.needs_sections else [])],
        "matchingStrategy": "all" if query.all_words else "frequency",
    }
    filters = [query.native_filter] if query.native_filter else []
    condition = query.condition
    if condition is not None:
        check_filter(condition, query.kinds)
        filters.append(compile_filter(condition, query, filterable))
    searched = searched_fields(query)
    if folded:
        searched = tuple(field for name in searched for field in (name, FOLDED_FIELDS[name]))
    if query.text != MATCH_ALL and not (parts and searched):
        filters.append(NOTHING)
    elif query.fields and parts:
        common["attributesToSearchOn"] = list(searched)
    if query.sort:
        common["sort"] = _sorts(query, filterable)
    if query.explain or query.scored:
        common["showRankingScore"] = True
    if query.explain:
        common["showRankingScoreDetails"] = True
    distinct = distinct_field(query)
    return CompiledQuery(
        common,
        tuple(filters),
        _facets(query, filterable),
        typed,
        parts,
        distinct if distinct in STANDARD_FIELDS or distinct in filterable else "",
        endings=() if query.all_words else tuple(_endings(parts, folded)),
        has_lists=not query.kinds.get(distinct, frozenset()) <= SCALAR_KINDS,
        folded=folded,
    )


def check_native_filter(filters: str) -> None:
    """Reject names in a filter of Meilisearch's syntax that are not fields of documents: the adapter's own fields, and
    features of Meilisearch that an operator must enable.

    Raises:
        BackendRejected: The filter contains such a name; with the position.
    """
    before = ""
    for token in _TOKEN.finditer(filters):
        name = token[0].strip("\"'")
        if before in _BEFORE_A_NAME and name.startswith("_"):
            message = f"The documents have no field {name!r} to filter by."
            raise BackendRejected("filters", message, position=token.start())
        before = token[0]


def attribute(name: str) -> str:
    """Return the Meilisearch field that contains a field's values as sent."""
    return "_date" if name == "date" else name


def with_ids(ids: Sequence[str], *, without: bool = False) -> str:
    """Return a filter for documents with these IDs, or for all others."""
    return f'"_key" {"NOT IN" if without else "IN"} [{", ".join(quoted(id_token(id)) for id in ids)}]'


def quoted(text: str) -> str:
    """Return ``text`` as a name or value in Meilisearch's filters: ``say "hi"`` -> ``"say \\"hi\\""``."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def compile_filter(node: Filter, query: SearchQuery, filterable: Set[str]) -> str:
    """Compile a portable expression to Meilisearch's syntax, of which the portable grammar is a subset.

    Raises:
        BackendRejected: A value cannot be compared with its field.
    """
    match node:
        case Not():
            return f"NOT ({compile_filter(node.operand, query, filterable)})"
        case And() | Or():
            joint = " AND " if isinstance(node, And) else " OR "
            return (
                "(" + joint.join(f"({compile_filter(operand, query, filterable)})" for operand in node.operands) + ")"
            )
    condition = _id_condition(node) if node.field == "id" else _condition(node, filterable)
    needed = f"_n_{node.field}" if _compares(node) and node.field in query.kinds else node.field
    if needed in STANDARD_FIELDS or needed in filterable:
        return condition
    return EVERYTHING if isinstance(node, Comparison) and node.operator == "!=" else NOTHING


def _compares(node: Filter) -> bool:
    return isinstance(node, Between) or (isinstance(node, Comparison) and node.operator not in ("=", "!="))


def _id_condition(node: Comparison | Between | OneOf | Presence) -> str:
    match node:
        case Comparison(operator="=" | "!="):
            return with_ids([node.value], without=node.operator == "!=")
        case OneOf():
            return with_ids(node.values) if node.values else NOTHING
    return _condition(node, frozenset())


def _condition(node: Comparison | Between | OneOf | Presence, filterable: Set[str]) -> str:
    name = quoted(f"_n_{node.field}" if _compares(node) and node.field not in STANDARD_FIELDS else node.field)
    match node:
        case Presence():
            return f"{name} {'EXISTS' if node.test == 'exists' else 'IS NULL' if node.test == 'null' else 'IS EMPTY'}"
        case OneOf():
            values = [value for text in node.values if text.strip() and (value := _equal(node.field, text)) is not None]
            tests = [f"{name} IN [{', '.join(values)}]"] if values else []
            if not all(text.strip() for text in node.values):
                tests.append(_blank_filter(node.field, filterable))
            return f"({' OR '.join(tests)})" if tests else NOTHING
        case Between():
            low, high = (_bound(node.field, bound, node.position) for bound in (node.low, node.high))
            return f"{name} {low} TO {high}"
    if node.operator in ("=", "!=") and not node.value.strip():
        return f"{'NOT ' if node.operator == '!=' else ''}{_blank_filter(node.field, filterable)}"
    if node.operator in ("=", "!="):
        value = _equal(node.field, node.value)
        if value is None:
            return NOTHING if node.operator == "=" else EVERYTHING
        return f"{name} {node.operator} {value}"
    return f"{name} {node.operator} {_bound(node.field, node.value, node.position)}"


def _blank_filter(field: str, filterable: Set[str]) -> str:
    """Return a filter that matches empty texts, which Meilisearch does not index."""
    if BLANK_FIELDS not in filterable:  # In indexes of earlier releases, an empty list also matches.
        return f"{quoted(field)} IS EMPTY"
    return f"{quoted(BLANK_FIELDS)} = {quoted(blank_token(field))}"


def _equal(field: str, value: str) -> str | None:
    if field != "date":
        return quoted(value)
    instant = parse_filter_instant(value)
    return None if instant is None else quoted(repr(seconds_of(instant)))


def _bound(field: str, value: str, position: int) -> str:
    if field == "date":
        return quoted(repr(seconds_of(instant_of(value, position))))
    return quoted(repr(number_of(field, value, position)))  # Quoted: its syntax has no exponents.


def _written(part: QueryPart, folded: bool) -> str:
    pairs = zip(part.words, part.typed, strict=True)
    words = " ".join(word if folded and word.isascii() else typed for word, typed in pairs)
    minus = "-" if part.excluded else ""
    return f'{minus}"{words}"' if part.phrase or (part.excluded and len(part.words) > 1) else minus + words


def _endings(parts: Sequence[QueryPart], folded: bool) -> Iterator[tuple[str, float]]:
    words = [part for part in parts if not part.excluded]
    if len(words) < 2 or any(part.phrase for part in words):
        return
    excluded = [part for part in parts if part.excluded]
    for number in range(min(len(words), MAX_ENDINGS)):
        written = " ".join(_written(part, folded) for part in (*excluded, *words[number:]))
        yield written, 1 - number / len(words)


def _sorts(query: SearchQuery, filterable: Set[str]) -> list[str]:
    check_sort(query.sort, query.kinds)
    keys = [key for key in query.sort if key.field in STANDARD_FIELDS or key.field in filterable]
    return [f"{key.field}:{'desc' if key.descending else 'asc'}" for key in keys]


def _facets(query: SearchQuery, filterable: Set[str]) -> dict[str, str | None]:
    return {
        name: attribute(name) if name in STANDARD_FIELDS or name in filterable else None
        for name in facet_fields(query.facets, query.kinds)
    }
