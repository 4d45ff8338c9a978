"""Pages of sites."""

from __future__ import annotations

from datetime import datetime

from flask import Response, request
from sqlalchemy.orm import Session

from app.clock import today
from app.crawl.run.preview import CompletedUrl
from app.crawl.sources.sources import count_sources, find_first_crawl, list_failed, list_open_runs
from app.errors import ApiError
from app.models import Site
from app.operations import sites as site_operations
from app.pages.actions import Action
from app.pages.analytics.figures import MAJOR_FIGURES, make_figures
from app.pages.analytics.reports import SHOWN_PERIOD
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.plans import read_meters
from app.pages.todos import (
    candidates_of,
    in_order,
    read_rejections,
    todos_of_misses,
    todos_of_quotas,
    todos_of_rejections,
    todos_of_runs,
)
from app.runtime import runtime
from app.services import sites
from app.services.access import keys
from app.services.analytics.reports import get_analytics
from app.services.collections import collections_with
from app.web.callers import current_caller, load_site
from app.web.hosts import base_url
from app.web.parsing import load_values, read_form_body
from schemas.analytics import PERIODS
from schemas.sites import PageQuerySchema, SiteCreateSchema, SiteDeleteSchema, SiteUpdateSchema

FIRST_SEARCHES = 10
"""Maximum number of searches of a site whose first searches are celebrated."""


def read_paging() -> dict[str, int]:
    """Read ``limit`` and ``offset`` of a list.

    Raises:
        ApiError: 400.
    """
    return load_values(PageQuerySchema(), request.args)


def list_sites() -> str:
    """Show the account's sites."""
    caller = current_caller()
    paging = read_paging()
    with runtime().database.read() as session:
        listed, total = sites.list_sites(session, caller.account.id, **paging, only=caller.only_site_id)
        deleted = list_deleted(session, caller.account.id)
    limit = caller.account.limits.sites
    return render(
        "sites.html",
        sites=listed,
        deleted=deleted,
        total=total,
        paging=paging,
        limit=limit,
        is_full=limit is not None and total >= limit,
    )


def list_deleted(session: Session, account_id: int) -> list[tuple[Site, datetime]]:
    """Return the account's deleted sites that can be restored, each with its deadline."""
    deleted = sites.list_deleted(session, account_id)
    return [(site, site.deleted_at + sites.RETENTION) for site in deleted if site.deleted_at is not None]


def show_create_form(error: ApiError | None = None) -> str:
    """Show the form that adds a site, or a message if the plan's limit is reached and the form wasn't submitted."""
    caller = current_caller()
    with runtime().database.read() as session:
        used = sites.count_sites(session, caller.account.id)
    limit = caller.account.limits.sites
    fields = shown_fields(SiteCreateSchema(), {}, error, leave_out=("domains",))
    return render(
        "site_create.html",
        fields=fields,
        banner=banner_of(error, fields),
        is_open=error is not None or limit is None or used < limit,
        used=used,
        limit=limit,
    )


def create_site() -> Response:
    """Add a site."""
    refill_on_error(show_create_form)
    completed = _completed_url()
    completion = {} if completed is None else {"url": completed.url}
    site = site_operations.create_site(
        runtime(), current_caller(), read_form(SiteCreateSchema(), **completion), with_box_key=True
    )
    notice = "site-created-silent" if completed is not None and completed.is_silent else "site-created"
    return see_other(f"/sites/{site.id}/sources/create", notice=notice)


def _completed_url() -> CompletedUrl | None:
    """Return the form's URL, with the scheme that the site responds to if it has none; ``None`` without a URL."""
    form = read_form_body(request)
    return runtime().previewer.complete_url(form["url"]) if "url" in form else None


def show_site(site_id: int, error: ApiError | None = None) -> str:
    """Show a site with its to-do items."""
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        site = sites.get_site(session, account_id, site_id)
        _, key_count = keys.list_keys(session, account_id, site_id, limit=1, offset=0)
        named_by = collections_with(session, account_id, site_id)
        source_count = count_sources(session, site.id)
        box_key, sighting = keys.find_box_key(session, site.id), keys.find_sighting(session, site.id)
        failed = [source for source in list_failed(session, account_id) if source.site_id == site.id]
        running = [run for run in list_open_runs(session, account_id) if run.site_id == site.id]
        if running:
            # Every page of the site already shows its first crawl, above the to-do items.
            first = find_first_crawl(session, site)
            running = [run for run in running if run != first]
        candidates = candidates_of(session, [site])
        meters = read_meters(session)
        rejected_count = read_rejections(session)
        analytics = get_analytics(
            session, account_id, PERIODS[SHOWN_PERIOD], site_id=site.id, today=today(), recent=runtime().recent_results
        )
    limits = current_caller().account.limits
    deletion = shown_fields(SiteDeleteSchema(), {}, error)
    return render(
        "site.html",
        site=site,
        deletion=deletion,
        banner=banner_of(error, deletion),
        key_count=key_count,
        named_by=named_by,
        figures=make_figures(analytics)[:MAJOR_FIGURES] if analytics.total_searches else (),
        most_deleted=None if limits.sites is None else max(1, limits.sites),
        source_count=source_count,
        box_key=box_key,
        is_new=0 < analytics.total_searches <= FIRST_SEARCHES and not analytics.previous.total_searches,
        seen=sighting,
        todos=in_order(
            *todos_of_runs(failed, running),
            *todos_of_misses(candidates),
            *todos_of_quotas(meters),
            *todos_of_rejections(rejected_count, limits.requests_per_minute),
        ),
        base_url=base_url(),
    )


def show_edit_form(site_id: int, error: ApiError | None = None) -> str:
    """Show the form that edits a site."""
    site = load_site(site_id)
    values = {name: getattr(site, name) for name in SiteUpdateSchema().fields}
    fields = shown_fields(SiteUpdateSchema(), values, error)
    return render("site_edit.html", site=site, fields=fields, banner=banner_of(error, fields))


def update_site(site_id: int) -> Response:
    """Save a site. The buttons that pause and resume it send only the field ``active``."""
    refill_on_error(lambda error: show_edit_form(site_id, error))
    completed = _completed_url()
    completion = {} if completed is None else {"url": completed.url}
    changes = read_form(SiteUpdateSchema(), **completion)
    site_operations.update_site(runtime(), current_caller(), site_id, changes)
    notice = "site-updated-silent" if completed is not None and completed.is_silent else "site-updated"
    if set(changes) == {"active"}:
        notice = "site-resumed" if changes["active"] else "site-paused"
    return see_other(f"/sites/{site_id}", notice=notice)


def delete_site(site_id: int) -> Response:
    """Delete a site after the user has typed its name."""
    refill_on_error(lambda error: show_site(site_id, error))
    form = read_form(SiteDeleteSchema())
    site_operations.delete_site(runtime(), current_caller(), site_id, **form)
    return see_other("/sites", notice="site-purged" if form["purge"] else "site-deleted")


restore_site = Action(site_operations.restore_site, "/sites/{site_id}", "site-restored")
