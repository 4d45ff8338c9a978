"""The stored pages of a site: lists, lookups, removal, and export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import orjson
from flask import Response, request
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import today
from app.errors import ApiError, ErrorCode
from app.models import API_SOURCE, Site, Source
from app.models.base import from_microseconds
from app.pages.analytics.reports import SHOWN_PERIOD
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.search.hits import link_to
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.analytics.report_parts import Span, count_clicks
from app.services.analytics.reports import EPOCH
from app.services.document_list import (
    Cursor,
    DocumentListPage,
    Selection,
    encode,
    list_source_names,
    read_page,
    select_documents,
    walk,
)
from app.services.indexing.stored_documents import StoredBody
from app.services.search.search import find_ids, find_ids_at
from app.storage.database import Database
from app.web.callers import current_caller, load_site
from app.web.parsing import check_query_string, read_form_body
from backends.errors import BackendUnavailable
from backends.query import SearchQuery
from backends.sections import SECTIONS, split_sections
from schemas.analytics import PERIODS

PER_PAGE = 20
LONGEST_QUERY_BYTES = 512


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of pages, for display.

    Attributes:
        name: The source's name or ID.
        label: The source's URL, or a description of other sources.
        is_crawled: Whether this service crawls the pages.
    """

    name: str
    label: str
    is_crawled: bool


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A stored page.

    Attributes:
        address: The page's URL; empty if it can't be linked safely.
        path: The URL without the site's own scheme and host.
        details: URL of the page that shows the stored fields.
        fields: The stored fields except title and content.
    """

    id: str
    title: str
    address: str
    display_address: str
    path: str
    details: str
    origin: Origin
    updated_at: datetime
    size: int
    content: str
    fields: Sequence[tuple[str, str]]


def show_documents(site_id: int) -> str:
    """Show the newest pages of a site, the pages found by a lookup, or one page."""
    check_query_string(request)
    site = load_site(site_id)
    if "id" in request.args:
        return _one(site, _argument("id"))
    query = _argument("q").strip()
    source = _argument("source")
    ids, problem = _look_up(site, query) if query else (None, None)
    if ids is not None:
        selection, cursor = Selection(site.id, source or None, ids=ids), None
    else:
        selection = select_documents(site, source=source or None)
        text = _argument("cursor")
        cursor = Cursor.decode(text, selection) if text else None
    listed, page = _read(site, selection, cursor)
    with runtime().database.read() as session:
        origins = _origins(session, site.id, list_source_names(session, site.id))
        last = (today() - EPOCH).days
        span = Span((site.id,), last - PERIODS[SHOWN_PERIOD] + 1, last, None)
        clicks = count_clicks(session, span, [document.id for document in listed])
    if ids is not None:
        listed.sort(key=lambda document: ids.index(document.id))
    return render(
        "documents.html",
        site=site,
        q=query,
        source=source,
        origins=origins,
        documents=[_show(site, document, origins) for document in listed],
        clicks=clicks,
        total=page.total,
        problem=problem,
        is_first=cursor is None,
        next_address=page.next_cursor and _address(site, cursor=page.next_cursor, source=source),
        first_address=_address(site, source=source),
        export_address=_address(site, "/export", source=source),
    )


def _argument(name: str) -> str:
    """Return a query parameter without NUL, which databases reject and no ID contains."""
    return request.args.get(name, "").replace("\x00", "")


def _read(site: Site, selection: Selection, cursor: Cursor | None = None) -> tuple[list[StoredBody], DocumentListPage]:
    listed: list[StoredBody] = []

    def add(document: StoredBody) -> bool:
        listed.append(document)
        return True

    return listed, read_page(runtime().database, site, selection, cursor, PER_PAGE, add)


def _address(site: Site, path: str = "", **query: str) -> str:
    arguments = {name: value for name, value in query.items() if value}
    return f"/sites/{site.id}/documents{path}" + ("?" + urlencode(arguments) if arguments else "")


def _look_up(site: Site, query: str) -> tuple[list[str], ApiError | BackendUnavailable | None]:
    """Return the IDs of pages that match a text by ID, URL, or words, and the error if the engine could not search."""
    ids_by_text = [query]
    if len(query.encode()) > LONGEST_QUERY_BYTES:
        return ids_by_text, None
    searcher, record = runtime().searcher, site_record(site)
    try:
        if query.startswith(("/", "http://", "https://")):
            ids = find_ids_at(searcher, record, (query,), PER_PAGE)
        else:
            ids = find_ids(searcher, record, SearchQuery(query, limit=PER_PAGE))
    except (ApiError, BackendUnavailable) as error:
        return ids_by_text, error
    return [*ids_by_text, *(identifier for identifier in ids if identifier != query)], None


def _origins(session: Session, site_id: int, names: Sequence[str]) -> dict[str, Origin]:
    crawled = {
        source.id: source.url
        for source in session.scalars(select(Source).where(Source.site_id == site_id, Source.id.in_(names)))
    }
    return {name: _origin(name, crawled.get(name)) for name in names}


def _origin(name: str, crawled_from: str | None = None) -> Origin:
    if crawled_from is not None:
        return Origin(name, crawled_from, True)
    return Origin(name, "API" if name == API_SOURCE else f"API, {name}", False)


def _show(site: Site, document: StoredBody, origins: dict[str, Origin]) -> ShownDocument:
    fields: dict[str, Any] = orjson.loads(document.body)
    others, sections = split_sections(fields)
    if sections:
        others = {**others, SECTIONS: [section.title for section in sections]}
    address = link_to(str(fields["url"]), site.url)
    source = document.origin.source
    return ShownDocument(
        id=document.id,
        title=str(fields["title"]) or str(fields["url"]),
        address=address,
        display_address=address or str(fields["url"]),
        path=_path_of(address or str(fields["url"]), site),
        details=_address(site, id=document.id),
        origin=origins.get(source) or _origin(source),
        updated_at=from_microseconds(document.changed_at),
        size=len(document.body),
        content=str(fields["content"]),
        fields=[(name, _text(value)) for name, value in others.items() if name not in ("title", "content")],
    )


def _path_of(address: str, site: Site) -> str:
    """Example: ``https://www.example.com/hours?day=1 -> /hours?day=1`` on the site ``https://www.example.com``."""
    parts = urlsplit(address)
    if parts[:2] != urlsplit(site.url)[:2]:
        return address
    return urlunsplit(("", "", parts.path or "/", parts.query, parts.fragment))


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _one(site: Site, document_id: str) -> str:
    document = _find(site, document_id)
    with runtime().database.read() as session:
        origins = _origins(session, site.id, [document.origin.source])
    return render("document.html", site=site, document=_show(site, document, origins))


def _find(site: Site, document_id: str) -> StoredBody:
    listed, _ = _read(site, Selection(site.id, ids=[document_id]))
    if not listed:
        raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "Page not found; it may have been removed.")
    return listed[0]


def remove_document(site_id: int) -> Response:
    """Remove a page."""
    document_id = read_form_body(request).get("id", "").replace("\x00", "")
    runtime().writer.remove(current_caller().account.id, site_id, document_id)
    return see_other(f"/sites/{site_id}/documents", notice="document-removed")


def export_documents(site_id: int) -> Response:
    """Export all pages of a site or of one source as JSON Lines."""
    check_query_string(request)
    site = load_site(site_id)
    selection = select_documents(site, source=_argument("source") or None)
    response = Response(_lines(runtime().database, selection), content_type="application/x-ndjson")
    response.headers["Content-Disposition"] = f'attachment; filename="site-{site.id}.jsonl"'
    return response


def _lines(database: Database, selection: Selection) -> Iterator[bytes]:
    for document in walk(database, selection):
        yield encode(document) + b"\n"
