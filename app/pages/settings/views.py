"""Tuning a site: its search settings as rows, and beside them what they find. Nothing is saved before *Save*."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from flask import Response, request
from marshmallow import Schema, ValidationError

from app.errors import ApiError, ErrorCode, field_error
from app.models import Site
from app.operations import search_settings as settings_operations
from app.operations.search_settings import SettingsPreview, unknown_ids
from app.pages.audit_log import change_text
from app.pages.forms import REFILLED, refill_on_error
from app.pages.layout import render
from app.pages.redirects import see_other
from app.pages.settings.draft import Draft, read_draft
from app.pages.settings.picker import Picker, titles_of
from app.pages.settings.problems import Problems
from app.runtime import runtime
from app.services.audit_log.recording import setting_changes
from app.services.search.preview import PreviewedDocument, QueryPreview, frequent_queries
from app.services.search_settings import is_semantic, named_ids, settings_tag, shown_settings
from app.services.sites import get_site
from app.web.parsing import invalid, read_form_body
from app.web.request_checks import current_caller
from backends.languages import LANGUAGES
from schemas.search_rules import MATCHES, MAX_RANK
from schemas.search_settings import WEIGHTED_FIELDS, SearchSettingsSchema, SettingsPreviewSchema

_LANGUAGES = {code: each.name for code, each in sorted(LANGUAGES.items(), key=lambda item: item[1].name)}
_MATCHES = {
    "is": "is exactly",
    "starts": "starts with",
    "contains": "contains",
    "words": "has the words, in any order and form,",
}
_RANKS = [(rank, f"{rank:+}" if rank else "0, as it is") for rank in range(MAX_RANK, -MAX_RANK - 1, -1)]
assert _MATCHES.keys() == set(MATCHES)
OFFERED_QUERIES = 8
"""Frequent queries that are offered to look at."""


@dataclass(slots=True)
class Sent:
    """A form of settings.

    Attributes:
        draft: The settings, as JSON has them; ``None`` if they were sent as a text that is no JSON.
        text: That text.
        tag: The state that the form began with.
        query: What to search for beside it; empty for the most frequent queries.
        only_results: Whether the page shows the results of the preview already, and needs nothing else.
    """

    site: Site
    draft: Draft | None
    tag: str = ""
    query: str = ""
    only_results: bool = False
    text: str | None = None
    picker: Picker = field(init=False)

    def __post_init__(self) -> None:
        self.picker = Picker(self.site)

    def valid(self, schema: Schema, around: Callable[[Draft], Draft] = lambda draft: draft) -> Any:
        """The settings as they can be stored.

        Raises:
            ApiError: 400.
        """
        if self.draft is None:
            raise field_error("json", "invalid", "must be a JSON object")
        if self.picker.problems:
            raise ApiError(ErrorCode.VALIDATION_FAILED, "Say which page is meant.")
        try:
            return schema.load(around(self.draft))
        except ValidationError as error:
            raise invalid(error) from error


def show_search_settings(site_id: int) -> str:
    """The form, filled in."""
    site = _load(site_id)
    return _form(Sent(site, shown_settings(site.search_settings), settings_tag(site.search_settings)))


def update_search_settings(site_id: int) -> Response:
    """Save the settings, unless somebody else did since the form was opened."""
    sent = _read(site_id)
    refill_on_error(lambda error: _form(sent, error), {*REFILLED, 412, 503})
    _fill(sent)
    settings = sent.valid(SearchSettingsSchema())
    expected = {sent.tag} if sent.tag else None
    settings_operations.update_settings(runtime(), current_caller(), site_id, settings, expected)
    return see_other(f"/sites/{site_id}/search-settings", notice="search-settings-updated")


def preview_search_settings(site_id: int) -> str:
    """The form as it was sent, with what its settings would change."""
    sent = _read(site_id)
    refill_on_error(lambda error: _form(sent, error), {*REFILLED, 503})
    _fill(sent)
    queries = [sent.query] if sent.query else None
    wanted = sent.valid(
        SettingsPreviewSchema(),
        lambda draft: {"settings": draft, **({} if queries is None else {"queries": queries})},
    )
    preview = settings_operations.preview(runtime(), current_caller(), site_id, wanted["settings"], queries)
    return _form(sent, preview=preview)


def _load(site_id: int) -> Site:
    with runtime().database.read() as session:
        return get_site(session, current_caller().account.id, site_id)


def _read(site_id: int) -> Sent:
    """Read what was sent, but for its settings; then whatever is wrong with these can be told beside them."""
    form = read_form_body(request)
    only_results = form.get("part") == "results"
    return Sent(_load(site_id), {}, form.get("tag", ""), form.get("query", "").strip(), only_results)


def _fill(sent: Sent) -> None:
    """Read the settings that were sent, by rows or as JSON."""
    form = read_form_body(request)
    if "json" not in form:
        sent.draft = {**shown_settings(sent.site.search_settings), **read_draft(form, sent.picker.add)}
        return
    sent.text = form["json"]
    try:
        read = orjson.loads(sent.text)
    except orjson.JSONDecodeError:
        read = None
    sent.draft = read if isinstance(read, dict) else None


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document among those that a query finds.

    Attributes:
        note: What becomes of it, or where it was; empty if it stays where it is.
    """

    title: str
    note: str


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """A query of a preview."""

    query: str
    before: Sequence[ShownDocument]
    after: Sequence[ShownDocument]
    is_exact: bool


