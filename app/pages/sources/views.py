"""The place where a site's pages are: sources, their runs, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin

from flask import Response, request
from marshmallow import Schema, ValidationError
from sqlalchemy.orm import Session

from app.clock import now
from app.crawl.run.lookup import encode_dead_links, list_dead_links, twins_of_run
from app.crawl.run.preview import Preview
from app.crawl.sources import runs, sources
from app.crawl.sources.sweeps import find_refused_sweep
from app.errors import ApiError, ErrorCode
from app.models import Site, Source, SourceRun
from app.operations import sources as source_operations
from app.pages.forms import banner_of, refill_on_error
from app.pages.layout import render
from app.pages.redirects import see_other
from app.pages.settings.problems import Problems
from app.pages.sources.field_rows import PLACES, read_rows, write_rows
from app.pages.sources.lines import explain, read_headers, read_selectors, read_source, write_source
from app.pages.sources.reports import Report, explain_reason, report_run
from app.runtime import runtime
from app.services.sites import get_site
from app.web.hosts import base_url, hook_url
from app.web.parsing import invalid, read_form_body
from app.web.request_checks import current_caller
from app.web.responses import csv_response
from schemas.sites import PageQuerySchema
from schemas.sources import KINDS, SCHEDULES, PreviewSchema, RunRequestSchema, SourceCreateSchema, SourceUpdateSchema

SHOWN_RUNS = 5
LISTED_PAGES = 100
EXPORTED_LINKS = 10_000

CHOICES: Mapping[str, tuple[str, str]] = {
    "website": ("A website", "Start at an address and follow its links and sitemaps."),
    "sitemap": ("A sitemap", "Visit exactly the pages that a sitemap lists."),
    "feed": ("A feed", "Visit the pages that an RSS or Atom feed links to."),
    "wordpress": ("WordPress", "Read posts and pages through WordPress’s own API."),
    "file": ("A file", "Import an export of a CMS or another search service."),
    "api": ("The API", "Your server sends its pages."),
}
"""Where pages can be: what the choice is called, and what it does."""

SCHEDULE_NAMES = {"none": "Only when I start it", "hourly": "Every hour", "daily": "Every day", "weekly": "Every week"}

_REFRESHED = ((timedelta(seconds=30), 2), (timedelta(minutes=5), 5))
_SELDOM = 15
"""Age of a run to the seconds between two looks at its progress."""

_SELECTORS = ("selector_content", "selector_title", "selector_remove")
_MORE = ("include", "exclude", *_SELECTORS, "max_pages", "max_depth", "headers")


def _described(kind: str) -> list[tuple[str, str, str, str]]:
    """Name, type, label and help of each field of the form for a kind of source."""
    address = {
        "website": "Where to start, such as www.example.com.",
        "sitemap": "The sitemap’s address, such as www.example.com/sitemap.xml. A sitemap index is taken, too.",
        "feed": "The feed’s address, such as www.example.com/feed.xml. Pages that leave the feed stay searchable.",
        "wordpress": "The blog’s address, such as www.example.com/blog.",
    }[kind]
    found = [
        ("url", "url", "Address", address),
        ("schedule", "select", "Visit again", "So that new pages are found and deleted ones disappear."),
        (
            "include",
            "textarea",
            "Only these pages",
            "One pattern per line, such as /docs/*. Empty: all pages.",
        ),
        ("exclude", "textarea", "Not these pages", "One pattern per line, such as /private/* or *?print=*."),
        (
            "selector_content",
            "text",
            "Content selector",
            "CSS selector of the elements that hold the text, such as main. Empty: found automatically.",
        ),
        ("selector_title", "text", "Title selector", "CSS selector of the title, such as h1. Empty: the page’s title."),
        ("selector_remove", "text", "Leave out", "CSS selector of elements to leave out, such as .advert, nav."),
        ("max_pages", "text", "Maximum pages", "Most pages of this source in the search. Empty: no limit."),
        ("max_depth", "text", "Maximum depth", "Most links to follow from the start page. Empty: no limit."),
        (
            "headers",
            "textarea",
            "Request headers",
            "One per line, such as Cookie: staging=yes, for sites behind a password. "
            "They are sent to this host only and are not shown again.",
        ),
    ]
    left_out = {"wordpress": _SELECTORS, "website": ()}.get(kind, ())
    depth = () if kind == "website" else ("max_depth",)
    return [field for field in found if field[0] not in (*left_out, *depth)]


def list_sources(site_id: int) -> str:
    """A site's sources and how their newest runs went."""
    with runtime().database.read() as session:
        account_id = current_caller().account.id
        site = get_site(session, account_id, site_id)
        found, total = sources.list_sources(session, account_id, site_id, limit=sources.MAX_SOURCES, offset=0)
        newest = runs.newest_runs(session, [source.id for source in found])
        shown = [
            (sources.view(source, newest.get(source.id)), _report(session, newest.get(source.id))) for source in found
        ]
    return render(
        "sources.html",
        site=site,
        shown=shown,
        kinds=CHOICES,
        schedules=SCHEDULE_NAMES,
        is_full=total >= sources.MAX_SOURCES,
        most=sources.MAX_SOURCES,
        refresh=_refresh([report.run for _, report in shown if report is not None]),
    )


