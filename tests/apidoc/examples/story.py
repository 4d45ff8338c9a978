"""Sends the requests of the examples to a service in order and collects the responses."""

from __future__ import annotations

import hashlib
import os
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import insert, update
from werkzeug.test import TestResponse

from app.apidoc.example_requests import HOURS, REQUESTS
from app.apidoc.examples import JSON, path_values
from app.apidoc.openapi import document
from app.apidoc.samples import ANY_KEY
from app.crawl.run.visits import first_page
from app.models import ClickLessons, RunPage, SearchClick, SourceRun
from app.services.analytics.visitors import NETWORK_BITS
from app.services.webhooks import announce
from app.web.event_streams import EVENT_STREAM
from tests.callers import ApiClient, Browser

BASE_URL = "https://search.example.com"
OPERATOR_TOKEN = "the-operator-token-of-the-examples"
NOW = datetime(2024, 5, 14, 9, 30, tzinfo=UTC)
MEASURED = {
    "processingTimeMs": 2,
    "avg_response_time_ms": 2,
    "processingTimeMS": 2,
    "searchTime": 0.002,
    "formattedSearchTime": "0.00",
}
"""Fixed values for measured times, which differ in every run."""

TOKEN = re.compile(r"((?:svc_[a-z]+|whsec)_[\w+/]{4})[\w+/=]{20,}")

FORMATS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    JSON: "jsonl",
    "application/xml": "wxr",
    "text/xml": "wxr",
}
"""Import formats by media type of the body."""

Told = dict[str, dict[str, Any]]


