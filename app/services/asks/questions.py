"""Storing questions and feedback, and counting them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.clock import start_of
from app.errors import ApiError, ErrorCode
from app.models import Ask, Site, VisitorErasure
from app.services.analytics.rollups import lock_sites
from app.services.analytics.visitors import session_visitor
from app.services.sites import listed
from backends.text import normal_form

MAX_LISTED = 100
"""Maximum number of questions in each list of a report."""
MAX_SPELLINGS = 1_000
"""Maximum number of spellings of unanswered questions that a report reads."""
_ASK_ID = re.compile(r"ask_[0-9a-f]{32}")


def make_ask_id() -> str:
    """Return the ID of a new question."""
    return f"ask_{secrets.token_hex(16)}"


def store_ask(session: Session, ask: Ask) -> None:
    """Store a question, unless its visitor has been erased or its site removed since it was asked."""
    # The lock keeps both from happening until this transaction ends.
    lock_sites(session, [ask.site_id])
    if session.scalar(select(Site.id).where(Site.id == ask.site_id)) is None:
        return
    if ask.session_id:
        visitor = session_visitor(ask.site_id, ask.session_id)
        erasure = session.get(VisitorErasure, (ask.site_id, visitor))
        if erasure is not None and erasure.erased_at >= ask.occurred_at:
            return
    session.add(ask)


def store_feedback(
    session: Session, account_id: int, site_id: int | None, ask_id: str, *, helpful: bool, reason: str | None
) -> None:
    """Store a visitor's feedback on an answer; it replaces earlier feedback.

    Args:
        site_id: The site that was asked; ``None`` for any site of the account.

    Raises:
        ApiError: 404.
    """
    sites = select(Site.id).where(listed(account_id))
    if site_id is not None:
        sites = sites.where(Site.id == site_id)
    change = update(Ask).where(Ask.id == ask_id, Ask.site_id.in_(sites)).values(helpful=helpful, reason=reason)
    is_id = _ASK_ID.fullmatch(ask_id) is not None  # PostgreSQL rejects text with NUL.
    if not (is_id and session.execute(change).rowcount):  # type: ignore[attr-defined]
        raise ApiError(ErrorCode.ASK_NOT_FOUND, "Question not found.")


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A question that the site's pages do not answer.

    Attributes:
        question: The most frequent of the spellings that differ only in case and spaces.
        last_asked_at: Timezone-aware time at which it was asked last.
    """

    question: str
    count: int
    last_asked_at: datetime


@dataclass(frozen=True, slots=True)
class UnhelpfulAnswer:
    """An answer that a visitor did not find helpful.

    Attributes:
        reason: The visitor's explanation; ``None`` without one.
    """

    question: str
    reason: str | None
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class AskReport:
    """Questions of a period.

    Attributes:
        helpful, unhelpful: Numbers of answers with this feedback.
        unanswered_questions: The questions without an answer that were asked most often, at most 100.
        unhelpful_answers: The answers that visitors did not find helpful, newest first, at most 100.
    """

    questions: int
    answered: int
    helpful: int
    unhelpful: int
    unanswered_questions: Sequence[UnansweredQuestion]
    unhelpful_answers: Sequence[UnhelpfulAnswer]

    @property
    def unanswered_counts(self) -> list[tuple[str, int]]:
        """The questions without an answer, each with the number of times it was asked."""
        return [(each.question, each.count) for each in self.unanswered_questions]


def find_asks(session: Session, site: Site | None, channel: str | None, last: date, days: int) -> AskReport | None:
    """Return the report as :func:`report_asks`; ``None`` for all sites and for a site without any questions.

    Args:
        channel: Channel of the searches that are shown, to which no questions belong; ``None`` for all.
    """
    if site is None or channel:
        return None
    if not site.search_settings.get("ask"):
        stored = session.scalar(select(Ask.id).where(Ask.site_id == site.id).limit(1))
        if stored is None:
            return None
    return report_asks(session, site.id, last, days)


def report_asks(session: Session, site_id: int, last: date, days: int) -> AskReport:
    """Count a site's questions of a number of UTC days that end with the day ``last``."""
    until = start_of(last + timedelta(days=1))
    since = until - timedelta(days=days)
    period = (Ask.site_id == site_id, Ask.occurred_at >= since, Ask.occurred_at < until)
    row = session.execute(
        select(
            func.count(),
            func.count().filter(Ask.answered),
            func.count().filter(Ask.helpful.is_(True)),
            func.count().filter(Ask.helpful.is_(False)),
        ).where(*period)
    ).one()
    times, last_asked_at = func.count(), func.max(Ask.occurred_at)
    unanswered = session.execute(
        select(Ask.question, times, last_asked_at)
        .where(*period, Ask.answered.is_(False))
        .group_by(Ask.question)
        .order_by(times.desc(), last_asked_at.desc(), Ask.question)
        .limit(MAX_SPELLINGS)
    )
    merged: dict[str, UnansweredQuestion] = {}
    for question, count, asked_at in unanswered:
        form = normal_form(question)
        known = merged.get(form, UnansweredQuestion(question, 0, asked_at))
        merged[form] = UnansweredQuestion(known.question, known.count + count, max(known.last_asked_at, asked_at))
    frequent = sorted(merged.values(), key=lambda each: (each.count, each.last_asked_at), reverse=True)
    unhelpful = session.execute(
        select(Ask.question, Ask.reason, Ask.occurred_at)
        .where(*period, Ask.helpful.is_(False))
        .order_by(Ask.occurred_at.desc(), Ask.id)
        .limit(MAX_LISTED)
    )
    return AskReport(*row, frequent[:MAX_LISTED], [UnhelpfulAnswer(*each) for each in unhelpful])
