"""Remedies of the inbox, as forms send them."""

from __future__ import annotations

from typing import Any

from backends.text import normal_form
from schemas.base import BodySchema
from schemas.fields import Text
from schemas.search import QueryText
from schemas.search_settings import MAX_GROUP_WORDS, MAX_WORD_LENGTH


class NormalQuery(QueryText):
    """A query, kept in its normal form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return normal_form(super()._deserialize(value, attr, data, **kwargs))


class SynonymRemedySchema(BodySchema):
    """Synonyms of a query's word, or of the whole query."""

    q = NormalQuery(required=True)
    word = Text(required=True, trim=True, min_length=1, max_length=MAX_WORD_LENGTH, metadata={"title": "Word"})
    synonyms = Text(
        required=True,
        trim=True,
        min_length=1,
        max_length=MAX_GROUP_WORDS * MAX_WORD_LENGTH,
        metadata={"title": "Synonyms"},
    )


class PinRemedySchema(BodySchema):
    """A page that comes first for a query."""

    q = NormalQuery(required=True)
    id = Text(required=True, min_length=1, max_length=512)
