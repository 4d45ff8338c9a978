"""Search settings of a site: a page for each group of settings, with a preview of the results."""

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
from app.pages.forms import REFILLED, Problems, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.rule_sentences import rule_sentence
from app.pages.search.hits import DisplaySection, show_sections
from app.pages.settings_draft import SECTIONS, Draft, Picker, Section, read_draft, titles_of
from app.runtime import runtime
from app.services.audit_log.recording import setting_changes
from app.services.search.preview import PreviewedDocument, PreviewedEffects, QueryPreview, frequent_queries
from app.services.search_settings import is_semantic, named_ids, settings_tag, settings_with_defaults
from app.web.callers import current_caller, load_site
from app.web.parsing import load_values, read_form_body
from backends.languages import LANGUAGES
from schemas.search_rules import MATCHES, MAX_RANK
from schemas.search_settings import WEIGHTED_FIELDS, SearchSettingsSchema
from schemas.settings_previews import SettingsPreviewSchema

_LANGUAGES = {code: language.name for code, language in sorted(LANGUAGES.items(), key=lambda item: item[1].name)}
_MATCHES = {
    "is": "is exactly",
    "starts": "starts with",
    "contains": "contains",
    "words": "contains the words, in any order and form",
}
_RANKS = [(rank, f"{rank:+}" if rank else "0 (no change)") for rank in range(MAX_RANK, -MAX_RANK - 1, -1)]
assert _MATCHES.keys() == set(MATCHES)
OFFERED_QUERIES = 8
"""Maximum number of frequent queries suggested for a preview."""


@dataclass(slots=True)
class SubmittedSettings:
    """A submitted form of settings.

    Attributes:
        draft: The settings; ``None`` if the submitted text is not a JSON object.
        section: The page with the form.
        text: The submitted JSON text, or ``None`` for rows.
        tag: Entity tag of the settings when the form was opened: the settings of the page, or all of them for JSON.
        query: The query to preview; empty for the most frequent queries.
        only_results: Whether the page needs only the preview's results, because it is already displayed.
    """

    site: Site
    section: Section
    draft: Draft | None
    tag: str = ""
    query: str = ""
    only_results: bool = False
    text: str | None = None
    picker: Picker = field(init=False)

    def __post_init__(self) -> None:
        self.picker = Picker(self.site)

    def valid(self, schema: Schema, around: Callable[[Draft], Draft] = lambda draft: draft) -> Any:
        """Return the validated settings.

        Raises:
            ApiError: 400.
        """
        if self.draft is None:
            raise field_error("json", "invalid", "must be a JSON object")
        if self.picker.problems:
            raise ApiError(ErrorCode.VALIDATION_FAILED, "Choose one of the pages that match.")
        return load_values(schema, around(self.draft))


def show_search_settings(site_id: int) -> Response:
    """Redirect to the first page of settings. ``tune.js`` follows links to settings on another page."""
    return see_other(f"/sites/{site_id}/search-settings/{next(iter(SECTIONS))}", **request.args)


def show_settings_section(site_id: int, section: str) -> str:
    """Show a page of settings, with their stored values."""
    site, opened = load_site(site_id), _find_section(section)
    tag = settings_tag(site.search_settings, opened.settings)
    return _form(SubmittedSettings(site, opened, settings_with_defaults(site.search_settings), tag))


def update_settings_section(site_id: int, section: str) -> Response:
    """Save the settings of a page, unless another user has saved any of them since the form was opened."""
    submitted = _read(site_id, _find_section(section))
    refill_on_error(lambda error: _form(submitted, error), {*REFILLED, 412, 503})
    _fill(submitted)
    settings = submitted.valid(SearchSettingsSchema())
    own_settings = {name: settings[name] for name in submitted.section.settings}
    settings_operations.update_some_settings(runtime(), current_caller(), site_id, own_settings, submitted.tag)
    return see_other(f"/sites/{site_id}/search-settings/{section}", notice="search-settings-updated")


def update_search_settings(site_id: int) -> Response:
    """Save all settings, sent as JSON, unless another user has saved settings since the form was opened."""
    submitted = _read(site_id, SECTIONS["advanced"])
    refill_on_error(lambda error: _form(submitted, error), {*REFILLED, 412, 503})
    _fill_from_json(submitted)
    settings = submitted.valid(SearchSettingsSchema())
    expected = {submitted.tag} if submitted.tag else None
    settings_operations.update_settings(runtime(), current_caller(), site_id, settings, expected)
    return see_other(f"/sites/{site_id}/search-settings/advanced", notice="search-settings-updated")


def preview_search_settings(site_id: int) -> str:
    """Show the submitted form with a preview of the changed results."""
    form = read_form_body(request)
    submitted = _read(site_id, SECTIONS.get(form.get("section", ""), SECTIONS["advanced"]))
    refill_on_error(lambda error: _form(submitted, error), {*REFILLED, 503})
    (_fill_from_json if "json" in form else _fill)(submitted)
    queries = [submitted.query] if submitted.query else None
    values = submitted.valid(
        SettingsPreviewSchema(),
        lambda draft: {"settings": draft, **({} if queries is None else {"queries": queries})},
    )
    preview = settings_operations.preview(runtime(), current_caller(), site_id, values["settings"], queries)
    return _form(submitted, preview=preview)


def _find_section(name: str) -> Section:
    section = SECTIONS.get(name)
    if section is None:
        raise ApiError(ErrorCode.NOT_FOUND, "This page of search settings does not exist.")
    return section


def _read(site_id: int, section: Section) -> SubmittedSettings:
    """Read the submitted form without its settings, so that errors in the settings can be shown in the form."""
    form = read_form_body(request)
    only_results = form.get("part") == "results"
    query = form.get("query", "").strip()
    return SubmittedSettings(load_site(site_id), section, {}, form.get("tag", ""), query, only_results)


