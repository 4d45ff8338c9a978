"""Pinning and hiding results where they are found: each for the query that found it, with a way back."""

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
from app.pages.redirects import see_other
from app.runtime import runtime
from app.services.indexing.stored_documents import read_stored
from app.web.parsing import read_form_body
from app.web.request_checks import current_caller
from backends.text import normal_form
from schemas.search import MAX_QUERY_BYTES
from schemas.search_settings import MAX_PINNED_IDS
from schemas.validation.documents import MAX_ID_LENGTH

_LABELS = {"pinned": "Pinned results", "hidden": "Hidden results"}
_ADDS: Mapping[str, ResultList] = {"pin": "pinned", "hide": "hidden"}
_REMOVES: Mapping[str, ResultList] = {"unpin": "pinned", "show": "hidden"}
_OPPOSITES = {"pin": "unpin", "unpin": "pin", "hide": "show", "show": "hide"}
_DONE = {
    "pin": "is pinned for the search",
    "unpin": "is no longer pinned for the search",
    "hide": "is hidden from the search",
    "show": "is no longer hidden from the search",
}


@dataclass(frozen=True, slots=True)
class TunedDocument:
    """A document that is pinned or hidden, or was until now. ``exists`` tells whether the site has it."""

    id: str
    title: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Done:
    """A change of a document, and what takes it back."""

    document: TunedDocument
    words: str
    undo: str
    place: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """The settings for one query.

    Attributes:
        pinned, hidden: In the order of the settings.
        done: What the person did last.
    """

    pinned: Sequence[TunedDocument]
    hidden: Sequence[TunedDocument]
    done: Done | None

    @property
    def pinned_ids(self) -> frozenset[str]:
        """Ids of :attr:`pinned`."""
        return frozenset(document.id for document in self.pinned)


def read_tuning(session: Session, site: Site, query: str) -> Tuning:
    """The settings for a query, and the change that the address says was made."""
    named = {kind: _ids(site.search_settings.get(kind, ()), query) for kind in ("pinned", "hidden")}
    done, changed = request.args.get("done", ""), request.args.get("document", "")[:MAX_ID_LENGTH].replace("\x00", "")
    asked = [changed] if done in _OPPOSITES and changed else []
    wanted = list(dict.fromkeys([*named["pinned"], *named["hidden"], *asked]))
    titles = {document.id: _title(document.body) for document in read_stored(session, site.id, wanted)}

    def documents(ids: Sequence[str]) -> list[TunedDocument]:
        return [TunedDocument(id, titles.get(id, id), id in titles) for id in ids]

    last = [Done(each, _DONE[done], _OPPOSITES[done], _place(request.args)) for each in documents(asked)]
    return Tuning(documents(named["pinned"]), documents(named["hidden"]), last[0] if last else None)


def change_tuning(site_id: int, search: str) -> Response:
    """Do what a form says to a document, for the query of the address; then the same search is shown.

    Args:
        search: Its address.

    Raises:
        ApiError: 404; 400 for a form that is not of the page, or settings that can hold no more.
    """
    form = read_form_body(request)
    done, document_id, query = form.get("do", ""), form.get("id", ""), request.args.get("q", "")
    if not normal_form(query) or len(query.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise field_error("q", "invalid", "must be the query that found the page")
    if not 0 < len(document_id) <= MAX_ID_LENGTH or "\x00" in document_id:
        raise field_error("id", "invalid", "must be the id of a page")
    place = _place(form)
    if done in _ADDS:
        settings_operations.add_result(runtime(), current_caller(), site_id, _ADDS[done], query, document_id, place)
        place = 0
    elif done in _REMOVES:
        place = settings_operations.remove_result(
            runtime(), current_caller(), site_id, _REMOVES[done], query, document_id
        )
    else:
        raise ApiError(ErrorCode.VALIDATION_FAILED, "The form does not say what to do.")
    return see_other(f"{search}&{urlencode({'done': done, 'document': document_id, 'place': place})}")


def explain_refusal(error: ApiError) -> str:
    """The reason for a refusal, in a sentence."""
    for field, problem in field_problems(error).items():
        if field in _LABELS:
            return f"{_LABELS[field]} {problem}."
    return error.message


def _ids(entries: Sequence[Mapping[str, Any]], query: str) -> list[str]:
    wanted = normal_form(query)
    found = [entry["ids"] for entry in entries if entry["query"] == wanted]
    return list(dict.fromkeys(found[-1])) if found else []


def _title(body: bytes) -> str:
    fields = orjson.loads(body)
    return str(fields["title"] or fields["url"])


def _place(sent: Mapping[str, str]) -> int:
    text = sent.get("place", "")
    return min(int(text), MAX_PINNED_IDS) if text.isascii() and text.isdigit() and len(text) < 5 else 0
