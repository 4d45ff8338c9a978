"""Files of a site for AI agents: ``llms.txt``, ``llms-full.txt``, single pages, and an OpenSearch description."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, urljoin, urlsplit
from xml.sax.saxutils import escape

import orjson

from app.crawl.fetch.addresses import normalize_url
from app.errors import ApiError, ErrorCode, field_error
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.indexing.stored_documents import StoredBody, nearest_rows, parts_by_size, read_bodies, steps
from app.storage.database import Database
from app.wording import counted
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery
from backends.sections import page_headings, section_text, split_sections


@dataclass(frozen=True)
class AgentPage:
    """A page of a site.

    Attributes:
        revision: Revision of the site that last wrote the page.
        fields: Fields of the page's document.
    """

    id: str
    revision: int
    url: str
    fields: Mapping[str, Any]

    @property
    def title(self) -> str:
        return str(self.fields["title"])

    @cached_property
    def markdown(self) -> str:
        """Title, URL, and text with headings."""
        fields, sections = split_sections(self.fields)
        content = str(fields["content"])
        own_headings = page_headings(sections, self.title)
        parts = [f"# {self.title}", f"<{self.url}>", content[: sections[0].start if sections else None].strip()]
        for section in sections:
            if section not in own_headings:
                parts.append(f"{'#' * max(2, section.level)} {section.title}")
            parts.append(section_text(content, section, sections))
        return "\n\n".join(filter(None, parts)) + "\n"


def _page(stored: StoredBody, site: SiteRecord) -> AgentPage:
    fields = orjson.loads(stored.body)
    return AgentPage(stored.id, stored.revision, urljoin(site.url, fields["url"]), fields)


def find_page(site: SiteRecord, *, identifier: str | None = None, url: str | None = None) -> AgentPage:
    """Find the page with this ID or URL.

    Args:
        url: URL in the form of the site's documents or of a browser's address bar.

    Raises:
        ApiError: 400 unless exactly one of ID and URL is given; 404.
        BackendUnavailable: The URL is not an ID, and the engine to look it up is unavailable.
    """
    if (identifier is None) == (url is None):
        raise field_error("id", "required", "or url is required, but not both")
    records = [site] if site.searched_sites is None else [searched.record for searched in site.searched_sites]
    for record in records:
        page = _find(record, identifier, url)
        if page is not None:
            return page
    raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "The site has no page with this ID or URL; search for it.")


def _find(site: SiteRecord, identifier: str | None, url: str | None) -> AgentPage | None:
    names = [identifier] if identifier is not None else _spellings(str(url), site)
    page = _read(site, names)
    return _read(site, _ids_at(site, names)) if page is None and url is not None else page


def _read(site: SiteRecord, names: list[str]) -> AgentPage | None:
    with runtime().database.read() as session:
        return next((_page(stored, site) for stored in read_bodies(session, site.id, names)), None)


def _spellings(url: str, site: SiteRecord) -> list[str]:
    """Return the forms that a URL may have in documents: absolute or relative, with or without a trailing slash."""
    try:
        absolute = normalize_url(url, site.url)
    except ValueError as error:
        raise field_error("url", "invalid_url", "must be an http or https URL, or a path on the site") from error
    parts = urlsplit(absolute)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    written = [url.partition("#")[0], absolute]
    if parts.hostname == urlsplit(site.url).hostname:
        written += [path, path.removeprefix("/")]
    if not parts.query:
        written += [text.removesuffix("/") if text.endswith("/") else f"{text}/" for text in list(written)]
    return list(filter(None, dict.fromkeys(written)))


def _ids_at(site: SiteRecord, urls: list[str]) -> list[str]:
    at_urls = OneOf("url", tuple(urls))
    query = SearchQuery(
        MATCH_ALL, limit=1, portable_filter=at_urls, kinds=site.kinds, returned_fields=frozenset({"id"})
    )
    return [hit.id for hit in runtime().searcher.run(site, query).result.hits]


def walk_pages(database: Database, site: SiteRecord, max_pages: int) -> Iterator[AgentPage]:
    """Iterate over a site's pages, shortest IDs first, which are closest to the home page if IDs are URLs.

    Args:
        max_pages: Maximum number of pages.
    """
    with database.read() as session:
        rows = nearest_rows(session, site.id, max_pages)
    for step in steps(rows):
        for ids in parts_by_size(step):
            with database.read() as session:
                stored = list(read_bodies(session, site.id, ids))
            for document in stored:
                yield _page(document, site)


MAX_LISTED = 1_000
"""Maximum number of pages in ``llms.txt``."""
MAX_WRITTEN = 20_000
"""Maximum number of pages in ``llms-full.txt``."""
MAX_FULL_BYTES = 5 * 1024 * 1024
_NOTE_BYTES = 500
"""Bytes reserved for the note about omitted pages."""
_MIN_IN_SECTION = 2
_MAX_IN_SECTION = 50
"""Maximum number of pages in a section, if their paths can be divided further."""
_MAX_FOLDERS = 8
_MAX_LEAD = 120
_OTHERS = "Other pages"
_SENTENCE = re.compile(r".*?[.!?。！？](?=\s|$)", re.DOTALL)
_MAX_SHORT_NAME = 16
"""Maximum length of ``ShortName`` in OpenSearch."""


@dataclass(frozen=True, slots=True)
class AgentUrls:
    """URLs of a site for agents.

    Attributes:
        base: URL of this service.
        key: A public key of the site.
    """

    base: str
    key: str

    @property
    def mcp(self) -> str:
        return f"{self.base}/mcp/{self.key}"

    def file(self, name: str) -> str:
        return f"{self.base}/agents/{self.key}/{name}"

    @property
    def search(self) -> str:
        """The URL of Custom Search, without a query."""
        return f"{self.base}/customsearch/v1?key={self.key}"


# --- llms.txt


@dataclass(frozen=True, slots=True)
class _Entry:
    section: str
    url: str
    title: str
    lead: str

    @property
    def folders(self) -> list[str]:
        return urlsplit(self.url).path.strip("/").split("/")[:-1]

    def line(self) -> str:
        title = re.sub(r"([\[\]\\])", r"\\\1", " ".join(self.title.split()))
        address = quote(self.url, safe="%/:?#[]@!$&'*+,;=~-._")
        return f"- [{title}]({address})" + (f": {self.lead}" if self.lead else "")


def list_pages(database: Database, site: SiteRecord, urls: AgentUrls, total: int) -> str:
    """Create ``llms.txt``: the site's pages by section, with a line for each.

    Args:
        total: Number of pages of the site.
    """
    entries = [
        _Entry(_section(page), page.url, page.title, _lead(page)) for page in walk_pages(database, site, MAX_LISTED)
    ]
    sections: dict[str, list[_Entry]] = {}
    for entry in entries:
        if entry.section:
            sections.setdefault(entry.section, []).append(entry)
    for name, members in _by_path([entry for entry in entries if not entry.section], 1).items():
        sections.setdefault(name, []).extend(members)
    others = [
        entry for name, members in sections.items() if not name or len(members) < _MIN_IN_SECTION for entry in members
    ]
    groups = {name: members for name, members in sections.items() if name and len(members) >= _MIN_IN_SECTION}
    if others:
        groups = {(_OTHERS if groups else "Pages"): others, **groups}
    lines = [
        f"# {_one_line(site.name)}",
        *([f"\n> {_one_line(site.description)}"] if site.description else []),
        f"\n{counted(total, 'page')} of <{site.url}>.",
        f"To search them, use the MCP server at <{urls.mcp}>, or `GET {urls.search}&q=WORDS`.",
        f"One page as Markdown: `{urls.file('page.md')}?url=ADDRESS`. All together: <{urls.file('llms-full.txt')}>.",
    ]
    for name, members in groups.items():
        lines += [f"\n## {_one_line(name)}\n", *(entry.line() for entry in sorted(members, key=lambda each: each.url))]
    if total > len(entries):
        lines.append(f"\n{counted(total - len(entries), 'more page')}: search for them.")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _section(page: AgentPage) -> str:
    """Return the page's section, or an empty string."""
    section = page.fields.get("section")
    if isinstance(section, list):
        section = next(iter(section), None)
    return section.strip() if isinstance(section, str) else ""