def show_create_form(site_id: int) -> str:
    """The question where a site's pages are, and the form of the answer that is chosen."""
    kind = request.args.get("kind", "website")
    return _create_form(site_id, kind if kind in CHOICES else "website")


def create_source(site_id: int) -> Response:
    """Add a source; its first run begins."""
    form = _sent()
    kind = form.get("kind", "")
    refill_on_error(lambda error: _create_form(site_id, kind if kind in KINDS else "website", error=error))
    values = {"kind": kind, **read_source(form), **_sent_rules()}
    fields = _load(SourceCreateSchema(), values)
    source = source_operations.create_source(runtime(), current_caller(), site_id, fields)
    return see_other(f"/api/sites/{site_id}/sources/{source.id}", notice="source-created")


def _create_form(
    site_id: int, kind: str, *, error: ApiError | None = None, preview: Preview | None = None, is_sent: bool = False
) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        count = sources.count_sources(session, site.id)
    values = _sent() if error is not None or is_sent else _proposed(site, kind)
    fields = [] if kind not in KINDS else _form_fields(kind, values, error)
    return render(
        "source_create.html",
        site=site,
        kind=kind,
        choices=CHOICES,
        is_full=count >= sources.MAX_SOURCES and error is None,
        most=sources.MAX_SOURCES,
        base_url=base_url(),
        banner=banner_of(error, fields),
        **_field_rows(_sent_rules().get("fields", ()), error),
        **_grouped(fields),
        **_shown_preview(preview),
    )


def _proposed(site: Site, kind: str) -> dict[str, str]:
    """The values of a new form."""
    address = urljoin(site.url, "/sitemap.xml") if kind == "sitemap" else "" if kind == "feed" else site.url
    return {"url": address, "schedule": "daily"}


def show_edit_form(site_id: int, source_id: str) -> str:
    """The form that edits a source."""
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
        site, source = _find(session, site_id, source_id)
    fields = _form_fields(source.kind, _sent() if error is not None or is_sent else write_source(source), error)
    return render(
        "source_edit.html",
        site=site,
        source=source,
        kinds=CHOICES,
        has_headers=bool(source.headers),
        banner=banner_of(error, fields),
        **_field_rows(_sent_rules().get("fields", source.fields), error),
        **_grouped(fields),
        **_shown_preview(preview),
    )


def update_source(site_id: int, source_id: str) -> Response:
    """Save a source."""
    refill_on_error(lambda error: _edit_form(site_id, source_id, error=error))
    form = _sent()
    changes = _load(SourceUpdateSchema(), {**read_source(form), **_sent_rules()})
    source_operations.update_source(runtime(), current_caller(), site_id, source_id, changes)
    return see_other(f"/api/sites/{site_id}/sources/{source_id}", notice="source-updated")


def preview_page(site_id: int) -> str:
    """The form again, with what the page would become."""
    form = _sent()
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
        **_sent_rules(),
    }
    fields = _load(PreviewSchema(), values)
    preview = source_operations.preview_page(
        runtime(),
        current_caller(),
        site_id,
        fields,
        kind=kind if kind in KINDS else "website",
        source_id=source_id or None,
    )
    return show(preview=preview)


def show_source(site_id: int, source_id: str) -> str:
    """A source: the progress of its run or the report of the newest, and what can be done."""
    with runtime().database.read() as session:
        site, source = _find(session, site_id, source_id)
        found, total = runs.list_runs(session, source, limit=SHOWN_RUNS, offset=0)
        newest = found[0] if found else None
        report = _report(session, newest)
        sweep = find_refused_sweep(session, newest)
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
        runs=found,
        run_total=total,
        refresh=_refresh(found[:1]),
    )


def delete_source(site_id: int, source_id: str) -> Response:
    """Delete a source, with its documents or without."""
    keep_documents = _sent().get("keep_documents") == "true"
    source_operations.delete_source(runtime(), current_caller(), site_id, source_id, keep_documents=keep_documents)
    return see_other(
        f"/api/sites/{site_id}/sources", notice="source-deleted-alone" if keep_documents else "source-deleted"
    )


def run_source(site_id: int, source_id: str) -> Response:
    """Queue a run: of everything, or of one page; the one after a refused sweep may remove what it must."""
    form = _sent()
    options = _load(
        RunRequestSchema(),
        {
            **({"urls": [form["url"]]} if "url" in form else {}),
            **({"max_removed_percent": 100} if form.get("remove_anyway") == "true" else {}),
        },
    )
    source_operations.request_run(runtime(), current_caller(), site_id, source_id, options)
    return see_other(f"/api/sites/{site_id}/sources/{source_id}")