class Story:
    """Sends the requests of the examples.

    Attributes:
        answers: Bodies of the responses so far, by operation ID and media type.
    """

    def __init__(self, app: Flask, clock: time_machine.Coordinates, patch: pytest.MonkeyPatch):
        self.answers: Told = {}
        self._app = app
        self._runtime = app.extensions["runtime"]
        self._clock = clock
        self._patch = patch
        self._paths: dict[str, Any] = {}
        self._token = self._search_key = ""
        self._browsers: list[Browser] = []
        with app.app_context():
            described = document()["paths"]
        self._operations = {
            operation["operationId"]: (method, path, operation)
            for path, item in described.items()
            for method, operation in item.items()
            if method != "parameters"
        }

    def tell(self) -> None:
        """Send all requests, each of which must succeed."""
        for name, sent in REQUESTS.items():
            with fixed_chance(f"before {name}"):
                self._paths = path_values(self.answers)
                getattr(self, f"_before_{name}", lambda: None)()
            with fixed_chance(name):
                self._send(name, sent.body, sent.parameters)
            for media_type, text in sent.other_bodies.items():
                self._send_other(name, media_type, text, sent.parameters)
            getattr(self, f"_after_{name}", lambda: None)()

    def _send(self, name: str, body: Any, parameters: Mapping[str, Any]) -> None:
        operation = self._operations[name][2]
        success = min(operation["responses"])
        for media_type in operation["responses"][success]["content"]:
            sent = {**body, "stream": True} if media_type == EVENT_STREAM else body
            options = {} if sent is None else {"json": sent}
            options_of_import = {"format": FORMATS[JSON]} if name == "importFile" else {}
            response = self._call(name, {**parameters, **options_of_import}, {"Accept": media_type}, **options)
            assert response.status_code == int(success), f"{name}: {response.get_data(as_text=True)}"
            assert response.mimetype == media_type
            told = response.get_json() if media_type == JSON else response.get_data(as_text=True)
            self.answers.setdefault(name, {})[media_type] = without_measures(told)

    def _send_other(self, name: str, media_type: str, text: str, parameters: Mapping[str, Any]) -> None:
        if "format" in parameters:
            parameters = {**parameters, "format": FORMATS.get(media_type, parameters["format"])}
        response = self._call(name, parameters, {"Content-Type": media_type, "Accept": JSON}, data=text.encode())
        assert response.status_code < 300, f"{name}, {media_type}: {response.get_data(as_text=True)}"
        assert not response.get_json().get("skipped"), response.get_json()

    def _call(self, name: str, parameters: Mapping[str, Any], headers: dict[str, str], **options: Any) -> TestResponse:
        method, path, operation = self._operations[name]
        known = {parameter["name"]: parameter["in"] for parameter in operation.get("parameters", ())}
        query = {key: _as_text(value) for key, value in parameters.items() if known[key] == "query"}
        query |= {key: self._search_key for key, value in query.items() if value == ANY_KEY}
        headers |= {key: _as_text(value) for key, value in parameters.items() if known[key] == "header"}
        caller = self._caller(name, path, operation)
        options |= {"query_string": query, "headers": headers, "base_url": BASE_URL}
        return caller(method.upper(), path.format(**self._paths), **options)

    def _caller(self, name: str, path: str, operation: dict[str, Any]) -> Callable[..., TestResponse]:
        schemes = {scheme for requirement in operation["security"] for scheme in requirement}
        if name == "logout":
            return self._browsers[-1].call
        if not schemes:
            client = self._app.test_client()
            self._browsers.append(Browser(client, ""))
            return self._browsers[-1].call
        if path.startswith("/engine/"):
            return ApiClient(self._app, self.answers["showClientInfo"][JSON]["engine_key"]).call
        if "operatorToken" in schemes:
            return ApiClient(self._app, OPERATOR_TOKEN).call
        if self._token and "privateKey" in schemes:
            return ApiClient(self._app, self._token).call
        return self._owner.call

    @property
    def _owner(self) -> Browser:
        return self._browsers[self._registered]

    # --- events between the requests

    def _after_register(self) -> None:
        self._registered = len(self._browsers) - 1
        self._owner.csrf_token = self.answers["register"][JSON]["csrf_token"]

    def _after_login(self) -> None:
        self._browsers[-1].csrf_token = self.answers["login"][JSON]["csrf_token"]

    def _before_listSessions(self) -> None:
        phone = {"User-Agent": "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0"}
        body = REQUESTS["login"].body
        answer = self._app.test_client().post("/login", json=body, headers=phone, base_url=BASE_URL)
        assert answer.status_code == 200, answer.get_json()

    def _after_createSite(self) -> None:
        with fixed_chance("the key of the server"):
            self._token = self._make_key("Server", "private")
            self._search_key = self._make_key("Old website", "search")

    def _make_key(self, name: str, kind: str) -> str:
        response = self._owner.post("/api/sites/1/keys", json={"name": name, "type": kind}, base_url=BASE_URL)
        return str(response.get_json()["api_key"])

    def _before_suggest(self) -> None:
        """Log searches of visitors on several days, with and without results."""
        numbers = count()
        for days, query, found, visitors in ((5, "opening hours", 2, 3), (1, "tickets", 1, 2)):
            for _ in range(visitors):
                entry = {
                    "query": query,
                    "results_count": found,
                    "session_id": f"visitor-{next(numbers)}",
                    "timestamp": (NOW - timedelta(days=days)).isoformat(),
                }
                self._private("POST", "/api/v1/search-log", json=entry)
        for _ in range(4):
            query_string = {"q": "audio guide", "session_id": f"visitor-{next(numbers)}"}
            self._private("GET", "/v1/search", query_string=query_string)
        self._runtime.events.flush()

    def _before_listPopularPages(self) -> None:
        """Store clicks of visitors on two pages, which no statistic counts."""
        numbers = count(1)
        with self._runtime.database.write() as session:
            for id, visitors in (("hours", 4), ("tickets", 3)):
                for number in islice(numbers, visitors):
                    values = {"site_id": 1, "search_key": number, "query": "open", "document_id": id, "position": 1}
                    session.add(SearchClick(**values, occurred_at=NOW, visitor=number << NETWORK_BITS))

    def _before_listLearnedClicks(self) -> None:
        """Store what was learned from clicks."""
        gains = {"opening hours": {"hours": 2.4, "way": 0.7}}
        with self._runtime.database.write() as session:
            session.merge(ClickLessons(site_id=1, learned_day=None, clicks_since=None, gains=gains))

    def _before_listAccounts(self) -> None:
        self._runtime.usage_copies.finish()

    def _before_beginSync(self) -> None:
        """Run an earlier sync of the source with a page that the next sync lacks."""
        sync = self._private("POST", "/api/v1/sync", json={"source": "wordpress"}).get_json()["sync"]["id"]
        page = {"id": "winter", "title": "Winter hours", "content": "Closed on Mondays.", "url": "/visit/winter"}
        self._private("POST", f"/api/v1/index/bulk?sync={sync}", json={"documents": [page]})
        self._private("POST", f"/api/v1/sync/{sync}/finish")

    def _before_previewPage(self) -> None:
        def read(source: Any, selectors: Any, *args: Any, **kwargs: Any) -> first_page.FirstPage:
            fields = {name: HOURS[name] for name in ("title", "content")}
            return first_page.FirstPage(fields | {"id": source.url, "url": source.url})

        self._patch.setattr(first_page, "read_first_page", read)

    def _before_showRun(self) -> None:
        """Store the results of a crawl."""
        run_id = self._paths["run_id"]
        self._clock.shift(timedelta(seconds=41))
        with self._runtime.database.write() as session:
            session.execute(
                update(SourceRun)
                .where(SourceRun.id == run_id)
                .values(
                    status="finished", started_at=NOW, finished_at=NOW + timedelta(seconds=41), found=13, indexed=11,
                    unchanged=0, removed=0, failed=0, skipped=2,
                )
            )  # fmt: skip
            page = {"run_id": run_id, "depth": 1, "status": "skipped"}
            for position, (path, reason) in enumerate((("shop", "robots"), ("visit/winter", "http_404"))):
                url, found_on = f"https://museum.example/{path}", "https://museum.example/visit"
                values = {"url": url, "found_on": found_on, "position": position, "reason": reason}
                session.execute(insert(RunPage).values(**page, **values))

    def _before_abandonSync(self) -> None:
        sync = self._private("POST", "/api/v1/sync", json={"source": "wordpress"}).get_json()["sync"]
        self._paths["sync_id"] = sync["id"]

    def _before_revokeInvitation(self) -> None:
        invitation = self._private("POST", "/api/invitations", json={"email": "kim@museum.example"}).get_json()
        self._paths["invitation_id"] = invitation["invitation"]["id"]

    def _before_listDeliveries(self) -> None:
        """Announce that most of the daily search quota is used."""
        data = {"quota": "searches", "percent": 80, "used": 8_000, "allowed": 10_000}
        with self._runtime.database.write() as session:
            announce(session, 1, "quota.warning", data)

    def _after_deleteSite(self) -> None:
        self._token = ""  # The key belonged to the site.

    def _private(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send a request that is not an example, with the private key."""
        response = ApiClient(self._app, self._token).call(method, path, base_url=BASE_URL, **options)
        assert response.status_code < 300, response.get_data(as_text=True)
        return response


@contextmanager
def fixed_chance(name: str) -> Iterator[None]:
    """Derive all identifiers and tokens created within the block from ``name``, so that every run creates the same.

    SQLAlchemy's random names of joins and the randomness of other threads are not affected.
    """
    seed = hashlib.sha256(name.encode()).digest()
    chance = random.Random(seed)
    true_chance, teller = os.urandom, threading.get_ident()

    def draw(count: int) -> bytes:
        asked_by = sys._getframe(1).f_globals["__name__"]
        if threading.get_ident() != teller or asked_by.startswith("sqlalchemy."):
            return true_chance(count)
        return chance.randbytes(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", draw)
        patch.setattr(random, "_urandom", draw)
        yield


def without_measures(value: Any) -> Any:
    """Replace measured values in a response with fixed ones."""
    if isinstance(value, dict):
        return {name: MEASURED.get(name, without_measures(member)) for name, member in value.items()}
    return [without_measures(member) for member in value] if isinstance(value, list) else value


def without_tokens(value: Any) -> Any:
    """Truncate tokens in responses, because secret scanners would report complete ones."""
    if isinstance(value, dict):
        return {name: without_tokens(member) for name, member in value.items()}
    if isinstance(value, list):
        return [without_tokens(member) for member in value]
    return TOKEN.sub(r"\1…", value) if isinstance(value, str) else value


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
