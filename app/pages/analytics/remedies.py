"""Remedies for a query that disappoints: a synonym, or a pinned page. What each does is shown before it is saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request
from marshmallow import Schema, ValidationError

from app.errors import ApiError, ErrorCode
from app.models import Site
from app.operations import search_settings as settings_operations
from app.pages.analytics.inbox import back_to_inbox
from app.pages.forms import REFILLED, read_form, refill_on_error
from app.pages.layout import render
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.inbox import Settings, add_synonyms, pin_document, search_now
from app.services.indexing.stored_documents import known_ids
from app.services.search.preview import QueryPreview, frequent_queries
from app.services.search_settings import shown_settings
from app.services.sites import get_site
from app.web.parsing import check_query_string, invalid
from app.web.request_checks import current_caller
from schemas.remedies import PinRemedySchema, SynonymRemedySchema
from schemas.search import MAX_QUERY_BYTES
from schemas.search_settings import SearchSettingsSchema

OFFERED_HITS = 10
LOOKED_AT_TOO = 20
"""Frequent queries that are looked at for whether a synonym changes them, too."""
MOST_WORDS = 6
"""Most words of a query that are looked at one by one."""
_SPACE_OR_SIGN = re.compile(r'[\s"“”„«»]+')


@dataclass(frozen=True, slots=True)
class Word:
    """A part of the query that can be given synonyms.

    Attributes:
        finds: Documents that it finds alone.
    """

    text: str
    finds: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Changes that a remedy makes.

    Attributes:
        of_query: What the query itself finds, before and after.
        others: Frequent queries that it changes, too.
    """

    of_query: QueryPreview
    others: Sequence[str]


def show_synonym_remedy(site_id: int) -> str:
    """The form for synonyms of the query or of one of its words, with their effect once they are named."""
    return _synonym_form(_load(site_id), request.args)


def save_synonym(site_id: int) -> Response:
    """Add synonyms to the site's settings."""
    site = _load(site_id)
    refill_on_error(lambda error: _synonym_form(site, request.form, error))
    remedy = read_form(SynonymRemedySchema())
    _save(site_id, lambda settings: add_synonyms(settings, remedy["word"], remedy["synonyms"]))
    return back_to_inbox(site_id, "synonym", remedy["q"])


def _synonym_form(site: Site, sent: Mapping[str, str], error: ApiError | None = None) -> str:
    query, synonyms = _query(sent), sent.get("synonyms", "")
    words = _words(site, query)
    word = sent.get("word") or next((word.text for word in words[1:] if not word.finds), query)
    effect = None
    if error is None and synonyms:
        try:
            remedy = _checked(SynonymRemedySchema(), {"q": query, "word": word, "synonyms": synonyms})
            settings = _valid(add_synonyms(_settings(site), remedy["word"], remedy["synonyms"]))
            effect = _effect(site, query, settings, _frequent(site, query))
        except ApiError as problem:
            error = problem
    return render(
        "inbox_synonym.html",
        site=site,
        query=query,
        words=words,
        word=word,
        synonyms=synonyms,
        effect=effect,
        problem=_problem(error),
    )


def _frequent(site: Site, query: str) -> list[str]:
    """The most frequent searches of the last week, besides ``query``."""
    with runtime().database.read() as session:
        found = frequent_queries(session, site.id)
    return [text for text in found if text != query][:LOOKED_AT_TOO]


def _words(site: Site, query: str) -> list[Word]:
    """The query and, if it has several words, each of them."""
    parts = list(dict.fromkeys(word.strip("-+.,;:!?()") for word in _SPACE_OR_SIGN.split(query)))
    parts = [part for part in parts if part][:MOST_WORDS]
    texts = [query, *parts] if len(parts) > 1 else [query]
    record = site_record(site)
    return [Word(text, search_now(runtime().searcher, record, text).total) for text in texts]


def show_pin_remedy(site_id: int) -> str:
    """The form that looks for a page to pin, with the effect once one is chosen."""
    return _pin_form(_load(site_id), request.args)


def save_pin(site_id: int) -> Response:
    """Pin a page in the site's settings."""
    site = _load(site_id)
    refill_on_error(lambda error: _pin_form(site, request.form, error), {*REFILLED, 404})
    remedy = read_form(PinRemedySchema())
    _check_known(site, remedy["id"])
    _save(site_id, lambda settings: pin_document(settings, remedy["q"], remedy["id"]))
    return back_to_inbox(site_id, "pin", remedy["q"])


def _pin_form(site: Site, sent: Mapping[str, str], error: ApiError | None = None) -> str:
    query, chosen = _query(sent), sent.get("id", "")
    looked_for = _searchable(sent.get("find", "")) or query
    found, effect = None, None
    if chosen and error is None:
        try:
            remedy = _checked(PinRemedySchema(), {"q": query, "id": chosen})
            _check_known(site, remedy["id"])
            effect = _effect(site, query, _valid(pin_document(_settings(site), query, remedy["id"])))
        except ApiError as problem:
            error = problem
    if effect is None:
        found = search_now(runtime().searcher, site_record(site), looked_for, limit=OFFERED_HITS)
    return render(
        "inbox_pin.html",
        site=site,
        query=query,
        looked_for=looked_for,
        found=found,
        chosen=chosen,
        effect=effect,
        pinned=site_record(site).settings.pinned.get(query, ()),
        problem=_problem(error),
    )


def _searchable(text: str) -> str:
    """The searchable part of a text."""
    return text.replace("\x00", "").strip().encode()[:MAX_QUERY_BYTES].decode(errors="ignore")


def _check_known(site: Site, document_id: str) -> None:
    with runtime().database.read() as session:
        if not known_ids(session, site.id, [document_id]):
            raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "Page not found; it may have been removed.")


def _load(site_id: int) -> Site:
    check_query_string(request)
    with runtime().database.read() as session:
        return get_site(session, current_caller().account.id, site_id)


def _query(sent: Mapping[str, str]) -> str:
    try:
        query: str = SynonymRemedySchema(only=("q",)).load({"q": sent.get("q", "")})["q"]
    except ValidationError as error:
        raise invalid(error) from error
    return query


def _settings(site: Site) -> dict[str, Any]:
    return shown_settings(site.search_settings)


def _checked(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        raise invalid(error) from error
    return loaded


def _valid(settings: Settings) -> dict[str, Any]:
    """Settings as the API takes them.

    Raises:
        ApiError: 400: they have become too many, or too long.
    """
    return _checked(SearchSettingsSchema(), settings)


def _save(site_id: int, change: Callable[[Settings], dict[str, Any]]) -> None:
    def edit(settings: dict[str, Any]) -> None:
        settings.update(_valid(change(settings)))

    settings_operations.edit_together(runtime(), current_caller(), site_id, edit)


def _effect(site: Site, query: str, settings: Settings, others: Sequence[str] = ()) -> Effect:
    of_query, *of_others = settings_operations.preview(
        runtime(), current_caller(), site.id, settings, [query, *others]
    ).queries
    return Effect(of_query, [preview.query for preview in of_others if preview.changed])


def _problem(error: ApiError | None) -> str | None:
    """The problem, as a sentence."""
    if error is None:
        return None
    if error.code in (ErrorCode.SITE_INACTIVE, ErrorCode.RATE_LIMIT_EXCEEDED):
        raise error
    return error.message[0].upper() + error.message[1:] + ("" if error.message.endswith(".") else ".")
