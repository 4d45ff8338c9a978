"""The sources of a site: their list, runs, and reports, and the forms that create and change them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urljoin

from flask import Response, request
from sqlalchemy.orm import Session

from app.clock import now
from app.crawl.run.lookup import PageLookup, encode_dead_links, list_dead_links, twins_of_run
from app.crawl.run.preview import Preview
from app.crawl.sources import runs, sources
from app.crawl.sources.removal import find_blocked_sweep
from app.errors import ApiError, ErrorCode
from app.models import Site, Source, SourceRun
from app.operations import sources as source_operations
from app.pages.actions import Action
from app.pages.forms import banner_of, field_problems, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.sources.form import (
    CHOICES,
    SCHEDULE_NAMES,
    field_rows_of,
    form_fields,
    grouped_fields,
    preview_values,
    read_form_texts,
    read_headers,
    read_rules,
    read_selectors,
    read_source,
    write_source,
)
from app.pages.sources.reports import Report, explain_reason, report_run
from app.runtime import runtime
from app.services.sites import get_site
from app.web.callers import current_caller, load_site
from app.web.hosts import base_url, hook_url
from app.web.parsing import check_query_string, load_values
from app.web.responses import csv_response
from schemas.sites import PageQuerySchema
from schemas.source_runs import PageLookupQuerySchema, RunRequestSchema
from schemas.sources import KINDS, PreviewSchema, SourceCreateSchema, SourceUpdateSchema

SHOWN_RUNS = 5
LISTED_PAGES = 100
EXPORTED_LINKS = 10_000

_REFRESHED = ((timedelta(seconds=30), 2), (timedelta(minutes=5), 5))
_SELDOM = 15
"""Seconds between page refreshes for runs older than all ages in ``_REFRESHED``."""


def list_sources(site_id: int) -> str:
    """Show a site's sources with the outcome of their newest runs."""
    with runtime().database.read() as session:
        account_id = current_caller().account.id
        site = get_site(session, account_id, site_id)
        listed, total = sources.list_sources(session, account_id, site_id, limit=sources.MAX_SOURCES, offset=0)
        newest = runs.newest_runs(session, [source.id for source in listed])
        rows = [
            (sources.view(source, newest.get(source.id)), _report(session, newest.get(source.id))) for source in listed
        ]
    return render(
        "sources.html",
        site=site,
        shown=rows,
        kinds=CHOICES,
        schedules=SCHEDULE_NAMES,
        is_full=total >= sources.MAX_SOURCES,
        most=sources.MAX_SOURCES,
        refresh=_refresh([report.run for _, report in rows if report is not None]),
    )


def show_source(site_id: int, source_id: str) -> str:
    """Show a source with the progress or the report of its newest run."""
    with runtime().database.read() as session:
        site, source = _find_source(session, site_id, source_id)
        listed_runs, total = runs.list_runs(session, source, limit=SHOWN_RUNS, offset=0)
        newest = listed_runs[0] if listed_runs else None
        report = _report(session, newest)
        sweep = find_blocked_sweep(session, newest)
        site_url = sources.find_site_url(session, site, source, newest)
    return render(
        "source.html",
        site=site,
        source=sources.view(source, newest),
        next_run_at=source.next_run_at,
        has_headers=bool(source.headers),
        hook_url=hook_url(source.id, source.hook_salt),
        kinds=CHOICES,
        schedules=SCHEDULE_NAMES,
        report=report,
        sweep=sweep,
        site_url=site_url,
        runs=listed_runs,
        run_total=total,
        refresh=_refresh(listed_runs[:1]),
    )


def delete_source(site_id: int, source_id: str) -> Response:
    """Delete a source and, unless they are kept, its pages."""
    keep_documents = read_form_texts().get("keep_documents") == "true"
    source_operations.delete_source(runtime(), current_caller(), site_id, source_id, keep_documents=keep_documents)
    return see_other(
        f"/api/sites/{site_id}/sources", notice="source-deleted-alone" if keep_documents else "source-deleted"
    )


def run_source(site_id: int, source_id: str) -> Response:
    """Queue a run of the source or one page. A run after a rejected sweep may remove any number of pages."""
    form = read_form_texts()
    options = load_values(
        RunRequestSchema(),
        {
            **({"urls": [form["url"]]} if "url" in form else {}),
            **({"max_removed_percent": 100} if form.get("remove_anyway") == "true" else {}),
        },
    )
    source_operations.request_run(runtime(), current_caller(), site_id, source_id, options)
    return see_other(f"/api/sites/{site_id}/sources/{source_id}")


