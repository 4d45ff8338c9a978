"""The inbox: queries to do something about, each with its remedies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Response, request
from marshmallow import ValidationError

from app.clock import today
from app.pages.analytics.choice import Choice, choose_site
from app.pages.forms import read_form
from app.pages.layout import render
from app.pages.redirects import see_other
from app.runtime import runtime
from app.services import inbox
from app.services.access.credentials import site_record
from app.services.inbox import InboxItem, search_now
from app.web.parsing import invalid
from app.web.request_checks import current_caller
from schemas.inbox import InboxChangeSchema, InboxQuerySchema

ADDRESS = "/api/analytics/inbox"


@dataclass(frozen=True, slots=True)
class Done:
    """An action on a query that was just done.

    Attributes:
        action: ``ignored``, ``shown``, ``synonym`` or ``pin``.
        finds_now: Documents that it finds now.
        item: What it is still in the inbox for.
    """

    action: str
    query: str
    finds_now: int
    item: InboxItem | None


def show_inbox() -> str | Response:
    """The inbox of a site.

    Raises:
        ApiError: 400, 404.
        BackendUnavailable: The engine cannot say what the queries find now.
    """
    choice = choose_site()
    if choice.site is None:
        first = next(iter(choice.offered), None)
        return render("inbox.html", choice=choice) if first is None else see_other(ADDRESS, site_id=first.id)
    sent = {name: value for name, value in request.args.items() if value}
    try:
        parameters = InboxQuerySchema().load(sent)
    except ValidationError as error:
        raise invalid(error) from error
    current_runtime, record = runtime(), site_record(choice.site)
    ignored = parameters["ignored"]
    page = {name: parameters[name] for name in ("limit", "offset")}
    with current_runtime.database.read() as session:
        candidates = inbox.list_candidates(
            session, choice.site, today(), ignored=ignored, recent=current_runtime.recent_results
        )
        searched = inbox.has_searches(session, choice.site.id)
        clicks_reported = inbox.reports_clicks(session, choice.site.id, today())
        ignored_count = inbox.count_ignored(session, choice.site.id)
    items, total = inbox.list_inbox(current_runtime.searcher, record, candidates, **page)
    return render(
        "inbox.html",
        choice=choice,
        site=choice.site,
        items=items,
        total=total,
        paging=page,
        searched=searched,
        clicks_reported=clicks_reported,
        ignored=ignored,
        ignored_count=ignored_count,
        done=_done(choice, items),
        keep=f"site_id={choice.site.id}&" + ("ignored=true&" if ignored else ""),
    )


def update_inbox() -> Response:
    """Ignore a query, or show it again."""
    change = read_form(InboxChangeSchema())
    with runtime().database.write() as session:
        query = inbox.ignore_query(session, current_caller().account.id, **change)
    return back_to_inbox(change["site_id"], "ignored" if change["ignored"] else "shown", query)


def back_to_inbox(site_id: int, action: str, query: str) -> Response:
    """The way back after something was done about a query."""
    return see_other(ADDRESS, site_id=site_id, done=action, q=query)


def _done(choice: Choice, items: Sequence[InboxItem]) -> Done | None:
    """The action that the address names, if it was about a query that visitors made."""
    action, query = request.args.get("done", ""), request.args.get("q", "").replace("\x00", "")
    if action not in ("ignored", "shown", "synonym", "pin") or choice.site is None:
        return None
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        if not inbox.was_searched(session, choice.site.id, query, today()):
            return None
        if action == "ignored" and not inbox.is_ignored(session, choice.site.id, query):
            return None
    item = next((item for item in items if item.query == query), None)
    finds_now = item.finds_now if item else search_now(current_runtime.searcher, site_record(choice.site), query).total
    return Done(action, query, finds_now, item)
