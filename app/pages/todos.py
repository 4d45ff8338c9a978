"""To-do items of an account: failed and running crawls, searches that disappoint visitors, and limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from sqlalchemy.orm import Session

from app.clock import today
from app.crawl.sources.sources import FailedSource, OpenRun
from app.models import Site
from app.pages.plans import Meter, readable_counters
from app.pages.sources.reports import explain_failure
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.inbox import Candidate, InboxItem, InboxKind, judge_candidates, list_candidates
from app.services.usage.daily_usage import usage_between
from app.web.callers import current_caller
from app.wording import counted, number
from backends.errors import BackendError

MAX_MISSES = 3
"""Maximum number of queries listed per site."""
MAX_SEARCHES = 5
"""Maximum number of queries to check per site, so that the dashboard stays fast."""

REJECTION_DAYS = 7
"""Number of UTC days, including today, whose rejected searches are listed."""


@dataclass(frozen=True, slots=True)
class Todo:
    """A to-do item.

    Attributes:
        tone: ``bad``, ``warn``, or ``plain``, most severe first.
        text: The situation.
        link: Text of the link to the page where the reader can act.
    """

    tone: str
    text: str
    link: str
    address: str


def candidates_of(session: Session, sites: Sequence[Site]) -> list[tuple[Site, list[Candidate]]]:
    """Return queries that may have disappointed visitors, for :func:`todos_of_misses`, which needs no session."""
    recent = runtime().recent_results
    return [
        (site, list_candidates(session, site, today(), recent=recent)[:MAX_SEARCHES]) for site in sites if site.active
    ]


def todos_of_misses(candidates: Sequence[tuple[Site, Sequence[Candidate]]]) -> Iterator[Todo]:
    """Yield items for queries that disappointed visitors and would still disappoint them."""
    for site, of_site in candidates:
        address = f"/api/analytics/inbox?site_id={site.id}"
        try:
            items = judge_candidates(runtime().searcher, site_record(site), of_site)
            misses = list(islice(items, MAX_MISSES))
        except BackendError:
            text = f"The search engine isn’t responding, so failed searches on {site.name} can’t be checked."
            yield Todo("warn", text, "Inbox", address)
            continue
        searches = [item for item in misses if item.kind is not InboxKind.UNANSWERED]
        questions = [item for item in misses if item.kind is InboxKind.UNANSWERED]
        if searches:
            yield Todo("warn", _describe_misses(site.name, searches), "Review", address)
        if questions:
            yield Todo("warn", _describe_questions(site.name, questions), "Review", address)


def _describe_questions(site_name: str, items: Sequence[InboxItem]) -> str:
    asked = ", ".join(f"“{item.query}” ({_how_many(item, 'question')})" for item in items)
    return f"Visitors of {site_name} asked {asked}, but no page answers {'it' if len(items) == 1 else 'them'}."


def _describe_misses(site_name: str, misses: Sequence[InboxItem]) -> str:
    if len(misses) == 1:
        query, count = f"“{misses[0].query}”", f" ({_how_many(misses[0])})"
    else:
        query, count = ", ".join(f"“{item.query}” ({_how_many(item)})" for item in misses), ""
    return f"Visitors searched {site_name} for {query} without finding what they wanted{count}."


def _how_many(item: InboxItem, noun: str = "search") -> str:
    """Format the number of visitors; or of searches, if they come from a server, which hides its visitors."""
    return counted(item.visitors, "visitor") if item.visitors else counted(item.searches, noun)


def todos_of_runs(failed: Sequence[FailedSource], running: Sequence[OpenRun]) -> Iterator[Todo]:
    """Yield items for outdated sources and running crawls."""
    for source in failed:
        text = f"{source.url} is not up to date: {explain_failure(source.error)}"
        yield Todo("bad", text, "View source", f"/api/sites/{source.site_id}/sources/{source.id}")
    for run in running:
        text = f"{run.url} is being crawled: {number(run.settled_count)} of {number(run.url_count)} pages so far."
        if not run.is_started:
            text = f"{run.url} is about to be crawled."
        yield Todo("plain", text, "View progress", f"/api/sites/{run.site_id}/sources/{run.source_id}")


def todos_of_quotas(meters: Sequence[Meter]) -> Iterator[Todo]:
    """Yield items for quotas that are nearly or fully used."""
    for meter in meters:
        if meter.state and meter.limit is not None:
            text = f"{meter.label}: {number(meter.used)} of {number(meter.limit)}. {meter.note}"
            yield Todo("bad" if meter.state == "full" else "warn", text, "View plans", "/plans")


def read_rejections(session: Session) -> int:
    """Return the number of recent searches that the request limits rejected, not the day's searches.

    On a day without any searches left, a rejected search counts for the limit of the day, which has its own item.
    """
    account, last = current_caller().account, today()
    days = usage_between(session, readable_counters(), account.id, last - timedelta(days=REJECTION_DAYS - 1), last)
    daily_limit = account.limits.searches_per_day
    return sum(day.rejected for day in days if daily_limit is None or day.used < daily_limit)


def todos_of_rejections(count: int, requests_per_minute: int | None) -> Iterator[Todo]:
    """Yield an item if the account's request limits rejected searches of visitors."""
    if count and requests_per_minute is not None:
        text = (
            f"{counted(count, 'search')} rejected in the last {REJECTION_DAYS} days, because your plan allows "
            f"{number(requests_per_minute)} requests per minute. Visitors were asked to try again. If your server "
            "sends the searches, spread or cache them; otherwise, choose a larger plan."
        )
        yield Todo("bad", text, "View plans", "/plans")


def in_order(*todos: Todo) -> list[Todo]:
    """Sort items, most severe first."""
    return sorted(todos, key=lambda todo: ("bad", "warn", "plain").index(todo.tone))
