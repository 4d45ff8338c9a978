"""The common part of the search engines that are servers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import ClassVar, Protocol, Self

from backends.base import Credential, SearchBackend
from backends.servers.document_ids import checked_index_name, encode_id
from backends.servers.http import HttpPool
from backends.servers.replies import readable, translated
from backends.servers.server_url import ServerUrl


class ServerKeys(Protocol):
    """Issues and ends a server's own search keys."""

    def issue(self, index: str, reference: str, expires_at: datetime) -> str:
        """A key that can search ``index`` until ``expires_at``; all with one reference are ended together."""
        ...

    def revoke(self, reference: str) -> None:
        """End every key with this reference."""
        ...


class ServerBackend(SearchBackend):
    """A search server, or a cluster of them.

    Attributes:
        default_port: The server's port where its URL names none.
    """

    default_port: ClassVar[int]
    issues_credentials = True
    keeps_synonyms = True
    _pool: HttpPool
    _keys: ServerKeys

    def __init__(self, url: ServerUrl):
        self.identity = url.identity

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Build from ``scheme://:key@host:port``; see :meth:`.ServerUrl.parse`.

        Raises:
            ValueError: The URL is not of this form.
        """
        return cls(ServerUrl.parse(url, default_port=cls.default_port))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"

    def issue_credential(self, index: str, holder: str, expires_at: datetime) -> Credential:
        # Of this index: another installation on the same server may have holders of the same names.
        reference = sha256(f"holder {holder} {index}".encode()).hexdigest()[:32]
        with translated(index), readable():
            return Credential(self._keys.issue(checked_index_name(index), reference, expires_at), reference)

    def revoke_credential(self, reference: str) -> None:
        with translated(), readable():
            self._keys.revoke(reference)

    def close(self) -> None:
        self._pool.close()


def engine_ids(ids: Sequence[str]) -> list[str]:
    """The server's own keys of some documents, each once."""
    return list(dict.fromkeys(map(encode_id, ids)))
