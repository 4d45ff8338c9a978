"""Pages by their titles: what somebody typed to name one, and what ids are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson
from sqlalchemy.orm import Session

from app.models import Site
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.indexing.stored_documents import known_ids, read_stored
from app.services.search.plain_search import find_ids, find_ids_at
from backends.base import SearchQuery
from schemas.validation.documents import MAX_ID_LENGTH

OFFERED = 5
"""Pages that are offered for a text that may mean several."""


class Picker:
    """Finds the pages that people mean; without a script, by what they typed.

    Attributes:
        offered: Place of a list to the ids of pages that may be meant.
        problems: Place of a list to what keeps it from having the page.
    """

    def __init__(self, site: Site):
        self._site = site
        self.offered: dict[str, list[str]] = {}
        self.problems: dict[str, list[str]] = {}

    def add(self, place: str, ids: Sequence[str], typed: str) -> list[str]:
        """The ids of a list, with that of the page that ``typed`` names, if one does.

        Raises:
            BackendUnavailable: The engine cannot find it now.
        """
        typed = typed.replace("\x00", "")[:MAX_ID_LENGTH]
        if not typed:
            return list(ids)
        meant = self._find(typed)
        if len(meant) == 1:
            return list(dict.fromkeys((*ids, *meant)))
        if meant:
            self.offered[place] = [id for id in meant if id not in ids]
            self.problems[place] = [f"Several pages may be meant by “{typed}”: tick the right one."]
        else:
            self.problems[place] = [f"No page was found for “{typed}”."]
        return list(ids)

    def _find(self, typed: str) -> list[str]:
        with runtime().database.read() as session:
            if known_ids(session, self._site.id, [typed]):
                return [typed]
        searcher, record = runtime().searcher, site_record(self._site)
        if typed.startswith(("/", "http://", "https://")):
            return find_ids_at(searcher, record, (typed,), OFFERED)
        found = find_ids(searcher, record, SearchQuery(typed, limit=OFFERED))
        with runtime().database.read() as session:
            titles = titles_of(session, self._site.id, found)
        exact = [id for id in found if titles.get(id, "").casefold() == typed.casefold()]
        return exact or found


def titles_of(session: Session, site_id: int, ids: Iterable[str]) -> Mapping[str, str]:
    """Id to the title of its page; its address where it has none. Ids that no page has are left out."""
    titles = {}
    for stored in read_stored(session, site_id, list(dict.fromkeys(ids))):
        fields = orjson.loads(stored.body)
        titles[stored.id] = str(fields["title"] or fields["url"])
    return titles
