"""The common part of the search engines that are servers."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import ClassVar, Protocol, Self

from backends.base import Credential, Hit, SearchBackend
from backends.errors import BackendUnavailable
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery, SearchSettings
from backends.related import narrowed, page_with_first_value, page_words, weigh
from backends.servers.documents import checked_index_name, encode_id
from backends.servers.http import HttpPool
from backends.servers.locks import NamedLocks, ThreadLocks
from backends.servers.related import MAX_REQUESTED_WORDS, candidate_search, rarities, related_hits
from backends.servers.responses import readable, translated, with_fields, within_budget
from backends.servers.server_url import ServerUrl
from backends.servers.synonyms import Entries, SynonymIndex
from backends.servers.tokenizer import cut_word, spell_signs, split_words
from backends.text import UNSPACED_RUN

_SYNONYM_SECONDS = 1.0
"""Maximum number of seconds that a search spends on sending changed synonyms."""

_SYNONYM_PAUSE_SECONDS = 30.0
"""Seconds between attempts of searches to send synonyms after a failure."""
log = logging.getLogger(__name__)


class ServerKeys(Protocol):
    """Issues and revokes a server's own search keys."""

    def issue(self, index: str, reference: str, expires_at: datetime) -> str:
        """Create a key that can search ``index`` until ``expires_at``; keys with one reference are revoked together."""
        ...

    def revoke(self, reference: str) -> None:
        """Revoke every key with this reference."""
        ...


class ServerBackend(SearchBackend):
    """A search server, or a cluster of them.

    Attributes:
        default_port: Port of the server if its URL contains none.
        locks: Locks shared by all processes that send synonyms; by default, only by the threads of this process.
    """

    default_port: ClassVar[int]
    is_remote = True
    issues_credentials = True
    keeps_synonyms = True
    locks: NamedLocks
    _pool: HttpPool
    _keys: ServerKeys

    def __init__(self, url: ServerUrl, locks: NamedLocks | None = None):
        self.identity = url.identity
        self.locks = locks or ThreadLocks()
        self._sent_synonyms: dict[str, Entries] = {}
        self._synonym_pauses: dict[str, float] = {}

    @classmethod
    def from_url(cls, url: str, locks: NamedLocks | None = None) -> Self:
        """Build from ``scheme://:key@host:port``; see :meth:`.ServerUrl.parse`.

        Raises:
            ValueError: The URL does not have this form.
        """
        return cls(ServerUrl.parse(url, default_port=cls.default_port), locks)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"

    def send_synonyms(self, index: str, settings: SearchSettings) -> None:
        name = checked_index_name(index)
        entries = SynonymIndex.of(settings).entries
        with self.locks.hold(_lock_name(name)), translated(index), readable():
            self._put_synonyms(name, entries, is_first=name not in self._sent_synonyms)
            self._sent_synonyms[name] = entries

    def _follow_synonyms(self, name: str, query: SearchQuery) -> None:
        """Send a search's synonyms if they differ from the last ones sent, except within 30 seconds after a failure.

        Sends nothing while another thread or process is sending, because two senders could delete each other's entries.
        """
        entries = SynonymIndex.of(query.settings).entries
        if (
            # A preview must not replace the synonyms that the site's visitors search with.
            query.is_preview
            or self._sent_synonyms.get(name) == entries
            or time.monotonic() < self._synonym_pauses.get(name, 0.0)
        ):
            return
        with self.locks.try_hold(_lock_name(name)) as is_held:
            if is_held:
                self._try_to_send(name, entries)

    def _try_to_send(self, name: str, entries: Entries) -> None:
        seconds = min(_SYNONYM_SECONDS, self._pool.timeout_seconds / 5)
        try:
            with translated(name), readable():
                self._put_synonyms(name, entries, is_first=name not in self._sent_synonyms, seconds=seconds)
        # The search runs anyway: with old synonyms it is better than none.
        except BackendUnavailable as error:
            self._synonym_pauses[name] = time.monotonic() + _SYNONYM_PAUSE_SECONDS
            log.warning("index %s keeps its old synonyms for now: %s (%s)", name, error, error.__cause__)
        else:
            self._sent_synonyms[name] = entries

    def _forget_synonyms(self, name: str) -> None:
        self._sent_synonyms.pop(name, None)
        self._synonym_pauses.pop(name, None)

    @abstractmethod
    def _put_synonyms(self, name: str, entries: Entries, *, is_first: bool, seconds: float | None = None) -> None:
        """Replace the synonyms of an index on the server.

        Args:
            is_first: Whether this process has not sent any yet, so that the index may already have these.
            seconds: Time limit; ``None`` for the usual limit of each request.
        """

    def issue_credential(self, index: str, holder: str, expires_at: datetime) -> Credential:
        # The index is part of the reference: another installation on the server may have holders of the same names.
        reference = sha256(f"holder {holder} {index}".encode()).hexdigest()[:32]
        with self._pool.operation(), translated(index), readable():
            return Credential(self._keys.issue(checked_index_name(index), reference, expires_at), reference)

    def revoke_credential(self, reference: str) -> None:
        with self._pool.operation(), translated(), readable():
            self._keys.revoke(reference)

    def find_related(self, index: str, page: OneOf, query: SearchQuery) -> tuple[Hit, ...] | None:
        with self._pool.operation():
            # As a preview, so that the index keeps its synonyms.
            lookup = SearchQuery(
                MATCH_ALL, limit=len(page.values), portable_filter=page, kinds=query.kinds, is_preview=True
            )
            documents = [hit.document for hit in self.search(index, lookup).hits]
            with readable():
                document = page_with_first_value(documents, page)
            if document is None:
                return None
            query = narrowed(query, document)
            words = page_words(document, query.settings)[:MAX_REQUESTED_WORDS]
            if not words:
                self.search(index, replace(query, limit=0))  # Rejects invalid filters.
                return ()
            name = checked_index_name(index)
            with translated(index):
                counts = self._count_documents(name, [forms[0] for _, forms in words])
            words = weigh(words, rarities(counts))
            hits = self.search(index, candidate_search(query, words)).hits
            related = related_hits(document, hits, query, words)
            return within_budget((with_fields(hit, query) for hit in related), query.max_bytes)

    @abstractmethod
    def _count_documents(self, name: str, words: Sequence[str]) -> Sequence[int]:
        """Return the number of all documents of an index, followed by the number of documents with each word."""

    def close(self) -> None:
        self._pool.close()


