"""Remedies of the inbox, as forms send them."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from backends.text import normal_form
from schemas.base import BodySchema
from schemas.fields import Text
from schemas.search import QueryText
from schemas.search_settings import MAX_GROUP_WORDS, MAX_WORD_LENGTH
from schemas.validation.problems import Problem


class NormalQuery(QueryText):
    """A query, stored in its normal form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return normal_form(super()._deserialize(value, attr, data, **kwargs))


class Words(Text):
    """Words or phrases separated by commas, as a list."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        words = [word.strip() for word in text.split(",") if word.strip()]
        if not words:
            raise ValidationError([Problem("must have a word or phrase", "too_short")])
        if len(words) >= MAX_GROUP_WORDS:
            raise ValidationError([Problem(f"must have fewer than {MAX_GROUP_WORDS} words or phrases", "too_long")])
        if any(len(word) > MAX_WORD_LENGTH for word in words):
            raise ValidationError([Problem(f"must have at most {MAX_WORD_LENGTH} characters each", "too_long")])
        return words


class SynonymRemedySchema(BodySchema):
    """Synonyms for a word of a query, or for the whole query."""

    q = NormalQuery(required=True)
    word = Text(required=True, trim=True, min_length=1, max_length=MAX_WORD_LENGTH)
    synonyms = Words(required=True)


class PinRemedySchema(BodySchema):
    """A page to pin to the top for a query."""

    q = NormalQuery(required=True)
    id = Text(required=True, min_length=1, max_length=512)
