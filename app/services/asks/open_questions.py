"""Questions that had no answer when they were asked last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Ask
from app.services.asks.retrieval import MAX_QUERY_BYTES
from backends.text import normal_form

MAX_READ = 10_000
"""Maximum number of questions that are read, the newest first."""


@dataclass(slots=True)
class OpenQuestion:
    """A question without an answer.

    Attributes:
        count: Number of times it was asked since it was last answered.
        visitors: The visitors who asked it, except those whose server hides them.
    """

    count: int = 0
    visitors: set[int] = field(default_factory=set)


def list_open_questions(session: Session, site_id: int, since: datetime) -> Mapping[str, OpenQuestion]:
    """Map the normal form of each question without an answer to its counts.

    A question leaves once it is answered. Questions that are too long for a query are skipped, because a page cannot be
    pinned for them.
    """
    newest_first = session.execute(
        select(Ask.question, Ask.answered, Ask.visitor)
        .where(Ask.site_id == site_id, Ask.occurred_at >= since)
        .order_by(Ask.occurred_at.desc(), Ask.id)
        .limit(MAX_READ)
    )
    questions: dict[str, OpenQuestion] = {}
    answered_questions: set[str] = set()
    for text, answered, visitor in newest_first:
        query = normal_form(text)
        if answered:
            answered_questions.add(query)
        elif query not in answered_questions and len(query.encode()) <= MAX_QUERY_BYTES:
            question = questions.setdefault(query, OpenQuestion())
            question.count += 1
            if visitor is not None:
                question.visitors.add(visitor)
    return questions
