"""Conditions that documents must meet in addition to matching a text."""

from __future__ import annotations

import tantivy

from backends.base import SearchQuery
from backends.embedded.index.snapshots import Snapshot
from backends.field_rules import check_filter
from backends.filters import And, Filter, parse_filter


def compile_condition(snapshot: Snapshot, query: SearchQuery) -> tantivy.Query | None:
    """Compile a search's filters to a query that adds nothing to scores; ``None`` without filters.

    The filters of rules are cached with the snapshot, because they may contain hundreds of conditions.

    Raises:
        BackendRejected: The engine cannot run the filters.
    """
    parts: list[Filter] = [] if query.condition is None else [query.condition]
    if query.filters.strip():
        parts.append(parse_filter(query.filters))
    if not parts:
        return None
    expression = parts[0] if len(parts) == 1 else And(tuple(parts))
    key = ("condition", expression) if query.effects.rules else None
    compiled: tantivy.Query | None = None if key is None else snapshot.cached(key)
    if compiled is None:
        for part in parts:
            check_filter(part, query.kinds)
        compiled = tantivy.Query.const_score_query(snapshot.filters.compile(expression), 0.0)
        if key is not None:
            snapshot.cache(key, compiled)
    return compiled
