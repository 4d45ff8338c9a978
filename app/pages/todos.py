"""Tasks that need doing first on the sites of an account: failed and running crawls, misses of visitors, quotas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlalchemy.orm import Session

from app.clock import today
from app.crawl.sources.sources import FailedSource, OpenRun
from app.models import Site
from app.pages.meters import Meter
from app.pages.sources.reports import explain_failure
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.inbox import Candidate, InboxItem, judge_candidates, list_candidates
from app.wording import counted, number
from backends.errors import BackendError

MAX_MISSES = 3
"""Queries of a site that are named."""
MAX_SEARCHES = 5
"""Queries of a site that are searched for it: a page that says what to do first must not take long."""


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to look at.

    Attributes:
        tone: ``bad``, ``warn`` or ``plain``, the gravest first.
        text: What is so.
        link: What the link says that leads to where something can be done.
    """

    tone: str
    text: str
    link: str
    address: str


def candidates_of(session: Session, sites: Sequence[Site]) -> list[tuple[Site, list[Candidate]]]:
    """Queries with which visitors may have missed something; to be read before :func:`todos_of_misses` searches."""
    recent = runtime().recent_results
    return [
        (site, list_candidates(session, site, today(), recent=recent)[:MAX_SEARCHES]) for site in sites if site.active
    ]


def todos_of_misses(candidates: Sequence[tuple[Site, Sequence[Candidate]]]) -> Iterator[Todo]:
    """Tasks for what visitors missed and still would."""
    for site, of_site in candidates:
        address = f"/api/analytics/inbox?site_id={site.id}"
        try:
            items = judge_candidates(runtime().searcher, site_record(site), of_site)
            misses = list(islice(items, MAX_MISSES))
        except BackendError:
            text = f"What visitors of {site.name} missed cannot be told: the search engine does not answer."
            yield Todo("warn", text, "Inbox", address)
            continue
        if misses:
            named = ", ".join(f"“{item.query}” ({_how_many(item)})" for item in misses)
            yield Todo("warn", f"Visitors of {site.name} missed something with {named}.", "See to it", address)


def _how_many(item: InboxItem) -> str:
    """The visitors who missed something, or the searches where visitors are not told apart, as of a server's key."""
    return counted(item.visitors, "visitor") if item.visitors else counted(item.searches, "search")


def todos_of_runs(failed: Sequence[FailedSource], running: Sequence[OpenRun]) -> Iterator[Todo]:
    """Sources that are not up to date, and those that are being read."""
    for source in failed:
        text = f"{source.url} is not up to date: {explain_failure(source.error)}"
        yield Todo("bad", text, "Open the source", f"/api/sites/{source.site_id}/sources/{source.id}")
    for run in running:
        text = f"{run.url} is being read: {number(run.done)} of {number(run.found)} addresses so far."
        if not run.is_started:
            text = f"{run.url} is about to be read."
        yield Todo("plain", text, "Watch it", f"/api/sites/{run.site_id}/sources/{run.source_id}")


def todos_of_quotas(meters: Sequence[Meter]) -> Iterator[Todo]:
    """Quotas that run out."""
    for meter in meters:
        if meter.state and meter.most is not None:
            text = f"{meter.label}: {number(meter.used)} of {number(meter.most)}. {meter.note}"
            yield Todo("bad" if meter.state == "full" else "warn", text, "Plans", "/plans")


def in_order(*todos: Todo) -> list[Todo]:
    """The gravest first."""
    return sorted(todos, key=lambda todo: ("bad", "warn", "plain").index(todo.tone))
