"""A Meilisearch 1.50 inside the test, reached through ``responses``. Reading a task applies its change."""

from __future__ import annotations

import base64
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
import responses

from backends.errors import BackendRejected
from backends.filters import parse_filter
from tests.backends.fakes.meilisearch_filters import holds, names_in
from tests.backends.fakes.meilisearch_text import Matching, ranked, words_in, words_of

Reply = tuple[int, dict[str, str], bytes]
NOT_ENABLED = (
    "Using `CONTAINS` in a filter requires enabling the `contains filter` experimental feature. See "
    "https://github.com/orgs/meilisearch/discussions/763"
)
NO_VECTORS = (
    "using a vector filter requires enabling the `multimodal` experimental feature. See "
    "https://github.com/orgs/meilisearch/discussions/846"
)
_PK = re.compile(r"[A-Za-z0-9_-]{1,511}")
_NOW = "2026-01-01T00:00:00.000000Z"


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Index:
    def __init__(self, uid: str, primary_key: str | None):
        self.uid, self.primary_key = uid, primary_key
        self.documents: dict[str, dict[str, Any]] = {}
        self.settings: dict[str, Any] = {
            "searchableAttributes": ["*"],
            "filterableAttributes": [],
            "sortableAttributes": [],
            "synonyms": {},
            "separatorTokens": [],
            "typoTolerance": {"minWordSizeForTypos": {"oneTypo": 5, "twoTypos": 9}},
            "rankingRules": ["words", "typo", "proximity", "attribute", "sort", "exactness"],
            "pagination": {"maxTotalHits": 1000},
            "faceting": {"maxValuesPerFacet": 100},
        }

    def summary(self) -> dict[str, Any]:
        return {"uid": self.uid, "createdAt": _NOW, "updatedAt": _NOW, "primaryKey": self.primary_key}


