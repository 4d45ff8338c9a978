"""Documents with their matches marked: the same text around the marks, whatever finds the matches."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, Protocol

from backends.base import Highlight, SearchQuery
from backends.sections import (
    Passage,
    Place,
    Section,
    SectionHit,
    WordPlaces,
    choose,
    page_headings,
    path_to,
    section_text,
    section_url,
)
from backends.standard_fields import STANDARD_FIELDS, STRING_FIELDS

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""

_NEVER_TEXT = frozenset(STANDARD_FIELDS) - frozenset(STRING_FIELDS)
"""Fields in which nothing is marked unless they are named: a mark would break what they are for."""

_OPEN, _CLOSE = "\0(", "\0)"
"""Stand for the tags while the text is escaped, all at once; no document has NUL."""


def is_unlikely_typo(typed: str, found: str) -> bool:
    """Tell whether hardly anybody types one word when they mean another: people get the first letter right.

    Such a word is marked only in documents that have the typed word in no other form.

    Args:
        typed: A word of the query, folded.
        found: A word that differs from it by typing errors, folded.
    """
    return typed[0] != found[0]


LONGEST_SENTENCES = 300
"""Characters that whole sentences of a cropped text have at most."""

_LOOKED_AT = 4_096
"""Characters of a section among which the part that is shown is chosen."""

_SENTENCES_LOOKED_AT = 8
"""Matches of a section whose sentences are compared."""

_SENTENCE_END = re.compile(r"""[.!?…]["')\]”’»]*\s+(?=[^a-z\s])|[。！？]\s*""")
"""The end of a sentence; a small letter does not begin another."""


_ANSWERING = 20_000
"""Characters of a content in which a passage is looked for."""

_PARAGRAPH = re.compile(r"\n(?![a-z])")
"""The end of a paragraph, list item or heading; a line that begins with a small letter goes on with the one before."""

_QUESTION = "?？"
_COMPLETE = re.compile(rf"""[.!…。！{_QUESTION}]["')\]”’»]*\Z""")
"""The end of a sentence; a heading, a command, or a row of a table has none."""


def merged(places: Iterable[Place]) -> list[Span]:
    """The spans to be marked: matches in order, those that overlap or touch as one."""
    spans: list[Span] = []
    for start, end, _ in places:
        if spans and start <= spans[-1][1]:
            if end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
        elif end > start:
            spans.append((start, end))
    return spans


class Matches(WordPlaces, Protocol):
    """The place where the matches of a query are in a text. Spans are in order and do not overlap."""

    def in_document(self, document: Mapping[str, Any]) -> Matches:
        """The same in the texts of one document, where a word may be marked less since another is there."""
        ...

    def spans(self, text: str) -> Sequence[Span]:
        """All matches in a text."""
        ...

    def best_part(self, text: str, words: int) -> tuple[Sequence[Span], Span]:
        """The part of a text, about ``words`` words long, that shows the query best, and the matches in it."""
        ...