def _by_path(entries: list[_Entry], depth: int) -> dict[str, list[_Entry]]:
    """Group entries by the first ``depth`` directories of their paths, or by more for large groups."""
    groups: dict[str, list[_Entry]] = {}
    for entry in entries:
        groups.setdefault("/".join(entry.folders[:depth]), []).append(entry)
    split: dict[str, list[_Entry]] = {}
    for name, members in groups.items():
        is_deeper = depth < _MAX_FOLDERS and any(len(entry.folders) > depth for entry in members)
        is_large = len(members) > _MAX_IN_SECTION
        split |= _by_path(members, depth + 1) if is_large and is_deeper else {name: members}
    return split


def _lead(page: AgentPage) -> str:
    """Return a summary of the page: its excerpt, or the first sentence of its text."""
    text = str(page.fields.get("excerpt") or page.fields["content"])[: 10 * _MAX_LEAD]
    text = _one_line(text).removeprefix(_one_line(page.title)).lstrip(" .:|-–—")
    sentence = _SENTENCE.match(text)
    text = sentence[0] if sentence is not None else text
    if len(text) <= _MAX_LEAD:
        return text
    return (text[: _MAX_LEAD + 1].rpartition(" ")[0].rstrip(" ,;:") or text[:_MAX_LEAD]) + "…"


# --- llms-full.txt


def write_pages(database: Database, site: SiteRecord, total: int) -> Iterator[bytes]:
    """Create ``llms-full.txt``: as many whole pages as fit, and a note about omitted pages.

    Args:
        total: Number of pages of the site.
    """
    remaining_bytes, written = MAX_FULL_BYTES - _NOTE_BYTES, 0
    for page in walk_pages(database, site, MAX_WRITTEN):
        text = page.markdown.encode() + b"\n"
        if len(text) > remaining_bytes:
            break
        remaining_bytes -= len(text)
        written += 1
        yield text
    if written < total:
        yield f"{counted(total - written, 'more page')}: search for them, as llms.txt says.\n".encode()


# --- opensearch.xml


def describe_search(site: SiteRecord, urls: AgentUrls) -> str:
    """Create the OpenSearch description of the site's search, whose results are JSON."""
    about = site.description or f"Search {site.name}"
    template = escape(f"{urls.search}&q=") + "{searchTerms}"
    own_url = escape(urls.file("opensearch.xml"))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>{escape(site.name[:_MAX_SHORT_NAME])}</ShortName>
<LongName>{escape(site.name[:48])}</LongName>
<Description>{escape(about)}</Description>
<Url type="application/json" rel="results" template="{template}"/>
<Url type="application/opensearchdescription+xml" rel="self" template="{own_url}"/>
<InputEncoding>UTF-8</InputEncoding>
<OutputEncoding>UTF-8</OutputEncoding>
</OpenSearchDescription>
"""
