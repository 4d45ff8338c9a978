"""Building the hits of a page: the stored document, highlights, sections, and passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import orjson
import tantivy

from backends.base import Hit
from backends.embedded.index.schema import ID, PARTED_WORDS, SOURCE, STORED_SECTIONS
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.results.highlighting import TermMatches
from backends.highlighting import Highlighter, find_passage, find_sections
from backends.query import SearchQuery
from backends.sections import unpack


def make_hits(
    snapshot: Snapshot,
    addresses: Sequence[tantivy.DocAddress],
    query: SearchQuery,
    matches: TermMatches | None,
    explain: Callable[[tantivy.DocAddress], dict[str, Any]] | None,
) -> Iterator[Hit]:
    """Build hits one by one, so that the caller can stop at its own limit."""
    shared = Highlighter(query.highlight, matches) if query.highlight and matches else None
    for address in addresses:
        entry = snapshot.searcher.doc(address)
        source = bytes(entry.get_first(SOURCE) or b"{}")
        explanation = None if explain is None else explain(address)
        if matches is None:
            yield Hit(str(entry.get_first(ID)), source, explanation=explanation)
            continue
        document = orjson.loads(source)
        words = entry.get_first(PARTED_WORDS)
        own = matches if words is None else matches.with_forms(bytes(words))
        stored = entry.get_first(STORED_SECTIONS) if query.needs_sections else None
        all_sections = unpack(bytes(stored)) if stored else ()
        sections = find_sections(query, document, all_sections, own) if query.sections else None
        highlighter = shared if shared is None or own is matches else Highlighter(shared.options, own)
        formatted = None if highlighter is None else highlighter.format(document)
        passage = partial(find_passage, document, all_sections, own) if query.answers else None
        hit = Hit(str(entry.get_first(ID)), source, formatted, sections, explanation, passage)
        vars(hit)["document"] = document  # Cached, because decoding a page of 5 KB again takes 12 µs.
        yield hit
