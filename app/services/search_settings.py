"""A site's search settings, in the stored form and in the engines' form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from copy import deepcopy
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import ClickLessons, Site
from app.services.search_rules import NO_RULES, RuleSet
from app.services.sites import get_site
from backends.filters import parse_filter
from backends.query import Boost, OneWaySynonyms, Preferred, Recency, SearchSettings

Gains = Mapping[str, Mapping[str, float]]
"""Number of positions that documents move up, by query in normal form, then by document ID
(:mod:`app.operations.learning`).
"""


def read_settings(stored: Mapping[str, Any]) -> SearchSettings:
    """Convert stored JSON to a value for the engines."""
    if not stored:
        return SearchSettings()
    stop_words, preferred, recency = (stored.get(name) for name in ("stop_words", "preferred", "recency"))
    return SearchSettings(
        language=stored.get("language"),
        synonyms=tuple(map(_synonyms, stored.get("synonyms", ()))),
        stop_words=None if stop_words is None else frozenset(stop_words),
        pinned=_by_query(stored.get("pinned", ())),
        hidden=_by_query(stored.get("hidden", ())),
        weights=dict(stored.get("weights", {})),
        distinct=stored.get("distinct") or "",
        preferred=Preferred(**preferred) if preferred else None,
        boosts=tuple(_boost(entry) for entry in stored.get("boosts", ())),
        rank_field=stored.get("rank_field") or "",
        recency=Recency(**recency) if recency else None,
        answers=shows_answers(stored),
        semantic=is_semantic(stored),
    )


def _synonyms(entry: Any) -> tuple[str, ...] | OneWaySynonyms:
    return OneWaySynonyms(entry["from"], tuple(entry["to"])) if isinstance(entry, Mapping) else tuple(entry)


def read_rules(stored: Mapping[str, Any]) -> RuleSet:
    """Return the rules in stored JSON, prepared for matching."""
    rules = stored.get("rules")
    return RuleSet(rules, stored.get("language")) if rules else NO_RULES


def _boost(entry: Mapping[str, Any]) -> Boost:
    text = entry.get("filters")
    return Boost(entry["rank"], None if text is None else parse_filter(text), entry.get("path", ""))


def _by_query(entries: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    return {entry["query"]: tuple(entry["ids"]) for entry in entries}


def settings_with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored JSON with defaults filled in, as responses show it."""
    return {
        "language": stored.get("language"),
        "synonyms": stored.get("synonyms", []),
        "stop_words": stored.get("stop_words"),
        "pinned": stored.get("pinned", []),
        "hidden": stored.get("hidden", []),
        "weights": stored.get("weights", {}),
        "suggestions_hidden": stored.get("suggestions_hidden", []),
        "distinct": stored.get("distinct"),
        "preferred": stored.get("preferred"),
        "learn_from_clicks": learns_from_clicks(stored),
        "rules": stored.get("rules", []),
        "boosts": stored.get("boosts", []),
        "rank_field": stored.get("rank_field"),
        "recency": stored.get("recency"),
        "no_results_links": stored.get("no_results_links", []),
        "no_results_popular": stored.get("no_results_popular", 0),
        "answers": shows_answers(stored),
        "semantic": is_semantic(stored),
        "ask": may_ask(stored),
        "ask_instructions": stored.get("ask_instructions", ""),
    }


def is_semantic(stored: Mapping[str, Any]) -> bool:
    """Whether hits for sentences are ranked by meaning as well as by words."""
    return bool(stored.get("semantic", False))


def may_ask(stored: Mapping[str, Any]) -> bool:
    """Whether visitors can ask questions that a language model answers."""
    return bool(stored.get("ask", False))


def shows_answers(stored: Mapping[str, Any]) -> bool:
    """Whether searches for questions return a passage that answers them."""
    return bool(stored.get("answers", False))


def learns_from_clicks(stored: Mapping[str, Any]) -> bool:
    """Whether clicks change the order of a site's results."""
    return bool(stored.get("learn_from_clicks", False))


def read_gains(session: Session, site: Site) -> Gains:
    """Return the gains for searches on a site; empty, without reading SQL, if the site does not learn from clicks."""
    if not learns_from_clicks(site.search_settings):
        return {}
    lessons = session.get(ClickLessons, site.id)
    return {} if lessons is None else lessons.gains


def list_learned(session: Session, account_id: int, site_id: int) -> Gains:
    """Return the gains that a site learned from clicks, sorted by query, whether or not searches use them.

    Raises:
        ApiError: 404.
    """
    lessons = session.get(ClickLessons, get_site(session, account_id, site_id).id)
    gains = {} if lessons is None else lessons.gains
    return {
        query: dict(sorted(documents.items(), key=lambda each: (-each[1], each[0])))
        for query, documents in sorted(gains.items())
    }


def forget_clicks(session: Session, account_id: int, site_id: int) -> None:
    """Delete the ranking that a site has learned from clicks, so that it learns only from new clicks.

    Raises:
        ApiError: 404.
    """
    site = get_site(session, account_id, site_id, lock=True)
    session.merge(ClickLessons(site_id=site.id, learned_day=None, clicks_since=now(), gains={}))


def settings_tag(stored: Mapping[str, Any], names: Collection[str] | None = None) -> str:
    """Return the entity tag of settings, without quotes. Equal settings have equal tags.

    Args:
        names: The settings that the tag depends on; ``None`` for all.
    """
    settings = {name: value for name, value in settings_with_defaults(stored).items() if names is None or name in names}
    return sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def change_settings(
    session: Session, account_id: int, site_id: int, settings: Mapping[str, Any], expected: Set[str] | None = None
) -> Site:
    """Replace a site's search settings. The next search uses them; nothing is reindexed.

    Args:
        expected: Tags of the settings that may be replaced; ``None`` for any.

    Raises:
        ApiError: 404; 412 if the current settings have another tag.
    """
    site = get_site(session, account_id, site_id, lock=True)
    tag = settings_tag(site.search_settings)
    if expected is not None and tag not in expected:
        raise changed_meanwhile(tag)
    site.search_settings = settings_with_defaults(settings)
    site.updated_at = now()
    session.flush()
    return site


def changed_meanwhile(tag: str) -> ApiError:
    """Return the 412 for settings that have another tag than expected."""
    return ApiError(
        ErrorCode.CHANGED_MEANWHILE,
        "The search settings have changed in the meantime; fetch them again and repeat your change.",
        headers={"ETag": f'"{tag}"'},
    )


def edit_settings(
    session: Session, account_id: int, site_id: int, edit: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Change a part of a site's search settings. Concurrent edits are serialized.

    Args:
        edit: Changes the current settings in place.

    Returns:
        The resulting settings.

    Raises:
        ApiError: 404, and errors of ``edit``.
    """
    site = get_site(session, account_id, site_id, lock=True)
    # A copy, because SQLAlchemy detects a change of JSON only if the value is replaced.
    settings = deepcopy(settings_with_defaults(site.search_settings))
    edit(settings)
    site.search_settings = settings
    site.updated_at = now()
    session.flush()
    return settings


def named_ids(settings: Mapping[str, Any]) -> list[str]:
    """Return the IDs that settings and their rules pin or hide, each once."""
    lists = [entry["ids"] for entry in (*settings["pinned"], *settings["hidden"])]
    lists += [rule["do"].get(name, ()) for rule in settings["rules"] for name in ("pin", "hide")]
    return list(dict.fromkeys(id for ids in lists for id in ids))
