"""The document of a page, a blog post, or an uploaded file, within the limits of documents."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

from app.crawl.fetch.values import MAX_PAGE_BYTES, Fetched, FieldRules, NotIndexed, Page, Reason
from app.crawl.fetch.wordpress import Post
from app.crawl.read.field_rules import ruled_fields
from app.crawl.read.reader import PageReader
from app.crawl.read.text import cut_line
from app.models import Source
from app.texts.sections import as_field
from backends.sections import SECTIONS, is_sections
from backends.standard_fields import REQUIRED_FIELDS
from schemas.validation.documents import (
    MAX_CUSTOM_FIELDS,
    MAX_DOCUMENT_BYTES,
    MAX_ID_LENGTH,
    DocumentProblems,
    ValidDocument,
    read_document,
)

MAX_TITLE_LENGTH = 1_000
MAX_EXCERPT_LENGTH = 2_000
MAX_AUTHOR_LENGTH = 500
MAX_FIELD_LENGTH = 2_000

MIN_SECTION_PAGES = 3
"""Minimum number of a source's pages that must share a path segment for the segment to be a section."""
MAX_SEGMENTS = 100_000
"""Maximum number of distinct path segments. If a source has more, its paths do not describe sections."""
MAX_SEGMENT_CHARACTERS = 255
"""Maximum number of characters in a path segment; longer segments are not names."""

_CUT_MARGIN_BYTES = 64


def document_id(page: Page, url: str) -> str:
    """Return the ID that the page declares, or its URL. If the URL is too long for an ID, a digest replaces its end."""
    if page.id is not None and 0 < len(page.id) <= MAX_ID_LENGTH:
        return page.id
    if len(url) <= MAX_ID_LENGTH:
        return url
    digest = hashlib.sha256(url.encode()).hexdigest()
    return f"{url[: MAX_ID_LENGTH - len(digest) - 1]}#{digest}"


def make_document(
    page: Page, url: str, title: str, section: str | None = None, domain: str | None = None
) -> ValidDocument:
    """Return the document of a page. Values beyond the limits of documents are shortened or omitted.

    Args:
        url: The page's canonical URL.
        title: The page's title without the prefix and suffix that its site's titles share.
        section: The section from the URL's path, for a page that does not declare a section.
        domain: The host, for sites whose documents have one; a ``domain`` that the page declares takes precedence.
    """
    # ``lang`` is a custom field, too, and a value that the page declares takes precedence.
    further: dict[str, Any] = {"domain": domain} if domain else {}
    further |= dict(page.fields) | ({"lang": page.lang} if page.lang and "lang" not in page.fields else {})
    further |= {"section": section} if section else {}
    raw: dict[str, Any] = {
        "id": document_id(page, url),
        "title": title[:MAX_TITLE_LENGTH],
        "content": page.content,
        "url": url,
        "excerpt": (page.excerpt or "")[:MAX_EXCERPT_LENGTH] or None,
        "author": (page.author or "")[:MAX_AUTHOR_LENGTH] or None,
        "date": page.date,
    }
    if page.sections:
        raw[SECTIONS] = as_field(page.sections)
    raw |= {name: _limited(value) for name, value in list(further.items())[:MAX_CUSTOM_FIELDS] if name not in raw}
    raw = {name: _storable(value) for name, value in raw.items()}
    return _read(raw)


def _read(raw: dict[str, Any]) -> ValidDocument:
    """Return the document without invalid optional fields."""
    try:
        return read_document(_cut(raw))
    except DocumentProblems as error:
        optional = {name for name, _ in error.problems} - {*REQUIRED_FIELDS, ""}
        if not optional:
            raise
        return read_document(_cut({name: value for name, value in raw.items() if name not in optional}))


def clean_title(title: str) -> str:
    """Return a title without characters that SQL cannot store."""
    return str(_storable(title))[:MAX_TITLE_LENGTH]


def retitle(document: dict[str, Any], title: str, section: str | None = None) -> ValidDocument:
    """Return a stored document with another title.

    Args:
        section: The section from the URL's path, empty to remove it; ``None`` keeps the document's section.
    """
    changed = {**document, "title": _storable(title[:MAX_TITLE_LENGTH])}
    if section is not None:
        changed["section"] = _storable(section) or None
    return _read(changed)


def without_fields(document: ValidDocument, site_fields: set[str]) -> ValidDocument:
    """Return a document without the custom fields that the site does not have yet."""
    surplus = document.kinds.keys() - site_fields
    return read_document({name: value for name, value in document.fields.items() if name not in surplus})


def _limited(value: Any) -> Any:
    return value[:MAX_FIELD_LENGTH] if isinstance(value, str | list) else value


def _storable(value: Any) -> Any:
    """Remove NUL and lone surrogates from ``value``: JSON cannot encode surrogates, and PostgreSQL rejects NUL."""
    if isinstance(value, str):
        return value.encode("utf-8", "ignore").decode().replace("\x00", "")
    if isinstance(value, list):
        return [_storable(member) for member in value]
    if isinstance(value, dict):
        return {name: _storable(member) for name, member in value.items()}
    return value


