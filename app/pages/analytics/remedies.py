"""Remedies for a query that disappoints: a synonym, or a pinned page. What each does is shown before it is saved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flask import Response, request
from marshmallow import ValidationError

from app.errors import ApiError, ErrorCode, field_error
from app.models import Site
from app.pages.analytics.inbox import back_to_inbox
from app.pages.forms import field_problems, read_form, refill_on_error
from app.pages.layout import render
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.analytics.current_results import CurrentHit, search_now
from app.services.analytics.remedies import Settings, add_synonyms, pin_document
from app.services.indexing.stored_documents import known_ids
from app.services.search_settings import change_settings, read_settings, shown_settings
from app.services.sites import get_site
from app.web import actions
from app.web.parsing import check_query_string, invalid
from app.web.request_checks import current_caller
from schemas.remedies import PinRemedySchema, SynonymRemedySchema
from schemas.search import MAX_QUERY_BYTES
from schemas.search_settings import SearchSettingsSchema

SHOWN_HITS = 10
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
    """What a query finds before and after a remedy."""

    before: Sequence[CurrentHit]
    after: Sequence[CurrentHit]
    total_before: int
    total_after: int

    @property
    def is_nothing(self) -> bool:
        """Whether the remedy changes nothing that is shown."""
        return [hit.id for hit in self.before] == [hit.id for hit in self.after]


def show_synonym_remedy(site_id: int) -> str:
    """The form for synonyms of the query or of one of its words, with their effect once they are named."""
    return _synonym_form(_load(site_id), request.args)


def save_synonym(site_id: int) -> Response:
    """Add synonyms to the site's settings."""
    site = _load(site_id)
    refill_on_error(lambda error: _synonym_form(site, request.form, error))
    remedy = read_form(SynonymRemedySchema())
    _save(site_id, lambda settings: add_synonyms(settings, remedy["word"], _listed(remedy["synonyms"])))
    return back_to_inbox(site_id, "synonym", remedy["q"])


def _synonym_form(site: Site, sent: Mapping[str, str], error: ApiError | None = None) -> str:
    query = _query(sent)
    words = _words(site, query)
    effect = None
    given = {"q": query, "word": sent.get("word", ""), "synonyms": sent.get("synonyms", "")}
    if error is None and given["synonyms"]:
        try:
            remedy = _checked(SynonymRemedySchema(), given)
            settings = _valid(add_synonyms(_settings(site), remedy["word"], _listed(remedy["synonyms"])))
            effect = _effect(site, query, settings)
        except ApiError as problem:
            error = problem
    default = next((word.text for word in words[1:] if not word.finds), query)
    return render(
        "inbox_synonym.html",
        site=site,
        query=query,
        words=words,
        word=given["word"] or default,
        synonyms=given["synonyms"],
        effect=effect,
        problem=_problem(error, "synonyms", "word"),
    )


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
    refill_on_error(lambda error: _pin_form(site, request.form, error))
    remedy = read_form(PinRemedySchema())
    _save(site_id, lambda settings: pin_document(settings, remedy["q"], remedy["id"]))
    return back_to_inbox(site_id, "pin", remedy["q"])


def _pin_form(site: Site, sent: Mapping[str, str], error: ApiError | None = None) -> str:
    query, chosen = _query(sent), sent.get("id", "")
    looked_for = (sent.get("find", "").strip() or query)[:MAX_QUERY_BYTES]
    found, effect = None, None
    if chosen and error is None:
        try:
            remedy = _checked(PinRemedySchema(), {"q": query, "id": chosen})
            _check_known(site, remedy["id"])
            effect = _effect(site, query, _valid(pin_document(_settings(site), query, remedy["id"])))
        except ApiError as problem:
            error = problem
    if effect is None:
        found = search_now(runtime().searcher, site_record(site), looked_for, limit=SHOWN_HITS)
    return render(
        "inbox_pin.html",
        site=site,
        query=query,
        looked_for=looked_for,
        found=found,
        chosen=chosen,
        effect=effect,
        pinned=site_record(site).settings.pinned.get(query, ()),
        problem=_problem(error, "id"),
    )


def _check_known(site: Site, document_id: str) -> None:
    with runtime().database.read() as session:
        if not known_ids(session, site.id, [document_id]):
            raise field_error("id", "unknown", "is of no page; it may have been removed")


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


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _checked(schema: Any, values: Mapping[str, str]) -> dict[str, str]:
    try:
        loaded: dict[str, str] = schema.load(values)
    except ValidationError as error:
        raise invalid(error) from error
    return loaded


def _valid(settings: Settings) -> dict[str, Any]:
    """Settings as the API takes them.

    Raises:
        ApiError: 400: they have become too many, or too long.
    """
    return _checked(SearchSettingsSchema(), settings)


def _save(site_id: int, change: Any) -> None:
    caller = current_caller()
    with actions.changing(caller) as session:
        site = get_site(session, caller.account.id, site_id, lock=True)
        change_settings(session, caller.account.id, site_id, _valid(change(_settings(site))))


def _effect(site: Site, query: str, settings: Settings) -> Effect:
    searcher, record = runtime().searcher, site_record(site)
    before = search_now(searcher, record, query, limit=SHOWN_HITS)
    after = search_now(searcher, replace(record, settings=read_settings(settings)), query, limit=SHOWN_HITS)
    return Effect(before.hits, after.hits, before.total, after.total)


def _problem(error: ApiError | None, *fields: str) -> str | None:
    """What is wrong, in words for the one who filled in the form."""
    if error is None:
        return None
    if error.code is not ErrorCode.VALIDATION_FAILED:
        return error.message
    problems = field_problems(error)
    found = next((problems[field] for field in fields if field in problems), None)
    return error.message if found is None else found
