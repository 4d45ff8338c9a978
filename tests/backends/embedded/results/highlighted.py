"""Texts that are hard to highlight, and helpers to highlight them."""

from __future__ import annotations

from hypothesis import strategies as st

from backends.analysis.normalization import fold, terms_of
from backends.embedded.results.highlighting import HighlightTerms, TermMatches
from backends.highlighting import Highlighter
from backends.query import Highlight

TRICKY = (
    "aAeÉéß İıſﬁæœøñ\u0301\u0308\u00ad\u200d\u200b<>&\"'-_.,+#@ \n\t"
    "日本語のテスト한국어กรุงเทพ مُحَمَّد שָׁלוֹם־ـहिन्दी Ёёй\u0306 Ωώς ½²ⷠⒶ⑩ｶ😀c++c#.net"
)
texts = st.text(alphabet=TRICKY, max_size=80) | st.text(max_size=60)


def marks_for(words: list[str], prefixes: list[str], sequences: list[tuple[str, ...]]) -> HighlightTerms:
    return HighlightTerms(
        {term: number for number, word in enumerate(words) for term in terms_of(word)},
        {folded: 100 for prefix in prefixes if (folded := fold(prefix)) and " " not in folded},
        {terms: 200 for words in sequences if len(terms := tuple(fold(word) for word in words if fold(word))) > 1},
    )


def highlighter_of(wish: Highlight, terms: HighlightTerms) -> Highlighter:
    return Highlighter(wish, TermMatches(terms))
