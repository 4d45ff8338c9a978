"""Questions that a language model answers from a site's pages."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from flask import Response, request

from app.apidoc.openapi import ApiBlueprint
from app.clock import today
from app.errors import ApiError, ErrorCode
from app.operations.asks import Question, answer, prepare_ask
from app.runtime import runtime
from app.services.analytics.visitors import session_visitor
from app.services.asks import questions
from app.services.asks.prompt import Turn
from app.services.sites import get_site
from app.web.admission import Admission, current_admission
from app.web.auth import ANY_KEY, MANAGING
from app.web.callers import current_caller, current_visitor, is_unrecorded
from app.web.event_streams import EVENT_STREAM, socket_of, stream_events, until_disconnected
from app.web.permissions import choose_searched_site, own_site, reject_other_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from schemas.analytics import days_of
from schemas.asks import AskAnswerSchema, AskFeedbackSchema, AskReportQuerySchema, AskReportSchema, AskSchema
from schemas.base import SuccessSchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("asks", __name__, description="Questions that a language model answers from the site's pages.")


@blp.route("/v1/ask", methods=["POST"])
@blp.operation(
    "ask",
    OperationPolicy(ANY_KEY, Scope.SEARCH),
    errors=(
        ErrorCode.INVALID_FILTER,
        ErrorCode.ANSWER_TOO_LARGE,
        ErrorCode.ASK_DISABLED,
        ErrorCode.ASK_UNAVAILABLE,
        ErrorCode.SITE_NOT_FOUND,
        ErrorCode.SITE_INACTIVE,
        ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
    ),
    body=True,
)
@blp.arguments(AskSchema)
@blp.described_response(200, AskAnswerSchema)
@blp.alt_response(200, schema={"type": "string"}, content_type=EVENT_STREAM)
def ask(parameters: dict[str, Any]) -> Response:
    """Answer a question from a site's pages, with its sources. With `stream`, the response is a stream of events."""
    admission = current_admission()
    caller, current_runtime = admission.known_caller, runtime()
    site = choose_searched_site(caller, parameters["site_id"])
    question = Question(
        parameters["q"],
        [Turn(turn["q"], turn["answer"]) for turn in parameters["history"]],
        parameters["filters"].strip(),
        None if is_unrecorded() else current_visitor(admission, site.id, parameters["session_id"]),
        _visitor_key(admission, parameters["session_id"]),
    )
    prepared = prepare_ask(current_runtime, site, caller.account.limits, question)
    # The model's slots limit these requests from now on. The account's searches need its share of the threads.
    admission.leave_shares()
    events = answer(current_runtime, site, prepared)
    if parameters["stream"]:
        return stream_events(request, events, prepared.close)
    with closing(prepared):
        received = [event for event in until_disconnected(socket_of(request), events) if event is not None]
    (_, sources), *texts, (last, done) = received
    if last != "done":
        raise ApiError(ErrorCode.ASK_UNAVAILABLE, "The client disconnected before the answer was complete.")
    text = "".join(data["text"] for _, data in texts).strip()
    return json_response({**sources, **done, "text": text})


@blp.route("/v1/ask/<string:ask_id>/feedback", methods=["POST"])
@blp.operation("sendAskFeedback", OperationPolicy(ANY_KEY, Scope.SEARCH), errors=(ErrorCode.ASK_NOT_FOUND,), body=True)
@blp.arguments(AskFeedbackSchema)
@blp.response(200, SuccessSchema)
def send_feedback(feedback: dict[str, Any], ask_id: str) -> dict[str, Any]:
    """Record whether an answer was helpful. Later feedback replaces earlier feedback."""
    caller = current_caller()
    site_id = own_site(caller).id if caller.kind != "private" else caller.only_site_id
    with runtime().database.write() as session:
        questions.store_feedback(session, caller.account.id, site_id, ask_id, **feedback)
    return {"success": True}


@blp.route("/api/analytics/asks", methods=["GET"])
@blp.operation("showAskAnalytics", OperationPolicy(MANAGING, Scope.ANALYTICS), errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.arguments(AskReportQuerySchema, location="query")
@blp.response(200, AskReportSchema)
def show_ask_analytics(parameters: dict[str, Any]) -> questions.AskReport:
    """Get the numbers of questions and answers of a site, and the questions without an answer."""
    reject_other_site(current_caller(), parameters["site_id"])
    last, days = days_of(parameters, today())
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, parameters["site_id"])
        return questions.report_asks(session, site.id, last, days)


def _visitor_key(admission: Admission, session_id: str | None) -> str:
    """Return the key of the visitor's limits: the IP address, or with a server's key the session that it sends."""
    if admission.known_caller.kind == "public" or not session_id:
        return admission.address
    return f"s{session_visitor(0, session_id):x}"
