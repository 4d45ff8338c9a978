"""Marking the matches in documents: the same markup on every engine, however it locates the matches."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Protocol

from backends.query import Highlight, SearchQuery
from backends.sections import (
    Match,
    Section,
    SectionHit,
    WordLocator,
    choose_sections,
    page_headings,
    path_to,
    section_text,
    section_url,
)
from backends.sentences import MAX_SENTENCES_CHARS, Span, is_prose, whole_sentences
from backends.standard_fields import STANDARD_FIELDS, STRING_FIELDS

_NEVER_TEXT = frozenset(STANDARD_FIELDS) - frozenset(STRING_FIELDS)
"""Fields in which matches are marked only if the query lists them: markup would break their values."""

_OPEN, _CLOSE, _CUT, _NEXT = "\0(", "\0)", "\0~", "\0|"
"""Placeholders for the tags, the crop marker, and the end of a text, until all texts of a page have been escaped.

They contain NUL, which no document contains.
"""


def is_unlikely_typo(typed: str, matched: str) -> bool:
    """Whether a word is unlikely to be meant by a typed word, because its first letter differs: *omit* for *comit*.

    Such a word is marked only in documents that do not contain the typed word in another form.

    Args:
        typed: A word of the query, folded.
        matched: A word that differs from it by typing errors, folded.
    """
    return typed[0] != matched[0]


_MAX_EXCERPT_SOURCE_CHARS = 4_096
"""Number of characters of a section from which its excerpt is chosen."""

_MAX_COMPARED_MATCHES = 8
"""Number of matches in a section whose sentences are compared."""

_LETTER = re.compile(r"[^\W_]")


def merge_spans(matches: Iterable[Match]) -> list[Span]:
    """Return the spans to mark: matches in order, with overlapping or adjacent ones merged."""
    spans: list[Span] = []
    for start, end, _ in matches:
        if spans and start <= spans[-1][1]:
            if end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
        elif end > start:
            spans.append((start, end))
    return spans


def without_lone_stop_words(text: str, matches: Sequence[Match], meaningful: Set[int]) -> Sequence[Match]:
    """Return the matches to mark: a stop word only beside a meaningful match, or beside another marked stop word.

    Args:
        matches: In order.
        meaningful: Numbers of the query's words other than stop words.
    """
    if all(number in meaningful for _, _, number in matches):
        return matches
    marked: list[Match] = []
    group: list[Match] = []
    for match in matches:
        if group and _LETTER.search(text, group[-1][1], match[0]):
            marked += group if any(number in meaningful for _, _, number in group) else ()
            group = []
        group.append(match)
    return marked + group if any(number in meaningful for _, _, number in group) else marked


class MatchLocator(WordLocator, Protocol):
    """Locates the matches of a query in texts. Spans are in order and do not overlap."""

    def in_document(self, document: Mapping[str, Any]) -> MatchLocator:
        """Return a locator for one document, which may skip unlikely matches if the document has better ones."""
        ...

    def spans_in(self, texts: Sequence[str]) -> Sequence[Sequence[Span]]:
        """Return all matches in each of several texts."""
        ...

    def best_parts(self, texts: Sequence[str], words: int) -> Sequence[tuple[Sequence[Span], Span]]:
        """Return the best part of each text, of about ``words`` words, with at least the matches in it and near it.

        Near means at most :data:`backends.sentences.MAX_SENTENCES_CHARS` characters away.
        """
        ...


_TextReference = tuple[Any, Any, str]
"""A mapping or a list, the key or the index of a text in it, and the text."""


class _FieldOptions(dict[str, tuple[int | None, bool]]):
    """Field to the number of words to crop it to, ``None`` for the whole text, and whether its matches are marked."""

    def __init__(self, options: Highlight):
        self._options = options

    def __missing__(self, name: str) -> tuple[int | None, bool]:
        options = self._options
        is_marked = name in options.fields or ("*" in options.fields and name not in _NEVER_TEXT)
        self[name] = (options.crop_fields.get(name), is_marked)
        return self[name]


class Highlighter:
    """Marks the matches of one query."""

    def __init__(self, options: Highlight, locator: MatchLocator):
        self.options = options
        self._locator = locator
        self._escape: Callable[[str], str] = html.escape if options.escape else str
        self._field_options = _FieldOptions(options)

    def format(self, documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the requested fields of each document: matches marked, other text escaped, long fields cropped.

        All documents of a page are processed together, which takes half as long as one after another.
        """
        only_fields, field_options = self.options.only_fields, self._field_options
        page: list[dict[str, Any]] = []
        groups: defaultdict[tuple[MatchLocator, int | None, bool], list[_TextReference]] = defaultdict(list)
        for document in documents:
            locator = self._locator.in_document(document)
            fields = dict(document if only_fields is None else self.options.formatted_fields(document))
            page.append(fields)
            for name, value in fields.items():
                if type(value) is str:
                    groups[locator, *field_options[name]].append((fields, name, value))
                elif type(value) is list:
                    items = fields[name] = list(value)
                    references = groups[locator, *field_options[name]]
                    references += [(items, index, item) for index, item in enumerate(items) if type(item) is str]
        marked: list[str] = []
        for group, references in groups.items():
            marked += self._marked(*group, [text for *_, text in references])
        finished = self._finished(marked)
        for (container, key, _), text in zip(chain.from_iterable(groups.values()), finished, strict=True):
            container[key] = text
        return page

    def mark(self, text: str, matches: Sequence[Match], part: Span) -> str:
        """Return a part of a text, escaped and with the matches in it marked; a stop word only beside other matches."""
        start, end = part
        matches = without_lone_stop_words(text, matches, self._locator.meaningful)
        spans = merge_spans([match for match in matches if start <= match[0] < end])
        return self._finished([_with_placeholders(text, spans, start, end)])[0]

    def _marked(self, locator: MatchLocator, words: int | None, is_marked: bool, texts: Sequence[str]) -> Sequence[str]:
        """Return texts, or their best parts, with placeholders."""
        if words is not None:
            parts = locator.best_parts(texts, words)
            return [self._excerpt(text, *part, is_marked=is_marked) for text, part in zip(texts, parts, strict=True)]
        if not is_marked:
            return texts
        return [
            _with_placeholders(text, spans, 0, len(text)) if spans else text
            for text, spans in zip(texts, locator.spans_in(texts), strict=True)
        ]

    def _excerpt(self, text: str, spans: Sequence[Span], part: Span, *, is_marked: bool) -> str:
        start, end = (_sentences_in(text, spans, part) or part) if self.options.sentences else part
        excerpt = _with_placeholders(text, spans if is_marked else (), start, end)
        return f"{_CUT if start > 0 else ''}{excerpt}{_CUT if end < len(text) else ''}"

    def _finished(self, marked: Sequence[str]) -> list[str]:
        """Escape texts, and replace their placeholders."""
        if not marked:
            return []
        escaped = self._escape(_NEXT.join(marked)).split(_NEXT)
        options = self.options
        return [
            text.replace(_CUT, options.crop_marker).replace(_OPEN, options.pre_tag).replace(_CLOSE, options.post_tag)
            if "\0" in text
            else text
            for text in escaped
        ]


