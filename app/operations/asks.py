"""Answering questions with a language model: limits, sources, the model's text, and the record for analytics."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import orjson
from prometheus_client import Counter

from app.clock import now
from app.counters.values import CountersUnavailable, WindowState
from app.errors import ApiError, ErrorCode
from app.models import Ask
from app.operations.attempts import count_attempt
from app.plans import QUOTA_REJECTIONS, PlanLimits
from app.runtime import Runtime
from app.services.access.credentials import SiteRecord
from app.services.asks.model import MAX_RETRY_SECONDS, LanguageModel, ModelUnavailable
from app.services.asks.plain_text import PlainText
from app.services.asks.prompt import Turn, make_messages
from app.services.asks.questions import make_ask_id, store_ask
from app.services.asks.retrieval import Source, find_sources
from app.services.asks.slots import Slot
from app.services.indexing.stored_documents import read_stored
from app.services.search.encoding import encode_hits
from app.services.search.search import Visitor
from app.services.search.site_queries import for_site
from app.services.usage.quota import RateLimited, ask_windows
from app.storage.database import Database, is_unavailable
from backends.base import Document
from backends.query import Highlight, SearchQuery

HITS = 10
"""Number of hits in the response to a question without an answer."""
HIT_FIELDS = frozenset({"id", "title", "url", "excerpt"})
ASKS = Counter("ask_questions_total", "Questions to the language model, by their outcome.", ["outcome"])

Event = tuple[str, Mapping[str, Any]]
"""Name and data of an event of an answer: ``sources``, ``text``, or ``done``."""
Events = Generator[Event | None]
"""Events of an answer, and at least each second ``None`` while there is no event."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a visitor asks it.

    Attributes:
        history: Earlier questions and answers, oldest first.
        filters: Expression in the engine's syntax that the pages must match; ``""`` for none.
        visitor: The visitor, as analytics record them; ``None`` keeps the question out of analytics.
        visitor_key: Key of the visitor's limits, without personal data.
    """

    text: str
    history: Sequence[Turn]
    filters: str
    visitor: Visitor | None
    visitor_key: str


@dataclass(frozen=True, slots=True)
class PreparedAsk:
    """A question with its sources, counted toward all limits.

    Attributes:
        hits: The ordinary hits as JSON, for a question without an answer.
        counted: The windows that counted the question, for a refund.
        slot: The slot in which the model's answer is awaited; ``None`` if there are no sources.
    """

    id: str
    asked_at: datetime
    question: Question
    sources: Sequence[Source]
    hits: Sequence[bytes]
    counted: Sequence[WindowState]
    slot: Slot | None

    def close(self) -> None:
        """Free the slot. May be called repeatedly."""
        if self.slot is not None:
            self.slot.leave()


def can_ask(runtime: Runtime, site: SiteRecord, limits: PlanLimits) -> bool:
    """Whether the site, its plan, and the operator's settings allow questions."""
    return _find_obstacle(runtime, site, limits) is None


def prepare_ask(runtime: Runtime, site: SiteRecord, limits: PlanLimits, question: Question) -> PreparedAsk:
    """Check that a question can be answered, count it, and find its sources. The caller closes the result.

    Raises:
        ApiError: 403 if questions are turned off; 429 for a limit; 503 if the model is not set up or no slot is free;
            400 for the filters.
        BackendUnavailable: The engine is unavailable.
        CountersUnavailable: The counter store is unavailable.
    """
    if obstacle := _find_obstacle(runtime, site, limits):
        raise obstacle
    asked_at = now()
    # Before the question is counted, so that a rejected question costs nothing.
    slot = runtime.ask_slots.enter(site.account_id)
    counted: Sequence[WindowState] = ()
    try:
        counted = _count(runtime, site, limits, question)
        previous = question.history[-1].question if question.history else ""
        read = partial(read_documents, runtime.database)
        sources = find_sources(runtime.searcher, read, runtime.meaning, site, question.text, previous, question.filters)
        hits = _find_hits(runtime, site, question)
    except Exception:
        slot.leave()
        _refund(runtime, counted)
        raise
    if not sources:
        slot.leave()
    return PreparedAsk(make_ask_id(), asked_at, question, sources, hits, counted, slot if sources else None)


