"""Marking the matches in documents: the same markup on every engine, however it locates the matches."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from operator import itemgetter
from typing import Any, Protocol

from backends.query import Highlight, SearchQuery
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
"""Fields in which matches are marked only if the query lists them: markup would break their values."""

_OPEN, _CLOSE = "\0(", "\0)"
"""Placeholders for the tags while all the text is escaped at once; no document contains NUL."""


def is_unlikely_typo(typed: str, matched: str) -> bool:
    """Whether a difference between two words is unlikely to be a typing error: the first letter is usually right.

    Such a word is marked only in documents that contain the typed word in no other form.

    Args:
        typed: A word of the query, folded.
        matched: A word that differs from it by typing errors, folded.
    """
    return typed[0] != matched[0]


MAX_SENTENCES_CHARS = 300
"""Maximum length, in characters, of the whole sentences of a cropped text."""

_MAX_EXCERPT_SOURCE_CHARS = 4_096
"""Number of characters of a section from which its excerpt is chosen."""

_MAX_COMPARED_MATCHES = 8
"""Number of matches in a section whose sentences are compared."""

# A leading class lets the regex engine scan for the sign: four times as fast as two patterns that begin with one.
_SENTENCE_END = re.compile(r"""[.!?…。！？](?:(?<![。！？])["')\]”’»]*\s+(?=[^a-z\s])|(?<=[。！？])\s*)""")
"""The end of a sentence; a lower-case letter does not begin another sentence."""


_MAX_PASSAGE_SOURCE_CHARS = 20_000
"""Number of characters of a content in which a passage is searched for."""

_PARAGRAPH = re.compile(r"\n(?![a-z])")
"""The end of a paragraph, list item, or heading; a line that begins in lower case continues the previous line."""

_QUESTION = "?？"
_COMPLETE = re.compile(rf"""[.!…。！{_QUESTION}]["')\]”’»]*\Z""")
"""The end of a complete sentence; headings, commands, and table rows do not have one."""


_LETTER = re.compile(r"[^\W_]")


_SIGNS = re.compile(r"[\t{}<>|=;$\\`_\[\]]")
"""Tabs, which separate the cells of tables, and signs that are frequent in code and rare in prose."""
_PROSE_CHARS_PER_SIGN = 40


def is_prose(text: str) -> bool:
    """Whether a part of a text consists of sentences, rather than of code or the cells of a table."""
    return len(_SIGNS.findall(text)) * _PROSE_CHARS_PER_SIGN <= len(text)


def merged(places: Iterable[Place]) -> list[Span]:
    """Return the spans to mark: matches in order, with overlapping or adjacent ones merged."""
    spans: list[Span] = []
    for start, end, _ in places:
        if spans and start <= spans[-1][1]:
            if end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
        elif end > start:
            spans.append((start, end))
    return spans


def without_lone_stop_words(text: str, places: Sequence[Place], meaningful: Set[int]) -> Sequence[Place]:
    """Return the matches to mark: a stop word only beside a meaningful match, or beside another marked stop word.

    Args:
        places: Matches, in order.
        meaningful: Numbers of the query's words other than stop words.
    """
    if all(number in meaningful for _, _, number in places):
        return places
    marked: list[Place] = []
    group: list[Place] = []
    for place in places:
        if group and _LETTER.search(text, group[-1][1], place[0]):
            marked += group if any(number in meaningful for _, _, number in group) else ()
            group = []
        group.append(place)
    return marked + group if any(number in meaningful for _, _, number in group) else marked


class Matches(WordPlaces, Protocol):
    """Locates the matches of a query in a text. Spans are in order and do not overlap."""

    def in_document(self, document: Mapping[str, Any]) -> Matches:
        """Return the matcher for one document, which may skip an unlikely match if the document has a better one."""
        ...

    def spans_in(self, texts: Sequence[str]) -> Sequence[Sequence[Span]]:
        """Return all matches in each of several texts."""
        ...

    def best_part(self, text: str, words: int) -> tuple[Sequence[Span], Span]:
        """Return the part of a text, about ``words`` words long, that matches the query best, and the matches in it."""
        ...


def whole_sentences(text: str, start: int, end: int) -> Span | None:
    """Return the sentences or lines that contain a part of a text, plus following ones that fit.

    ``None`` if they have more than :data:`MAX_SENTENCES_CHARS` characters.
    """
    earliest = max(0, end - MAX_SENTENCES_CHARS)
    line = text.rfind("\n", earliest, start) + 1
    begin = line if line or not earliest else -1
    # The pattern recognizes the end of the previous sentence only by the letter that follows it, hence start + 1.
    for boundary in _SENTENCE_END.finditer(text, max(line, earliest), start + 1):
        if boundary.end() <= start:
            begin = boundary.end()
    if begin < 0:
        return None
    latest = begin + MAX_SENTENCES_CHARS
    if latest >= len(text):
        return begin, len(text)
    last = text.rfind("\n", end, latest + 1)
    for boundary in _SENTENCE_END.finditer(text, max(last, end), latest + 1):
        last = boundary.start() + len(boundary[0].rstrip())
    return None if last < 0 else (begin, last)


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, options: Highlight, matches: Matches):
        self.options = options
        self._matches = matches
        self._escape: Callable[[str], str] = html.escape if options.escape else str
        self._field_options: dict[str, tuple[int | None, bool]] = {}

    def format(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields to return, with matches marked, other text escaped if requested, and long fields cropped."""
        matches = self._matches.in_document(document)
        formatted = dict(self.options.chosen(document))
        whole: dict[str, str] = {}
        for name, value in formatted.items():
            if isinstance(value, str):
                words, is_marked = self._field_options.get(name) or self._options_of(name)
                if words is not None:
                    formatted[name] = self._cropped(matches, value, words, is_marked)
                elif is_marked:
                    whole[name] = value
                else:
                    formatted[name] = self._escape(value)
            elif isinstance(value, list):
                formatted[name] = [self._item(matches, name, item) if isinstance(item, str) else item for item in value]
        for (name, text), spans in zip(whole.items(), matches.spans_in(tuple(whole.values())), strict=True):
            formatted[name] = self._marked(text, spans, 0, len(text)) if spans else self._escape(text)
        return formatted

    def mark(self, text: str, places: Sequence[Place], part: Span) -> str:
        """Return a part of a text with matches marked."""
        start, end = part
        places = without_lone_stop_words(text, places, self._matches.meaningful)
        return self._marked(text, merged([place for place in places if start <= place[0] < end]), start, end)

    def _item(self, matches: Matches, name: str, text: str) -> str:
        words, is_marked = self._field_options.get(name) or self._options_of(name)
        if words is not None:
            return self._cropped(matches, text, words, is_marked)
        return self._marked(text, matches.spans_in((text,))[0] if is_marked else (), 0, len(text))

    def _options_of(self, name: str) -> tuple[int | None, bool]:
        """Return the number of words to crop a field to, and whether its matches are marked."""
        is_marked = name in self.options.fields or ("*" in self.options.fields and name not in _NEVER_TEXT)
        chosen = self._field_options[name] = (self.options.crop_fields.get(name), is_marked)
        return chosen

    def _cropped(self, matches: Matches, text: str, words: int, is_marked: bool) -> str:
        spans, (start, end) = matches.best_part(text, words)
        if self.options.sentences:
            start, end = _sentences_in(text, spans, (start, end)) or (start, end)
        part = self._marked(text, spans if is_marked else (), start, end)
        before = self.options.crop_marker if start > 0 else ""
        after = self.options.crop_marker if end < len(text) else ""
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
        return escaped.replace(_OPEN, self.options.pre_tag).replace(_CLOSE, self.options.post_tag)


def _sentences_in(text: str, spans: Sequence[Span], part: Span) -> Span | None:
    """Return the sentences with all matches of a part of a text, or else with the first match; ``None`` if too long."""
    start, end = part
    matches = [span for span in spans if start <= span[0] and span[1] <= end]
    if not matches:
        return whole_sentences(text, start, start)
    return whole_sentences(text, matches[0][0], matches[-1][1]) or whole_sentences(text, *matches[0])


def find_sections(
    query: SearchQuery, document: Mapping[str, Any], sections: Sequence[Section], matches: Matches | None
) -> list[SectionHit]:
    """Return the sections of a hit that match its query best.

    Args:
        document: The hit's fields.
        matches: Locates the query's words; ``None`` if the query has none.
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
            places = words.places(text[:_MAX_EXCERPT_SOURCE_CHARS])
            part = _best_sentences(text, [place for place in places if place[2] in words.meaningful])
            formatted = {
                "title": highlighter.mark(section.title, words.places(section.title), (0, len(section.title))),
                "content": highlighter.mark(text, places, part),
            }
        hits.append(SectionHit(section, path_to(section, sections, page), section_url(url, section), formatted))
    return hits


def find_passage(document: Mapping[str, Any], sections: Sequence[Section], matches: Matches) -> Passage | None:
    """Return the passage of a document's content whose words of the query weigh most; ``None`` if it has none.

    A passage is at most :data:`MAX_SENTENCES_CHARS` characters of one paragraph, in whole sentences. Once it has all
    the words that it can have, it ends before the next sentence without any. A question continues into the next
    paragraph and is not a passage by itself. Headings, commands, and table rows are excluded.

    Args:
        sections: Sections of the document, in order.
        matches: Locates the query's words.
    """
    words = matches.in_document(document)
    content = str(document.get("content", ""))[:_MAX_PASSAGE_SOURCE_CHARS]
    places = words.places(content, words.meaningful)
    starts = [section.start for section in sections]
    weights = words.weights
    total = sum(weights.values())
    best: Span | None = None
    best_words: frozenset[int] = frozenset()
    best_weight = 0.0
    for run in _runs(content, starts) if places else ():
        run_places = places[bisect_left(places, (run[0][0],)) : bisect_left(places, (run[-1][1],))]
        if sum(weights[word] for word in {word for _, _, word in run_places}) > best_weight:
            for passage, different in _windows(content, run, run_places):
                if (weight := sum(weights[word] for word in different)) > best_weight:
                    best, best_words, best_weight = passage, different, weight
        if len(best_words) == len(weights):
            break
    if best is None:
        return None
    at = bisect_right(starts, best[0]) - 1
    is_page = at < 0 or sections[at] in page_headings(sections, str(document.get("title", "")))
    anchor = "" if is_page else sections[at].anchor
    share = 1.0 if len(best_words) == len(weights) else best_weight / total
    return Passage(content[slice(*best)], anchor, len(best_words), share)


def _runs(text: str, breaks: Iterable[int]) -> Iterator[list[Span]]:
    """Groups of consecutive sentences that may form one passage.

    Args:
        breaks: Positions where other sections begin.
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
    """Yield the sentences of a paragraph, and the rest of it."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    for boundary in _SENTENCE_END.finditer(text, start, end):
        yield start, boundary.start() + len(boundary[0].rstrip())
        start = boundary.end()
    if start < end:
        yield start, start + len(text[start:end].rstrip())


def _windows(text: str, run: Sequence[Span], places: Sequence[Place]) -> Iterator[tuple[Span, frozenset[int]]]:
    """The passage that starts at each sentence with a query word, and the numbers of its query words."""
    for at, (start, stop) in enumerate(run):
        low = bisect_left(places, (start,))
        if low == len(places) or places[low][0] >= stop:
            continue
        after = bisect_right(run, start + MAX_SENTENCES_CHARS, lo=at, key=itemgetter(1))
        ends = [end for _, end in run[at:after] if text[end - 1] not in _QUESTION]
        if ends:
            inside = places[low : bisect_left(places, (ends[-1],))]
            yield (start, _end_of_passage(run[at:after], ends, inside)), frozenset(word for _, _, word in inside)


def _end_of_passage(sentences: Sequence[Span], ends: Sequence[int], places: Sequence[Place]) -> int:
    """Return the first end after every different word, and after all directly following sentences with words."""
    positions = {word: start for start, _, word in reversed(places)}
    last = max(positions.values())
    for start, end in sentences:
        if start > last and not any(start <= place[0] < end for place in places):
            break
        last = max(last, end - 1)
    return next(possible for possible in ends if possible > last)


def _best_sentences(text: str, places: Sequence[Place]) -> Span:
    """Return the sentences with the most different words, or the part around the first match, or the beginning.

    Of sentences with equally many, prose comes before code and tables.
    """
    best: Span | None = None
    best_value, best_possible = (0, False), (len({word for _, _, word in places}), True)
    for start, end, _ in places[:_MAX_COMPARED_MATCHES]:
        if best is not None and start < best[1]:
            continue
        sentences = whole_sentences(text, start, end)
        if sentences is not None:
            different = len({word for at, _, word in places if sentences[0] <= at < sentences[1]})
            value = (different, is_prose(text[slice(*sentences)]))
            if value > best_value:
                best, best_value = sentences, value
            if best_value == best_possible:
                break
    if best is None and not places:
        best = whole_sentences(text, 0, 0)
    if best is None:
        start = _next_word(text, max(0, places[0][0] - MAX_SENTENCES_CHARS // 3) if places else 0)
        best = start, _last_word(text, start + MAX_SENTENCES_CHARS)
    return best


def _next_word(text: str, start: int) -> int:
    """Return the beginning of the first word that begins at a position or later."""
    return 0 if start == 0 else 1 + max(text.find(" ", start), start - 1)


def _last_word(text: str, end: int) -> int:
    """Return the end of the last word that ends at a position or before."""
    return len(text) if end >= len(text) else max(text.rfind(" ", 0, end), 0) or end
