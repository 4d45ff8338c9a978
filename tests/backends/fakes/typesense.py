"""A Typesense 0.24 inside the test, reached through ``responses``."""

from __future__ import annotations

import base64
import hmac
import json
import re
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import requests
import responses

from tests.backends.fakes.typesense_filters import FilterParser, Refusal
from tests.backends.fakes.typesense_text import (
    Wishes,
    candidates,
    class_of,
    fold,
    match,
    parse_query,
    surface_words,
    tokens,
)

Reply = tuple[int, dict[str, str], bytes]
FORBIDDEN = "Forbidden - a valid `x-typesense-api-key` header must be sent."
_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "string": (lambda v: isinstance(v, str), "a string"),
    "int64": (lambda v: type(v) is int and -(2**63) <= v < 2**63, "an int64"),
    "float": (lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a float"),
    "bool": (lambda v: isinstance(v, bool), "a bool"),
}
_SORT = re.compile(r"(\w[\w-]*|_text_match)(\(missing_values: ?last\))?:(asc|desc)", re.IGNORECASE)


class Collection:
    def __init__(self, schema: Mapping[str, Any]):
        self.name: str = schema["name"]
        self.separators: list[str] = list(schema.get("token_separators", []))
        self.fields: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.words: dict[str, dict[str, list[str]]] = {}
        self.synonyms: dict[str, list[str]] = {}
        self.synonyms_of: dict[str, list[str]] = {}
        for field in schema["fields"]:
            self.add_field(field)

    def put_synonyms(self, name: str, group: list[str]) -> None:
        if name in self.synonyms:
            self.delete_synonyms(name)
        self.synonyms[name] = group
        for phrase in group:
            self.synonyms_of.setdefault(phrase, []).append(name)

    def delete_synonyms(self, name: str) -> None:
        """Delete a group as Typesense 0.24 does, which also removes its phrases from all other groups."""
        for phrase in self.synonyms.pop(name):
            self.synonyms_of.pop(phrase, None)

    def add_field(self, field: Mapping[str, Any]) -> None:
        defaults = {"facet": False, "index": True, "infix": False, "locale": "", "optional": False, "sort": False}
        self.fields[field["name"]] = {**defaults, **field}

    def summary(self) -> dict[str, Any]:
        return {
            "created_at": 1795172055, "default_sorting_field": "", "enable_nested_fields": False,
            "fields": list(self.fields.values()), "name": self.name, "num_documents": len(self.documents),
            "symbols_to_index": [], "token_separators": self.separators,
        }  # fmt: skip

    def put(self, line: str) -> str | None:
        """Store one document, or return the server's error message."""
        try:
            document = json.loads(line)
        except ValueError:
            return "Bad JSON: [json.exception.parse_error.101] parse error"
        if not isinstance(document.get("id"), str):
            return "Document's `id` field should be a string."
        for name, field in self.fields.items():
            if name not in document or not field["index"]:
                if name not in document and not field["optional"]:
                    return f"Field `{name}` has been declared in the schema, but is not found in the document."
                continue
            many, (fits, what) = field["type"].endswith("[]"), _TYPES[field["type"].removesuffix("[]")]
            value = document[name]
            if many and not (isinstance(value, list) and all(map(fits, value))):
                return f"Field `{name}` must be an array of {field['type'].removesuffix('[]')}."
            if not many and not fits(value):
                return f"Field `{name}` must be {what}."
        self.documents[document["id"]] = document
        self.words[document["id"]] = {
            name: tokens(" ".join(value) if isinstance(value := document[name], list) else value, self.separators)
            for name, field in self.fields.items()
            if field["type"] in ("string", "string[]") and field["index"] and name in document
        }
        return None

    def passing(self, filter_by: str) -> list[dict[str, Any]]:
        if not filter_by:
            return list(self.documents.values())
        test = FilterParser(filter_by, self.fields, self.separators).parse()
        return [document for document in self.documents.values() if test(document)]


