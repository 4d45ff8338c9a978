"""Changing and previewing a site's search settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.orm import Session

from app.errors import ApiError, ErrorCode, field_error
from app.models import Site
from app.operations import changing
from app.operations.attempts import count_uncharged
from app.operations.learning import learn_for
from app.plans import PlanLimits
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.audit_log.entries import settings_states
from app.services.indexing.stored_documents import known_ids
from app.services.search.preview import QueryPreview, frequent_queries, preview_settings
from app.services.search_settings import (
    Gains,
    change_settings,
    changed_meanwhile,
    edit_settings,
    is_semantic,
    learns_from_clicks,
    named_ids,
    read_gains,
    read_settings,
    settings_tag,
    settings_with_defaults,
)
from app.services.sites import get_site, site_inactive
from app.services.usage.quota import settings_preview_windows
from app.wording import counted
from backends.base import SearchBackend
from backends.errors import BackendUnavailable, IndexNotFound
from backends.query import SearchSettings
from backends.text import normal_form
from schemas.search_settings import MAX_PINNED_IDS, MAX_PINNED_QUERIES

log = logging.getLogger(__name__)

ResultList = Literal["pinned", "hidden"]
"""Names of the settings that list documents for a query."""


@dataclass(frozen=True, slots=True)
class SettingsPreview:
    """Effects of unsaved search settings.

    Attributes:
        unknown_ids: Pinned and hidden IDs without a document.
        engine: The engine that ran the searches.
    """

    queries: Sequence[QueryPreview]
    unknown_ids: Sequence[str]
    engine: SearchBackend


def update_settings(
    runtime: Runtime, caller: Caller, site_id: int, settings: Mapping[str, Any], expected: Set[str] | None = None
) -> tuple[Site, list[str]]:
    """Replace a site's search settings.

    Args:
        expected: Replace the settings only if they have one of these tags (:func:`settings_tag`); ``None`` for any.

    Returns:
        The site, and the pinned and hidden IDs without a document.

    Raises:
        ApiError: 404; 412 ``changed_meanwhile``.
    """
    with changing(runtime, caller) as session:
        before = _synonyms(get_site(session, caller.account.id, site_id, lock=True))
        site = change_settings(session, caller.account.id, site_id, settings, expected)
        unknown = unknown_ids(session, site, site.search_settings)
    _send_synonyms(runtime, site, before)
    return site, unknown


def update_some_settings(
    runtime: Runtime, caller: Caller, site_id: int, settings: Mapping[str, Any], expected: str
) -> None:
    """Replace some of a site's search settings; the others keep their current values.

    Args:
        settings: The settings to replace.
        expected: Replace them only if their current values have this tag (:func:`settings_tag`); empty for any.

    Raises:
        ApiError: 404; 412 ``changed_meanwhile``.
    """

    def change(current: dict[str, Any]) -> None:
        tag = settings_tag(current, settings)
        if expected and tag != expected:
            raise changed_meanwhile(tag)
        current.update(settings)

    edit_together(runtime, caller, site_id, change)


def restore_settings(
    runtime: Runtime, caller: Caller, entry_id: int, expected: Set[str] | None = None
) -> tuple[Site, list[str]]:
    """Restore a site's search settings from before a change.

    Args:
        entry_id: ID of the change in the audit log.
        expected: As in :func:`update_settings`.

    Returns:
        The same values as :func:`update_settings`.

    Raises:
        ApiError: 404, also for settings that are no longer stored; 412 ``changed_meanwhile``.
    """
    with runtime.database.read() as session:
        states = settings_states(session, caller.account.id, entry_id)
    if states is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The settings from that time are no longer stored.")
    return update_settings(runtime, caller, states.site_id, settings_with_defaults(states.before), expected)


def preview(
    runtime: Runtime, caller: Caller, site_id: int, settings: Mapping[str, Any], queries: Sequence[str] | None
) -> SettingsPreview:
    """Search with unsaved settings.

    Args:
        queries: Queries to run; ``None`` for the most frequent queries of the last week. A single query from a member
            has the rate limit of the search preview page, because it is run while the member types.

    Raises:
        ApiError: 404; 403 ``site_inactive``; 429 after too many previews in a minute or a day.
        BackendUnavailable: The engine is unavailable.
    """
    with runtime.database.read() as session:
        site = get_site(session, caller.account.id, site_id)
        chosen_queries = frequent_queries(session, site.id) if queries is None else queries
        unknown = unknown_ids(session, site, settings)
        saved = read_gains(session, site)
    if not site.active:
        raise site_inactive()
    is_trial = len(chosen_queries) == 1 and caller.member is not None
    count_uncharged(runtime, settings_preview_windows(caller, is_trial=is_trial), "preview")
    learned: Gains = {}
    if learns_from_clicks(settings):
        is_on = learns_from_clicks(site.search_settings)
        learned = saved if is_on else learn_for(runtime, site, [normal_form(query) for query in chosen_queries])
    if is_semantic(settings) and runtime.vectorizer is not None and not is_semantic(site.search_settings):
        runtime.vectorizer.enable_for_preview(site.id)
    engine = runtime.engines.get_engine(site.engine)
    queries_now = preview_settings(engine, runtime.searcher, site, settings, chosen_queries, (saved, learned))
    return SettingsPreview(queries_now, unknown, engine)


def meaning_warning(runtime: Runtime, site_id: int, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a warning's code and message if a semantic site has no embedder, or documents without vectors.

    Returns ``None`` if there is nothing to warn about.
    """
    if not is_semantic(settings):
        return None
    if runtime.vectorizer is None:
        return "semantic_unavailable", "The operator hasn't set up an embedder, so results are ranked by words only."
    missing = runtime.vectorizer.count_missing(site_id)
    if not missing:
        return None
    has, rank = ("has", "ranks") if missing == 1 else ("have", "rank")
    return "vectors_missing", f"{counted(missing, 'document')} {has} no vector yet and {rank} by words only."


