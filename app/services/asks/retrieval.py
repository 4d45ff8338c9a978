"""Finding the sections of a site's pages from which a question is answered.

A question is searched as it is, and by its weighty words alone. Then the sections of the first pages of both searches
are compared with each other, because a long page has many words of a question that it does not answer. On sites with
semantic search, sections are also compared with the question by meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log

from app.services.access.credentials import SiteRecord
from app.services.asks.meaning import ChunkCosine, Meaning
from app.services.asks.weighty_words import weighty_words
from app.services.search.search import Searcher
from app.services.search.site_queries import for_site
from backends.analysis.languages import detect_language, stems_of_terms
from backends.analysis.normalization import terms_of
from backends.base import Document
from backends.query import SearchQuery, Synonyms, split_synonyms
from backends.sections import Section, page_headings, path_to
from backends.text import normal_form

MAX_SOURCES = 8
MAX_SOURCE_LENGTH = 1_500
"""Maximum number of characters of one source, so that all of them have at most 12,000."""
MIN_SHARE = 0.35
"""Minimum share of the weight of a question's weighty words that one of the sources must have."""
SEARCHED_PAGES = 30
"""Number of pages of each search, and of pages whose sections are compared."""
MAX_READ_LENGTH, MAX_TOTAL_READ_LENGTH = 300_000, 2_000_000
"""Maximum number of characters of one page, and of all pages, that are compared.

They bound the CPU time of a question: a million characters take 0.1 seconds, and 0.7 in Chinese or Thai.
"""
MAX_TITLE_LENGTH = 200
"""Length at which the titles of pages and sections are cut. A page's title may be longer than all sources together."""
MAX_QUERY_BYTES = 512
"""Maximum size of a query, as of the API's schemas."""
RANK_OFFSET = 10
"""Positions that are added to a page's position before its reciprocal, so that two good positions beat one first."""
MEANING_WEIGHT = 4.0
"""Weight of the cosine between a question and a section. The weight of the question's words is at most 1."""
SATURATION, LENGTH_PENALTY = 0.6, 0.5
"""BM25's ``k1`` and ``b``, for the words of a section."""

ReadDocuments = Callable[[int, Sequence[str]], Mapping[str, Document]]
"""Function that returns a site's stored documents by ID, given the site's ID and the documents' IDs."""


@dataclass(frozen=True, slots=True)
class Source:
    """A section of a page, or the beginning of a page.

    Attributes:
        title: Title of the page, with the titles of the enclosing sections and of the section.
        url: URL of the page, without the anchor.
        anchor: Anchor of the section; ``""`` for the beginning of the page.
        text: Text of the section, or the part of it that has most of the question's words.
    """

    document_id: str
    title: str
    url: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class _Part:
    """Up to ``MAX_SOURCE_LENGTH`` characters of one section; without ``section``, of the beginning of the page."""

    document: Document
    section: Section | None
    text: str
    counts: Counter[str]
    """Number of occurrences of each word of the question, in the text and in the page's title."""
    length: int
    """Number of words."""
    cosine: float | None
    """The largest cosine between the question and a chunk of the page that overlaps the text; ``None`` if unknown."""


def find_sources(
    searcher: Searcher,
    read_documents: ReadDocuments,
    meaning: Meaning | None,
    site: SiteRecord,
    question: str,
    previous: str,
    filters: str,
) -> list[Source]:
    """Return the sources for a question, best first; none if no page has its weighty words or is pinned for it.

    Words that the site's synonyms connect count as each other.

    Args:
        meaning: Compares the question with sections; ``None`` without an embedder.
        previous: The question before a follow-up, whose words are also searched for; ``""`` if there is none.
        filters: Expression in the engine's syntax that the pages must match; ``""`` for none.

    Raises:
        ApiError: 400 for the filters.
        BackendUnavailable: The engine is unavailable.
    """
    text = _shorten(f"{previous} {question}" if previous else question)
    language = site.settings.language or detect_language(text)
    words = weighty_words(text, language)
    pinned = site.settings.pinned.get(normal_form(question), ())
    if not (words or pinned):
        return []
    texts = (text, " ".join(words) or text)
    # A page that is hidden for one of the texts must not be found by another.
    hidden = {id for each in (question, *texts) for id in _query(site, each, filters).hidden}
    worth: dict[str, float] = {}
    for each in dict.fromkeys(texts):
        hits = searcher.run(site, _query(site, each, filters)).result.hits
        for position, hit in enumerate(hit for hit in hits if hit.id not in hidden):
            worth[hit.id] = worth.get(hit.id, 0.0) + RANK_OFFSET / (position + RANK_OFFSET)
    documents = read_documents(site.id, sorted(worth, key=lambda id: -worth[id])[:SEARCHED_PAGES])
    stems = frozenset(stems_of_terms(language, words))
    meanings = _find_meanings(site.settings.synonyms, language, stems)
    chunks = {} if meaning is None else meaning.compare(site, text, documents)
    parts = [
        part
        for document, content in _read_contents(documents.values())
        for part in _split(document, content, chunks.get(document.id, ()), language, meanings)
    ]
    weights = _weigh(parts, stems)
    chosen = _choose(_rank(parts, weights, worth), pinned)
    is_pinned = any(part.document.id in pinned for part in chosen)
    has_words = bool(words) and any(
        sum(weights[stem] for stem in part.counts) >= MIN_SHARE * sum(weights.values()) for part in chosen
    )
    return [_source(part) for part in chosen] if is_pinned or has_words else []