def _with_placeholders(text: str, spans: Iterable[Span], start: int, end: int) -> str:
    """Return a part of a text with placeholders around the matches in it."""
    parts: list[str] = []
    offset = start
    for span_start, span_end in spans:
        if span_end > end:
            break
        if span_start >= offset:
            parts += (text[offset:span_start], _OPEN, text[span_start:span_end], _CLOSE)
            offset = span_end
    return "".join((*parts, text[offset:end]))


def _sentences_in(text: str, spans: Sequence[Span], part: Span) -> Span | None:
    """Return the sentences with all matches in a part of a text, or else with the first; ``None`` if too long."""
    start, end = part
    matches = [span for span in spans if start <= span[0] and span[1] <= end]
    if not matches:
        return whole_sentences(text, start, start)
    return whole_sentences(text, matches[0][0], matches[-1][1]) or whole_sentences(text, *matches[0])


def find_sections(
    query: SearchQuery, document: Mapping[str, Any], sections: Sequence[Section], locator: MatchLocator | None
) -> list[SectionHit]:
    """Return the sections of a hit that match its query best.

    Args:
        document: The hit's fields.
        locator: Locates the query's words; ``None`` if the query has none.
    """
    if locator is None or not sections:
        return []
    words = locator.in_document(document)
    chosen = choose_sections(document, sections, words, query.sections)
    page = page_headings(sections, str(document.get("title", ""))) if chosen else ()
    content, url = str(document.get("content", "")), str(document.get("url", ""))
    highlighter = Highlighter(query.highlight, words) if query.highlight is not None and chosen else None
    hits: list[SectionHit] = []
    for section in chosen:
        formatted = None
        if highlighter is not None:
            text = section_text(content, section, sections)
            matches = words.matches_in(text[:_MAX_EXCERPT_SOURCE_CHARS])
            part = _best_sentences(text, [match for match in matches if match[2] in words.meaningful])
            formatted = {
                "title": highlighter.mark(section.title, words.matches_in(section.title), (0, len(section.title))),
                "content": highlighter.mark(text, matches, part),
            }
        hits.append(SectionHit(section, path_to(section, sections, page), section_url(url, section), formatted))
    return hits


def _best_sentences(text: str, matches: Sequence[Match]) -> Span:
    """Return the sentences with the most different words, or the part around the first match, or the beginning.

    Prose is preferred to code and tables with as many different words.
    """
    best: Span | None = None
    best_value, best_possible = (0, False), (len({word for _, _, word in matches}), True)
    for start, end, _ in matches[:_MAX_COMPARED_MATCHES]:
        if best is not None and start < best[1]:
            continue
        sentences = whole_sentences(text, start, end)
        if sentences is not None:
            different = len({word for offset, _, word in matches if sentences[0] <= offset < sentences[1]})
            value = (different, is_prose(text[slice(*sentences)]))
            if value > best_value:
                best, best_value = sentences, value
            if best_value == best_possible:
                break
    if best is None and not matches:
        best = whole_sentences(text, 0, 0)
    if best is None:
        start = _next_word(text, max(0, matches[0][0] - MAX_SENTENCES_CHARS // 3) if matches else 0)
        best = start, _last_word(text, start + MAX_SENTENCES_CHARS)
    return best


def _next_word(text: str, start: int) -> int:
    """``"one two"``, 1 -> 4: the offset of the first word that begins at an offset or later."""
    return 0 if start == 0 else 1 + max(text.find(" ", start), start - 1)


def _last_word(text: str, end: int) -> int:
    """``"one two three"``, 9 -> 7: the end of the last word that ends at an offset or before."""
    return len(text) if end >= len(text) else max(text.rfind(" ", 0, end), 0) or end
