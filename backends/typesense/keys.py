"""Keys for searching one Typesense collection directly.

Every holder has one parent key per index, which can only do ``documents:search`` there and never leaves the server.
Clients get scoped keys derived from it: the collection, the expiry, and the number of searches per request are embedded
and signed, so that clients cannot change them. (A plain search key would be unsafe: with ``?collection=``, its searches
run on another collection.) Deleting the parent revokes all of them at once.

The parent's value is computed from the operator's key and a random nonce stored in the key's description. So any
process can recompute it, nothing secret is stored, and after a revocation a new parent does not revive old keys.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from typesense.key import Key
from typesense.keys import Keys

from backends.errors import UnreadableResponse
from backends.servers.http import Response
from backends.typesense.results import RejectedByTypesense
from backends.typesense.transport import TypesenseTransport

MAX_SEARCHES_PER_REQUEST = 10
"""Maximum number of searches in one ``/multi_search`` request of a client."""

_MARK = "site-search"
_NEVER = 64_723_363_199
_PREFIX_LENGTH = 4


class TypesenseKeys:
    """Issues and revokes search keys."""

    def __init__(self, transport: TypesenseTransport, operator_key: str):
        self._transport = transport
        self._operator_key = operator_key.encode()
        self._keys = Keys(transport)
        self._parents: dict[tuple[str, str], tuple[int, str]] = {}

    def issue(self, index: str, reference: str, expires_at: datetime) -> str:
        """Return a new scoped key that can search ``index`` until ``expires_at``.

        All keys with the same reference are revoked together.
        """
        parent = self._find_parent(index, reference) or self._make_parent(index, reference)
        embedded: Any = {
            "collection": index,
            "expires_at": int(expires_at.timestamp()),
            "limit_multi_searches": MAX_SEARCHES_PER_REQUEST,
        }
        return self._keys.generate_scoped_search_key(parent, embedded).decode()

    def revoke(self, reference: str) -> None:
        """Revoke every key with this reference, and wait until no live node accepts them."""
        for cached in [pair for pair in self._parents if pair[1] == reference]:
            self._parents.pop(cached, None)
        parents = [key["id"] for key in self._listed() if _description(key)[:1] == [reference]]
        for number in parents:
            try:
                Key(self._transport, number).delete()
            except RejectedByTypesense as error:
                if error.status != 404:
                    raise
        for number in parents:
            self._transport.cluster.await_everywhere(_answers(f"/keys/{number}", 404))

    def _find_parent(self, index: str, reference: str) -> str | None:
        remembered = self._parents.get((index, reference))
        if remembered is not None and self._is_alive(remembered[0], index, reference):
            return remembered[1]
        for key in self._listed():
            parts = _description(key)
            if len(parts) == 3 and parts[:2] == [reference, index]:
                return self._remember(index, reference, int(key["id"]), parts[2])
        return None

    def _is_alive(self, number: int, index: str, reference: str) -> bool:
        try:
            key = cast(Any, Key(self._transport, number).retrieve())
        except RejectedByTypesense as error:
            if error.status == 404:
                return False
            raise
        return _description(key)[:2] == [reference, index]

    def _make_parent(self, index: str, reference: str) -> str:
        nonce = secrets.token_hex(8)
        key = self._keys.create(
            {
                "description": f"{_MARK} {reference} {index} {nonce}",
                "actions": ["documents:search"],
                "collections": [index],
                "expires_at": _NEVER,
                "value": self._value(index, reference, nonce),
            }
        )
        number = int(key["id"])
        self._transport.cluster.await_everywhere(_answers(f"/keys/{number}", 200))
        return self._remember(index, reference, number, nonce)

    def _remember(self, index: str, reference: str, number: int, nonce: str) -> str:
        value = self._value(index, reference, nonce)
        self._parents[(index, reference)] = (number, value)
        return value

    def _value(self, index: str, reference: str, nonce: str) -> str:
        # Scoped keys show the first characters of their parent in clear, so these are not part of the secret.
        digest = hmac.new(self._operator_key, f"{reference} {index} {nonce}".encode(), sha256).hexdigest()
        return nonce[:_PREFIX_LENGTH] + digest

    def _listed(self) -> list[dict[str, Any]]:
        keys = cast(Any, self._keys.retrieve()).get("keys")
        if not isinstance(keys, list):
            raise UnreadableResponse
        return keys


def _description(key: dict[str, Any]) -> list[str]:
    mark, *parts = str(key.get("description", "")).split(" ")
    return parts if mark == _MARK else []


def _answers(path: str, status: int) -> Callable[[Callable[[str], Response]], bool]:
    return lambda ask: ask(path).status == status
