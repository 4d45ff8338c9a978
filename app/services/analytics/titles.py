"""Titles of documents that visitors clicked."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from app.models import Site, StoredDocument

DocumentKey = tuple[int, str]
"""A document's site, or the collection that found it, and its ID."""


def read_titles(session: Session, keys: Sequence[DocumentKey]) -> dict[DocumentKey, str]:
    """Return the current titles of documents, without deleted ones.

    Clicks of a collection don't say which of its sites has the document. If several have a document with this ID, the
    result is their titles, joined by "or".
    """
    of_collections = Site.id.in_({site_id for site_id, _ in keys}), Site.searched_sites.is_not(None)
    searched = {
        row.id: [entry["site_id"] for entry in row.searched_sites]
        for row in session.execute(select(Site.id, Site.searched_sites).where(*of_collections))
    }
    holders = {key: [(site_id, key[1]) for site_id in searched.get(key[0], [key[0]])] for key in keys}
    stored = tuple_(StoredDocument.site_id, StoredDocument.id).in_([each for held in holders.values() for each in held])
    rows = session.execute(select(StoredDocument.site_id, StoredDocument.id, StoredDocument.body).where(stored))
    titles = {(site_id, id): str(orjson.loads(body)["title"]) for site_id, id, body in rows if body is not None}
    return {
        key: " or ".join(dict.fromkeys(titles[holder] for holder in held if holder in titles))
        for key, held in holders.items()
        if titles.keys() & held
    }
