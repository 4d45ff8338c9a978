"""Pin and hide results on the search page, each for one query, with undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson
from flask import Response, request
from sqlalchemy.orm import Session

from app.errors import ApiError, ErrorCode, field_error
from app.models import Site
from app.operations import search_settings as settings_operations
from app.operations.search_settings import ResultList
from app.pages.forms import field_problems
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services.indexing.stored_documents import read_stored
from app.web.callers import current_caller
from app.web.parsing import read_form_body
from backends.text import normal_form
from schemas.search import MAX_QUERY_BYTES
from schemas.search_settings import MAX_PINNED_IDS
from schemas.validation.documents import MAX_ID_LENGTH

_LABELS = {"pinned": "Pinned results", "hidden": "Hidden results"}
_ADDS: Mapping[str, ResultList] = {"pin": "pinned", "hide": "hidden"}
_REMOVES: Mapping[str, ResultList] = {"unpin": "pinned", "show": "hidden"}
_OPPOSITES = {"pin": "unpin", "unpin": "pin", "hide": "show", "show": "hide"}
_CHANGES = {
    "pin": "is pinned for the search",
    "unpin": "is no longer pinned for the search",
    "hide": "is hidden from the search",
    "show": "is no longer hidden from the search",
}


@dataclass(frozen=True, slots=True)
class TunedDocument:
    """A document that is or was pinned or hidden. ``exists`` is whether the site still has the document."""

    id: str
    title: str
    exists: bool


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change to a document, and the action that undoes it."""

    document: TunedDocument
    words: str
    undo: str
    place: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """Pinned and hidden documents of one query.

    Attributes:
        pinned, hidden: In the order of the settings.
        last_change: The user's last change.
    """

    pinned: Sequence[TunedDocument]
    hidden: Sequence[TunedDocument]
    last_change: LastChange | None

    @property
    def pinned_ids(self) -> frozenset[str]:
        """IDs of :attr:`pinned`."""
        return frozenset(document.id for document in self.pinned)


def read_tuning(session: Session, site: Site, query: str) -> Tuning:
    """Read the pinned and hidden documents of a query, and the last change from the URL."""
    listed_ids = {kind: _ids(site.search_settings.get(kind, ()), query) for kind in ("pinned", "hidden")}
    action, changed = request.args.get("done", ""), request.args.get("document", "")[:MAX_ID_LENGTH].replace("\x00", "")
    changed_ids = [changed] if action in _OPPOSITES and changed else []
    ids = list(dict.fromkeys([*listed_ids["pinned"], *listed_ids["hidden"], *changed_ids]))
    titles = {document.id: _title(document.body) for document in read_stored(session, site.id, ids)}

    def documents(ids: Sequence[str]) -> list[TunedDocument]:
        return [TunedDocument(id, titles.get(id, id), id in titles) for id in ids]

    last = [
        LastChange(each, _CHANGES[action], _OPPOSITES[action], _place(request.args)) for each in documents(changed_ids)
    ]
    return Tuning(documents(listed_ids["pinned"]), documents(listed_ids["hidden"]), last[0] if last else None)


def change_tuning(site_id: int, search: str) -> Response:
    """Apply a form's action to a document for the query in the URL, and redirect to the search.

    Args:
        search: URL of the search.

    Raises:
        ApiError: 404; 400 for an invalid form, or if the settings are full.
    """
    form = read_form_body(request)
    action, document_id, query = form.get("do", ""), form.get("id", ""), request.args.get("q", "")
    if not normal_form(query) or len(query.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise field_error("q", "invalid", "must be the query that found the page")
    if not 0 < len(document_id) <= MAX_ID_LENGTH or "\x00" in document_id:
        raise field_error("id", "invalid", "must be the id of a page")
    place = _place(form)
    if action in _ADDS:
        settings_operations.add_result(runtime(), current_caller(), site_id, _ADDS[action], query, document_id, place)
        place = 0
    elif action in _REMOVES:
        place = settings_operations.remove_result(
            runtime(), current_caller(), site_id, _REMOVES[action], query, document_id
        )
    else:
        raise ApiError(ErrorCode.VALIDATION_FAILED, "The form doesn’t contain an action.")
    return see_other(f"{search}&{urlencode({'done': action, 'document': document_id, 'place': place})}")


def explain_refusal(error: ApiError) -> str:
    """Return the reason for a rejection as a sentence."""
    for field, problem in field_problems(error).items():
        if field in _LABELS:
            return f"{_LABELS[field]} {problem}."
    return error.message


def _ids(entries: Sequence[Mapping[str, Any]], query: str) -> list[str]:
    normal_query = normal_form(query)
    lists = [entry["ids"] for entry in entries if entry["query"] == normal_query]
    return list(dict.fromkeys(lists[-1])) if lists else []


def _title(body: bytes) -> str:
    fields = orjson.loads(body)
    return str(fields["title"] or fields["url"])


def _place(values: Mapping[str, str]) -> int:
    text = values.get("place", "")
    return min(int(text), MAX_PINNED_IDS) if text.isascii() and text.isdigit() and len(text) < 5 else 0
