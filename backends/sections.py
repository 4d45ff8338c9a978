"""Sections of documents, which hits can link to, and the choice of the sections that match a query best."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import orjson

SECTIONS: Final = "sections"
"""The document field that contains its sections, and the index field in which their titles are searched."""

Match = tuple[int, int, int]
"""Start and end of a match in a text, and the number of the matching word of the query."""


class Section(NamedTuple):
    """A part of a document's content with a URL of its own.

    Attributes:
        anchor: Fragment of its URL, without ``#``.
        level: Heading level, 1 to 6.
        start: Start of its text in ``content``, in characters; it ends where the next section starts.
    """

    anchor: str
    title: str
    level: int
    start: int


@dataclass(frozen=True, slots=True)
class SectionHit:
    """A section that matches the query.

    Attributes:
        path: Titles of the enclosing sections, the outermost first.
        url: URL of the document, with the section's anchor.
        formatted: Title and an excerpt with matches marked, if requested.
    """

    section: Section
    path: tuple[str, ...]
    url: str
    formatted: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the section as part of a response."""
        members = {"anchor": self.section.anchor, "title": self.section.title, "path": self.path, "url": self.url}
        return members if self.formatted is None else {**members, "_formatted": self.formatted}


@dataclass(frozen=True, slots=True)
class Passage:
    """A few whole sentences of a document's content.

    Attributes:
        url: URL of the document; ``""`` if it has none.
        anchor: Anchor of their section; ``""`` if they belong to the page itself.
        words: Number of different query words in it, without stop words.
        share: Share of the weight of the query's words, without stop words, that is in it, from 0 to 1.
    """

    text: str
    url: str
    anchor: str
    words: int
    share: float


class WordLocator(Protocol):
    """Locates the words of a query in texts."""

    @property
    def meaningful(self) -> frozenset[int]:
        """Numbers of the query's meaningful words: all except stop words."""
        ...

    @property
    def weights(self) -> Mapping[int, float]:
        """Weight of each meaningful word in a passage, by its number: the rarer the word, the higher."""
        ...

    def matches_in(self, text: str, numbers: frozenset[int] | None = None) -> Sequence[Match]:
        """Return the matches in a text, in order: of the query words with these numbers, or of all."""
        ...

    def first_matches_in(self, text: str, starts: Sequence[int], numbers: frozenset[int]) -> Sequence[Match]:
        """Return some matches of the query words with these numbers in each part of a text, in no particular order.

        They include the first match in each part and, if any word occurs as typed, a match as typed.

        Args:
            starts: Offsets where the parts begin, in order, from 0 on.
        """
        ...

    def typed_as(self, number: int) -> Set[str]:
        """Return the parts of one word of the query, by number, as typed: ``{"media", "url"}`` for ``MEDIA_URL``."""
        ...

    def typed_in(self, matched: str) -> Set[str]:
        """Return the query's typed words in a matching text: ``{"media", "url"}`` for ``Media URL``.

        Empty if the text contains another word, such as another form of a typed word.
        """
        ...


def is_sections(value: Any) -> bool:
    """Whether the value of a field named :data:`SECTIONS` is a list of sections rather than a custom field."""
    return isinstance(value, list) and any(isinstance(member, dict) for member in value)


def split_sections(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Section, ...]]:
    """Separate the sections of a stored document from its other fields."""
    if not is_sections(fields.get(SECTIONS)):
        return fields, ()
    sections = tuple(Section(**member) for member in fields[SECTIONS])
    return {name: value for name, value in fields.items() if name != SECTIONS}, sections


def pack(sections: Iterable[Section]) -> bytes:
    """Serialize sections for an index."""
    return orjson.dumps([tuple(section) for section in sections])


def unpack(packed: bytes | str) -> tuple[Section, ...]:
    """Deserialize sections written by :func:`pack`."""
    return tuple(Section._make(members) for members in orjson.loads(packed))


@dataclass(frozen=True, slots=True)
class _MatchingSection:
    """A section that contains words of a query.

    Attributes:
        matched_texts: Matching texts in its title and content, with the numbers of their query words.
        title_texts: Matching texts in its title, with the numbers of their query words.
    """

    section: Section
    matched_texts: list[tuple[str, int]] = field(default_factory=list)
    title_texts: list[tuple[str, int]] = field(default_factory=list)

    @property
    def words(self) -> set[int]:
        """Numbers of the query words in the section."""
        return {word for _, word in self.matched_texts}


