"""Reports of runs for the site's owner: skipped pages, reasons, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.crawl.sources.runs import INCOMPLETE
from app.errors import ErrorCode
from app.models import SourceRun
from app.wording import counted, duration, number

REMARKS = frozenset({"endless", "wrong_canonical"})
"""Reasons that are remarks, mostly on indexed pages."""

DEAD_LINKS = frozenset({"http_404", "http_410"})
"""Reasons of URLs that don't exist, so they are not pages of the site."""

CHOICES = frozenset(
    {
        "robots",
        "noindex",
        "canonical",
        "duplicate",
        "not_text",
        "private_address",
        "other_host",
        "excluded",
        "trap",
        "no_new_text",
    }
)
"""Reasons for skipping pages that the site or its source asked to skip, or whose text is indexed anyway."""

MAX_REASONS = 4
"""Maximum number of reasons in the summary of a run."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a reason.

    Attributes:
        short: Words after a number of pages, as in ``9 blocked by robots.txt``.
        meaning: The meaning, as a sentence.
        remedy: Advice for the site's owner, in a sentence or two.
    """

    short: str
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Number of pages skipped for one reason, or indexed with one remark."""

    reason: str
    count: int
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A part of the bar that shows the outcome of all URLs.

    Attributes:
        name: CSS class of the part.
        start, width: Percent of the bar.
    """

    name: str
    label: str
    count: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run.

    Attributes:
        sentence: Summary.
        parts: The bar of all URLs, without empty parts.
        skipped: Reasons for skipped pages, most frequent first.
        dead_links: Reasons of dead links, most frequent first.
        remarks: Remarks on indexed pages.
        processed: Number of processed pages.
        took: Duration in words; ``None`` while the run is in progress.
        failure: Reason for a failure, or ``None``.
    """

    run: SourceRun
    sentence: str
    parts: list[ReportPart]
    skipped: list[ReasonCount]
    dead_links: list[ReasonCount]
    remarks: list[ReasonCount]
    processed: int
    took: str | None
    failure: str | None


_NOTHING_TO_DO = "You don’t need to do anything."
_NEXT_RUN = "The next run tries again; a page that was indexed before stays searchable."

EXPLANATIONS: Mapping[str, Explanation] = {
    "robots": Explanation(
        "blocked by robots.txt",
        "The site’s robots.txt blocks our crawler, SiteSearchBot.",
        "Allow SiteSearchBot in robots.txt if visitors should find these pages.",
    ),
    "noindex": Explanation(
        "marked noindex",
        "A robots meta tag or an X-Robots-Tag header says noindex, or unavailable_after with a past date.",
        "Remove it if visitors should find these pages.",
    ),
    "canonical": Explanation(
        "with another canonical URL",
        "The page declares another URL as canonical, which is indexed instead.",
        "You don’t need to do anything unless the canonical link is wrong.",
    ),
    "wrong_canonical": Explanation(
        "indexed despite a canonical link",
        "The page declares another URL as canonical, but that URL could not be indexed, so the page is.",
        "Correct the canonical link. Other search engines may leave the page out.",
    ),
    "duplicate": Explanation(
        "with duplicate text", "The same text is already indexed under another URL.", _NOTHING_TO_DO
    ),
    "too_large": Explanation(
        "too large", "A page can have at most 10 MiB.", "Split it, or send its text through the API."
    ),
    "not_text": Explanation(
        "not text",
        "Images, archives, and similar files contain no text.",
        "You don’t need to do anything. Web pages, PDFs, office files, e-books, and text files are indexed.",
    ),
    "timeout": Explanation("too slow", "The server took too long to respond.", _NEXT_RUN),
    "redirect_loop": Explanation(
        "in a redirect loop",
        "The redirects form a loop, or there are too many in a row.",
        "Correct the redirects on your server.",
    ),
    "private_address": Explanation(
        "at a private address",
        "The URL leads to a private network, which this service doesn’t crawl.",
        "Use a public URL. For an intranet, the operator of this service can set CRAWL_PRIVATE_ADDRESSES.",
    ),
    "other_host": Explanation(
        "on another host",
        "The URL leads to a host that doesn’t belong to this site.",
        "To index the other host, add it as a separate site.",
    ),
    "excluded": Explanation(
        "excluded",
        "The source’s patterns or its maximum number of pages exclude the URL.",
        "Edit the source if these pages should be indexed.",
    ),
    "trap": Explanation(
        "in an endless list",
        "The URL looks like part of an endless list, such as a calendar.",
        "If it is a real page, list it in a sitemap.",
    ),
    "endless": Explanation(
        "beginning an endless branch",
        "The last 200 pages that the crawler read below this URL had no new text, so it skipped the rest.",
        "Exclude the URLs below it, or list the pages that visitors should find in a sitemap.",
    ),
    "no_new_text": Explanation(
        "in an endless branch",
        "The pages before this one in the same folder, or with other parameters, had no new text. A remark names the "
        "branch.",
        "If it is a page that visitors should find, list it in a sitemap.",
    ),
    "max_requests": Explanation(
        "beyond the run’s requests",
        "The run had requested ten times as many pages as the source or your plan allows to index.",
        "Exclude URLs that visitors don’t need, or raise the source’s maximum number of pages.",
    ),
    "quota": Explanation(
        "beyond your plan",
        "Your plan’s page limit is reached. Pages that are already indexed are still updated.",
        "Exclude pages that nobody searches for, delete other pages, or ask the operator for a larger plan.",
    ),
    "empty": Explanation(
        "without text",
        "The page has no text, or a script adds the text and no browser rendered the page.",
        "If the source has the setting JavaScript, use it. Otherwise, have the server send the text, set a content "
        "selector for the elements that contain it, or use the API.",
    ),
    "certificate": Explanation(
        "with an invalid certificate",
        "The server’s certificate has expired, is self-signed, or is for another name.",
        "Renew or correct the certificate.",
    ),
    "unreachable": Explanation(
        "unreachable",
        "The crawler couldn’t connect to the server, or the connection was lost.",
        f"Check that the URL is correct and that the server responds. {_NEXT_RUN}",
    ),
    "bad_encoding": Explanation(
        "wrongly compressed",
        "The server’s Content-Encoding header declares a compression that the body doesn’t have, or that the crawler "
        "didn’t request, such as brotli.",
        f"Correct the header, or have the server respect Accept-Encoding. {_NEXT_RUN}",
    ),
    "soft_404": Explanation(
        "only saying “not found”",
        "The server responds as if the page existed, but its text says that nothing was found.",
        "Configure the server to respond to such URLs with the status 404.",
    ),
    "soft_error": Explanation(
        "only showing a server error",
        "The page says that the server failed or is under maintenance, although its status is 200.",
        f"Have the server respond with the status 500 or 503 meanwhile. {_NEXT_RUN}",
    ),
    "not_rendered": Explanation(
        "not rendered",
        "The page needs JavaScript, but the browser could not render it in time, or slow pages had used up the run’s "
        "time.",
        f"Check that the page opens quickly in a browser. {_NEXT_RUN}",
    ),
    "browser_failed": Explanation(
        "not rendered, since the browser failed",
        "The page needs JavaScript, but this service’s browser could not be started, ended, or did not respond.",
        f"You don’t need to change the page. {_NEXT_RUN}",
    ),
    "needs_browser": Explanation(
        "as the server sends it",
        "The page needs JavaScript. A run renders it in a browser, but previews show pages as the server sends them.",
        "Save the source and run it to see the page’s text.",
    ),
    "internal_error": Explanation(
        "that the crawler failed to read",
        "A bug in the crawler kept it from reading the page.",
        f"Tell the operator of this service, whose log describes the error. {_NEXT_RUN}",
    ),
    "cancelled": Explanation(
        "not crawled", "The run was canceled before it reached these pages.", "Run the source again."
    ),
    "bad_source": Explanation(
        "unreadable",
        "A sitemap, feed, or API could not be read.",
        "Check that the URL is correct and returns a valid sitemap, feed, or API response.",
    ),
    "http_401": Explanation(
        "behind a password",
        "The server asks for a password (HTTP 401).",
        "Add a request header that gives the crawler access, or exclude the URL.",
    ),
    "http_403": Explanation(
        "refused by the server",
        "The server refuses access (HTTP 403).",
        "Allow the user agent SiteSearchBot on your server or firewall, or exclude the URL.",
    ),
    "http_404": Explanation("not found", "The page doesn’t exist (HTTP 404).", "Correct the links that lead there."),
    "http_410": Explanation("gone", "The server says that the page was removed (HTTP 410).", _NOTHING_TO_DO),
    "http_429": Explanation(
        "rejected for now",
        "The server repeatedly asked the crawler to wait, or asked it to wait too long (HTTP 429).",
        _NEXT_RUN,
    ),
    "http_503": Explanation("unavailable for now", "The server says that it is unavailable (HTTP 503).", _NEXT_RUN),
}
"""Maps reasons to explanations. :func:`explain_reason` covers other HTTP statuses."""


def explain_reason(reason: str) -> Explanation:
    """Return the explanation of a reason."""
    explanation = EXPLANATIONS.get(reason)
    if explanation is not None:
        return explanation
    status = reason.removeprefix("http_")
    if status.startswith("5"):
        return Explanation("with a server error", f"The server failed to respond (HTTP {status}).", _NEXT_RUN)
    return Explanation(
        f"with HTTP status {status}",
        f"The server responded with the status {status}.",
        "Open one of the URLs in a browser to see what is wrong.",
    )


def explain_failure(error: Mapping[str, str] | None) -> str:
    """Return the reason for a failed run, with advice."""
    if error is None or error["code"] == ErrorCode.INTERNAL_ERROR:
        return "Something went wrong in this service. Pages already crawled are searchable. Run the source again."
    if error["code"] == ErrorCode.SYNC_REMOVES_TOO_MUCH:
        return "Many pages that were indexed before were not found again. Nothing was removed."
    if error["code"] == INCOMPLETE:
        return f"{error['message']} {_NEXT_RUN} Nothing was removed."
    explanation = EXPLANATIONS.get(error["code"])
    return error["message"] if explanation is None else f"{error['message']} {explanation.remedy}"


def report_run(run: SourceRun, reasons: Mapping[str, int]) -> Report:
    """Create the report of a run from the number of its URLs for each reason."""
    groups = [ReasonCount(reason, count, explain_reason(reason)) for reason, count in reasons.items()]
    return Report(
        run=run,
        sentence=summarize(run, {reason: count for reason, count in reasons.items() if reason not in REMARKS}),
        parts=divide(run, reasons),
        skipped=[group for group in groups if group.reason not in REMARKS | DEAD_LINKS],
        dead_links=[group for group in groups if group.reason in DEAD_LINKS],
        remarks=[group for group in groups if group.reason in REMARKS],
        processed=run.indexed + run.unchanged + run.skipped + run.failed,
        took=_took(run),
        failure=explain_failure(run.error) if run.status == "failed" else None,
    )


def divide(run: SourceRun, reasons: Mapping[str, int]) -> list[ReportPart]:
    """Divide the URLs of a run into indexed pages, skipped pages, and dead links."""
    counts = {"indexed": run.indexed + run.unchanged, "choice": 0, "trouble": 0, "dead": 0}
    for reason, count in reasons.items():
        if reason not in REMARKS:
            counts["dead" if reason in DEAD_LINKS else "choice" if reason in CHOICES else "trouble"] += count
    total, start, parts = sum(counts.values()), 0.0, []
    for name, count in counts.items():
        if count:
            width = 100 * count / total
            parts.append(ReportPart(name, _PART_LABELS[name], count, round(start, 2), round(width, 2)))
            start += width
    return parts


_PART_LABELS = {
    "indexed": "indexed",
    "choice": "skipped by choice",
    "trouble": "skipped because of a problem",
    "dead": "dead links",
}


def _took(run: SourceRun) -> str | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return duration(max(1, round((run.finished_at - run.started_at).total_seconds())))


def summarize(run: SourceRun, reasons: Mapping[str, int]) -> str:
    """Summarize a run: ``212 pages indexed, 14 skipped: 9 blocked by robots.txt, 5 excluded. 3 dead links found.``"""
    parts = [f"{counted(run.indexed + run.unchanged, 'page')} indexed"]
    if run.indexed and run.unchanged:
        parts[0] += f" ({number(run.indexed)} new or changed)"
    elif run.unchanged:
        parts[0] += " (unchanged)"
    if run.removed:
        parts.append(f"{number(run.removed)} removed")
    dead = sum(count for reason, count in reasons.items() if reason in DEAD_LINKS)
    dead_sentence = f" {counted(dead, 'dead link')} found." if dead else ""
    total = sum(reasons.values()) - dead
    if not total:
        return ", ".join(parts) + "." + dead_sentence
    groups: dict[str, int] = {}
    for reason, count in reasons.items():
        if reason in DEAD_LINKS:
            continue
        short = explain_reason(reason).short
        groups[short] = groups.get(short, 0) + count
    ordered = sorted(groups.items(), key=lambda group: -group[1])
    parts_skipped = [f"{number(count)} {short}" for short, count in ordered[:MAX_REASONS]]
    other_count = sum(count for _, count in ordered[MAX_REASONS:])
    if other_count:
        parts_skipped.append(f"{number(other_count)} for other reasons")
    return f"{', '.join(parts)}, {number(total)} skipped: {', '.join(parts_skipped)}.{dead_sentence}"