def renew_hook(site_id: int, source_id: str) -> Response:
    """Give the source's hook another address."""
    source_operations.renew_hook(runtime(), current_caller(), site_id, source_id)
    return see_other(f"/api/sites/{site_id}/sources/{source_id}", notice="hook-renewed")


def cancel_run(site_id: int, source_id: str) -> Response:
    """Cancel the run; one that has just ended is shown."""
    try:
        source_operations.cancel_run(runtime(), current_caller(), site_id, source_id)
    except ApiError as error:
        if error.code is not ErrorCode.RUN_NOT_FOUND:
            raise
    return see_other(f"/api/sites/{site_id}/sources/{source_id}")


def list_runs(site_id: int, source_id: str) -> str:
    """All runs of a source that are kept."""
    paging = _paging()
    with runtime().database.read() as session:
        site, source = _find(session, site_id, source_id)
        found, total = runs.list_runs(session, source, **paging)
    return render("runs.html", site=site, source=source, runs=found, total=total, paging=paging, kinds=CHOICES)


def show_run(site_id: int, source_id: str, run_id: str) -> str:
    """The report of a run, with every address that it left out."""
    paging = _paging()
    with runtime().database.read() as session:
        site, source = _find(session, site_id, source_id)
        run = runs.get_run(session, source, run_id)
        report = _report(session, run)
        pages, total = runs.list_left_out(session, run, **paging)
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
    """Links of a source's pages that lead to a page which is not there."""
    paging = _paging()
    with runtime().database.read() as session:
        site, source = _find(session, site_id, source_id)
        dead = list_dead_links(session, source, **paging)
    return render("dead_links.html", site=site, source=source, dead=dead, most=EXPORTED_LINKS, paging=paging)


def export_dead_links(site_id: int, source_id: str) -> Response:
    """The same as CSV, the first :data:`EXPORTED_LINKS`.

    Raises:
        ApiError: 404.
    """
    with runtime().database.read() as session:
        source = sources.get_source(session, current_caller().account.id, site_id, source_id)
        dead = list_dead_links(session, source, limit=EXPORTED_LINKS, offset=0)
    return csv_response(encode_dead_links(dead.links), f"dead-links-{source_id}.csv")


def _sent() -> dict[str, str]:
    """The form's texts, their lines ended as Unix ends them."""
    return {name: text.replace("\r\n", "\n") for name, text in read_form_body(request).items()}


def _sent_rules() -> dict[str, Any]:
    """The rules for fields, if the form that was sent has them."""
    form = read_form_body(request)
    return {"fields": read_rows(form)} if "fields_shown" in form else {}


def _field_rows(rules: Sequence[Mapping[str, Any]], error: ApiError | None) -> dict[str, Any]:
    problems = Problems.of([] if error is None else error.details)
    return {"field_rows": write_rows(rules), "places": PLACES, "rule_problems": problems}


def _load(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        raise invalid(error) from error
    return fields


def _form_fields(kind: str, values: Mapping[str, str], error: ApiError | None) -> list[dict[str, Any]]:
    """The fields of the form with what they hold, and what is wrong with each."""
    problems = {} if error is None else explain(error.details, values)
    return [
        {
            "name": name,
            "type": type,
            "label": label,
            "help": help,
            "required": name == "url",
            "max_length": None,
            "value": values.get(name, ""),
            "options": SCHEDULES if type == "select" else (),
            "problems": problems.get(name, []),
        }
        for name, type, label, help in _described(kind)
    ]


def _grouped(fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The fields of a form for templates: what everybody needs, and what is folded unless it says something."""
    more = [field for field in fields if field["name"] in _MORE]
    return {
        "fields": fields,
        "basic": [field for field in fields if field["name"] not in _MORE],
        "more": more,
        "more_open": any(field["value"] or field["problems"] for field in more),
        "labels": SCHEDULE_NAMES,
    }


def _shown_preview(preview: Preview | None) -> dict[str, Any]:
    if preview is None:
        return {"document": None, "explanation": None}
    return {
        "document": preview.document,
        "explanation": None if preview.reason is None else explain_reason(preview.reason),
    }


def _report(session: Session, run: SourceRun | None) -> Report | None:
    return None if run is None else report_run(run, runs.count_reasons(session, run))


def _refresh(shown: Sequence[SourceRun]) -> int | None:
    """Seconds after which a page that shows these runs is out of date; ``None`` if none of them goes on.

    A long run is looked at less often: every look counts in the account's request limits.
    """
    ages = [now() - run.queued_at for run in shown if run.status in runs.OPEN]
    if not ages:
        return None
    age = min(ages)
    return next((seconds for most, seconds in _REFRESHED if age < most), _SELDOM)


def _find(session: Session, site_id: int, source_id: str) -> tuple[Site, Source]:
    account_id = current_caller().account.id
    return get_site(session, account_id, site_id), sources.get_source(session, account_id, site_id, source_id)


def _paging() -> dict[str, int]:
    return _load(PageQuerySchema(), {"limit": str(LISTED_PAGES), **request.args})
