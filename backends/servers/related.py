"""Related pages on search servers: the rarity of a page's words, a search for the rarest, and the score of its hits.

Servers report neither the words of a document nor how rare they are, and their scores cannot be compared with the score
of the page itself. So the words are chosen and the hits are scored here, as the embedded engine does it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from backends.analysis.normalization import terms_of
from backends.base import Hit
from backends.query import SearchQuery, SearchSettings
from backends.related import MAX_CONTENT_CHARS, MIN_SHARE, RANK_POWER, TITLE_BOOST, PageWord, different_pages
from backends.servers.ranks import Ranks

MAX_REQUESTED_WORDS: Final = 30
"""Number of the page's most used words whose rarity is requested."""

CANDIDATES: Final = 20
"""Number of hits that are scored."""

_SEARCHED_WORDS: Final = 8
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
_OTHER_FIELD_SHARE = 0.3


def rarities(counts: Sequence[int]) -> list[float]:
    """Return the inverse document frequency of each word.

    Args:
        counts: Number of all documents, followed by the number of documents with each word.
    """
    total = max(counts)
    return [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in (max(1, count) for count in counts[1:])]


def candidate_search(query: SearchQuery, words: Sequence[PageWord]) -> SearchQuery:
    """Return a search for the weightiest words, the weightiest first because servers drop words from the end."""
    text = " ".join(forms[0] for _, forms in words[:_SEARCHED_WORDS])
    return replace(
        query, text=text, limit=CANDIDATES, distinct="", returned_fields=None, settings=EVERY_WORD, is_preview=True
    )


EVERY_WORD: Final = SearchSettings(stop_words=frozenset())
"""Settings with which a search looks for the words as they are."""


def related_hits(
    document: Mapping[str, Any], hits: Sequence[Hit], query: SearchQuery, words: Sequence[PageWord]
) -> list[Hit]:
    """Return the hits that are related to a document, best first, with all their fields."""
    texts = [_Text(each) for each in (document, *(hit.document for hit in hits))]
    mean = sum(text.length for text in texts) / len(texts)
    own, *scores = [text.score(words, mean) for text in texts]
    min_weight = MIN_SHARE * sum(weight for weight, _ in words)
    # A search without words has no ranks.
    ranks = Ranks(replace(query, text=words[0][1][0]))
    near = [
        (score * ranks.factor(hit.document) ** RANK_POWER, hit)
        for score, hit, text in zip(scores, hits, texts[1:], strict=True)
        if score >= MIN_SHARE * own and text.weight(words) >= min_weight
    ]
    ordered = sorted(near, key=lambda scored_hit: -scored_hit[0])
    return different_pages(query, ((hit, hit.document) for _, hit in ordered))


class _Text:
    """The words of a document."""

    def __init__(self, document: Mapping[str, Any]):
        self._title = Counter(terms_of(str(document.get("title", ""))))
        self._content = Counter(terms_of(str(document.get("content", ""))[:MAX_CONTENT_CHARS]))
        self.length = self._content.total()

    def score(self, words: Sequence[PageWord], mean_length: float) -> float:
        """Return the BM25 score for some words; ``mean_length`` is the usual number of words of a document."""
        norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * self.length / max(1.0, mean_length))
        return sum(weight * self._score(forms, norm) for weight, forms in words)

    def weight(self, words: Sequence[PageWord]) -> float:
        """Return the total weight of the words that the document contains."""
        return sum(
            weight for weight, forms in words if any(form in self._title or form in self._content for form in forms)
        )

    def _score(self, forms: Sequence[str], norm: float) -> float:
        in_title, in_content = (sum(counts[form] for form in forms) for counts in (self._title, self._content))
        scores = (TITLE_BOOST * in_title / (in_title + _SATURATION), in_content / (in_content + norm))
        return max(scores) + _OTHER_FIELD_SHARE * min(scores)
