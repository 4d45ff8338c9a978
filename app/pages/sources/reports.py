"""The outcome of a run, in words for the site's owner: what was left out, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.crawl.sources.runs import INCOMPLETE
from app.errors import ErrorCode
from app.models import SourceRun
from app.wording import counted, duration, number

MOST_REASONS = 4
"""Reasons that the one sentence of a report names."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason in words.

    Attributes:
        short: What follows a number of pages: ``9 by robots.txt``.
        meaning: What it means, as a sentence.
        remedy: What the site's owner can do, as a sentence or two.
    """

    short: str
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of addresses that were left out for a reason."""

    reason: str
    count: int
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Report:
    """A run as a person reads it.

    Attributes:
        sentence: What became of the addresses.
        left_out: Why addresses were left out, the most frequent reason first.
        done: How many addresses are dealt with.
        took: How long it took; ``None`` while it runs.
        failure: Why it failed, if it did.
    """

    run: SourceRun
    sentence: str
    left_out: list[LeftOut]
    done: int
    took: str | None
    failure: str | None


_NOTHING_TO_DO = "There is nothing to do."
_NEXT_RUN = "The next run tries again; a page that was indexed before stays searchable."

EXPLANATIONS: Mapping[str, Explanation] = {
    "robots": Explanation(
        "by robots.txt",
        "The site’s robots.txt keeps our crawler, SiteSearchBot, out.",
        "Allow SiteSearchBot in robots.txt if visitors should find what is there.",
    ),
    "noindex": Explanation(
        "marked noindex",
        "A robots meta tag or an X-Robots-Tag header says noindex.",
        "Remove it if visitors should find what is there.",
    ),
    "canonical": Explanation(
        "with another canonical address",
        "Another address is named as the canonical one, and is indexed instead.",
        "There is nothing to do, unless the canonical link is wrong.",
    ),
    "duplicate": Explanation("duplicated", "The same text is already indexed under another address.", _NOTHING_TO_DO),
    "too_large": Explanation(
        "too large", "A page may have at most 10 MiB.", "Split it, or send its text through the API."
    ),
    "not_text": Explanation(
        "not text",
        "Images, archives, and the like have no text to read.",
        "There is nothing to do. Web pages, PDFs, office files, e-books, and text files are indexed.",
    ),
    "timeout": Explanation("too slow", "The server took too long to answer.", _NEXT_RUN),
    "redirect_loop": Explanation(
        "in a redirect loop",
        "Redirects lead in a circle, or there are too many of them in a row.",
        "Correct the redirects on your server.",
    ),
    "private_address": Explanation(
        "at a private address",
        "The address leads into a private network, which this service does not visit.",
        "Use a public address. For an intranet, the operator of this service can set CRAWL_PRIVATE_ADDRESSES.",
    ),
    "other_host": Explanation(
        "on another host",
        "The address leads to a host that does not belong to this site.",
        "To index the other host, add it as a site of its own.",
    ),
    "excluded": Explanation(
        "excluded",
        "The source’s patterns, or its maximum of pages, leave the address out.",
        "Edit the source if it should be indexed.",
    ),
    "trap": Explanation(
        "endless",
        "The address looks like one of a list without end, such as a calendar.",
        "If it is a real page, list it in a sitemap.",
    ),
    "quota": Explanation(
        "beyond your plan",
        "Your plan’s documents are used up. Pages that were indexed before are still updated.",
        "Exclude pages that nobody searches for, delete others, or ask the operator for a larger plan.",
    ),
    "empty": Explanation(
        "without text",
        "No text was found. JavaScript is not run: text that a script adds is not seen.",
        "Let the server send the text, name the elements that hold it as the content selector, or use the API.",
    ),
    "certificate": Explanation(
        "with an invalid certificate",
        "The server’s certificate is expired, self-signed, or for another name.",
        "Renew or correct the certificate.",
    ),
    "unreachable": Explanation(
        "unreachable",
        "No connection to the server could be made, or it broke off.",
        f"Check that the address is right and that the server answers. {_NEXT_RUN}",
    ),
    "soft_404": Explanation(
        "only saying “not found”",
        "The server answers as if there were a page, but its text says that nothing was found.",
        "Let the server answer such addresses with the status 404.",
    ),
    "cancelled": Explanation("not visited", "The run was cancelled before it came to them.", "Run the source again."),
    "bad_source": Explanation(
        "unreadable",
        "A sitemap, feed, or API could not be read.",
        "Check that the address is right and that it answers with a valid sitemap, feed, or API response.",
    ),
    "http_401": Explanation(
        "behind a password",
        "The server asks for a password (HTTP 401).",
        "Add a request header that lets the crawler in, or exclude the address.",
    ),
    "http_403": Explanation(
        "refused by the server",
        "The server refuses access (HTTP 403).",
        "Allow the user agent SiteSearchBot on your server or firewall, or exclude the address.",
    ),
    "http_404": Explanation("not found", "There is no such page (HTTP 404).", "Correct the links that lead there."),
    "http_410": Explanation("gone", "The server says that the page was removed (HTTP 410).", _NOTHING_TO_DO),
    "http_429": Explanation(
        "refused for now", "The server asked the crawler to wait, again and again or for long (HTTP 429).", _NEXT_RUN
    ),
    "http_503": Explanation("unavailable for now", "The server says that it is unavailable (HTTP 503).", _NEXT_RUN),
}
"""Reason to its explanation; other HTTP statuses are told by :func:`explain_reason`."""