def _show(preview: QueryPreview) -> ShownQuery:
    places = {document.id: place for place, document in enumerate(preview.before, 1)}
    kept = {document.id for document in preview.after}
    return ShownQuery(
        preview.query,
        [_shown(document, "" if document.id in kept else "no longer here") for document in preview.before],
        [_shown(document, _moved(places.get(document.id), place)) for place, document in enumerate(preview.after, 1)],
        preview.is_exact,
    )


def _moved(before: int | None, after: int) -> str:
    return "new here" if before is None else "" if before == after else f"was {before}"


def _shown(document: PreviewedDocument, note: str) -> ShownDocument:
    return ShownDocument(document.title or document.id, note)


def _form(sent: Sent, error: ApiError | None = None, preview: SettingsPreview | None = None) -> str:
    site, picker = sent.site, sent.picker
    problems = _problems(error, picker)
    shown = {
        "problems": problems,
        "banner": None if error is None or problems.found else error.message,
        "query": sent.query,
        "previewed": None if preview is None else len(preview.queries),
        "changed": [] if preview is None else [_show(each) for each in preview.queries if each.changed],
        "unchanged": [] if preview is None else [_show(each) for each in preview.queries if not each.changed],
    }
    if sent.only_results:
        return render("tune_results.html", **shown)
    tag, theirs = sent.tag, []
    if error is not None and error.status == 412:
        site = _load(site.id)
        tag = settings_tag(site.search_settings)
        mine = SearchSettingsSchema().load(sent.draft or {})
        theirs = [change_text(change) for change in setting_changes(mine, shown_settings(site.search_settings))]
    rows = _rows(sent)
    with runtime().database.read() as session:
        named = named_ids(rows)
        titles = titles_of(session, site.id, (*named, *(id for ids in picker.offered.values() for id in ids)))
        unknown = unknown_ids(session, site, rows)
        frequent = frequent_queries(session, site.id)[:OFFERED_QUERIES]
    return render(
        "tune.html",
        site=site,
        draft=rows,
        text=sent.text if sent.text is not None else _pretty(sent.draft or {}),
        json_open=sent.text is not None,
        tag=tag,
        theirs=theirs,
        titles=titles,
        offered=picker.offered,
        unknown=unknown,
        languages=_LANGUAGES,
        matches=_MATCHES,
        rank_options=_RANKS,
        vectors_missing=_vectors_missing(site, rows),
        has_embedder=runtime().embedder is not None,
        rank_limits=runtime().engines.current.rank_limits,
        weighted=WEIGHTED_FIELDS,
        frequent=frequent,
        **shown,
    )


def _vectors_missing(site: Site, settings: Mapping[str, Any]) -> int:
    vectorizer = runtime().vectorizer
    return vectorizer.count_missing(site.id) if vectorizer is not None and is_semantic(settings) else 0


def _rows(sent: Sent) -> Draft:
    """Settings as rows show them; JSON that is none of settings stays in its field, beside the settings as saved."""
    if sent.text is None:
        return shown_settings(sent.draft or {})
    try:
        return shown_settings(SearchSettingsSchema().load(sent.draft or {}))
    except ValidationError:
        return shown_settings(sent.site.search_settings)


def _problems(error: ApiError | None, picker: Picker) -> Problems:
    found = Problems({}) if error is None else Problems.of(error.details)
    return Problems({**found.found, **picker.problems})


def _pretty(settings: Mapping[str, Any]) -> str:
    return orjson.dumps(settings, option=orjson.OPT_INDENT_2).decode()