def _cut(raw: dict[str, Any]) -> dict[str, Any]:
    size = len(orjson.dumps(raw))
    if size <= MAX_DOCUMENT_BYTES:
        return raw
    # JSON escapes only make text longer, so removing a byte of text removes at least a byte of JSON.
    text = raw["content"].encode()
    content = text[: max(0, len(text) - (size - MAX_DOCUMENT_BYTES) - _CUT_MARGIN_BYTES)].decode(errors="ignore")
    cut = {**raw, "content": content}
    if is_sections(raw.get(SECTIONS)):
        cut[SECTIONS] = [section for section in raw[SECTIONS] if section["start"] <= len(content)]
    return cut


MIN_TITLES = 3
"""Minimum number of pages that must share a title or a part of it."""
MAX_HEADING_CHARACTERS = 255
"""Maximum number of characters in an alternative to a title; longer headings are not titles."""


@dataclass(frozen=True, slots=True)
class TitleRules:
    """Properties that the titles of a source's pages share.

    Attributes:
        prefix, suffix: The beginning and the ending that most titles share, such as `` | Acme``; empty without one.
        pages: Number of pages with the same title, for titles of at least :data:`MIN_TITLES` pages.
        headings: Number of these pages for each pair of title and alternative, by the pair's hash.
    """

    prefix: str = ""
    suffix: str = ""
    pages: Mapping[str, int] = field(default_factory=dict)
    headings: Mapping[int, int] = field(default_factory=dict)

    def choose(self, title: str, headings: str | None) -> str:
        """Return the title of a page, or if other pages have it, the alternative that the fewest of them have.

        Args:
            headings: Alternatives, one per line, as in :class:`~app.models.SourcePage`.
        """
        count = self.pages.get(title)
        if count is None or not headings:
            return title
        best = min(headings.split("\n"), key=lambda heading: self.headings.get(hash((title, heading)), 0))
        return best if self.headings.get(hash((title, best)), 0) < count else title

    def document_title(self, title: str, headings: str | None) -> str:
        """Choose the title of a page's document, and remove the prefix and suffix that the site's titles share."""
        return strip_title(self.choose(title, headings), self.prefix, self.suffix)


def strip_title(title: str, prefix: str, suffix: str) -> str:
    """Return a title without the site's shared prefix and suffix, unless nothing else is left."""
    without_suffix = title.removesuffix(suffix).strip() or title
    return without_suffix.removeprefix(prefix).strip() or without_suffix


def pack_headings(page: Page) -> str | None:
    """Return the alternatives to a page's title, one per line; ``None`` without alternatives."""
    headings = (clean_title(heading) for heading in page.headings if len(heading) <= MAX_HEADING_CHARACTERS)
    return "\n".join(heading for heading in headings if heading) or None


def field_rules(source: Source) -> FieldRules:
    """Return a source's rules for custom fields."""
    return FieldRules(tuple(source.fields or ()), source.url)


def page_of_post(post: Post, rules: FieldRules) -> Page:
    """Convert a blog post to a page, with its categories, its tags, and the fields that rules take from its URL."""
    fields = {"categories": list(post.categories), "tags": list(post.tags)}
    return Page(
        title=post.title,
        content=post.content,
        sections=post.sections,
        excerpt=post.excerpt or None,
        author=post.author,
        date=post.date or post.modified,
        fields=ruled_fields(rules, post.url) | {name: values for name, values in fields.items() if values},
    )


def read_uploaded_file(body: bytes, content_type: str, url: str) -> ValidDocument:
    """Read an uploaded file as if it had been fetched from a URL, so that it becomes the same document.

    Args:
        content_type: The content type that the client declares. If it is vague, the type is detected from the body.
        url: Normalized URL.

    Raises:
        NotIndexed: The file does not become a document.
    """
    if len(body) > MAX_PAGE_BYTES:
        raise NotIndexed(Reason.TOO_LARGE, f"The file is larger than {MAX_PAGE_BYTES // 1_048_576} MiB.")
    with closing(PageReader()) as reader:
        page = reader.read(Fetched(url, 200, {"content-type": content_type}, body))
    if page.skip_reason is Reason.EMPTY:
        raise NotIndexed(page.skip_reason, "The file contains no text.")
    if page.skip_reason is not None:
        raise NotIndexed(page.skip_reason, "The file is marked noindex, or is an error page.")
    return make_document(page, url, page.title)


class PathSections:
    """The first path segments of a source's pages, with the number of pages in each.

    A segment shared by enough pages becomes the ``section`` of those pages that do not declare a section.

    Args:
        urls: URLs of the pages that are documents.
    """

    def __init__(self, urls: Iterable[str] = ()):
        self._pages: Counter[str] = Counter()
        for url in urls:
            self.add(url)

    def add(self, url: str) -> None:
        """Count a page."""
        segment = _first_segment(url)
        if segment in self._pages or len(self._pages) < MAX_SEGMENTS:
            self._pages[segment] += 1

    def section(self, url: str) -> str:
        """Return the section from a URL's path; empty if too few pages share the segment."""
        segment = _first_segment(url)
        return segment if self._pages[segment] >= MIN_SECTION_PAGES else ""


def _first_segment(url: str) -> str:
    segment = cut_line(unquote(urlsplit(url).path.lstrip("/").partition("/")[0]))
    return segment if len(segment) <= MAX_SEGMENT_CHARACTERS else ""
