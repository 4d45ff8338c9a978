"""Add, edit, and preview sources."""

from __future__ import annotations

from urllib.parse import urljoin

from flask import Response, request

from app.crawl.run.preview import Preview
from app.crawl.sources import sources
from app.errors import ApiError
from app.models import Site
from app.operations import sources as source_operations
from app.pages.forms import banner_of, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.sources.form import (
    CHOICES,
    field_rows_of,
    form_fields,
    grouped_fields,
    load_fields,
    preview_values,
    read_headers,
    read_selectors,
    read_source,
    sent_form,
    sent_rules,
    write_source,
)
from app.pages.sources.views import find_source
from app.runtime import runtime
from app.services.sites import get_site
from app.web.callers import current_caller
from app.web.hosts import base_url
from schemas.sources import KINDS, PreviewSchema, SourceCreateSchema, SourceUpdateSchema


def show_create_form(site_id: int) -> str:
    """Show the ways to add content, and the form of the chosen one."""
    kind = request.args.get("kind", "website")
    return _create_form(site_id, kind if kind in CHOICES else "website")


def create_source(site_id: int) -> Response:
    """Add a source and queue its first run."""
    form = sent_form()
    kind = form.get("kind", "")
    refill_on_error(lambda error: _create_form(site_id, kind if kind in KINDS else "website", error=error))
    values = {"kind": kind, **read_source(form), **sent_rules()}
    fields = load_fields(SourceCreateSchema(), values)
    source = source_operations.create_source(runtime(), current_caller(), site_id, fields)
    return see_other(f"/api/sites/{site_id}/sources/{source.id}", notice="source-created")


def _create_form(
    site_id: int, kind: str, *, error: ApiError | None = None, preview: Preview | None = None, is_sent: bool = False
) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        count = sources.count_sources(session, site.id)
    values = sent_form() if error is not None or is_sent else _proposed(site, kind)
    fields = [] if kind not in KINDS else form_fields(kind, values, error)
    return render(
        "source_create.html",
        site=site,
        kind=kind,
        choices=CHOICES,
        is_full=count >= sources.MAX_SOURCES and error is None,
        most=sources.MAX_SOURCES,
        base_url=base_url(),
        banner=banner_of(error, fields),
        **field_rows_of(sent_rules().get("fields", ()), error),
        **grouped_fields(fields),
        **preview_values(preview),
    )


def _proposed(site: Site, kind: str) -> dict[str, str]:
    """Return the initial values of a new form."""
    address = urljoin(site.url, "/sitemap.xml") if kind == "sitemap" else "" if kind == "feed" else site.url
    return {"url": address, "schedule": "daily"}


def show_edit_form(site_id: int, source_id: str) -> str:
    """Show the form that edits a source."""
    return _edit_form(site_id, source_id)


def _edit_form(
    site_id: int,
    source_id: str,
    *,
    error: ApiError | None = None,
    preview: Preview | None = None,
    is_sent: bool = False,
) -> str:
    with runtime().database.read() as session:
        site, source = find_source(session, site_id, source_id)
    fields = form_fields(source.kind, sent_form() if error is not None or is_sent else write_source(source), error)
    return render(
        "source_edit.html",
        site=site,
        source=source,
        kinds=CHOICES,
        has_headers=bool(source.headers),
        banner=banner_of(error, fields),
        **field_rows_of(sent_rules().get("fields", source.fields), error),
        **grouped_fields(fields),
        **preview_values(preview),
    )


def update_source(site_id: int, source_id: str) -> Response:
    """Save a source."""
    refill_on_error(lambda error: _edit_form(site_id, source_id, error=error))
    form = sent_form()
    changes = load_fields(SourceUpdateSchema(), {**read_source(form), **sent_rules()})
    source_operations.update_source(runtime(), current_caller(), site_id, source_id, changes)
    return see_other(f"/api/sites/{site_id}/sources/{source_id}", notice="source-updated")


def preview_page(site_id: int) -> str:
    """Show the form again, with a preview of the page."""
    form = sent_form()
    source_id = form.get("source", "")
    kind = form.get("kind", "")

    def show(error: ApiError | None = None, preview: Preview | None = None) -> str:
        if source_id:
            return _edit_form(site_id, source_id, error=error, preview=preview, is_sent=True)
        return _create_form(site_id, kind if kind in KINDS else "website", error=error, preview=preview, is_sent=True)

    refill_on_error(show, (400, 401, 403, 429, 503))
    values = {
        "url": form.get("url", ""),
        "selectors": read_selectors(form),
        "headers": read_headers(form),
        **sent_rules(),
    }
    fields = load_fields(PreviewSchema(), values)
    preview = source_operations.preview_page(
        runtime(),
        current_caller(),
        site_id,
        fields,
        kind=kind if kind in KINDS else "website",
        source_id=source_id or None,
    )
    return show(preview=preview)
