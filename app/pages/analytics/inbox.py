"""The inbox: queries that disappoint visitors, and remedies that are previewed before they are saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from app.clock import today
from app.errors import ApiError, ErrorCode
from app.models import Site
from app.operations import search_settings as settings_operations
from app.pages.analytics.reports import Choice, choose_site
from app.pages.forms import REFILLED, read_form, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services import inbox
from app.services.access.credentials import site_record
from app.services.asks.weighty_words import weighty_words
from app.services.inbox import InboxItem, Settings, add_synonyms, pin_document, search_now
from app.services.indexing.stored_documents import known_ids
from app.services.search.preview import QueryPreview, frequent_queries
from app.services.search_settings import settings_with_defaults
from app.web.callers import current_caller, load_site
from app.web.parsing import check_query_string, load_values
from backends.analysis.languages import detect_language
from schemas.analytics import InboxChangeSchema, InboxQuerySchema
from schemas.remedies import PinRemedySchema, SynonymRemedySchema
from schemas.search import MAX_QUERY_BYTES
from schemas.search_settings import MAX_WORD_LENGTH, SearchSettingsSchema

ADDRESS = "/api/analytics/inbox"


@dataclass(frozen=True, slots=True)
class InboxAction:
    """The last action on a query.

    Attributes:
        action: ``ignored``, ``shown``, ``synonym``, or ``pin``.
        finds_now: Number of documents that the query finds now.
        item: The query's item, if it is still in the inbox.
    """

    action: str
    query: str
    finds_now: int
    item: InboxItem | None


def show_inbox() -> str | Response:
    """Show the inbox of a site.

    Raises:
        ApiError: 400, 404.
        BackendUnavailable: The engine is unavailable.
    """
    choice = choose_site()
    if choice.site is None:
        first = next(iter(choice.offered), None)
        return render("inbox.html", choice=choice) if first is None else see_other(ADDRESS, site_id=first.id)
    arguments = {name: value for name, value in request.args.items() if value}
    parameters = load_values(InboxQuerySchema(), arguments)
    current_runtime, record = runtime(), site_record(choice.site)
    ignored = parameters["ignored"]
    page = {name: parameters[name] for name in ("limit", "offset")}
    with current_runtime.database.read() as session:
        candidates = inbox.list_candidates(
            session, choice.site, today(), ignored=ignored, recent=current_runtime.recent_results
        )
        searched = inbox.has_searches(session, choice.site.id)
        clicks_reported = inbox.reports_clicks(session, choice.site.id, today())
        ignored_count = inbox.count_ignored(session, choice.site.id)
    items, total = inbox.list_inbox(current_runtime.searcher, record, candidates, **page)
    return render(
        "inbox.html",
        choice=choice,
        site=choice.site,
        items=items,
        total=total,
        paging=page,
        searched=searched,
        clicks_reported=clicks_reported,
        ignored=ignored,
        ignored_count=ignored_count,
        done=_last_action(choice, items),
        keep=f"site_id={choice.site.id}&" + ("ignored=true&" if ignored else ""),
    )


def update_inbox() -> Response:
    """Ignore a query or show it again."""
    change = read_form(InboxChangeSchema())
    with runtime().database.write() as session:
        query = inbox.ignore_query(session, current_caller().account.id, **change)
    return back_to_inbox(change["site_id"], "ignored" if change["ignored"] else "shown", query)


def back_to_inbox(site_id: int, action: str, query: str) -> Response:
    """Redirect to the inbox after an action on a query."""
    return see_other(ADDRESS, site_id=site_id, done=action, q=query)


def _last_action(choice: Choice, items: Sequence[InboxItem]) -> InboxAction | None:
    """Return the action in the URL, or ``None`` if it is invalid or no visitor searched for its query."""
    action, query = request.args.get("done", ""), request.args.get("q", "").replace("\x00", "")
    if action not in ("ignored", "shown", "synonym", "pin") or choice.site is None:
        return None
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        if not inbox.is_from_visitors(session, choice.site, query, today()):
            return None
        if action == "ignored" and not inbox.is_ignored(session, choice.site.id, query):
            return None
    item = next((item for item in items if item.query == query), None)
    finds_now = item.finds_now if item else search_now(current_runtime.searcher, site_record(choice.site), query).total
    return InboxAction(action, query, finds_now, item)


OFFERED_HITS = 10
MAX_CHECKED_QUERIES = 20
"""Maximum number of frequent queries that are checked for changes by a synonym."""
MAX_WORDS = 6
"""Maximum number of words in a query that are searched individually."""
_SPACE_OR_SIGN = re.compile(r'[\s"“”„«»]+')


@dataclass(frozen=True, slots=True)
class Word:
    """The query or one of its words, for which synonyms can be added.

    Attributes:
        finds: Number of documents found by this text alone.
    """

    text: str
    finds: int


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a remedy.

    Attributes:
        of_query: Results of the query before and after the remedy.
        others: Other frequent queries with changed results.
    """

    of_query: QueryPreview
    others: Sequence[str]


def show_synonym_remedy(site_id: int) -> str:
    """Show the form for synonyms of the query or of one of its words, with a preview of their effect."""
    return _synonym_form(_load(site_id), request.args)