class FakeTypesense:
    """One node. ``fault``, if set, responds in its place or raises an error of the transport."""

    def __init__(self, key: str = "secret-key", hosts: Iterable[str] = ("ts1:8108",)):
        self.key = key
        self.hosts = tuple(hosts)
        self.collections: dict[str, Collection] = {}
        self.keys: dict[int, dict[str, Any]] = {}
        self.requests: list[requests.PreparedRequest] = []
        self.fault: Callable[[requests.PreparedRequest], Reply | None] | None = None
        self.queued_writes = 0
        self.committed_index = 7
        self._next_key = 0
        self._lock = threading.RLock()

    @contextmanager
    def running(self) -> Iterator[FakeTypesense]:
        with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
            for host in self.hosts:
                for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                    mock.add_callback(method, re.compile(f"http://{re.escape(host)}/.*"), callback=self.answer)
            yield self

    @property
    def url(self) -> str:
        return f"typesense://:{self.key}@{','.join(self.hosts)}"

    def answer(self, request: requests.PreparedRequest) -> Reply:
        with self._lock:
            self.requests.append(request)
            if self.fault is not None and (reply := self.fault(request)) is not None:
                return reply
            parts = urlsplit(request.url or "")
            # Clients collapse dots before this point; a path that still contains them must not reach another resource.
            assert ".." not in parts.path
            body = request.body or b""
            text = body.decode() if isinstance(body, bytes) else str(body)
            try:
                return self.route(
                    request.method or "", parts.path, dict(parse_qsl(parts.query)), text, dict(request.headers)
                )
            except Refusal as refusal:
                return _json(refusal.status, {"message": refusal.message})

    # --- routes

    def route(self, method: str, path: str, query: dict[str, str], body: str, headers: Mapping[str, str]) -> Reply:
        names = [unquote(part) for part in path.strip("/").split("/")]
        if path == "/health":
            return _json(200, {"ok": True})
        key = query.pop("x-typesense-api-key", "")
        key = next((value for name, value in headers.items() if name.lower() == "x-typesense-api-key"), key)
        if names == ["multi_search"] and method == "POST":
            return self.multi_search(key, query, body)
        if key != self.key:
            raise Refusal(401, FORBIDDEN)
        if path == "/status":
            state = {"committed_index": self.committed_index, "queued_writes": self.queued_writes, "state": "LEADER"}
            return _json(200, state)
        if path == "/debug":
            return _json(200, {"state": 1, "version": "0.24.1"})
        if path == "/metrics.json":
            system = {"memory_used": "4", "memory_total": "10", "disk_used": "7", "disk_total": "10"}
            shares = {f"system_{name}_bytes": value for name, value in system.items()}
            return _json(200, {"typesense_memory_active_bytes": "29630464", **shares})
        if names[0] == "keys":
            return self.keys_route(method, names[1:], body)
        if names[0] == "collections":
            return self.collections_route(method, names[1:], query, body)
        raise Refusal(404, "Not Found")

    def collections_route(self, method: str, names: list[str], query: dict[str, str], body: str) -> Reply:
        if not names:
            if method == "GET":
                return _json(200, [each.summary() for each in self.collections.values()])
            return self.create(body)
        collection = self.collections.get(names[0])
        if collection is None:
            if method == "DELETE" and len(names) == 1:
                raise Refusal(404, f"No collection with name `{names[0]}` found.")
            raise Refusal(404, "Not found." if names[-1] == "search" else "Not Found")
        match (method, names[1:]):
            case ("GET", []):
                return _json(200, collection.summary())
            case ("DELETE", []):
                return _json(200, self.collections.pop(names[0]).summary())
            case ("PATCH", []):
                return self.alter(collection, json.loads(body)["fields"])
            case ("POST", ["documents", "import"]):
                return self.import_lines(collection, body, query.get("return_id") == "true")
            case ("POST", ["documents"]):
                return self.put_one(collection, body)
            case ("DELETE", ["documents"]):
                if "filter_by" not in query:
                    raise Refusal(400, "Parameter `filter_by` must be provided.")
                gone = collection.passing(query["filter_by"])
                for document in gone:
                    del collection.documents[document["id"]]
                return _json(200, {"num_deleted": len(gone)})
            case ("GET", ["documents", "export"]):
                wanted = [name for name in query.get("include_fields", "").split(",") if name]
                found = collection.passing(query.get("filter_by", ""))
                lines = (json.dumps({k: v for k, v in d.items() if not wanted or k in wanted}) for d in found)
                return 200, {"Content-Type": "application/octet-stream"}, "\n".join(lines).encode()
            case ("GET", ["documents", "search"]):
                return _json(200, self.search(names[0], query))
            case (("GET" | "DELETE"), ["documents", pk]):
                if pk not in collection.documents:
                    raise Refusal(404, f"Could not find a document with id: {pk}")
                return _json(200, collection.documents[pk] if method == "GET" else collection.documents.pop(pk))
            case ("GET", ["synonyms"]):
                return _json(200, {"synonyms": [{"id": k, "synonyms": v} for k, v in collection.synonyms.items()]})
            case ("PUT", ["synonyms", name]):
                collection.put_synonyms(name, json.loads(body)["synonyms"])
                return _json(200, {"id": name, "root": "", "synonyms": collection.synonyms[name]})
            case ("DELETE", ["synonyms", name]):
                if name not in collection.synonyms:
                    raise Refusal(404, "Could not find that `id`.")
                collection.delete_synonyms(name)
                return _json(200, {"id": name})
        raise Refusal(404, "Not Found")

    def create(self, body: str) -> Reply:
        schema = json.loads(body)
        if "fields" not in schema:
            raise Refusal(400, "Parameter `fields` is required.")
        if schema["name"] in self.collections:
            raise Refusal(409, f"A collection with name `{schema['name']}` already exists.")
        self.collections[schema["name"]] = Collection(schema)
        return _json(201, self.collections[schema["name"]].summary())

    def alter(self, collection: Collection, fields: list[dict[str, Any]]) -> Reply:
        for field in fields:
            if field.get("drop"):
                del collection.fields[field["name"]]
            elif field["name"] in collection.fields:
                raise Refusal(
                    400, f"Field `{field['name']}` is already part of the schema: To change this field, drop it first "
                    "before adding it back to the schema.")  # fmt: skip
            else:
                collection.add_field(field)
        return _json(200, {"fields": fields})

    def import_lines(self, collection: Collection, body: str, with_ids: bool) -> Reply:
        answers: list[dict[str, Any]] = []
        for line in body.split("\n"):
            if not line.strip():
                continue
            error = collection.put(line)
            if error is not None:
                answers.append({"code": 400, "document": line, "error": error, "success": False})
            else:
                answers.append({"success": True, **({"id": json.loads(line)["id"]} if with_ids else {})})
        self.committed_index += 1
        return 200, {"Content-Type": "text/plain; charset=utf8"}, "\n".join(map(json.dumps, answers)).encode()

    def put_one(self, collection: Collection, body: str) -> Reply:
        error = collection.put(body)
        if error is not None:
            raise Refusal(400, error)
        return _json(201, json.loads(body))

    def keys_route(self, method: str, names: list[str], body: str) -> Reply:
        if method == "POST" and not names:
            wish = json.loads(body)
            for name in ("description", "actions", "collections"):
                if name not in wish:
                    raise Refusal(400, f"Could not find a `{name}` key.")
            key = {"expires_at": 64723363199, "value": f"generated{self._next_key}", **wish, "id": self._next_key}
            self.keys[self._next_key] = key
            self._next_key += 1
            return _json(201, key)
        if not names:
            return _json(200, {"keys": [_hidden(key) for key in self.keys.values()]})
        number = int(names[0])
        if number not in self.keys:
            raise Refusal(404, "Not found.")
        if method == "GET":
            return _json(200, _hidden(self.keys[number]))
        del self.keys[number]
        return _json(200, {"id": number})

    # --- searching

    def multi_search(self, key: str, query: dict[str, str], body: str) -> Reply:
        embedded = self.embedded_in(key)
        try:
            wish = json.loads(body)
        except ValueError:
            raise Refusal(400, "Bad JSON.") from None
        if "searches" not in wish:
            raise Refusal(400, "Missing `searches` array.")
        if len(wish["searches"]) > int(embedded.get("limit_multi_searches", 50)):
            raise Refusal(400, "Number of multi searches exceeds `limit_multi_searches` parameter.")
        allowed = embedded.get("allowed")
        results: list[dict[str, Any]] = []
        for search in wish["searches"]:
            params = {**{k: str(v) for k, v in search.items()}, **query}
            if allowed is not None and params.get("collection") not in allowed:
                raise Refusal(401, FORBIDDEN)
            params |= {k: str(v) for k, v in embedded.items() if k == "collection"}
            try:
                results.append(self.search(params.get("collection", ""), params))
            except Refusal as refusal:
                results.append({"code": refusal.status, "error": refusal.message})
        return _json(200, {"results": results})

    def embedded_in(self, key: str) -> dict[str, Any]:
        """Return the search parameters embedded in a key; the operator's key has none."""
        if key == self.key:
            return {}
        for parent in self.keys.values():
            if key == parent["value"]:
                return {"allowed": parent["collections"]}
        try:
            raw = base64.b64decode(key, validate=True).decode()
        except ValueError:
            raise Refusal(401, FORBIDDEN) from None
        digest, prefix, params = raw[:44], raw[44:48], raw[48:]
        for parent in self.keys.values():
            value = parent["value"]
            signed = base64.b64encode(hmac.new(value.encode(), params.encode(), sha256).digest()).decode()
            if value[:4] == prefix and hmac.compare_digest(signed, digest):
                embedded: dict[str, Any] = json.loads(params)
                if embedded.get("expires_at", 2**40) > time.time() and parent["actions"] == ["documents:search"]:
                    return {**embedded, "allowed": parent["collections"]}
        raise Refusal(401, FORBIDDEN)

    def search(self, name: str, params: Mapping[str, str]) -> dict[str, Any]:
        collection = self.collections.get(name)
        if collection is None:
            raise Refusal(404, "Not found.")
        per_page, page = int(params.get("per_page", "10")), int(params.get("page", "1"))
        if per_page > 250:
            raise Refusal(422, "Only upto 250 hits can be fetched per page.")
        if page < 1:
            raise Refusal(422, "Page must be an integer of value greater than 0.")
        if page * max(per_page, 1) >= 2**31:
            raise requests.exceptions.ReadTimeout("the server never answers for such a page")
        passing = collection.passing(params.get("filter_by", ""))
        found = self.matching(collection, passing, params)
        found = self.sorted(collection, found, params)
        found = self.pinned(collection, found, params)
        facets = [self.facet(collection, found, each, params) for each in params.get("facet_by", "").split(",") if each]
        start = (page - 1) * per_page
        if "group_by" in params:
            return {**self.grouped(collection, found, params), "facet_counts": facets}
        return {
            "facet_counts": facets,
            "found": len(found) + self.repeated(collection, found, params),
            "hits": [self.hit(collection, each, params) for each in found[start : start + per_page]],
            "out_of": len(collection.documents),
            "page": page,
            "request_params": {"collection_name": name, "per_page": per_page, "q": params.get("q", "")},
            "search_cutoff": False,
            "search_time_ms": 0,
        }

    def repeated(self, collection: Collection, found: list[Any], params: Mapping[str, str]) -> int:
        """Return how often 0.24 counts documents again for a single range as the filter of a search for everything."""
        bounds = re.fullmatch(r"\(?(\w+):\[(-?\d+)\.\.(-?\d+)\]\)?", params.get("filter_by", ""))
        if bounds is None or params.get("q") != "*" or not collection.fields[bounds[1]]["type"].endswith("[]"):
            return 0
        inside = range(int(bounds[2]), int(bounds[3]) + 1)
        return sum(len({value for value in item[0][bounds[1]] if value in inside}) - 1 for item in found)

    def matching(
        self, collection: Collection, passing: list[dict[str, Any]], params: Mapping[str, str]
    ) -> list[tuple[dict[str, Any], tuple[int, ...], dict[str, list[str]]]]:
        prefix = "true" in params.get("prefix", "true")
        needs = parse_query(params.get("q", ""), collection.separators, prefix=prefix)
        if params.get("q") == "*" or not needs:
            return [(document, (0,), {}) for document in passing]
        fields = tuple(params["query_by"].split(","))
        for field in fields:
            if field not in collection.fields:
                raise Refusal(404, f"Could not find a field named `{field}` in the schema.")
        weights = params.get("query_by_weights") or ",".join(str(len(fields) - at) for at in range(len(fields)))
        typos = params.get("num_typos", "2").split(",")
        wishes = Wishes(
            fields,
            tuple(int(weight) for weight in weights.split(",")),
            tuple(int(each) for each in (typos if len(typos) == len(fields) else typos * len(fields))),
            params.get("prioritize_exact_match", "true") == "true",
            int(params.get("min_len_1typo", "4")),
            int(params.get("min_len_2typo", "7")),
            int(params.get("drop_tokens_threshold", "1")),
        )
        queries = [needs]
        text = " ".join(tokens(params["q"], collection.separators))
        for name in collection.synonyms_of.get(text, []):
            group = collection.synonyms[name]
            queries += [parse_query(each, collection.separators) for each in group if each != text]
        best: dict[str, tuple[dict[str, Any], tuple[int, ...], dict[str, list[str]]]] = {}
        for query in queries:
            for at, wanted in enumerate(candidates(query)):
                if at and len(best) >= wishes.drop_threshold:
                    break
                for document in passing:
                    hit = match(collection.words[document["id"]], wanted, wishes)
                    if hit is not None and (document["id"] not in best or best[document["id"]][1] < hit[0]):
                        best[document["id"]] = (document, *hit)
        return list(best.values())

    def sorted(self, collection: Collection, found: list[Any], params: Mapping[str, str]) -> list[Any]:
        text = params.get("sort_by", "_text_match:desc")
        keys = [_SORT.fullmatch(each) for each in text.split(",")]
        if any(key is None for key in keys):
            raise Refusal(400, "Parameter `sort_by` is malformed.")
        if len(keys) > 3:
            raise Refusal(422, "Only upto 3 sort_by fields can be specified.")
        order = {id(item): -at for at, item in enumerate(found)}
        found = sorted(found, key=lambda item: order[id(item)])
        for key in reversed(keys):
            assert key is not None
            name, last, reverse = key[1], key[2], key[3].lower() == "desc"
            if name == "_text_match":
                found = sorted(found, key=lambda item: item[1], reverse=reverse)
                continue
            field = collection.fields.get(name)
            if field is None or not (field["sort"] or field["type"] in ("int64", "float", "bool")):
                raise Refusal(404, f"Could not find a field named `{name}` in the schema for sorting.")
            there = [item for item in found if item[0].get(name, "") != ""]
            gone = [item for item in found if item[0].get(name, "") == ""]
            there.sort(key=lambda item: item[0][name], reverse=reverse)
            first = field["type"] == "string" and reverse and not last
            found = gone + there if first else there + gone
        return found

    def pinned(self, collection: Collection, found: list[Any], params: Mapping[str, str]) -> list[Any]:
        wishes = [each.rsplit(":", 1) for each in params.get("pinned_hits", "").split(",") if each]
        pins = [pk for pk, _position in wishes]
        others = [item for item in found if item[0]["id"] not in pins]
        for pk, position in wishes:
            if pk in collection.documents:
                others.insert(int(position) - 1, (collection.documents[pk], (0,), {}))
        return others

    def facet(self, collection: Collection, found: list[Any], name: str, params: Mapping[str, str]) -> dict[str, Any]:
        field = collection.fields.get(name)
        if field is None or not field["facet"]:
            raise Refusal(404, f"Could not find a facet field named `{name}` in the schema.")
        counts: dict[tuple[str, ...], list[Any]] = {}
        numbers: list[float] = []
        for document, _score, _words in found:
            values = document.get(name, [])
            for value in values if isinstance(values, list) else [values]:
                if isinstance(value, int | float) and not isinstance(value, bool):
                    numbers.append(
                        struct.unpack("f", struct.pack("f", value))[0] if "float" in field["type"] else value
                    )
                shown = (
                    value
                    if isinstance(value, str)
                    else json.dumps(value)
                    if isinstance(value, bool | int)
                    else f"{value:g}"
                )
                group = tuple(tokens(shown, collection.separators)) if isinstance(value, str) else (shown,)
                entry = counts.setdefault(group, [shown, set()])
                entry[1].add(document["id"])
        stats: dict[str, Any] = {"total_values": len(counts)}
        if numbers:
            stats |= {
                "avg": sum(numbers) / len(numbers),
                "max": float(max(-sys.float_info.min, *numbers)),  # A wrong beginning, as in 0.24.
                "min": float(min(numbers)),
                "sum": sum(numbers),
            }
        ordered = sorted(((text, len(ids)) for text, ids in counts.values()), key=lambda pair: -pair[1])
        top = ordered[: int(params.get("max_facet_values", "10"))]
        return {
            "counts": [{"count": count, "highlighted": text, "value": text} for text, count in top],
            "field_name": name,
            "stats": stats,
        }

    def grouped(self, collection: Collection, found: list[Any], params: Mapping[str, str]) -> dict[str, Any]:
        """Return only the number of groups; as in 0.24, all documents without a value form one group."""
        name = params["group_by"]
        if name not in collection.fields or not collection.fields[name]["facet"]:
            raise Refusal(404, f"Could not find a facet field named `{name}` in the schema.")
        assert params["per_page"] == "0"
        return {"found": len({json.dumps(item[0].get(name)) for item in found}), "grouped_hits": []}

    def hit(self, collection: Collection, item: Any, params: Mapping[str, str]) -> dict[str, Any]:
        document, score, words = item
        wanted = [name for name in params.get("include_fields", "").split(",") if name]
        hit: dict[str, Any] = {
            "document": {k: v for k, v in document.items() if not wanted or k in wanted},
            "highlight": {},
            "highlights": [],
        }
        marked = params.get("highlight_fields", params.get("query_by", ""))
        for name, found in words.items():
            if name in marked.split(","):
                written = surface_words(document[name], collection.separators)
                matched = [word for word in written if fold(word)[:100] in found]
                hit["highlight"][name] = {"matched_tokens": matched, "snippet": " ".join(written[:8])}
        if params.get("q") != "*":
            hit["text_match"] = class_of(score)
        return hit


def _hidden(key: Mapping[str, Any]) -> dict[str, Any]:
    return {**{k: v for k, v in key.items() if k != "value"}, "value_prefix": key["value"][:4]}


def _json(status: int, body: Any) -> Reply:
    return status, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(body).encode()
