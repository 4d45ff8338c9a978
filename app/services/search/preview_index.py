"""Searching a site as if it had other synonyms, on engines that take synonyms from the index.

Nobody else may notice. So the documents that could be among the first are copied, for a moment, into an index of their
own. Such an engine ranks a document by the query and the document alone, not by how rare a word is among all: the copy
gives the order that the site's index would.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import islice, zip_longest
from typing import Any, Protocol

from app.clock import now
from app.services import outbox
from app.services.access.credentials import SiteRecord
from app.services.engines import Engines
from app.services.search.search import Searcher, for_site
from app.storage.database import Database
from backends.base import MATCH_ALL, STANDARD_FIELDS, Document, Hit, SearchBackend, SearchQuery, SearchSettings
from backends.errors import BackendError
from backends.filters import OneOf
from backends.servers.synonyms import SynonymChange

MAX_REWORDINGS = 200
"""Most searches that look for documents to copy, beside one for each query."""

MIN_CANDIDATES, MAX_CANDIDATES = 20, 100
"""Documents taken of each search; with twenty, no engine looks for less fitting ones."""

MAX_COPIED = 400
"""Most documents copied: Meilisearch takes half a second for so many."""

MAX_COPIED_BYTES = 16_777_216
"""Documents beyond are not copied either."""

DELETED_AFTER = timedelta(minutes=5)
"""When the jobs delete an index whose process was killed."""

_PAGE = 100

log = logging.getLogger(__name__)

Found = tuple[Sequence[Hit], bool]
"""Hits, and whether all documents that could be among them were looked at."""


class PreviewParts(Protocol):
    """The parts of a process that a preview needs."""

    @property
    def database(self) -> Database: ...

    @property
    def engines(self) -> Engines: ...

    @property
    def searcher(self) -> Searcher: ...


def search_with_synonyms(
    part: PreviewParts, record: SiteRecord, searches: Sequence[SearchQuery], change: SynonymChange
) -> dict[str, Found]:
    """Search with the synonyms of each query's settings, whatever those of the index are.

    Args:
        record: The site, with the settings that its index follows.
        change: How the queries' synonyms differ from those.

    Returns:
        What each text finds.

    Raises:
        BackendUnavailable: The engine cannot answer now.
    """
    most = MAX_REWORDINGS // len(searches)
    texts = [[search.text, *islice(change.rewordings(search.text), most + 1)] for search in searches]
    depth = min(MAX_CANDIDATES, max(MIN_CANDIDATES, MAX_COPIED // sum(map(len, texts))))
    rankings: list[Sequence[str]] = []
    covered: list[bool] = []
    for search, wordings in zip(searches, texts, strict=True):
        found = [_candidates(part, record, search, text, depth) for text in wordings[: most + 1]]
        rankings += [search.pinned, *(ids for ids, _ in found)]
        covered.append(len(wordings) <= most + 1 and all(total <= depth for _, total in found))
    best_first = (id for rank in zip_longest(*rankings) for id in rank if id is not None)
    documents, all_copied = _copies(part, record, list(dict.fromkeys(best_first)))
    engine = part.engines.get_engine(record.engine)
    with _temporary_index(part.database, engine, record) as index:
        # Synonyms of an index without documents are changed at once; of others, after going through all of them.
        engine.search(index, SearchQuery(MATCH_ALL, limit=0, settings=searches[0].settings))
        engine.upsert(index, documents, {})
        return {
            search.text: (engine.search(index, replace(search, kinds={})).hits, whole and all_copied)
            for search, whole in zip(searches, covered, strict=True)
        }


def _candidates(
    part: PreviewParts, record: SiteRecord, search: SearchQuery, text: str, depth: int
) -> tuple[list[str], int]:
    """The ids that ``text``, in place of a query's own, finds first with the synonyms of the index; and how many."""
    settings = replace(search.settings, synonyms=record.settings.synonyms, pinned={}, hidden={})
    reworded = replace(search, text=text, limit=depth, filter=search.condition, settings=settings)
    timed = part.searcher.run(record, reworded, lambda hit: hit.id.encode(), part.searcher.new_room())
    return [id.decode() for id in timed.hits], timed.result.total


def _copies(part: PreviewParts, record: SiteRecord, ids: Sequence[str]) -> tuple[list[Document], bool]:
    """The documents with these ids, as far as they are searched, and whether these are all of them.

    Among documents that match alike, those changed last come first, and of those changed together the engine decides.
    Their order among all is therefore theirs in the copy.
    """
    wanted = tuple(ids[:MAX_COPIED])
    found: list[dict[str, Any]] = []
    room = MAX_COPIED_BYTES

    def take(hit: Hit) -> bytes:
        nonlocal room
        room -= len(hit.json)
        if room >= 0:
            found.append({name: hit.document[name] for name in STANDARD_FIELDS if name in hit.document})
        return b""  # The room of an answer is for what is answered.

    plain = SearchSettings(synonyms=record.settings.synonyms)
    for offset in range(0, len(wanted), _PAGE):
        search = SearchQuery(MATCH_ALL, limit=_PAGE, offset=offset, filter=OneOf("id", wanted))
        part.searcher.run(record, replace(for_site(search, record), settings=plain), take, part.searcher.new_room())
    documents = [Document(fields["id"], fields, len(found) - place) for place, fields in enumerate(found)]
    return documents, room >= 0 and len(wanted) == len(ids)


@contextmanager
def _temporary_index(database: Database, engine: SearchBackend, record: SiteRecord) -> Iterator[str]:
    index = f"preview_{record.id}_{secrets.token_hex(8)}"
    with database.write() as session:
        outbox.add(session, engine.identity, outbox.DELETE_INDEX, index, due_at=now() + DELETED_AFTER)
    try:
        engine.create_index(index)
        yield index
    finally:
        try:
            engine.delete_index(index)
        except BackendError as error:
            log.warning("index %s is deleted later: %s", index, error)