renew_hook = Action(source_operations.renew_hook, "/api/sites/{site_id}/sources/{source_id}", "hook-renewed")


def cancel_run(site_id: int, source_id: str) -> Response:
    """Cancel the run. If it has just ended, only show it."""
    try:
        source_operations.cancel_run(runtime(), current_caller(), site_id, source_id)
    except ApiError as error:
        if error.code is not ErrorCode.RUN_NOT_FOUND:
            raise
    return see_other(f"/api/sites/{site_id}/sources/{source_id}")


def list_runs(site_id: int, source_id: str) -> str:
    """Show the stored runs of a source."""
    paging = _paging()
    with runtime().database.read() as session:
        site, source = _find_source(session, site_id, source_id)
        listed_runs, total = runs.list_runs(session, source, **paging)
    return render("runs.html", site=site, source=source, runs=listed_runs, total=total, paging=paging, kinds=CHOICES)


def show_run(site_id: int, source_id: str, run_id: str) -> str:
    """Show the report of a run, with every skipped page."""
    paging = _paging()
    with runtime().database.read() as session:
        site, source = _find_source(session, site_id, source_id)
        run = runs.get_run(session, source, run_id)
        report = _report(session, run)
        pages, total = runs.list_reported(session, run, **paging)
        twins = twins_of_run(session, run, pages)
    return render(
        "run.html",
        site=site,
        source=source,
        kinds=CHOICES,
        report=report,
        pages=[(page, explain_reason(page.reason or ""), twins.get(page.url)) for page in pages],
        total=total,
        paging=paging,
        refresh=_refresh([run]),
    )


def show_dead_links(site_id: int, source_id: str) -> str:
    """Show the dead links on a source's pages."""
    paging = _paging()
    with runtime().database.read() as session:
        site, source = _find_source(session, site_id, source_id)
        dead = list_dead_links(session, source, **paging)
    return render("dead_links.html", site=site, source=source, dead=dead, most=EXPORTED_LINKS, paging=paging)


def export_dead_links(site_id: int, source_id: str) -> Response:
    """Export the first :data:`EXPORTED_LINKS` dead links as CSV.

    Raises:
        ApiError: 404.
    """
    with runtime().database.read() as session:
        source = sources.get_source(session, current_caller().account.id, site_id, source_id)
        dead = list_dead_links(session, source, limit=EXPORTED_LINKS, offset=0)
    return csv_response(encode_dead_links(dead.links), f"dead-links-{source_id}.csv")


def _report(session: Session, run: SourceRun | None) -> Report | None:
    return None if run is None else report_run(run, runs.count_reasons(session, run))


def _refresh(source_runs: Sequence[SourceRun]) -> int | None:
    """Return the seconds until a page that shows these runs should refresh; ``None`` if all of them have ended.

    Pages of long runs refresh less often, since every request counts toward the account's rate limits.
    """
    ages = [now() - run.queued_at for run in source_runs if run.status in runs.OPEN]
    if not ages:
        return None
    age = min(ages)
    return next((seconds for max_age, seconds in _REFRESHED if age < max_age), _SELDOM)


def _find_source(session: Session, site_id: int, source_id: str) -> tuple[Site, Source]:
    account_id = current_caller().account.id
    return get_site(session, account_id, site_id), sources.get_source(session, account_id, site_id, source_id)


def _paging() -> dict[str, int]:
    return load_values(PageQuerySchema(), {"limit": str(LISTED_PAGES), **request.args})


def look_up_page(site_id: int) -> str:
    """Explain why the page at a URL is or isn't searchable."""
    check_query_string(request)
    refill_on_error(lambda error: _lookup_page(site_id, error=error), (400, 503))
    url = load_values(PageLookupQuerySchema(), _completed())["url"]
    return _lookup_page(site_id, source_operations.look_up_page(runtime(), current_caller(), site_id, url))


def _completed() -> dict[str, str]:
    """Return the requested URL, with ``https`` if it has no scheme."""
    url = request.args.get("url", "").strip()
    return {"url": url if not url or "://" in url else f"https://{url}"}