def _find_meanings(synonyms: Synonyms, language: str, stems: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Map each stem that counts to the question's stems that it stands for: ``"sofa" -> ["love", "seat"]``."""
    meanings: dict[str, Sequence[str]] = {stem: (stem,) for stem in stems}
    for asked, matching in split_synonyms(
        synonyms, lambda phrase: stems_of_terms(language, weighty_words(phrase, language))
    ):
        for phrase in asked:
            if stems.issuperset(phrase):
                for stem in chain.from_iterable(matching):
                    meanings.setdefault(stem, phrase)
    return meanings


def _query(site: SiteRecord, text: str, filters: str) -> SearchQuery:
    query = SearchQuery(text, limit=SEARCHED_PAGES, native_filter=filters, returned_fields=frozenset({"id"}))
    return for_site(query, site)


def _read_contents(documents: Iterable[Document]) -> Iterator[tuple[Document, str]]:
    remaining = MAX_TOTAL_READ_LENGTH
    for document in documents:
        content = str(document.fields.get("content", ""))[: min(MAX_READ_LENGTH, remaining)]
        remaining -= len(content)
        yield document, content


def _split(
    document: Document,
    content: str,
    chunks: Sequence[ChunkCosine],
    language: str,
    meanings: Mapping[str, Sequence[str]],
) -> Iterator[_Part]:
    starts: list[tuple[Section | None, int]] = [(None, 0), *((section, section.start) for section in document.sections)]
    title = str(document.fields.get("title", ""))[:MAX_TITLE_LENGTH]
    title_words = list(_meant(stems_of_terms(language, terms_of(title)), meanings))
    for index, (section, start) in enumerate(starts):
        end = starts[index + 1][1] if index + 1 < len(starts) else len(content)
        for first in range(start, end, MAX_SOURCE_LENGTH):
            last = min(end, first + MAX_SOURCE_LENGTH)
            if not (text := content[first:last].strip()):
                continue
            terms = stems_of_terms(language, terms_of(text))
            counts = Counter(_meant(terms, meanings))
            if counts:  # A title alone does not make a part worth reading.
                counts.update(title_words)
            cosine = max((chunk.cosine for chunk in chunks if chunk.start < last and first < chunk.end), default=None)
            yield _Part(document, section, text, counts, len(terms), cosine)


def _meant(terms: Sequence[str], meanings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for term in terms:
        if term in meanings:
            yield from meanings[term]


def _weigh(parts: Sequence[_Part], stems: frozenset[str]) -> Mapping[str, float]:
    """Map each word of the question to its weight: the fewer parts contain it, the higher."""
    found = Counter(stem for part in parts for stem in part.counts)
    return {stem: log(1 + (len(parts) - found[stem] + 0.5) / (found[stem] + 0.5)) for stem in stems}


def _rank(parts: Sequence[_Part], weights: Mapping[str, float], worth: Mapping[str, float]) -> list[_Part]:
    """Order parts by BM25 among themselves, by meaning if known, and by the worth of their pages."""
    average = sum(part.length for part in parts) / max(1, len(parts)) or 1.0
    total = sum(weights.values()) or 1.0  # A page may be pinned for a question without weighty words.
    cosines = [part.cosine for part in parts if part.cosine is not None]
    mean = sum(cosines) / max(1, len(cosines))

    def score(part: _Part) -> float:
        norm = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * part.length / average)
        words = sum(weights[stem] * count / (count + norm) for stem, count in part.counts.items())
        cosine = mean if part.cosine is None else part.cosine
        return (words / total + MEANING_WEIGHT * cosine) * (1 + worth[part.document.id])

    return sorted(parts, key=score, reverse=True)


def _choose(ranked: Sequence[_Part], pinned: Sequence[str]) -> list[_Part]:
    """Choose the best part of each page, pinned pages first, and then more parts if there are few pages."""
    first: dict[str, _Part] = {}
    for part in sorted(ranked, key=lambda part: part.document.id not in pinned):
        first.setdefault(part.document.id, part)
    others = [part for part in ranked if part is not first[part.document.id] and part.counts]
    return [*first.values(), *others][:MAX_SOURCES]


def _source(part: _Part) -> Source:
    document, section = part.document, part.section
    title, url = (str(document.fields.get(name, "")) for name in ("title", "url"))
    titles = [title]
    if section is not None:
        headings = page_headings(document.sections, title)
        titles += [*path_to(section, document.sections, headings), *([] if section in headings else [section.title])]
    anchor = "" if section is None else section.anchor
    return Source(document.id, " › ".join(_cut(each) for each in titles if each), url, anchor, part.text)


def _cut(title: str) -> str:
    return title if len(title) <= MAX_TITLE_LENGTH else f"{title[:MAX_TITLE_LENGTH]}…"


def _shorten(text: str) -> str:
    return text.encode()[-MAX_QUERY_BYTES:].decode(errors="ignore").strip()
