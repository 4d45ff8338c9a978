"""Questions that a language model answers, feedback on answers, and their statistics."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.analytics import DaysSchema, PeriodSchema
from schemas.base import BodySchema
from schemas.fields import MAX_INT64, Flag, ItemList, Text, WholeNumber
from schemas.search import MAX_FILTER_LENGTH, MAX_SESSION_LENGTH
from schemas.search_results import HitSchema

MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH = 3, 300
MAX_TURNS = 3
MAX_EARLIER_ANSWER_LENGTH = 8_000
MAX_REASON_LENGTH = 500


class TurnSchema(BodySchema):
    """An earlier question of the same visitor, with its answer."""

    q = Text(required=True, trim=True, min_length=1, max_length=MAX_QUESTION_LENGTH)
    answer = Text(required=True, max_length=MAX_EARLIER_ANSWER_LENGTH)


class AskSchema(BodySchema):
    """A question."""

    q = Text(
        required=True,
        trim=True,
        min_length=MIN_QUESTION_LENGTH,
        max_length=MAX_QUESTION_LENGTH,
        metadata={"description": "The question."},
    )
    history = ItemList(
        fields.Nested(TurnSchema),
        high=MAX_TURNS,
        load_default=list,
        metadata={"description": "Earlier questions and answers, oldest first, if the question is a follow-up."},
    )
    session_id = Text(
        load_default=None,
        allow_none=True,
        max_length=MAX_SESSION_LENGTH,
        metadata={
            "description": "The visitor's session. With a search or private key, it identifies the visitor for limits."
        },
    )
    filters = Text(
        load_default="",
        max_length=MAX_FILTER_LENGTH,
        metadata={"description": "Filter expression in the engine's syntax that the pages must match."},
    )
    stream = Flag(
        load_default=False,
        metadata={
            "description": "Whether the response is a stream of events: `sources`, `text` (several), and `done`, or "
            "`error`."
        },
    )
    site_id = WholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site of the pages. Default: the key's site."},
    )


class AskSourceSchema(Schema):
    """A part of a page that the model was given."""

    n = fields.Integer(required=True, metadata={"description": "Its number in the text, in square brackets."})
    title = fields.String(required=True, metadata={"description": "Titles of the page and of the section."})
    url = fields.String(required=True, metadata={"description": "URL of the page."})
    anchor = fields.String(
        required=True, metadata={"description": "Anchor of the section, without `#`; empty for the page's beginning."}
    )


class AskAnswerSchema(Schema):
    """The answer to a question."""

    answered = fields.Boolean(required=True, metadata={"description": "Whether the site's pages answer the question."})
    text = fields.String(
        required=True,
        metadata={
            "description": "Plain text with the numbers of sources, such as `[1]`; insert it as text, not as HTML. "
            "Empty without an answer."
        },
    )
    sources = fields.List(fields.Nested(AskSourceSchema), required=True)
    ask_id = fields.String(required=True, metadata={"description": "ID of the question, for feedback."})
    hits = fields.List(fields.Nested(HitSchema), metadata={"description": "The ordinary hits; only without an answer."})


class AskFeedbackSchema(BodySchema):
    """A visitor's feedback on an answer."""

    helpful = Flag(required=True, metadata={"description": "Whether the answer was helpful."})
    reason = Text(
        load_default=None,
        allow_none=True,
        trim=True,
        max_length=MAX_REASON_LENGTH,
        metadata={"description": "The visitor's explanation."},
    )


class AskReportQuerySchema(DaysSchema, PeriodSchema):
    """Parameters that select questions."""

    site_id = WholeNumber(
        low=-MAX_INT64 - 1, high=MAX_INT64, required=True, metadata={"description": "The site of the questions."}
    )


class UnansweredQuestionSchema(Schema):
    """A question that the site's pages do not answer."""

    question = fields.String(required=True)
    count = fields.Integer(required=True, metadata={"description": "Number of times it was asked."})
    last_asked_at = fields.AwareDateTime(required=True)


class UnhelpfulAnswerSchema(Schema):
    """An answer that a visitor did not find helpful."""

    question = fields.String(required=True)
    reason = fields.String(required=True, allow_none=True, metadata={"description": "The visitor's explanation."})
    asked_at = fields.AwareDateTime(required=True)


class AskReportSchema(Schema):
    """Questions of a period."""

    questions = fields.Integer(required=True)
    answered = fields.Integer(required=True, metadata={"description": "Number of questions with an answer."})
    helpful = fields.Integer(required=True, metadata={"description": "Number of answers that a visitor found helpful."})
    unhelpful = fields.Integer(required=True)
    unanswered_questions = fields.List(
        fields.Nested(UnansweredQuestionSchema),
        required=True,
        metadata={"description": "Questions without an answer, the most frequent first; at most 100."},
    )
    unhelpful_answers = fields.List(
        fields.Nested(UnhelpfulAnswerSchema),
        required=True,
        metadata={"description": "Answers that visitors did not find helpful, newest first; at most 100."},
    )
