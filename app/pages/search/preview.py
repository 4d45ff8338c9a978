"""The page for trying a site's search as visitors would, and for pinning and hiding results, with undo.

Searches there use no quota and don't affect analytics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson
from flask import Request, Response, request
from sqlalchemy.orm import Session

from app.errors import ApiError, ErrorCode, field_error
from app.models import Site
from app.operations import search_settings as settings_operations
from app.operations.search_settings import ResultList
from app.operations.searches import SearchOutcome
from app.pages.forms import REFILLED, field_problems, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other, wants_page
from app.pages.search.hits import show_hits
from app.plans import describe_quota
from app.runtime import runtime
from app.services.access.credentials import load_site_record
from app.services.collections import get_collection
from app.services.indexing.stored_documents import read_stored
from app.services.search.encoding import encode_results, make_query
from app.services.search.merging import MAX_MERGED
from app.services.search.preview import MAX_PREVIEWED_SECTIONS, read_effects
from app.services.search.search import Visitor
from app.services.sites import site_inactive
from app.web.admission import current_admission
from app.web.callers import current_caller, current_visitor, load_site
from app.web.charges import count_preview, run_charged_search, used_today
from app.web.parsing import check_query_string, load_values, read_form_body
from app.web.responses import json_response
from backends.text import normal_form
from schemas.search import MAX_QUERY_BYTES, SearchQuerySchema
from schemas.search_settings import MAX_PINNED_IDS
from schemas.validation.documents import MAX_ID_LENGTH

SHOWN_VALUES = 8
MAX_CHOSEN = 10
HIDDEN = frozenset({"date", "id"})
"""Fields that are useless as facets because almost every document has a different value."""


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value of a facet.

    Attributes:
        address: URL that selects the value, or clears it if it is selected.
    """

    text: str
    count: int | None
    chosen: bool
    address: str


def _chosen_facets() -> list[tuple[str, str]]:
    """Return the selected fields and values in the URL, given as ``f=field:value``."""
    pairs = [text.partition(":") for text in request.args.getlist("f")[:MAX_CHOSEN]]
    return list(dict.fromkeys((field, value) for field, colon, value in pairs if field and colon))


def _filter_of(chosen: Sequence[tuple[str, str]]) -> str:
    """Return the filter for the selected values: for each field, one of its selected values must match."""
    fields: dict[str, list[str]] = {}
    for field, value in chosen:
        fields.setdefault(field, []).append(_quoted(value))
    return " AND ".join(f"{_quoted(field)} IN [{', '.join(values)}]" for field, values in fields.items())


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _groups_of(
    facets: Mapping[str, Mapping[str, int]], chosen: Sequence[tuple[str, str]]
) -> list[tuple[str, list[FacetValue]]]:
    """Return the facets for filtering results, with the most frequent values of each field."""
    groups = []
    for field, counts in facets.items():
        values = [(value, count) for value, count in counts.items() if count]
        picked = [value for name, value in chosen if name == field]
        tells_apart = len(values) > 1 and any(count > 1 for _, count in values)
        if field in HIDDEN or not (tells_apart or picked):
            continue
        offered = list(dict.fromkeys([*picked, *(value for value, _ in values[:SHOWN_VALUES])]))
        groups.append((field, [FacetValue(v, counts.get(v), v in picked, _toggled(chosen, field, v)) for v in offered]))
    return groups


def _toggled(chosen: Sequence[tuple[str, str]], field: str, value: str) -> str:
    others = [pair for pair in chosen if pair != (field, value)]
    if len(others) == len(chosen):
        others.append((field, value))
    return _search_address(others)


def _search_address(chosen: Sequence[tuple[str, str]], page: int = 1) -> str:
    """Return the URL of the same search with these facets and this page."""
    query = [("q", request.args.get("q", "")), *(("f", f"{field}:{value}") for field, value in chosen)]
    return "?" + urlencode([*query, ("page", str(page))] if page > 1 else query)


PER_PAGE = 10
LAST_PAGE = 1000


def charges_search(_: Request) -> bool:
    """Whether the search is charged: with a key, but not with a session."""
    return _has_query() and current_caller().kind != "session"


def _has_query() -> bool:
    return bool(request.args.get("q", "").strip())


def show_search_preview(site_id: int) -> str | Response:
    """Show the search page of a site, with results."""
    return _show_preview(load_site(site_id))


def show_collection_preview(collection_id: int) -> str | Response:
    """Show the search page of a collection, with the site of each result."""
    with runtime().database.read() as session:
        collection = get_collection(session, current_caller().account.id, collection_id)
    return _show_preview(collection)


def _show_preview(site: Site) -> str | Response:
    if not wants_page():
        return _as_json(site)
    refill_on_error(lambda error: _page(site, problem=error), {*REFILLED, 503} - {401})
    return _page(site, results=_search(site, _page_parameters()) if _has_query() else None)


def tune_search(site_id: int) -> Response:
    """Pin or hide a page for the query in the URL, or undo that, and show the same search again."""
    if not wants_page():
        raise ApiError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Submit the form on this page while logged in.")
    check_query_string(request)
    site = load_site(site_id)
    refill_on_error(lambda error: _rejected_page(site, error), (400,))
    return _change_tuning(site_id, f"/sites/{site_id}/try{_search_address(_chosen_facets(), _page_number())}")


