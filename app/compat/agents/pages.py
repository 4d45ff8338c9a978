"""Pages of a site as Markdown, found by id or address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

from app.crawl.fetch.addresses import normalize_url
from app.errors import ApiError, ErrorCode, field_error
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.indexing.stored_documents import StoredBody, nearest_rows, parts_by_size, read_bodies, steps
from app.services.search.responses import encode_hit
from app.storage.database import Database
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery
from backends.sections import page_headings, section_text, split_sections


@dataclass(frozen=True)
class Page:
    """A page of a site.

    Attributes:
        revision: The site's revision that wrote it.
        fields: Of its document.
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
        """Title, address, and text with its headings."""
        fields, sections = split_sections(self.fields)
        content = str(fields["content"])
        own = page_headings(sections, self.title)
        parts = [f"# {self.title}", f"<{self.url}>", content[: sections[0].start if sections else None].strip()]
        for section in sections:
            if section not in own:
                parts.append(f"{'#' * max(2, section.level)} {section.title}")
            parts.append(section_text(content, section, sections))
        return "\n\n".join(filter(None, parts)) + "\n"


def _page(stored: StoredBody, site: SiteRecord) -> Page:
    fields = orjson.loads(stored.body)
    return Page(stored.id, stored.revision, urljoin(site.url, fields["url"]), fields)


def find_page(site: SiteRecord, *, identifier: str | None = None, url: str | None = None) -> Page:
    """The page with this id, or at this address.

    Args:
        url: As documents of the site have it, or as it stands in an address line.

    Raises:
        ApiError: 400 unless exactly one of both is given; 404.
        BackendUnavailable: The engine, which knows addresses that are no ids, cannot answer now.
    """
    if (identifier is None) == (url is None):
        raise field_error("id", "required", "or url is required, and not both")
    names = [identifier] if identifier is not None else _spellings(str(url), site)
    found = _read(site, names)
    if found is None and url is not None:
        found = _read(site, _ids_at(site, names))
    if found is None:
        raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "The site has no such page; search for it.")
    return found


def _read(site: SiteRecord, names: list[str]) -> Page | None:
    with runtime().database.read() as session:
        return next((_page(stored, site) for stored in read_bodies(session, site.id, names)), None)


def _spellings(url: str, site: SiteRecord) -> list[str]:
    """The ways in which documents may write an address: absolute or not, with or without a slash at the end."""
    try:
        absolute = normalize_url(url, site.url)
    except ValueError as error:
        raise field_error("url", "invalid_url", "must be an http or https address, or a path of the site") from error
    parts = urlsplit(absolute)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    written = [url.partition("#")[0], absolute]
    if parts.hostname == urlsplit(site.url).hostname:
        written += [path, path.removeprefix("/")]
    if not parts.query:
        written += [text.removesuffix("/") if text.endswith("/") else f"{text}/" for text in list(written)]
    return list(filter(None, dict.fromkeys(written)))


def _ids_at(site: SiteRecord, urls: list[str]) -> list[str]:
    current_runtime = runtime()
    query = SearchQuery(MATCH_ALL, limit=1, filter=OneOf("url", tuple(urls)), kinds=site.kinds)
    timed = current_runtime.searcher.run(
        site, query, partial(encode_hit, fields=frozenset({"id"})), current_runtime.searcher.new_room()
    )
    return [orjson.loads(hit)["id"] for hit in timed.hits]


def walk_pages(database: Database, site: SiteRecord, most: int) -> Iterator[Page]:
    """A site's pages, those with the shortest ids first: where ids are addresses, those are nearest to the start page.

    Args:
        most: How many at most.
    """
    with database.read() as session:
        rows = nearest_rows(session, site.id, most)
    for step in steps(rows):
        for ids in parts_by_size(step):
            with database.read() as session:
                stored = list(read_bodies(session, site.id, ids))
            for each in stored:
                yield _page(each, site)
