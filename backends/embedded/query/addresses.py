"""Queries that are the address of a page: its URL, its path, or the last segment of its path."""

from __future__ import annotations

import re
from urllib.parse import unquote

import tantivy

from backends.embedded.index.schema import FILTER_TERMS, equality_term, path_term
from backends.embedded.index.snapshots import Snapshot
from backends.values import fold_to_sort

_ADDRESS = re.compile(
    r"(?P<host>https?://[^\s/?#]+|[^\s/?#]+\.[^\s/?#]+(?=/))?(?P<path>/?[^\s?#]*)(?P<query>\?[^\s#]*)?(?:#\S*)?",
    re.IGNORECASE,
)


def address_query(snapshot: Snapshot, text: str) -> tantivy.Query | None:
    """Return a query for the pages whose URL, path, or last path segment a text is; ``None`` if there is no such page.

    The scheme, a final slash, and the fragment may be missing or differ.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        return None
    terms = dict.fromkeys(term for term in _terms(match) if snapshot.frequency(FILTER_TERMS, term))
    if not terms:
        return None
    # An equal URL comes before an equal path, which may be on another host.
    scores = range(len(terms), 0, -1)
    term_query = tantivy.Query.term_query
    return tantivy.Query.disjunction_max_query([
        tantivy.Query.const_score_query(term_query(snapshot.schema, FILTER_TERMS, term), float(score))
        for term, score in zip(terms, scores, strict=True)
    ])  # fmt: skip


def _terms(match: re.Match[str]) -> list[str]:
    host, path, parameters = (match["host"] or "", match["path"].rstrip("/"), match["query"] or "")
    terms = []
    if host:
        name = host.partition("://")[2] or host
        urls = (f"{scheme}://{name}{path}" for scheme in ("https", "http"))
        terms += [equality_term("url", f"{url}{slash}{parameters}") for url in urls for slash in ("", "/")]
    elif parameters:
        terms.append(equality_term("url", f"{path}{parameters}"))
    if path and not parameters:
        rooted = path if path.startswith("/") or "/" not in path else f"/{path}"
        terms += [path_term(fold_to_sort(address)) for address in (rooted, unquote(rooted))]
    return terms
