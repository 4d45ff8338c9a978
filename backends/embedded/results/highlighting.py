"""The matches that are marked in the embedded engine's hits."""

from __future__ import annotations

from backends.embedded.results.highlight_terms import HighlightTerms
from backends.embedded.results.matches import MatchTerms, find_matches, merge_matches
from backends.embedded.results.snippets import SnippetGenerator
from backends.highlighting import Span


class TermMatches:
    """Where the terms of one query match, as :class:`backends.highlighting.Matches`."""

    def __init__(self, highlight_terms: HighlightTerms):
        starts = tuple(highlight_terms.prefixes)
        terms = {term: number for term, number in highlight_terms.terms.items() if not term.startswith(starts)}
        self._match_terms = MatchTerms.of(terms, highlight_terms.prefixes, highlight_terms.sequences)
        self._snippets = SnippetGenerator(self._match_terms)

    def spans(self, text: str) -> list[Span]:
        """All matches in a text."""
        return merge_matches(find_matches(text, self._match_terms))

    def best_part(self, text: str, words: int) -> tuple[list[Span], Span]:
        """The part of a text, about ``words`` words long, with the most different matches, and the matches there."""
        found_matches, part = self._snippets.best_part(text, words)
        return merge_matches(found_matches), part