def save_synonym(site_id: int) -> Response:
    """Add synonyms to the site's settings."""
    site = _load(site_id)
    refill_on_error(lambda error: _synonym_form(site, request.form, error))
    remedy = read_form(SynonymRemedySchema())
    _save(site_id, lambda settings: add_synonyms(settings, remedy["word"], remedy["synonyms"]))
    return back_to_inbox(site_id, "synonym", remedy["q"])


def _synonym_form(site: Site, values: Mapping[str, str], error: ApiError | None = None) -> str:
    query, synonyms = _query(values), values.get("synonyms", "")
    words = _words(site, query)
    found_nothing = (word.text for word in words if not word.finds and word.text != query)
    word = values.get("word") or next(found_nothing, words[0].text)
    effect = None
    if error is None and synonyms:
        try:
            remedy = load_values(SynonymRemedySchema(), {"q": query, "word": word, "synonyms": synonyms})
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
        problem=_problem_sentence(error),
    )


def _frequent(site: Site, query: str) -> list[str]:
    """Return the most frequent searches of the last week, except ``query``."""
    with runtime().database.read() as session:
        queries = frequent_queries(session, site.id)
    return [text for text in queries if text != query][:MAX_CHECKED_QUERIES]


def _words(site: Site, query: str) -> list[Word]:
    """Return the query, unless it is too long for a synonym, and its weighty words if it has more than one."""
    record = site_record(site)
    language = record.settings.language or detect_language(query)
    parts = list(dict.fromkeys(word.strip("-+.,;:!?()") for word in _SPACE_OR_SIGN.split(query)))
    # A question has words such as "is" that need not match.
    parts = [part for part in parts if weighty_words(part, language)][:MAX_WORDS]
    texts = parts if len(query) > MAX_WORD_LENGTH and parts else [query, *parts] if len(parts) > 1 else [query]
    return [Word(text, search_now(runtime().searcher, record, text).total) for text in texts]


def show_pin_remedy(site_id: int) -> str:
    """Show the form that finds a page to pin, with a preview of the effect."""
    return _pin_form(_load(site_id), request.args)


def save_pin(site_id: int) -> Response:
    """Pin a page in the site's settings."""
    site = _load(site_id)
    refill_on_error(lambda error: _pin_form(site, request.form, error), {*REFILLED, 404})
    remedy = read_form(PinRemedySchema())
    _check_known(site, remedy["id"])
    _save(site_id, lambda settings: pin_document(settings, remedy["q"], remedy["id"]))
    return back_to_inbox(site_id, "pin", remedy["q"])


def _pin_form(site: Site, values: Mapping[str, str], error: ApiError | None = None) -> str:
    query, chosen_id = _query(values), values.get("id", "")
    search_text = _searchable(values.get("find", "")) or query
    result, effect = None, None
    if chosen_id and error is None:
        try:
            remedy = load_values(PinRemedySchema(), {"q": query, "id": chosen_id})
            _check_known(site, remedy["id"])
            effect = _effect(site, query, _valid(pin_document(_settings(site), query, remedy["id"])))
        except ApiError as problem:
            error = problem
    if effect is None:
        result = search_now(runtime().searcher, site_record(site), search_text, limit=OFFERED_HITS)
    return render(
        "inbox_pin.html",
        site=site,
        query=query,
        search_text=search_text,
        found=result,
        chosen_id=chosen_id,
        effect=effect,
        pinned=site_record(site).settings.pinned.get(query, ()),
        problem=_problem_sentence(error),
    )


def _searchable(text: str) -> str:
    """Remove NUL and surrounding blanks, and truncate the text to the maximum size of a query."""
    return text.replace("\x00", "").strip().encode()[:MAX_QUERY_BYTES].decode(errors="ignore")


def _check_known(site: Site, document_id: str) -> None:
    with runtime().database.read() as session:
        if not known_ids(session, site.id, [document_id]):
            raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "Page not found; it may have been removed.")


def _load(site_id: int) -> Site:
    check_query_string(request)
    return load_site(site_id)


def _query(values: Mapping[str, str]) -> str:
    query: str = load_values(SynonymRemedySchema(only=("q",)), {"q": values.get("q", "")})["q"]
    return query


def _settings(site: Site) -> dict[str, Any]:
    return settings_with_defaults(site.search_settings)


def _valid(settings: Settings) -> dict[str, Any]:
    """Validate settings.

    Raises:
        ApiError: 400 if the settings have too many entries or entries that are too long.
    """
    return load_values(SearchSettingsSchema(), settings)


def _save(site_id: int, change: Callable[[Settings], dict[str, Any]]) -> None:
    def edit(settings: dict[str, Any]) -> None:
        settings.update(_valid(change(settings)))

    settings_operations.edit_together(runtime(), current_caller(), site_id, edit)


def _effect(site: Site, query: str, settings: Settings, others: Sequence[str] = ()) -> Effect:
    of_query, *of_others = settings_operations.preview(
        runtime(), current_caller(), site.id, settings, [query, *others]
    ).queries
    return Effect(of_query, [preview.query for preview in of_others if preview.changed])


def _problem_sentence(error: ApiError | None) -> str | None:
    if error is None:
        return None
    if error.code in (ErrorCode.SITE_INACTIVE, ErrorCode.RATE_LIMIT_EXCEEDED):
        raise error
    return error.message[0].upper() + error.message[1:] + ("" if error.message.endswith(".") else ".")