def _fill(submitted: SubmittedSettings) -> None:
    """Read the submitted settings of a page. The draft has the stored values of all other settings."""
    draft = read_draft(read_form_body(request), submitted.picker.add)
    own_draft = {name: draft[name] for name in submitted.section.settings}
    submitted.draft = {**settings_with_defaults(submitted.site.search_settings), **own_draft}


def _fill_from_json(submitted: SubmittedSettings) -> None:
    submitted.text = read_form_body(request).get("json", "")
    try:
        read = orjson.loads(submitted.text)
    except orjson.JSONDecodeError:
        read = None
    submitted.draft = read if isinstance(read, dict) else None


@dataclass(frozen=True, slots=True)
class DisplayDocument:
    """A document in the results of a query.

    Attributes:
        note: The change of its position; empty if the position stays the same.
    """

    title: str
    note: str
    sections: Sequence[DisplaySection]


@dataclass(frozen=True, slots=True)
class DisplayQuery:
    """A query of a preview."""

    query: str
    before: Sequence[DisplayDocument]
    after: Sequence[DisplayDocument]
    is_exact: bool
    effects_before: PreviewedEffects
    effects_after: PreviewedEffects


def _show(preview: QueryPreview, site_url: str) -> DisplayQuery:
    positions = {document.id: position for position, document in enumerate(preview.before, 1)}
    remaining_ids = {document.id for document in preview.after}
    return DisplayQuery(
        preview.query,
        [
            _display_document(document, "" if document.id in remaining_ids else "no longer here", site_url)
            for document in preview.before
        ],
        [
            _display_document(document, _moved(positions.get(document.id), position), site_url)
            for position, document in enumerate(preview.after, 1)
        ],
        preview.is_exact,
        preview.effects_before,
        preview.effects_after,
    )


def _moved(before: int | None, after: int) -> str:
    return "new here" if before is None else "" if before == after else f"was {before}"


def _display_document(document: PreviewedDocument, note: str, site_url: str) -> DisplayDocument:
    return DisplayDocument(document.title or document.id, note, show_sections(document.sections, site_url))


def _form(submitted: SubmittedSettings, error: ApiError | None = None, preview: SettingsPreview | None = None) -> str:
    site, picker = submitted.site, submitted.picker
    problems = _problems(error, picker)
    previews = [] if preview is None else [(query.is_visible, _show(query, site.url)) for query in preview.queries]
    values = {
        "problems": problems,
        "banner": None if error is None or problems.sentences else error.message,
        "query": submitted.query,
        "vectors_missing": _vectors_missing(site, submitted.draft or {}),
        "page_count": site.document_count,
        "previewed": None if preview is None else len(preview.queries),
        "changed": [query for is_visible, query in previews if is_visible],
        "unchanged": [query for is_visible, query in previews if not is_visible],
    }
    if submitted.only_results:
        return render("tune_results.html", **values)
    tag, theirs = submitted.tag, []
    if error is not None and error.status == 412:
        site = load_site(site.id)
        tag = settings_tag(site.search_settings, None if submitted.text is not None else submitted.section.settings)
        mine = SearchSettingsSchema().load(submitted.draft or {})
        theirs = [change_text(change) for change in setting_changes(mine, settings_with_defaults(site.search_settings))]
    rows = _rows(submitted)
    with runtime().database.read() as session:
        ids_in_settings = named_ids(rows)
        titles = titles_of(session, site.id, (*ids_in_settings, *(id for ids in picker.offered.values() for id in ids)))
        unknown = unknown_ids(session, site, rows)
        frequent = frequent_queries(session, site.id)[:OFFERED_QUERIES]
    return render(
        "tune.html",
        site=site,
        section=submitted.section,
        sections=SECTIONS.values(),
        draft=rows,
        rule_sentence=lambda rule: rule_sentence(rule, titles),
        text=submitted.text if submitted.text is not None else _pretty(submitted.draft or {}),
        json_open=submitted.text is not None,
        tag=tag,
        json_tag=tag if submitted.text is not None else settings_tag(site.search_settings),
        theirs=theirs,
        titles=titles,
        offered=picker.offered,
        unknown=unknown,
        languages=_LANGUAGES,
        matches=_MATCHES,
        rank_options=_RANKS,
        has_embedder=runtime().embedder is not None,
        has_language_model=runtime().language_model is not None,
        asks_per_day=current_caller().account.limits.asks_per_day,
        ask_warning=settings_operations.ask_warning(runtime(), current_caller().account.limits, rows),
        rank_limits=runtime().engines.get_or_default(site.engine).rank_limits,
        weighted=WEIGHTED_FIELDS,
        frequent=frequent,
        **values,
    )


def _vectors_missing(site: Site, settings: Mapping[str, Any]) -> int:
    vectorizer = runtime().vectorizer
    return vectorizer.count_missing(site.id) if vectorizer is not None and is_semantic(settings) else 0


def _rows(submitted: SubmittedSettings) -> Draft:
    """Return the settings for the rows: the submitted settings, or the stored settings if the JSON is invalid."""
    if submitted.text is None:
        return settings_with_defaults(submitted.draft or {})
    try:
        return settings_with_defaults(SearchSettingsSchema().load(submitted.draft or {}))
    except ValidationError:
        return settings_with_defaults(submitted.site.search_settings)


def _problems(error: ApiError | None, picker: Picker) -> Problems:
    problems = Problems({}) if error is None else Problems.of(error.details)
    return Problems({**problems.sentences, **picker.problems})


def _pretty(settings: Mapping[str, Any]) -> str:
    return orjson.dumps(settings, option=orjson.OPT_INDENT_2).decode()