def whole_sentences(text: str, start: int, end: int) -> Span | None:
    """The sentences or lines that a part of a text lies in, and those behind as far as there is room.

    ``None``: They have more than :data:`LONGEST_SENTENCES` characters.
    """
    least = max(0, end - LONGEST_SENTENCES)
    line = text.rfind("\n", least, start) + 1
    begin = line if line or not least else -1
    # What ends before the part is seen as an end only with the letter that follows it.
    for boundary in _SENTENCE_END.finditer(text, max(line, least), start + 1):
        if boundary.end() <= start:
            begin = boundary.end()
    if begin < 0:
        return None
    most = begin + LONGEST_SENTENCES
    if most >= len(text):
        return begin, len(text)
    last = text.rfind("\n", end, most + 1)
    for boundary in _SENTENCE_END.finditer(text, max(last, end), most + 1):
        last = boundary.start() + len(boundary[0].rstrip())
    return None if last < 0 else (begin, last)


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, wish: Highlight, matches: Matches):
        self.wish = wish
        self._matches = matches
        self._escape: Callable[[str], str] = html.escape if wish.escape else str
        self._ways: dict[str, tuple[int | None, bool]] = {}

    def format(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields shown, with matches marked, everything else escaped if wished, and long ones cropped."""
        matches = self._matches.in_document(document)
        return {
            name: self._text(matches, name, value) if isinstance(value, str) else self._value(matches, name, value)
            for name, value in self.wish.chosen(document).items()
        }

    def mark(self, text: str, places: Sequence[Place], part: Span) -> str:
        """A part of a text with matches marked."""
        start, end = part
        return self._marked(text, merged([place for place in places if start <= place[0] < end]), start, end)

    def _value(self, matches: Matches, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._text(matches, name, item) if isinstance(item, str) else item for item in value]
        return value

    def _text(self, matches: Matches, name: str, text: str) -> str:
        if not text:
            return text
        words, is_marked = self._ways.get(name) or self._way(name)
        if words is not None:
            return self._cropped(matches, text, words, is_marked)
        spans = matches.spans(text) if is_marked else ()
        return self._marked(text, spans, 0, len(text))

    def _way(self, name: str) -> tuple[int | None, bool]:
        """To how many words a field is cropped, and whether its matches are marked."""
        is_marked = name in self.wish.fields or ("*" in self.wish.fields and name not in _NEVER_TEXT)
        way = self._ways[name] = (self.wish.crop_fields.get(name), is_marked)
        return way

    def _cropped(self, matches: Matches, text: str, words: int, is_marked: bool) -> str:
        spans, (start, end) = matches.best_part(text, words)
        if self.wish.sentences:
            start, end = _sentences_in(text, spans, (start, end)) or (start, end)
        part = self._marked(text, spans if is_marked else (), start, end)
        before = self.wish.crop_marker if start > 0 else ""
        after = self.wish.crop_marker if end < len(text) else ""
        return f"{before}{part}{after}"

    def _marked(self, text: str, spans: Sequence[Span], start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for span_start, span_end in spans:
            if span_end > end:
                break
            if span_start >= at:
                parts += (text[at:span_start], _OPEN, text[span_start:span_end], _CLOSE)
                at = span_end
        parts.append(text[at:end])
        escaped = self._escape("".join(parts))
        if at == start:
            return escaped
        return escaped.replace(_OPEN, self.wish.pre_tag).replace(_CLOSE, self.wish.post_tag)


def _sentences_in(text: str, spans: Sequence[Span], part: Span) -> Span | None:
    """The sentences with all matches of a part of a text, or else with the first of them; ``None`` if too long."""
    start, end = part
    there = [span for span in spans if start <= span[0] and span[1] <= end]
    if not there:
        return whole_sentences(text, start, start)
    return whole_sentences(text, there[0][0], there[-1][1]) or whole_sentences(text, *there[0])


def find_sections(
    query: SearchQuery, document: Mapping[str, Any], sections: Sequence[Section], matches: Matches | None
) -> list[SectionHit]:
    """The sections of a hit that show its query best.

    Args:
        document: The hit's fields.
        matches: Where the query's words match; ``None`` if it has none.
    """
    if matches is None or not sections:
        return []
    words = matches.in_document(document)
    chosen = choose(document, sections, words, query.sections)
    page = page_headings(sections, str(document.get("title", ""))) if chosen else ()
    content, url = str(document.get("content", "")), str(document.get("url", ""))
    highlighter = Highlighter(query.highlight, words) if query.highlight is not None and chosen else None
    hits: list[SectionHit] = []
    for section in chosen:
        formatted = None
        if highlighter is not None:
            text = section_text(content, section, sections)
            places = words.places(text[:_LOOKED_AT])
            part = _best_sentences(text, [place for place in places if place[2] in words.meaningful])
            formatted = {
                "title": highlighter.mark(section.title, words.places(section.title), (0, len(section.title))),
                "content": highlighter.mark(text, places, part),
            }
        hits.append(SectionHit(section, path_to(section, sections, page), section_url(url, section), formatted))
    return hits


def find_passage(document: Mapping[str, Any], sections: Sequence[Section], matches: Matches) -> Passage | None:
    """The passage of a document's content with the most different words of the query; ``None`` if it has none.

    A passage is at most :data:`LONGEST_SENTENCES` characters of one paragraph, in whole sentences: those with the
    words, and those that follow as far as there is room, so that what qualifies a statement stays with it. A question
    goes on with the next paragraph, and is no passage alone. Headings, commands, and rows of tables are in none.

    Args:
        sections: Of the document, in order.
        matches: Where the query's words match.
    """
    words = matches.in_document(document)
    content = str(document.get("content", ""))[:_ANSWERING]
    places = words.places(content, words.meaningful)
    starts = [section.start for section in sections]
    best: Span | None = None
    most = 0
    for run in _runs(content, starts) if places else ():
        there = places[bisect_left(places, (run[0][0],)) : bisect_left(places, (run[-1][1],))]
        if len({word for _, _, word in there}) > most:
            for passage, different in _windows(content, run, there):
                if different > most:
                    best, most = passage, different
        if most == len(words.meaningful):
            break
    if best is None:
        return None
    at = bisect_right(starts, best[0]) - 1
    is_page = at < 0 or sections[at] in page_headings(sections, str(document.get("title", "")))
    anchor = "" if is_page else sections[at].anchor
    return Passage(content[slice(*best)], anchor, most, most / len(words.meaningful))


def _runs(text: str, breaks: Iterable[int]) -> Iterator[list[Span]]:
    """Sentences that follow one another and may stand in one passage.

    Args:
        breaks: Where other sections begin.
    """
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
    """The sentences of a paragraph, and what is left of it."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    for boundary in _SENTENCE_END.finditer(text, start, end):
        yield start, boundary.start() + len(boundary[0].rstrip())
        start = boundary.end()
    if start < end:
        yield start, start + len(text[start:end].rstrip())


def _windows(text: str, run: Sequence[Span], places: Sequence[Place]) -> Iterator[tuple[Span, int]]:
    """The longest passage from each sentence with a word of the query on, and the number of different words there."""
    for at, (start, stop) in enumerate(run):
        low = bisect_left(places, (start,))
        if low == len(places) or places[low][0] >= stop:
            continue
        after = bisect_right(run, start + LONGEST_SENTENCES, lo=at, key=itemgetter(1))
        end = next((end for _, end in reversed(run[at:after]) if text[end - 1] not in _QUESTION), None)
        if end is not None:
            yield (start, end), len({word for _, _, word in places[low : bisect_left(places, (end,))]})


def _best_sentences(text: str, places: Sequence[Place]) -> Span:
    """The sentences with the most different words, or the part around the first match, or the beginning."""
    best: Span | None = None
    most, wanted = 0, len({word for _, _, word in places})
    for start, end, _ in places[:_SENTENCES_LOOKED_AT]:
        if best is not None and start < best[1]:
            continue
        sentences = whole_sentences(text, start, end)
        if sentences is not None:
            different = len({word for at, _, word in places if sentences[0] <= at < sentences[1]})
            if different > most:
                best, most = sentences, different
            if most == wanted:
                break
    if best is None and not places:
        best = whole_sentences(text, 0, 0)
    if best is None:
        start = _next_word(text, max(0, places[0][0] - LONGEST_SENTENCES // 3) if places else 0)
        best = start, _last_word(text, start + LONGEST_SENTENCES)
    return best


def _next_word(text: str, start: int) -> int:
    """The beginning of the first word that begins at a place or later."""
    return 0 if start == 0 else 1 + max(text.find(" ", start), start - 1)


def _last_word(text: str, end: int) -> int:
    """The end of the last word that ends at a place or before."""
    return len(text) if end >= len(text) else max(text.rfind(" ", 0, end), 0) or end
