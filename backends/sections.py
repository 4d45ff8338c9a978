"""Sections of documents: places that a visitor can be led to, and which of them show a query best."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import orjson

SECTIONS: Final = "sections"
"""The field of a document that has its sections, and of an index in which their titles are searched."""

Place = tuple[int, int, int]
"""Start and end of a match in a text, and the number of the query's word that matched there."""


class Section(NamedTuple):
    """A part of a document's content that has an address of its own.

    Attributes:
        anchor: What follows ``#`` in its address.
        level: 1 to 6, as of headings.
        start: Where its text begins in ``content``, in characters; it ends where the next one begins.
    """

    anchor: str
    title: str
    level: int
    start: int


@dataclass(frozen=True, slots=True)
class SectionHit:
    """A section that shows the query.

    Attributes:
        path: Titles of the sections that it is in, the outermost first.
        url: Of the document, with the section's anchor.
        formatted: Title and a part of the content with matches marked, if asked for.
    """

    section: Section
    path: tuple[str, ...]
    url: str
    formatted: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """As it stands in an answer."""
        shown = {"anchor": self.section.anchor, "title": self.section.title, "path": self.path, "url": self.url}
        return shown if self.formatted is None else {**shown, "_formatted": self.formatted}


@dataclass(frozen=True, slots=True)
class Passage:
    """A few whole sentences of a document's content.

    Attributes:
        anchor: Of the section that they are in; ``""`` where that is the page itself.
        words: Number of different words of the query in it that are no stop words.
        share: The same, as a share of all that the query has.
    """

    text: str
    anchor: str
    words: int
    share: float


class WordPlaces(Protocol):
    """The place where the words of a query match in texts."""

    @property
    def meaningful(self) -> frozenset[int]:
        """Numbers of the query's words that carry meaning: all but stop words."""
        ...

    def places(self, text: str, numbers: frozenset[int] | None = None) -> Sequence[Place]:
        """The matches in a text, in order: of the query's words with some numbers, or of all."""
        ...

    def first_places(self, text: str, starts: Sequence[int], numbers: frozenset[int]) -> Sequence[Place]:
        """At least the first match of these words in each part of a text, in no order, one as typed if there is one.

        Args:
            starts: Where the parts begin, in order, from 0 on.
        """
        ...

    def typed_as(self, number: int) -> Set[str]:
        """The words as typed that one of the query's words consists of: two of ``MEDIA_URL``."""
        ...

    def typed_in(self, found: str) -> Set[str]:
        """The words of the query as typed that what matched consists of; none if it has another form of one."""
        ...


def is_sections(value: Any) -> bool:
    """Tell whether the value of a field named :data:`SECTIONS` is sections, rather than a further field's."""
    return isinstance(value, list) and any(isinstance(member, dict) for member in value)


def split_sections(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Section, ...]]:
    """The other fields of a stored document, and its sections."""
    if not is_sections(fields.get(SECTIONS)):
        return fields, ()
    sections = tuple(Section(**member) for member in fields[SECTIONS])
    return {name: value for name, value in fields.items() if name != SECTIONS}, sections


def pack(sections: Iterable[Section]) -> bytes:
    """Sections as an index stores them."""
    return orjson.dumps([tuple(section) for section in sections])


def unpack(packed: bytes | str) -> tuple[Section, ...]:
    """The values that :func:`pack` made."""
    return tuple(Section._make(members) for members in orjson.loads(packed))


@dataclass(frozen=True, slots=True)
class _Found:
    """A section that has words of a query.

    Attributes:
        written: What matched, in title and content, with the numbers.
        titled: The same of those in the title.
    """

    section: Section
    written: list[tuple[str, int]] = field(default_factory=list)
    titled: list[tuple[str, int]] = field(default_factory=list)

    @property
    def words(self) -> set[int]:
        """Numbers of the words that it has."""
        return {word for _, word in self.written}