def explain_reason(reason: str) -> Explanation:
    """A reason in words."""
    known = EXPLANATIONS.get(reason)
    if known is not None:
        return known
    status = reason.removeprefix("http_")
    if status.startswith("5"):
        return Explanation("with a server error", f"The server failed to answer (HTTP {status}).", _NEXT_RUN)
    return Explanation(
        f"answered HTTP {status}",
        f"The server answered with the status {status}.",
        "Open one of the addresses in a browser to see what is wrong.",
    )


def explain_failure(error: Mapping[str, str] | None) -> str:
    """The reason why a run failed, and what to do about it."""
    if error is None or error["code"] == ErrorCode.INTERNAL_ERROR:
        return "Something went wrong in this service. What was read is searchable; run the source again."
    if error["code"] == ErrorCode.SYNC_REMOVES_TOO_MUCH:
        return "It did not find many pages again that were indexed before. Nothing was removed."
    if error["code"] == INCOMPLETE:
        return f"{error['message']} {_NEXT_RUN} Nothing was removed."
    known = EXPLANATIONS.get(error["code"])
    return error["message"] if known is None else f"{error['message']} {known.remedy}"


def report_run(run: SourceRun, reasons: Mapping[str, int]) -> Report:
    """The report of a run that left out these many addresses for these reasons."""
    return Report(
        run=run,
        sentence=summarize(run, reasons),
        left_out=[LeftOut(reason, count, explain_reason(reason)) for reason, count in reasons.items()],
        done=run.indexed + run.unchanged + run.skipped + run.failed,
        took=_took(run),
        failure=explain_failure(run.error) if run.status == "failed" else None,
    )


def _took(run: SourceRun) -> str | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return duration(max(1, round((run.finished_at - run.started_at).total_seconds())))


def summarize(run: SourceRun, reasons: Mapping[str, int]) -> str:
    """A run in one sentence: ``212 pages indexed, 14 left out: 9 by robots.txt, 5 not found.``"""
    parts = [f"{counted(run.indexed + run.unchanged, 'page')} indexed"]
    if run.indexed and run.unchanged:
        parts[0] += f" ({number(run.indexed)} new or changed)"
    elif run.unchanged:
        parts[0] += " (unchanged)"
    if run.removed:
        parts.append(f"{number(run.removed)} removed")
    total = sum(reasons.values())
    if not total:
        return ", ".join(parts) + "."
    groups: dict[str, int] = {}
    for reason, count in reasons.items():
        short = explain_reason(reason).short
        groups[short] = groups.get(short, 0) + count
    named = sorted(groups.items(), key=lambda group: -group[1])
    told = [f"{number(count)} {short}" for short, count in named[:MOST_REASONS]]
    rest = sum(count for _, count in named[MOST_REASONS:])
    if rest:
        told.append(f"{number(rest)} for other reasons")
    return f"{', '.join(parts)}, {number(total)} left out: {', '.join(told)}."
