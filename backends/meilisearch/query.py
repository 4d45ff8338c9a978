"""A :class:`~backends.base.SearchQuery` as the queries of one ``/multi-search``, and the portable filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from backends.base import MATCH_ALL, SearchQuery
from backends.distinct import distinct_field
from backends.field_rules import check_filter, check_sort, facet_fields, instant_of, number_of, searched_fields
from backends.filters import And, Between, Comparison, Filter, Not, OneOf, Or, Presence
from backends.meilisearch.schema import FOLDED_FIELDS, STORED_SECTIONS, id_token, seconds_of
from backends.servers.matched_words import SoughtWord
from backends.servers.tokenizer import QueryPart, query_parts, without_stop_words
from backends.standard_fields import STANDARD_FIELDS
from backends.values import parse_filter_instant

NOTHING = '"_key" NOT EXISTS'
EVERYTHING = '"_key" EXISTS'

_SEARCHED_TEXTS = ["_doc", STORED_SECTIONS]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query as it is sent, without the page.

    Attributes:
        common: Members of every query.
        filters: Expressions that must all hold.
        facets: Asked field to the Meilisearch field with its values, ``None`` if the index does not have it yet.
        parts: The words the person typed.
        distinct: The field of whose values one hit each is shown; ``""`` for none.
    """

    common: dict[str, Any]
    filters: tuple[str, ...]
    facets: dict[str, str | None]
    parts: tuple[QueryPart, ...]
    distinct: str = ""

    def page(self, *, page: int, hits: int, more: Sequence[str] = ()) -> dict[str, Any]:
        """The query for a page of the hits that are shown; ``more`` as for :meth:`query`."""
        shown = {"distinct": attribute(self.distinct)} if self.distinct else {}
        return {**self.query(page=page, hits=hits, more=more), **shown}

    def values_query(self, names: Sequence[str], *, hits: int, more: Sequence[str]) -> dict[str, Any]:
        """The query for ids and some fields of the hits, nothing else of them."""
        return self.only_values(self.query(page=1, hits=hits, more=more), names)

    @staticmethod
    def only_values(query: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """A query for ids and some fields of its hits, nothing else of them."""
        wanted = {**query, "attributesToRetrieve": list(dict.fromkeys(["id", *map(attribute, names)]))}
        return {name: value for name, value in wanted.items() if name != "showMatchesPosition"}

    def query(self, *, page: int, hits: int, facets: bool = False, more: Sequence[str] = ()) -> dict[str, Any]:
        """One query; ``more`` are further expressions that must hold."""
        query = {**self.common, "page": page, "hitsPerPage": hits, "filter": [*self.filters, *more]}
        names = {name for name in self.facets.values() if name is not None}
        if facets and names:
            query["facets"] = sorted(names | ({"date"} if "_date" in names else set()))
        return query

    def whole_query(self) -> dict[str, Any]:
        """The query for the best document that has every word."""
        query = {
            **self.query(page=1, hits=1),
            "matchingStrategy": "all",
            "attributesToRetrieve": ["_doc", STORED_SECTIONS],
        }
        return {name: value for name, value in query.items() if name not in ("sort", "showMatchesPosition")}

    def word_query(self, sought: SoughtWord) -> dict[str, Any]:
        """The query for the best document of the index that has a word; as typed, if it is no beginning."""
        shared = {name: value for name, value in self.common.items() if name in ("indexUid", "attributesToSearchOn")}
        q = sought.word if sought.is_open else f'"{sought.word}"'
        return {**shared, "q": q, "page": 1, "hitsPerPage": 1, "attributesToRetrieve": _SEARCHED_TEXTS}


def compile_query(index: str, query: SearchQuery, filterable: Set[str], *, folded: bool) -> CompiledQuery:
    """Compile everything but the page.

    Args:
        filterable: The fields this index can filter by; what is known but not there holds for no document.
        folded: Whether it searches the fields beside the texts, too.

    Raises:
        BackendRejected: A field of the filter, the order or the facets is unknown or not fit for it.
    """
    parts = () if query.text == MATCH_ALL else without_stop_words(query_parts(query.text), query.settings)
    common: dict[str, Any] = {
        "indexUid": index,
        "q": " ".join(_written(part, folded) for part in parts),
        "attributesToRetrieve": ["id", "_doc"],
        "matchingStrategy": "all" if query.all_words else "last",
    }
    filters = [query.filters] if query.filters else []
    condition = query.condition
    if condition is not None:
        check_filter(condition, query.kinds)
        filters.append(compile_filter(condition, query, filterable))
    searched = searched_fields(query)
    if folded:
        searched = tuple(each for name in searched for each in (name, FOLDED_FIELDS[name]))
    if query.text != MATCH_ALL and not (parts and searched):
        filters.append(NOTHING)
    elif query.fields and parts:
        common["attributesToSearchOn"] = list(searched)
    if query.shows_matches and parts:
        common["showMatchesPosition"] = True
        common["attributesToRetrieve"] = ["id", "_doc", *searched, *([STORED_SECTIONS] if query.needs_sections else [])]
    if query.sort:
        common["sort"] = _sorts(query)
    if query.explain:
        common |= {"showRankingScore": True, "showRankingScoreDetails": True}
    distinct = distinct_field(query)
    return CompiledQuery(
        common,
        tuple(filters),
        _facets(query, filterable),
        parts,
        distinct if distinct in STANDARD_FIELDS or distinct in filterable else "",
    )


def attribute(name: str) -> str:
    """The Meilisearch field that has a field's values as they were sent."""
    return "_date" if name == "date" else name


def with_ids(ids: Sequence[str], *, without: bool = False) -> str:
    """The expression that holds for documents with these ids only, or for all others."""
    return f'"_key" {"NOT IN" if without else "IN"} [{", ".join(quoted(id_token(each)) for each in ids)}]'


def quoted(text: str) -> str:
    """``text`` as a name or value in Meilisearch's filters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def compile_filter(node: Filter, query: SearchQuery, filterable: Set[str]) -> str:
    """A portable expression in Meilisearch's syntax, of which it is a part.

    Raises:
        BackendRejected: A value cannot be compared with its field.
    """
    match node:
        case Not():
            return f"NOT ({compile_filter(node.operand, query, filterable)})"
        case And() | Or():
            joint = " AND " if isinstance(node, And) else " OR "
            return "(" + joint.join(f"({compile_filter(each, query, filterable)})" for each in node.operands) + ")"
    condition = _id_condition(node) if node.field == "id" else _condition(node)
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
    return _condition(node)


def _condition(node: Comparison | Between | OneOf | Presence) -> str:
    name = quoted(f"_n_{node.field}" if _compares(node) and node.field not in STANDARD_FIELDS else node.field)
    match node:
        case Presence():
            return f"{name} {'EXISTS' if node.test == 'exists' else 'IS NULL' if node.test == 'null' else 'IS EMPTY'}"
        case OneOf():
            values = [value for value in (_equal(node.field, each) for each in node.values) if value is not None]
            return f"{name} IN [{', '.join(values)}]" if values else NOTHING
        case Between():
            low, high = (_bound(node.field, each, node.position) for each in (node.low, node.high))
            return f"{name} {low} TO {high}"
    if node.operator in ("=", "!="):
        value = _equal(node.field, node.value)
        if value is None:
            return NOTHING if node.operator == "=" else EVERYTHING
        return f"{name} {node.operator} {value}"
    return f"{name} {node.operator} {_bound(node.field, node.value, node.position)}"


def _equal(field: str, value: str) -> str | None:
    if field != "date":
        return quoted(value)
    instant = parse_filter_instant(value)
    return None if instant is None else quoted(repr(seconds_of(instant)))


def _bound(field: str, value: str, position: int) -> str:
    if field == "date":
        return quoted(repr(seconds_of(instant_of(value, position))))
    return quoted(repr(number_of(field, value, position)))  # An exponent is no word of its syntax.


def _written(part: QueryPart, folded: bool) -> str:
    pairs = zip(part.words, part.typed, strict=True)
    words = " ".join(word if folded and word.isascii() else typed for word, typed in pairs)
    minus = "-" if part.excluded else ""
    return f'{minus}"{words}"' if part.phrase or (part.excluded and len(part.words) > 1) else minus + words


def _sorts(query: SearchQuery) -> list[str]:
    check_sort(query.sort, query.kinds)
    return [f"{key.field}:{'desc' if key.descending else 'asc'}" for key in query.sort]


def _facets(query: SearchQuery, filterable: Set[str]) -> dict[str, str | None]:
    return {
        name: attribute(name) if name in STANDARD_FIELDS or name in filterable else None
        for name in facet_fields(query.facets, query.kinds)
    }
