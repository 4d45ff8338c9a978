"""Documents with their matches marked."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from backends.base import Highlight
from backends.embedded.results.highlight_terms import HighlightTerms
from backends.embedded.results.matches import Match, MatchTerms, find_matches, merge_matches
from backends.embedded.results.snippets import SnippetGenerator

_NEVER_TEXT = frozenset({"id", "url", "date"})
"""Fields in which nothing is marked unless they are named: a mark would break what they are for."""


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, wish: Highlight, highlight_terms: HighlightTerms):
        self.wish = wish
        starts = tuple(highlight_terms.prefixes)
        terms = {term: number for term, number in highlight_terms.terms.items() if not term.startswith(starts)}
        self.everywhere = "*" in wish.fields
        self._match_terms = MatchTerms.of(terms, highlight_terms.prefixes, highlight_terms.sequences)
        self._snippets = SnippetGenerator(self._match_terms)

    def format(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields shown, with matches marked, everything else escaped if wished, and long ones cropped."""
        return {name: self._value(name, value) for name, value in self.wish.chosen(document).items()}

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(name, value)
        if isinstance(value, list):
            return [self._text(name, item) if isinstance(item, str) else item for item in value]
        return value

    def _text(self, name: str, text: str) -> str:
        if not text:
            return text
        words = self.wish.crop_fields.get(name)
        marked = name in self.wish.fields or (self.everywhere and name not in _NEVER_TEXT)
        if words is not None:
            return self._cropped(text, words, marked)
        if not marked:
            return self._escaped(text)
        return self._marked(text, find_matches(text, self._match_terms), 0, len(text))

    def _cropped(self, text: str, words: int, marked: bool) -> str:
        found_matches, (start, end) = self._snippets.best_part(text, words)
        part = self._marked(text, found_matches, start, end) if marked else self._escaped(text[start:end])
        before = self.wish.crop_marker if start > 0 else ""
        after = self.wish.crop_marker if end < len(text) else ""
        return f"{before}{part}{after}"

    def _marked(self, text: str, found_matches: list[Match], start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for span_start, span_end in merge_matches(found_matches):
            if span_end > end:
                break
            if span_start < at:
                continue
            parts += (
                self._escaped(text[at:span_start]), self.wish.pre_tag, self._escaped(text[span_start:span_end]),
                self.wish.post_tag,
            )  # fmt: skip
            at = span_end
        parts.append(self._escaped(text[at:end]))
        return "".join(parts)

    def _escaped(self, text: str) -> str:
        return html.escape(text) if self.wish.escape else text
