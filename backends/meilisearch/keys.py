"""Keys for searching one Meilisearch index directly.

Every holder has a key per index that can only search it and never leaves the server. Clients get tenant tokens signed
with it, which expire on their own or with the key. A key's uid is random, so that a new key does not revive old tokens.
"""

from __future__ import annotations

import base64
import hmac
import uuid
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson

from backends.errors import UnreadableResponse
from backends.meilisearch.transport import MeilisearchTransport, RejectedByMeilisearch
from backends.servers.responses import count_in

_MARK = "site-search"
_PAGE_SIZE = 1000


class MeilisearchKeys:
    """Issues and revokes search keys."""

    def __init__(self, transport: MeilisearchTransport):
        self._transport = transport
        self._parents: dict[tuple[str, str], str] = {}

    def issue(self, index: str, reference: str, expires_at: datetime) -> str:
        """Return a new tenant token that can search ``index`` until ``expires_at``.

        All tokens with the same reference are revoked together.
        """
        name = f"{_MARK} {reference} {index}"
        parent = self._remembered(index, reference, name)
        parent = parent or next((key for key in self._listed() if key.get("name") == name), None)
        parent = parent or self._make(index, name)
        self._parents[(index, reference)] = str(parent["uid"])
        rules = {"apiKeyUid": parent["uid"], "searchRules": {index: {}}, "exp": int(expires_at.timestamp())}
        return _signed(rules, str(parent["key"]))

    def revoke(self, reference: str) -> None:
        """Delete every key with this reference."""
        for cached in [pair for pair in self._parents if pair[1] == reference]:
            self._parents.pop(cached, None)
        mark = f"{_MARK} {reference} "
        for key in [key for key in self._listed() if str(key.get("name")).startswith(mark)]:
            try:
                self._transport.ask("DELETE", f"/keys/{uuid.UUID(key['uid'])}")
            except RejectedByMeilisearch as error:
                if error.code != "api_key_not_found":
                    raise

    def _remembered(self, index: str, reference: str, name: str) -> dict[str, Any] | None:
        uid = self._parents.get((index, reference))
        if uid is None:
            return None
        try:
            key = self._transport.ask("GET", f"/keys/{uuid.UUID(uid)}")
        except RejectedByMeilisearch as error:
            if error.code == "api_key_not_found":
                return None
            raise
        return key if isinstance(key, dict) and key.get("name") == name else None

    def _make(self, index: str, name: str) -> dict[str, Any]:
        request = {"uid": str(uuid.uuid4()), "name": name, "actions": ["search"], "indexes": [index], "expiresAt": None}
        key = self._transport.ask("POST", "/keys", request)
        if not isinstance(key, dict) or key.get("uid") != request["uid"] or not key.get("key"):
            raise UnreadableResponse
        return key

    def _listed(self) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            page = self._transport.ask("GET", "/keys", params={"limit": str(_PAGE_SIZE), "offset": str(offset)})
            yield from page["results"]
            offset += _PAGE_SIZE
            if offset >= count_in(page["total"]) or not page["results"]:
                return


def _signed(claims: dict[str, Any], key: str) -> str:
    """Sign a JSON Web Token with HS256."""
    head, body = (_base64(orjson.dumps(part)) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{head}.{body}.{_base64(hmac.new(key.encode(), f'{head}.{body}'.encode(), sha256).digest())}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