def _lock_name(index: str) -> str:
    return f"synonyms_{index}"


def engine_ids(ids: Sequence[str]) -> list[str]:
    """Return the server's own keys of documents with these IDs, without duplicates."""
    return list(dict.fromkeys(map(encode_id, ids)))


_MAX_WORDS = 24


def title_query(text: str, limit: int, within: SearchQuery | None = None) -> SearchQuery | None:
    """Return a search for titles with the words of ``text``, without query syntax; ``None`` if it has no words.

    Args:
        within: A search whose filters also apply.
    """
    words = [cut_word(word) for word in split_words(spell_signs(text))[:_MAX_WORDS]]
    if not words:
        return None
    every_word = SearchSettings(stop_words=frozenset())
    query = SearchQuery(" ".join(words), limit, fields=("title",), all_words=True, settings=every_word)
    return (
        query
        if within is None
        else replace(
            query, native_filter=within.native_filter, portable_filter=within.portable_filter, kinds=within.kinds
        )
    )


def has_word_prefixes(title: str, words: Sequence[str]) -> bool:
    """Whether a title contains all words, the last one as a prefix."""
    title_words = [cut_word(word) for word in split_words(spell_signs(title))]
    *finished, last = words
    return all(_has(title_words, word) for word in finished) and any(
        last in word if UNSPACED_RUN.match(last) else word.startswith(last) for word in title_words
    )


def _has(title_words: Sequence[str], word: str) -> bool:
    return word in title_words or (UNSPACED_RUN.match(word) is not None and any(word in run for run in title_words))