def ask_warning(runtime: Runtime, limits: PlanLimits, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a warning's code and message if visitors may ask questions that cannot be answered.

    Returns ``None`` if there is nothing to warn about.
    """
    if not settings.get("ask"):
        return None
    if runtime.language_model is None:
        return "ask_unavailable", "The operator hasn't set up a language model, so questions are not answered."
    if limits.asks_per_day == 0:
        return "ask_not_in_plan", "The plan includes no questions, so they are not answered."
    return None


def unknown_ids(session: Session, site: Site, settings: Mapping[str, Any]) -> list[str]:
    """Return the pinned and hidden IDs that don't belong to any document of the site."""
    named_documents = named_ids(settings)
    existing_ids = known_ids(session, site.id, named_documents)
    return [id for id in named_documents if id not in existing_ids]


def add_result(
    runtime: Runtime, caller: Caller, site_id: int, kind: ResultList, query: str, document_id: str, position: int
) -> None:
    """Pin or hide a document for a query.

    Args:
        position: Position among the query's documents, from 0. A position beyond the end appends the document.

    Raises:
        ApiError: 404; 400 if the settings are full.
    """

    def add(ids: list[str]) -> None:
        if document_id not in ids:
            ids.insert(position, document_id)

    _edit(runtime, caller, site_id, kind, query, add)


def remove_result(
    runtime: Runtime, caller: Caller, site_id: int, kind: ResultList, query: str, document_id: str
) -> int:
    """Stop pinning or hiding a document for a query.

    Returns:
        The former position of the document; 0 if it was not listed.

    Raises:
        ApiError: 404.
    """
    position = 0

    def remove(ids: list[str]) -> None:
        nonlocal position
        if document_id in ids:
            position = ids.index(document_id)
            ids.remove(document_id)

    _edit(runtime, caller, site_id, kind, query, remove)
    return position


def edit_together(runtime: Runtime, caller: Caller, site_id: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a site's current search settings, serialized with concurrent changes.

    Args:
        change: Changes the settings in place.

    Raises:
        ApiError: 404, and errors of ``change``.
    """
    with changing(runtime, caller) as session:
        site = get_site(session, caller.account.id, site_id, lock=True)
        before = _synonyms(site)
        edit_settings(session, caller.account.id, site_id, change)
    _send_synonyms(runtime, site, before)


def _synonyms(site: Site) -> SearchSettings:
    """Return the settings that decide the synonyms in a server's index."""
    settings = read_settings(site.search_settings)
    return SearchSettings(settings.language if settings.synonyms else None, settings.synonyms)


def _send_synonyms(runtime: Runtime, site: Site, before: SearchSettings) -> None:
    """Send changed synonyms to an engine that stores synonyms. After a failure, the site's next search sends them."""
    after = _synonyms(site)
    if after == before or not runtime.engines.knows(site.engine):
        return
    try:
        runtime.engines.get_engine(site.engine).send_synonyms(site.engine_index, after)
    except (BackendUnavailable, IndexNotFound) as error:
        log.info("cannot send the synonyms of site %d until its next search: %s", site.id, error)


def _edit(
    runtime: Runtime, caller: Caller, site_id: int, kind: ResultList, query: str, change: Callable[[list[str]], None]
) -> None:
    normalized = normal_form(query)

    def edit(settings: dict[str, Any]) -> None:
        entries: list[dict[str, Any]] = settings[kind]
        indexes = [index for index, entry in enumerate(entries) if entry["query"] == normalized]
        ids = (
            list(dict.fromkeys(entries[indexes[-1]]["ids"])) if indexes else []
        )  # If a query occurs several times, the last entry applies.
        change(ids)
        others = [entry for entry in entries if entry["query"] != normalized]
        if ids:
            others.insert(indexes[0] if indexes else len(others), {"query": normalized, "ids": ids})
        _check_list_length(kind, others, ids)
        settings[kind] = others

    edit_together(runtime, caller, site_id, edit)


def _check_list_length(kind: ResultList, entries: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> None:
    if len(ids) > MAX_PINNED_IDS:
        raise field_error(kind, "too_long", f"can have at most {counted(MAX_PINNED_IDS, 'page')} for one query")
    if len(entries) > MAX_PINNED_QUERIES:
        raise field_error(kind, "too_long", f"can contain pages for at most {counted(MAX_PINNED_QUERIES, 'search')}")