def _lookup_page(site_id: int, lookup: PageLookup | None = None, error: ApiError | None = None) -> str:
    site = load_site(site_id)
    problem = None
    if error is not None:
        problem = error.message
        if error.code is ErrorCode.VALIDATION_FAILED and (predicate := field_problems(error).get("url")):
            problem = f"The URL {predicate}."
    return render(
        "lookup.html",
        site=site,
        asked=request.args.get("url", ""),
        found=lookup,
        explanation=None if lookup is None or lookup.reason is None else explain_reason(lookup.reason),
        problem=problem,
    )


def show_create_form(site_id: int) -> str:
    """Show the ways to add content, and the form of the chosen one."""
    kind = request.args.get("kind", "website")
    return _create_form(site_id, kind if kind in CHOICES else "website")


def create_source(site_id: int) -> Response:
    """Add a source and queue its first run."""
    form = read_form_texts()
    kind = form.get("kind", "")
    refill_on_error(lambda error: _create_form(site_id, kind if kind in KINDS else "website", error=error))
    values = {"kind": kind, **read_source(form), **read_rules()}
    fields = load_values(SourceCreateSchema(), values)
    source = source_operations.create_source(runtime(), current_caller(), site_id, fields)
    return see_other(f"/api/sites/{site_id}/sources/{source.id}", notice="source-created")


def _create_form(
    site_id: int, kind: str, *, error: ApiError | None = None, preview: Preview | None = None, is_sent: bool = False
) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        count = sources.count_sources(session, site.id)
    values = read_form_texts() if error is not None or is_sent else _proposed(site, kind)
    fields = [] if kind not in KINDS else form_fields(kind, values, error)
    return render(
        "source_create.html",
        site=site,
        kind=kind,
        choices=CHOICES,
        is_full=count >= sources.MAX_SOURCES and error is None,
        most=sources.MAX_SOURCES,
        base_url=base_url(),
        renders_pages=bool(runtime().settings.crawl_browser),
        banner=banner_of(error, fields),
        **field_rows_of(read_rules().get("fields", ()), error),
        **grouped_fields(fields),
        **preview_values(preview),
    )


def _proposed(site: Site, kind: str) -> dict[str, str]:
    """Return the initial values of a new form."""
    address = urljoin(site.url, "/sitemap.xml") if kind == "sitemap" else "" if kind == "feed" else site.url
    return {"url": address, "schedule": "daily"}


def show_edit_form(
    site_id: int,
    source_id: str,
    *,
    error: ApiError | None = None,
    preview: Preview | None = None,
    is_sent: bool = False,
) -> str:
    """Show the form that edits a source."""
    with runtime().database.read() as session:
        site, source = _find_source(session, site_id, source_id)
    fields = form_fields(
        source.kind, read_form_texts() if error is not None or is_sent else write_source(source), error
    )
    return render(
        "source_edit.html",
        site=site,
        source=source,
        kinds=CHOICES,
        has_headers=bool(source.headers),
        banner=banner_of(error, fields),
        **field_rows_of(read_rules().get("fields", source.fields), error),
        **grouped_fields(fields),
        **preview_values(preview),
    )


def update_source(site_id: int, source_id: str) -> Response:
    """Save a source."""
    refill_on_error(lambda error: show_edit_form(site_id, source_id, error=error))
    form = read_form_texts()
    changes = load_values(SourceUpdateSchema(), {**read_source(form), **read_rules()})
    source_operations.update_source(runtime(), current_caller(), site_id, source_id, changes)
    return see_other(f"/api/sites/{site_id}/sources/{source_id}", notice="source-updated")


def preview_page(site_id: int) -> str:
    """Show the form again, with a preview of the page."""
    form = read_form_texts()
    source_id = form.get("source", "")
    kind = form.get("kind", "")

    def show(error: ApiError | None = None, preview: Preview | None = None) -> str:
        if source_id:
            return show_edit_form(site_id, source_id, error=error, preview=preview, is_sent=True)
        return _create_form(site_id, kind if kind in KINDS else "website", error=error, preview=preview, is_sent=True)

    refill_on_error(show, (400, 401, 403, 429, 503))
    values = {
        "url": form.get("url", ""),
        "selectors": read_selectors(form),
        "headers": read_headers(form),
        **({"render": form["render"]} if "render" in form else {}),
        **read_rules(),
    }
    fields = load_values(PreviewSchema(), values)
    preview = source_operations.preview_page(
        runtime(),
        current_caller(),
        site_id,
        fields,
        kind=kind if kind in KINDS else "website",
        source_id=source_id or None,
    )
    return show(preview=preview)