def choose(document: Mapping[str, Any], sections: Sequence[Section], words: WordPlaces, most: int) -> list[Section]:
    """The sections that show a query best, the best first; none where the beginning of the page does.

    More different words count first, then more of them as typed, then more in the title, then the place on the page.
    Of a word with several parts, such as ``MEDIA_URL``, each part counts as typed. Words of the page's own title count
    as if each section had them.

    Args:
        sections: In order, at least one.
    """
    content, title = str(document.get("content", "")), str(document.get("title", ""))
    wanted = words.meaningful - _words_of(title, words)
    if not wanted:
        return []
    beginning = _Found(_BEGINNING)
    others: list[_Found] = []
    headings = page_headings(sections, title)
    for found in _sections_with(content, sections, words, wanted):
        if found.section is _BEGINNING or found.section in headings:
            beginning.written.extend(found.written)
        else:
            others.append(found)

    def typed(written: Iterable[tuple[str, int]]) -> int:
        return len(frozenset().union(*(words.typed_in(found) for found, _ in written)))

    def rank(found: _Found) -> tuple[int, ...]:
        in_title = len({word for _, word in found.titled})
        return -len(found.words), -typed(found.written), -in_title, -typed(found.titled), found.section.start

    # Only those with so many words can be among the best: looking at how each is written takes longer than finding it.
    least = sorted(len(found.words) for found in (beginning, *others))[-most - 1 :][0]
    ranked = sorted((found for found in others if len(found.words) >= least), key=rank)
    if not ranked or (len(beginning.words) >= least and rank(beginning) < rank(ranked[0])):
        return []
    return [found.section for found in ranked[:most]]


def _words_of(title: str, words: WordPlaces) -> set[int]:
    """Numbers of the words that a title has, with all their parts or in another form."""
    parts: dict[int, set[str]] = {}
    for start, end, word in words.places(title, words.meaningful):
        parts.setdefault(word, set()).update(words.typed_in(title[start:end]) or words.typed_as(word))
    return {word for word, there in parts.items() if there >= words.typed_as(word)}


def page_headings(sections: Sequence[Section], title: str) -> list[Section]:
    """The sections that are the page itself: with its title, or the only ones of level 1."""
    top = [section for section in sections if section.level == 1]
    wanted = title.lower()
    return [each for each in sections if top == [each] or each.title.lower() == wanted]


def path_to(section: Section, sections: Iterable[Section], page: Collection[Section]) -> tuple[str, ...]:
    """Titles of the sections that a section is in, the outermost first; those of :func:`page_headings` are left out."""
    above: list[Section] = []
    for each in sections:
        while above and above[-1].level >= each.level:
            above.pop()
        if each == section:
            break
        above.append(each)
    return tuple(each.title for each in above if each not in page)


def section_url(url: str, section: Section) -> str:
    """The address of a section of the document at ``url``."""
    return f"{url.partition('#')[0]}#{section.anchor}"


def section_text(content: str, section: Section, sections: Iterable[Section]) -> str:
    """The text of a section, without its title where that stands at its beginning."""
    end = next((each.start for each in sections if each.start > section.start), len(content))
    return content[section.start : end].removeprefix(section.title).strip()


_BEGINNING = Section("", "", 1, -1)
"""Stands for what is before the first section."""


def _is_in(content: str, section: Section) -> bool:
    """Tell whether the title of a section stands at its beginning."""
    return content.startswith(section.title, section.start)


def _sections_with(
    content: str, sections: Sequence[Section], words: WordPlaces, wanted: frozenset[int]
) -> list[_Found]:
    """The sections that have some words, in order, and what is before them."""
    found: dict[int, _Found] = {}
    starts = [section.start for section in sections]
    for start, end, word in words.first_places(content, [0, *starts], wanted):
        at = bisect_right(starts, start) - 1
        there = found.get(at)
        if there is None:
            there = found[at] = _Found(_BEGINNING if at < 0 else sections[at])
        written = content[start:end], word
        there.written.append(written)
        if start < there.section.start + len(there.section.title) and _is_in(content, there.section):
            there.titled.append(written)
    for at, section in enumerate(sections):
        if not _is_in(content, section) and (titled := words.places(section.title, wanted)):
            own = found.setdefault(at, _Found(section))
            own.titled.extend((section.title[start:end], word) for start, end, word in titled)
            own.written.extend(own.titled)
    return [found[at] for at in sorted(found)]