def choose_sections(
    document: Mapping[str, Any], sections: Sequence[Section], words: WordLocator, limit: int
) -> list[Section]:
    """Return the sections that match a query best, best first; none if the beginning of the page matches better.

    Sections with more different words of the query come first. Ties are broken by more words as typed, then by more
    words in the title, then by position on the page. Each part of a word such as ``MEDIA_URL`` counts as a typed word.
    Words of the page's own title count as if every section contained them.

    Args:
        document: The document's fields.
        sections: The document's sections, in order, at least one.
        words: Locates the query's words.
        limit: Maximum number of sections to return.
    """
    content, title = str(document.get("content", "")), str(document.get("title", ""))
    missing_words = words.meaningful - _words_of(title, words)
    if not missing_words:
        return []
    beginning = _MatchingSection(_BEGINNING)
    others: list[_MatchingSection] = []
    headings = page_headings(sections, title)
    for candidate in _sections_with(content, sections, words, missing_words):
        if candidate.section is _BEGINNING or candidate.section in headings:
            beginning.matched_texts.extend(candidate.matched_texts)
        else:
            others.append(candidate)

    def typed(written: Iterable[tuple[str, int]]) -> int:
        return len(frozenset().union(*(words.typed_in(text) for text, _ in written)))

    def rank(candidate: _MatchingSection) -> tuple[int, ...]:
        in_title = len({word for _, word in candidate.title_texts})
        return (
            -len(candidate.words),
            -typed(candidate.matched_texts),
            -in_title,
            -typed(candidate.title_texts),
            candidate.section.start,
        )

    # Only sections with this many words can be among the best; comparing how words are written is slow.
    min_words = sorted(len(candidate.words) for candidate in (beginning, *others))[-limit - 1 :][0]
    ranked = sorted((candidate for candidate in others if len(candidate.words) >= min_words), key=rank)
    if not ranked or (len(beginning.words) >= min_words and rank(beginning) < rank(ranked[0])):
        return []
    return [candidate.section for candidate in ranked[:limit]]


def _words_of(title: str, words: WordLocator) -> set[int]:
    """Return the numbers of the query words in a title, with all their parts or in another form."""
    parts: dict[int, set[str]] = {}
    for start, end, word in words.matches_in(title, words.meaningful):
        parts.setdefault(word, set()).update(words.typed_in(title[start:end]) or words.typed_as(word))
    return {word for word, matched_parts in parts.items() if matched_parts >= words.typed_as(word)}


def page_headings(sections: Sequence[Section], title: str) -> list[Section]:
    """Return the sections that represent the page itself: all with its title, or the only one of level 1."""
    top = [section for section in sections if section.level == 1]
    lowered_title = title.lower()
    return [section for section in sections if top == [section] or section.title.lower() == lowered_title]


def path_to(section: Section, sections: Iterable[Section], page: Collection[Section]) -> tuple[str, ...]:
    """Return the titles of a section's enclosing sections, the outermost first, without the sections in ``page``."""
    above: list[Section] = []
    for other in sections:
        while above and above[-1].level >= other.level:
            above.pop()
        if other == section:
            break
        above.append(other)
    return tuple(enclosing.title for enclosing in above if enclosing not in page)


def section_url(url: str, section: Section) -> str:
    """Return the URL of a section of the document at ``url``."""
    return f"{url.partition('#')[0]}#{section.anchor}"


def section_text(content: str, section: Section, sections: Iterable[Section]) -> str:
    """Return the text of a section, without its title if the text begins with it."""
    end = next((other.start for other in sections if other.start > section.start), len(content))
    return content[section.start : end].removeprefix(section.title).strip()


_BEGINNING = Section("", "", 1, -1)
"""Placeholder for the text before the first section."""


def _is_in(content: str, section: Section) -> bool:
    return content.startswith(section.title, section.start)


def _sections_with(
    content: str, sections: Sequence[Section], words: WordLocator, numbers: frozenset[int]
) -> list[_MatchingSection]:
    """Return the sections that contain some words, in order, and the text before them."""
    by_index: dict[int, _MatchingSection] = {}
    starts = [section.start for section in sections]
    for start, end, word in words.first_matches_in(content, [0, *starts], numbers):
        index = bisect_right(starts, start) - 1
        matching = by_index.get(index)
        if matching is None:
            matching = by_index[index] = _MatchingSection(_BEGINNING if index < 0 else sections[index])
        written = content[start:end], word
        matching.matched_texts.append(written)
        if start < matching.section.start + len(matching.section.title) and _is_in(content, matching.section):
            matching.title_texts.append(written)
    for index, section in enumerate(sections):
        if not _is_in(content, section) and (titled := words.matches_in(section.title, numbers)):
            section_match = by_index.setdefault(index, _MatchingSection(section))
            section_match.title_texts.extend((section.title[start:end], word) for start, end, word in titled)
            section_match.matched_texts.extend(section_match.title_texts)
    return [by_index[index] for index in sorted(by_index)]
