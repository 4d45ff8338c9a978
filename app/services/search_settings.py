"""A site's search settings, as stored and as the engines take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.clock import now
from app.models import Site
from app.services.sites import get_site
from backends.base import SearchSettings


def read_settings(stored: Mapping[str, Any]) -> SearchSettings:
    """The stored JSON as a value."""
    if not stored:
        return SearchSettings()
    stop_words = stored.get("stop_words")
    return SearchSettings(
        language=stored.get("language"),
        synonyms=tuple(tuple(group) for group in stored.get("synonyms", ())),
        stop_words=None if stop_words is None else frozenset(stop_words),
        pinned={entry["query"]: tuple(entry["ids"]) for entry in stored.get("pinned", ())},
        weights=dict(stored.get("weights", {})),
    )


def shown_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The stored JSON with the defaults filled in, as answers show it."""
    return {
        "language": stored.get("language"),
        "synonyms": stored.get("synonyms", []),
        "stop_words": stored.get("stop_words"),
        "pinned": stored.get("pinned", []),
        "weights": stored.get("weights", {}),
    }


def change_settings(session: Session, account_id: int, site_id: int, settings: Mapping[str, Any]) -> Site:
    """Replace a site's search settings; the next search follows them, nothing is indexed anew.

    Raises:
        ApiError: 404.
    """
    site = get_site(session, account_id, site_id, lock=True)
    site.search_settings = shown_settings(settings)
    site.updated_at = now()
    session.flush()
    return site