def _rejected_page(site: Site, rejection: ApiError) -> str:
    try:
        results = _search(site, _page_parameters()) if _has_query() else None
    except ApiError as error:
        return _page(site, problem=error, rejection=rejection)
    return _page(site, results=results, rejection=rejection)


def _page_number() -> int:
    text = request.args.get("page", "")
    return min(LAST_PAGE, int(text)) if text.isascii() and text.isdigit() and len(text) < 5 else 1


def _search(site: Site, parameters: dict[str, Any]) -> SearchOutcome:
    if not site.active:
        raise site_inactive()
    query = make_query(parameters)
    visitor: Visitor | None = None
    admission = current_admission()
    if admission.known_caller.kind == "session":
        count_preview(admission)
    else:
        visitor = current_visitor(admission, site.id, parameters["session_id"])
    with runtime().database.read() as session:
        record = load_site_record(session, site)
    return run_charged_search(admission, record, query, visitor)


def _parameters() -> dict[str, Any]:
    check_query_string(request)
    values = {"limit": str(PER_PAGE), "facets": "*", "highlight": "true", **request.args.to_dict()}
    if _chosen_facets() and "filters" not in request.args:
        values["filters"] = _filter_of(_chosen_facets())
    return load_values(SearchQuerySchema(), values)


def _page_parameters() -> dict[str, Any]:
    return _parameters() | {"fields": "", "explain": True, "sections": MAX_PREVIEWED_SECTIONS}


def _page(
    site: Site,
    *,
    results: SearchOutcome | None = None,
    problem: ApiError | None = None,
    rejection: ApiError | None = None,
) -> str:
    values: dict[str, Any] = {
        "site": site,
        "q": request.args.get("q", ""),
        "problem": problem,
        "chosen": _chosen_facets(),
        "banner": None if rejection is None else _explain_rejection(rejection),
    }
    if results is not None:
        with runtime().database.read() as session:
            values["tuning"] = _read_tuning(session, site, request.args["q"])
        result, query = results.timed.result, results.query
        values.update(
            total=result.total,
            matched=result.matched.value,
            corrected_query=result.corrected_query,
            took_ms=results.timed.took_ms,
            effects=read_effects(query, results.timed, results.links),
            hits=show_hits(results.hits, site.url, _site_urls(site)),
            facets=_groups_of(result.facets, _chosen_facets()),
            page=query.offset // query.limit + 1,
            page_address=lambda number: _search_address(_chosen_facets(), number),
            here_again=_search_address(_chosen_facets(), query.offset // query.limit + 1),
            pages=min(
                LAST_PAGE if site.searched_sites is None else MAX_MERGED // PER_PAGE, -(-result.total // query.limit)
            ),
        )
    return render("search_preview.html", **values)


def _site_urls(site: Site) -> dict[int, str]:
    """Return the URLs of a collection's sites by ID; empty for a site."""
    if site.searched_sites is None:
        return {}
    with runtime().database.read() as session:
        record = load_site_record(session, site)
    return {searched.record.id: searched.record.url for searched in record.searched_sites or ()}


def _as_json(site: Site) -> Response:
    results = _search(site, _parameters())
    encoded = encode_results(
        results.query, request.args["q"], results.timed, results.hits, results.query_id, results.links
    )
    remaining = describe_quota(current_caller().account.limits.searches_per_day, used_today(current_admission()))
    return json_response({"results": encoded, "remaining_quota": remaining})


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
    position: int


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


def _read_tuning(session: Session, site: Site, query: str) -> Tuning:
    """Read a query's pinned and hidden documents, and the latest change, which the URL describes."""
    listed_ids = {kind: _ids(site.search_settings.get(kind, ()), query) for kind in ("pinned", "hidden")}
    action, changed = request.args.get("done", ""), request.args.get("document", "")[:MAX_ID_LENGTH].replace("\x00", "")
    changed_ids = [changed] if action in _OPPOSITES and changed else []
    ids = list(dict.fromkeys([*listed_ids["pinned"], *listed_ids["hidden"], *changed_ids]))
    titles = {document.id: _title(document.body) for document in read_stored(session, site.id, ids)}

    def documents(ids: Sequence[str]) -> list[TunedDocument]:
        return [TunedDocument(id, titles.get(id, id), id in titles) for id in ids]

    last = [
        LastChange(document, _CHANGES[action], _OPPOSITES[action], _position(request.args))
        for document in documents(changed_ids)
    ]
    return Tuning(documents(listed_ids["pinned"]), documents(listed_ids["hidden"]), last[0] if last else None)


def _change_tuning(site_id: int, search: str) -> Response:
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
        raise field_error("id", "invalid", "must be the ID of a page")
    position = _position(form)
    if action in _ADDS:
        settings_operations.add_result(
            runtime(), current_caller(), site_id, _ADDS[action], query, document_id, position
        )
        position = 0
    elif action in _REMOVES:
        position = settings_operations.remove_result(
            runtime(), current_caller(), site_id, _REMOVES[action], query, document_id
        )
    else:
        raise ApiError(ErrorCode.VALIDATION_FAILED, "The form doesn’t contain an action.")
    return see_other(f"{search}&{urlencode({'done': action, 'document': document_id, 'place': position})}")


def _explain_rejection(error: ApiError) -> str:
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


def _position(values: Mapping[str, str]) -> int:
    text = values.get("place", "")
    return min(int(text), MAX_PINNED_IDS) if text.isascii() and text.isdigit() and len(text) < 5 else 0