class FakeMeilisearch:
    """The server. ``fault``, if set, responds in its place; ``stuck`` leaves tasks pending."""

    def __init__(self, key: str = "master-key-of-the-tests", host: str = "ms1:7700"):
        self.key, self.host = key, host
        self.indexes: dict[str, Index] = {}
        self.keys: dict[str, dict[str, Any]] = {}
        self.tasks: list[dict[str, Any]] = []
        self.work: dict[int, Callable[[], None]] = {}
        self.requests: list[requests.PreparedRequest] = []
        self.fault: Callable[[requests.PreparedRequest], Reply | None] | None = None
        self.stuck = False
        self._lock = threading.RLock()

    @property
    def url(self) -> str:
        return f"meilisearch://:{self.key}@{self.host}"

    @contextmanager
    def running(self) -> Iterator[FakeMeilisearch]:
        with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                mock.add_callback(method, re.compile(f"http://{re.escape(self.host)}/.*"), callback=self.answer)
            yield self

    def answer(self, request: requests.PreparedRequest) -> Reply:
        with self._lock:
            self.requests.append(request)
            if self.fault is not None and (reply := self.fault(request)) is not None:
                return reply
            parts = urlsplit(request.url or "")
            assert ".." not in parts.path
            body = request.body or b""
            text = body.decode() if isinstance(body, bytes) else str(body)
            try:
                self.authorise(parts.path, dict(request.headers))
                return self.route(
                    request.method or "", parts.path, dict(parse_qsl(parts.query)), text, dict(request.headers)
                )
            except Refusal as refusal:
                return _error(refusal)

    # --- authorization

    def authorise(self, path: str, headers: Mapping[str, str]) -> None:
        self.allowed: set[str] | None = None
        if path == "/health":
            return
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer":
            text = "The Authorization header is missing. It must use the bearer authorization method."
            raise Refusal(401, "missing_authorization_header", text)
        if token == self.key:
            return
        if path == "/multi-search" or path.endswith("/search"):
            for key in self.keys.values():
                if token == key["key"]:
                    self.allowed = set(key["indexes"])
                    return
                if (rules := _claims(token, key)) is not None:
                    self.allowed = set(rules["searchRules"]) & set(key["indexes"])
                    return
        raise Refusal(403, "invalid_api_key", "The provided API key is invalid.")

    # --- routes

    def route(self, method: str, path: str, query: dict[str, str], body: str, headers: Mapping[str, str]) -> Reply:
        names = path.strip("/").split("/")
        if method in ("POST", "PUT", "PATCH") and names[-1] == "documents" and "Content-Type" not in headers:
            raise Refusal(
                415,
                "missing_content_type",
                "A Content-Type header is missing. Accepted values for the "
                "Content-Type header are: `application/json`, `application/x-ndjson`, `text/csv`",
            )
        wish: Any = json.loads(body, parse_float=_parsed_as_by_serde) if body else None
        match (method, names):
            case ("GET", ["health"]):
                return _json(200, {"status": "available"})
            case ("GET", ["version"]):
                return _json(200, {"commitSha": "x", "commitDate": "x", "pkgVersion": "1.50.0"})
            case ("GET", ["stats"]):
                return _json(200, {"databaseSize": 4096, "lastUpdate": _NOW, "indexes": {}})
            case ("GET", ["tasks"]):
                return _json(200, self.list_tasks(query))
            case ("GET", ["tasks", number]):
                return _json(200, self.task(int(number)))
            case ("GET", ["indexes"]):
                return _json(200, self.page([each.summary() for each in self.indexes.values()], query))
            case ("POST", ["indexes"]):
                return self.create(wish)
            case ("POST", ["multi-search"]):
                return self.multi_search(wish)
            case (_, ["keys", *rest]):
                return self.keys_route(method, rest, query, wish)
            case (("POST" | "PUT"), ["indexes", uid, "documents"]):
                return self.enqueue(
                    "documentAdditionOrUpdate", uid, lambda: self.add(uid, wish, query.get("primaryKey"))
                )
            case ("DELETE", ["indexes", uid]):
                return self.enqueue("indexDeletion", uid, lambda: self.drop(uid))
            case ("POST", ["indexes", uid, "documents", "delete-batch"]):
                return self.enqueue("documentDeletion", uid, lambda: self.remove(uid, wish))
            case ("DELETE", ["indexes", uid, "documents", pk]):
                return self.enqueue("documentDeletion", uid, lambda: self.remove(uid, [pk]))
            case ("PATCH", ["indexes", uid, "settings"]):
                return self.enqueue("settingsUpdate", uid, lambda: self.index(uid, create=True).settings.update(wish))
            case ("PUT", ["indexes", uid, "settings", "synonyms"]):
                change = {"synonyms": wish}
                return self.enqueue("settingsUpdate", uid, lambda: self.index(uid, create=True).settings.update(change))
            case ("POST", [("snapshots" | "dumps") as what]):
                return self.enqueue(f"{what.removesuffix('s')}Creation", None, lambda: None)
            case (_, ["indexes", uid, *rest]):
                return self.index_route(method, self.index(uid), rest, wish)
        raise Refusal(404, "not_found", "Not found")

    def index_route(self, method: str, index: Index, names: list[str], wish: Any) -> Reply:
        match (method, names):
            case ("GET", []):
                return _json(200, index.summary())
            case ("GET", ["settings"]):
                return _json(200, index.settings)
            case ("GET", ["settings", "synonyms"]):
                return _json(200, index.settings["synonyms"])
            case ("GET", ["stats"]):
                return _json(200, {"numberOfDocuments": len(index.documents), "isIndexing": False})
            case ("POST", ["documents", "fetch"]):
                found = [{k: v for k, v in d.items() if k in wish["fields"]} for d in index.documents.values()]
                return _json(200, self.page(found, {"limit": wish["limit"], "offset": wish["offset"]}))
            case ("GET", ["documents", pk]):
                if pk not in index.documents:
                    raise Refusal(404, "document_not_found", f"Document `{pk}` not found.")
                return _json(200, index.documents[pk])
            case ("POST", ["search"]):
                return _json(200, self.search(index, wish))
        raise Refusal(404, "not_found", "Not found")

    def page(self, found: list[Any], query: Mapping[str, Any]) -> dict[str, Any]:
        limit, offset = int(query.get("limit", 20)), int(query.get("offset", 0))
        return {"results": found[offset : offset + limit], "limit": limit, "offset": offset, "total": len(found)}

    def index(self, uid: str, *, create: bool = False) -> Index:
        if uid not in self.indexes:
            if not create:
                raise Refusal(404, "index_not_found", f"Index `{uid}` not found.")
            self.indexes[uid] = Index(uid, None)
        return self.indexes[uid]

    # --- tasks

    def enqueue(self, kind: str, uid: str | None, work: Callable[[], Any]) -> Reply:
        number = len(self.tasks)
        task = {
            "uid": number,
            "batchUid": None,
            "indexUid": uid,
            "status": "enqueued",
            "type": kind,
            "canceledBy": None,
            "details": {},
            "error": None,
            "duration": None,
            "enqueuedAt": _NOW,
            "startedAt": None,
            "finishedAt": None,
        }
        self.tasks.append(task)
        self.work[number] = work
        shown = {"taskUid": number, "indexUid": uid, "status": "enqueued", "type": kind, "enqueuedAt": _NOW}
        return _json(202, shown)

    def task(self, number: int) -> dict[str, Any]:
        if number >= len(self.tasks):
            raise Refusal(404, "task_not_found", f"Task `{number}` not found.")
        if not self.stuck:
            # The whole server has one first-in, first-out queue.
            for earlier in sorted(self.work):
                if earlier <= number:
                    self.finish(earlier)
        return self.tasks[number]

    def list_tasks(self, query: dict[str, str]) -> dict[str, Any]:
        """Return tasks, the newest first."""
        statuses, index, limit = query["statuses"].split(","), query["indexUids"], int(query["limit"])
        found = [each for each in reversed(self.tasks) if each["status"] in statuses and each["indexUid"] == index]
        shown = found[:limit]
        return {"results": shown, "total": len(found), "limit": limit, "from": shown[0]["uid"] if shown else None}

    def finish(self, number: int) -> None:
        task = self.tasks[number]
        try:
            self.work.pop(number)()
            task["status"] = "succeeded"
        except Refusal as refusal:
            task["status"] = "failed"
            task["error"] = json.loads(_error(refusal)[2])
        task |= {"batchUid": number, "duration": "PT0.05S", "startedAt": _NOW, "finishedAt": _NOW}

    def create(self, wish: dict[str, Any]) -> Reply:
        uid = wish["uid"]
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,400}", uid):
            raise Refusal(
                400,
                "invalid_index_uid",
                f"Invalid value at `.uid`: `{uid}` is not a valid index uid. Index uid "
                "can be an integer or a string containing only alphanumeric characters, hyphens (-) and "
                "underscores (_), and can not be more than 512 bytes.",
            )

        def work() -> None:
            if uid in self.indexes:
                raise Refusal(400, "index_already_exists", f"Index `{uid}` already exists.")
            self.indexes[uid] = Index(uid, wish.get("primaryKey"))

        return self.enqueue("indexCreation", uid, work)

    def drop(self, uid: str) -> None:
        self.index(uid)
        del self.indexes[uid]

    def add(self, uid: str, documents: list[dict[str, Any]], primary_key: str | None) -> None:
        index = self.index(uid, create=True)
        index.primary_key = index.primary_key or primary_key
        key = str(index.primary_key)
        for document in documents:
            if key not in document:
                text = json.dumps(document, separators=(",", ":"))
                raise Refusal(400, "missing_document_id", f"Document doesn't have a `{key}` attribute: `{text}`.")
            if not _PK.fullmatch(str(document[key])):
                raise Refusal(
                    400,
                    "invalid_document_id",
                    f"Document identifier `{json.dumps(document[key])}` is invalid. A "
                    "document identifier can be of type integer or string, only composed of alphanumeric "
                    "characters (a-z A-Z 0-9), hyphens (-) and underscores (_), and can not be more than 511 "
                    "bytes.",
                )
        for document in documents:
            index.documents[str(document[key])] = document

    def remove(self, uid: str, pks: list[str]) -> None:
        index = self.index(uid)
        for pk in pks:
            index.documents.pop(pk, None)

    # --- keys

    def keys_route(self, method: str, names: list[str], query: dict[str, str], wish: Any) -> Reply:
        if method == "POST":
            uid = wish["uid"]
            if uid in self.keys:
                text = f"`uid` field value `{uid}` is already an existing API key."
                raise Refusal(409, "api_key_already_exists", text)
            secret = hmac.new(self.key.encode(), uid.encode(), sha256).hexdigest()
            base = {"name": None, "description": None, "key": secret, "createdAt": _NOW, "updatedAt": _NOW}
            self.keys[uid] = {**base, **wish}
            return _json(201, self.keys[uid])
        if not names:
            return _json(200, self.page(list(self.keys.values()), query))
        if names[0] not in self.keys:
            raise Refusal(404, "api_key_not_found", f"API key `{names[0]}` not found.")
        if method == "DELETE":
            del self.keys[names[0]]
            return 204, {}, b""
        return _json(200, self.keys[names[0]])

    # --- searching

    def multi_search(self, wish: dict[str, Any]) -> Reply:
        if "federation" in wish:
            return _json(200, self.federated(wish["federation"], wish["queries"]))
        results = []
        for at, query in enumerate(wish["queries"]):
            uid = query["indexUid"]
            try:
                if self.allowed is not None and uid not in self.allowed:
                    names = json.dumps(sorted(self.allowed))
                    text = f"The API key cannot acces the index `{uid}`, authorized indexes are {names}."
                    raise Refusal(403, "invalid_api_key", text)
                results.append({"indexUid": uid, **self.search(self.index(uid), query)})
            except Refusal as refusal:
                status = 400 if refusal.status == 404 else refusal.status
                raise Refusal(status, refusal.code, f"Inside `.queries[{at}]`: {refusal.message}") from None
        return _json(200, {"results": results})

    def federated(self, federation: Mapping[str, Any], queries: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the hits of several queries of an index, each with its best weighted score."""
        index = self.index(queries[0]["indexUid"])
        best: dict[str, tuple[float, int, tuple[Any, float]]] = {}
        for at, query in enumerate(queries):
            assert not federation.keys() & query.keys(), "Meilisearch rejects page numbers in federated queries"
            weight = query.get("federationOptions", {}).get("weight", 1.0)
            for item in self.found(index, query):
                pk = str(item[0][index.primary_key])
                if pk not in best or best[pk][0] < item[1] * weight:
                    best[pk] = (item[1] * weight, at, item)
        merged = sorted(best.values(), key=lambda each: -each[0])
        if "sort" in queries[0]:
            order = [item[0] for item in self.sorted(index, [item for _, _, item in merged], queries[0]["sort"])]
            merged.sort(key=lambda each: next(at for at, document in enumerate(order) if document is each[2][0]))
        size, page = federation["hitsPerPage"], federation["page"]
        shown = merged[size * (page - 1) :][:size]
        result: dict[str, Any] = {
            "hits": [
                {
                    **self.hit(item, queries[at]),
                    "_federation": {"indexUid": index.uid, "queriesPosition": at, "weightedRankingScore": score},
                }
                for score, at, item in shown
            ],
            "processingTimeMs": 0, "hitsPerPage": size, "page": page,
            "totalPages": -(-len(merged) // size) if size else 0, "totalHits": len(merged), "requestUid": "0198c3a0",
        }  # fmt: skip
        if names := federation.get("facetsByIndex", {}).get(index.uid):
            counted = self.facets(index, [item[0] for _, _, item in merged], names)
            told = {"distribution": counted["facetDistribution"], "stats": counted["facetStats"]}
            result["facetsByIndex"] = {index.uid: told}
        return result

    def search(self, index: Index, wish: Mapping[str, Any]) -> dict[str, Any]:
        ranked = self.found(index, wish)
        if "distinct" in wish:
            ranked = self.distinct(index, ranked, wish["distinct"])
        hits, page = int(wish.get("hitsPerPage", 20)), int(wish.get("page", 1))
        start = hits * (page - 1)
        result: dict[str, Any] = {
            "hits": [self.hit(item, wish) for item in ranked[start : start + hits]],
            "query": wish.get("q", ""),
            "processingTimeMs": 0,
            "requestUid": "0198c3a0",
        }
        if "hitsPerPage" in wish or "page" in wish:
            pages = -(-len(ranked) // hits) if hits else 0
            result |= {"hitsPerPage": hits, "page": page, "totalPages": pages, "totalHits": len(ranked)}
        else:
            result |= {
                "limit": wish.get("limit", 20),
                "offset": wish.get("offset", 0),
                "estimatedTotalHits": len(ranked),
            }
        if "facets" in wish:
            result |= self.facets(index, [item[0] for item in ranked], wish["facets"])
        return result

    def found(self, index: Index, wish: Mapping[str, Any]) -> list[tuple[Any, float]]:
        """Return the documents that match a query, in order, each with its ranking score."""
        found = [d for d in index.documents.values() if self.passes(index, d, wish.get("filter"))]
        return self.sorted(index, self.ranked(index, found, wish), wish.get("sort", []))

    def sorted(self, index: Index, ranked: list[tuple[Any, float]], keys: list[str]) -> list[tuple[Any, float]]:
        for key in keys:
            name = key.rpartition(":")[0]
            if name not in index.settings["sortableAttributes"]:
                text = f"Index `{index.uid}`: Attribute `{name}` is not sortable."
                raise Refusal(400, "invalid_search_sort", text)
        for key in reversed(keys):
            name, _, direction = key.rpartition(":")
            there = [item for item in ranked if item[0].get(name) is not None]
            there.sort(key=lambda item: _sortable(item[0][name]), reverse=direction == "desc")
            ranked = there + [item for item in ranked if item[0].get(name) is None]
        return ranked

    def distinct(self, index: Index, ranked: list[tuple[Any, Any]], name: str) -> list[tuple[Any, Any]]:
        if name not in index.settings["filterableAttributes"]:
            text = f"Index `{index.uid}`: Attribute `{name}` is not filterable and thus, cannot be used as distinct "
            raise Refusal(400, "invalid_search_distinct", text + "attribute.")
        seen: set[Any] = set()
        shown: list[tuple[Any, Any]] = []
        for item in ranked:
            value = item[0].get(name, [])
            texts = {_distinct(each) for each in (value if isinstance(value, list) else [value])}
            if seen.isdisjoint(texts):
                shown.append(item)
                seen |= texts
        return shown

    def passes(self, index: Index, document: Mapping[str, Any], filters: Any) -> bool:
        expressions = [filters] if isinstance(filters, str) else filters or []
        for text in expressions:
            if operator := re.search(r"\bCONTAINS\b", text):
                place = f"{operator.start() + 1}:{operator.end() + 1} {text}"
                raise Refusal(400, "feature_not_enabled", f"{NOT_ENABLED}\n{place}")
            if text.startswith("_vectors"):
                raise Refusal(400, "feature_not_enabled", f"{NO_VECTORS}\n1:9 {text}")
            try:
                tree = parse_filter(text)
            except BackendRejected as error:
                place = f"{(error.position or 0) + 1}:{len(text) + 1} {text}"
                raise Refusal(400, "invalid_search_filter", f"Was expecting an operation.\n{place}") from None
            for name in names_in(tree):
                if name not in index.settings["filterableAttributes"]:
                    at = text.find(name) + 1
                    text = f"Index `{index.uid}`: Attribute `{name}` is not filterable.\n{at}:{at + len(name)} {text}"
                    raise Refusal(400, "invalid_search_filter", text)
            if not holds(tree, document):
                return False
        return True

    def ranked(self, index: Index, found: list[dict[str, Any]], wish: Mapping[str, Any]) -> list[tuple[Any, float]]:
        """Return the matching documents, each with its ranking score."""
        found = sorted(found, key=lambda d: d.get("_changed_at", 0), reverse=True)
        dated = sorted((d for d in found if "date" in d), key=lambda d: d["date"], reverse=True)
        found = dated + [d for d in found if "date" not in d]
        separators = frozenset(index.settings["separatorTokens"])
        text = wish.get("q") or ""
        if not words_of(text, separators):
            return [(document, 1.0) for document in found]
        fields = tuple(wish.get("attributesToSearchOn") or index.settings["searchableAttributes"])
        sizes = index.settings["typoTolerance"]["minWordSizeForTypos"]
        rules = Matching(fields, sizes["oneTypo"], sizes["twoTypos"])
        universe = {
            pk: {name: words_in(document[name], separators) for name in fields if name in document}
            for pk, document in index.documents.items()
        }
        pairs = [(document, universe[str(document[index.primary_key])]) for document in found]
        plain = " ".join(words_of(text, separators))
        queries = [text, *index.settings["synonyms"].get(plain, [])]
        best: dict[int, tuple[Any, float]] = {}
        for query in queries:
            strategy = wish.get("matchingStrategy", "last")
            for document, score in ranked(pairs, query, strategy, separators, rules, list(universe.values())):
                if id(document) not in best or best[id(document)][1] < score:
                    best[id(document)] = document, score
        return sorted((best[id(each)] for each in found if id(each) in best), key=lambda each: -each[1])

    def hit(self, item: tuple[Any, float], wish: Mapping[str, Any]) -> dict[str, Any]:
        document, score = item
        wanted = wish.get("attributesToRetrieve")
        hit = {k: v for k, v in document.items() if wanted is None or k in wanted}
        assert not wish.get("showMatchesPosition"), "the server parses every text of every hit for that"
        return {**hit, "_rankingScore": score} if wish.get("showRankingScore") else hit

    def facets(self, index: Index, found: list[Any], names: list[str]) -> dict[str, Any]:
        counted: dict[str, dict[str, int]] = {}
        stats: dict[str, dict[str, float]] = {}
        for name in names:
            if name not in index.settings["filterableAttributes"]:
                text = f"Invalid facet distribution: Attribute `{name}` is not filterable."
                raise Refusal(400, "invalid_search_facets", text)
            counts = counted.setdefault(name, {})
            for document in found:
                values = document.get(name, [])
                for value in dict.fromkeys(values if isinstance(values, list) else [values]):
                    shown = value if isinstance(value, str) else json.dumps(value)
                    counts[shown] = counts.get(shown, 0) + 1
                    if isinstance(value, int | float) and not isinstance(value, bool):
                        bound = stats.setdefault(name, {"min": float(value), "max": float(value)})
                        bound |= {"min": min(bound["min"], value), "max": max(bound["max"], value)}
            limit = index.settings["faceting"]["maxValuesPerFacet"]
            counted[name] = dict(sorted(counts.items(), key=lambda pair: -pair[1])[:limit])
        return {"facetDistribution": counted, "facetStats": stats}


def _sortable(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 1, json.dumps(value)
    return (1, value.casefold()) if isinstance(value, str) else (0, value)


def _distinct(value: Any) -> Any:
    """Compare texts without case and numbers by value."""
    if isinstance(value, bool):
        return json.dumps(value)
    return value.casefold() if isinstance(value, str) else float(value)


def _claims(token: str, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the claims of a tenant token if this key signed it and it has not expired."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    signature = hmac.new(key["key"].encode(), f"{parts[0]}.{parts[1]}".encode(), sha256).digest()
    if base64.urlsafe_b64encode(signature).rstrip(b"=").decode() != parts[2]:
        return None
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    return claims if claims["apiKeyUid"] == key["uid"] and claims.get("exp", 2**40) > time.time() else None


def _error(refusal: Refusal) -> Reply:
    kind = "auth" if refusal.status in (401, 403) else "invalid_request"
    link = f"https://docs.meilisearch.com/errors#{refusal.code}"
    return _json(refusal.status, {"message": refusal.message, "code": refusal.code, "type": kind, "link": link})


def _json(status: int, body: Any) -> Reply:
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


def _parsed_as_by_serde(text: str) -> float:
    """Parse a number as serde_json does by default: digits as a double, times or divided by a power of ten."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, power = float(int(whole + fraction)), int(exponent or 0) - len(fraction)
    number = digits / float(f"1e{-power}") if power < 0 else digits * float(f"1e{power}")
    return -abs(number) if text.startswith("-") else number