def answer(runtime: Runtime, site: SiteRecord, ask: PreparedAsk) -> Events:
    """Yield the events of an answer, as the model writes it, and record the question.

    Raises:
        ApiError: 503 ``ask_unavailable``: the model did not complete the answer, or the process stops.
    """
    with closing(ask):
        sources = [
            {"n": number, "title": source.title, "url": source.url, "anchor": source.anchor}
            for number, source in enumerate(ask.sources, 1)
        ]
        yield "sources", {"ask_id": ask.id, "sources": sources}
        is_answered = False
        if ask.sources:
            try:
                with closing(_write(_model(runtime), site, ask)) as texts:
                    for text in texts:
                        if runtime.ask_slots.is_ended:
                            raise ModelUnavailable("the service stops")
                        is_answered = is_answered or bool(text)
                        yield ("text", {"text": text}) if text else None
            except ModelUnavailable as error:
                log.warning("a question could not be answered: %s", error)
                ASKS.labels("unavailable").inc()
                # Visitors can ask for answers that are too long. These cost as much as others, so they count.
                if not error.has_begun:
                    _refund(runtime, ask.counted)
                raise _unavailable(error.retry_after) from error
        _record(runtime, site, ask, is_answered=is_answered)
        ASKS.labels("answered" if is_answered else "unanswered").inc()
        done: dict[str, Any] = {"answered": is_answered, "ask_id": ask.id}
        if not is_answered:
            done["hits"] = [orjson.Fragment(hit) for hit in ask.hits]
        yield "done", done


def read_documents(database: Database, site_id: int, ids: Sequence[str]) -> dict[str, Document]:
    """Return a site's stored documents by ID, in the order of ``ids``."""
    with database.read() as session:
        return {
            stored.id: Document.of(stored.id, orjson.loads(stored.body), 0)
            for stored in read_stored(session, site_id, ids)
        }


def _write(model: LanguageModel, site: SiteRecord, ask: PreparedAsk) -> Generator[str]:
    """Yield text that can be sent, and at least each second ``""`` while there is none."""
    question = ask.question
    messages = make_messages(site.name, site.ask_instructions, ask.sources, question.text, question.history)
    plain = PlainText(len(ask.sources), "\n".join(source.text for source in ask.sources))
    with closing(model.write(messages)) as pieces:
        for piece in pieces:
            yield plain.add(piece)
    if text := plain.end():
        yield text


def _find_obstacle(runtime: Runtime, site: SiteRecord, limits: PlanLimits) -> ApiError | None:
    """Return the error for every question to the site; ``None`` if questions are allowed."""
    if site.searched_sites is not None:
        return ApiError(
            ErrorCode.ASK_DISABLED, "Questions cannot be asked on a collection of sites; use a key of one of its sites."
        )
    if not site.ask:
        return ApiError(
            ErrorCode.ASK_DISABLED, "Questions are not answered on this site; turn on ask in its search settings."
        )
    if limits.asks_per_day == 0:
        return ApiError(ErrorCode.ASK_DISABLED, "The plan includes no questions; change the plan.")
    return _unavailable(MAX_RETRY_SECONDS) if runtime.language_model is None else None


def _model(runtime: Runtime) -> LanguageModel:
    if runtime.language_model is None:
        raise _unavailable(MAX_RETRY_SECONDS)
    return runtime.language_model


def _unavailable(retry_after: int) -> ApiError:
    return ApiError(ErrorCode.ASK_UNAVAILABLE, "The language model is unavailable; try again.", retry_after=retry_after)


def _count(runtime: Runtime, site: SiteRecord, limits: PlanLimits, question: Question) -> Sequence[WindowState]:
    windows = ask_windows(site.account_id, limits, question.visitor_key)
    try:
        return count_attempt(runtime, windows, "questions")
    except RateLimited as error:
        if error.window.key == windows[-1].key:
            QUOTA_REJECTIONS.labels("asks_per_day").inc()
        raise


def _refund(runtime: Runtime, counted: Sequence[WindowState]) -> None:
    if not counted:
        return
    try:
        runtime.counters.refund(windows=counted, now=now().timestamp())
    except CountersUnavailable as error:
        log.error("a question that was not answered stays counted: %s", error)


def _find_hits(runtime: Runtime, site: SiteRecord, question: Question) -> list[bytes]:
    """Return the hits of an ordinary search for the question, which is neither charged nor recorded as a search."""
    budget = runtime.searcher.new_budget()
    query = SearchQuery(
        question.text,
        limit=HITS,
        native_filter=question.filters,
        highlight=Highlight(only_fields=HIT_FIELDS),
        returned_fields=HIT_FIELDS,
    )
    return encode_hits(runtime.searcher.run(site, for_site(query, site, budget.available)).result.hits, budget)


def _record(runtime: Runtime, site: SiteRecord, ask: PreparedAsk, *, is_answered: bool) -> None:
    visitor = ask.question.visitor
    if visitor is None:
        return
    row = Ask(
        id=ask.id,
        site_id=site.id,
        question=ask.question.text,
        occurred_at=ask.asked_at,
        answered=is_answered,
        session_id=visitor.session_id,
        visitor=visitor.number,
    )
    try:
        with runtime.database.write() as session:
            store_ask(session, row)
    except Exception as error:
        if not is_unavailable(error):
            raise
        # The visitor gets the answer anyway, as a search whose event is lost.
        ASKS.labels("not_recorded").inc()
        log.error("a question could not be recorded: %s", error)
