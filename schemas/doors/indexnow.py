"""IndexNow: what is submitted. Names are the protocol's.

Source: https://www.indexnow.org/documentation
"""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from schemas.base import LenientBodySchema, QuerySchema
from schemas.fields import ItemList, Text

MAX_ADDRESSES = 10_000
MAX_SUBMISSION_BYTES = 4 * 1_048_576
"""Of a submission, where other bodies may have less."""
_MAX_URL_LENGTH = 2_048
_KEY = {"description": "8 to 128 letters, digits, and dashes, which the key's file holds, too."}
_KEY_LOCATION = {
    "description": "Address of the key's file, which is for its folder and those below. Default: `/{key}.txt`."
}


def _url(**kwargs: Any) -> Text:
    return Text(trim=True, min_length=1, max_length=_MAX_URL_LENGTH, **kwargs)


class SubmissionQuerySchema(QuerySchema):
    """One address that changed."""

    url = _url(required=True, metadata={"description": "A page that was added, changed, or removed."})
    key = _url(required=True, metadata=dict(_KEY))
    keyLocation = _url(load_default=None, metadata=dict(_KEY_LOCATION))


class SubmissionSchema(LenientBodySchema):
    """Addresses of one host that changed."""

    host = _url(required=True, metadata={"description": "Such as `www.example.com`."})
    key = _url(required=True, metadata=dict(_KEY))
    keyLocation = _url(load_default=None, metadata=dict(_KEY_LOCATION))
    urlList = ItemList(
        _url(),
        low=1,
        high=MAX_ADDRESSES,
        required=True,
        metadata={"description": "Pages that were added, changed, or removed."},
    )


class SubmissionAnswerSchema(Schema):
    """A submission that was received."""

    success = fields.Boolean(required=True)
