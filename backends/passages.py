"""Passages: the few sentences of a document that answer a query best."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from backends.highlighting import MatchLocator
from backends.sections import Match, Passage, Section, page_headings
from backends.sentences import MAX_SENTENCES_CHARS, SENTENCE_END, Span

_MAX_PASSAGE_SOURCE_CHARS = 20_000
"""Number of characters of a content in which a passage is searched for."""

_PARAGRAPH = re.compile(r"\n(?![a-z])")
"""The end of a paragraph, list item, or heading; a line that begins in lower case continues the previous line."""

_QUESTION = "?？"
_COMPLETE = re.compile(rf"""[.!…。！{_QUESTION}]["')\]”’»]*\Z""")
"""The end of a complete sentence; headings, commands, and table rows do not have one."""


def find_passage(document: Mapping[str, Any], sections: Sequence[Section], locator: MatchLocator) -> Passage | None:
    """Return the passage of a document's content whose words of the query weigh most; ``None`` if it has none.

    A passage is at most :data:`MAX_SENTENCES_CHARS` characters of one paragraph, in whole sentences. Once it has all
    the words that it can have, it ends before the next sentence without any. A question continues into the next
    paragraph and is not a passage by itself. Headings, commands, and table rows are excluded.

    Args:
        sections: Sections of the document, in order.
        locator: Locates the query's words.
    """
    words = locator.in_document(document)
    content = str(document.get("content", ""))[:_MAX_PASSAGE_SOURCE_CHARS]
    matches = words.matches_in(content, words.meaningful)
    starts = [section.start for section in sections]
    weights = words.weights
    total = sum(weights.values())
    best: Span | None = None
    best_words: frozenset[int] = frozenset()
    best_weight = 0.0
    for run in _runs(content, starts) if matches else ():
        run_matches = matches[bisect_left(matches, (run[0][0],)) : bisect_left(matches, (run[-1][1],))]
        if sum(weights[word] for word in {word for _, _, word in run_matches}) > best_weight:
            for passage, different in _windows(content, run, run_matches):
                if (weight := sum(weights[word] for word in different)) > best_weight:
                    best, best_words, best_weight = passage, different, weight
        if len(best_words) == len(weights):
            break
    if best is None:
        return None
    index = bisect_right(starts, best[0]) - 1
    is_page = index < 0 or sections[index] in page_headings(sections, str(document.get("title", "")))
    anchor = "" if is_page else sections[index].anchor
    share = 1.0 if len(best_words) == len(weights) else best_weight / total
    return Passage(content[slice(*best)], str(document.get("url", "")), anchor, len(best_words), share)


def _runs(text: str, breaks: Iterable[int]) -> Iterator[list[Span]]:
    """Yield groups of consecutive sentences that may form one passage; ``breaks`` are offsets where sections begin."""
    run: list[Span] = []
    breaks = frozenset(breaks)
    ends = sorted({*breaks, *(end.start() for end in _PARAGRAPH.finditer(text)), len(text)})
    for start, end in pairwise((0, *ends)):
        if run and not (text[run[-1][1] - 1] in _QUESTION and start not in breaks):
            yield run
            run = []
        for sentence in _sentences(text, start, end):
            if _COMPLETE.search(text, *sentence) and "\t" not in text[slice(*sentence)]:
                run.append(sentence)
            elif run:
                yield run
                run = []
    if run:
        yield run


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of a paragraph, and the rest of it."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    for boundary in SENTENCE_END.finditer(text, start, end):
        yield start, boundary.start() + len(boundary[0].rstrip())
        start = boundary.end()
    if start < end:
        yield start, start + len(text[start:end].rstrip())


def _windows(text: str, run: Sequence[Span], matches: Sequence[Match]) -> Iterator[tuple[Span, frozenset[int]]]:
    """Yield the passage that starts at each sentence with a query word, and the numbers of its query words."""
    for index, (start, stop) in enumerate(run):
        low = bisect_left(matches, (start,))
        if low == len(matches) or matches[low][0] >= stop:
            continue
        after = bisect_right(run, start + MAX_SENTENCES_CHARS, lo=index, key=itemgetter(1))
        ends = [end for _, end in run[index:after] if text[end - 1] not in _QUESTION]
        if ends:
            inside = matches[low : bisect_left(matches, (ends[-1],))]
            yield (start, _end_of_passage(run[index:after], ends, inside)), frozenset(word for _, _, word in inside)


def _end_of_passage(sentences: Sequence[Span], ends: Sequence[int], matches: Sequence[Match]) -> int:
    """Return the first end after every different word, and after all directly following sentences with words."""
    positions = {word: start for start, _, word in reversed(matches)}
    last = max(positions.values())
    for start, end in sentences:
        if start > last and not any(start <= match[0] < end for match in matches):
            break
        last = max(last, end - 1)
    return next(possible for possible in ends if possible > last)
