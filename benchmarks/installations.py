"""A running service that benchmarks fill with sites, their pages, and the memory of its processes."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import requests

from app.models import Site
from app.plans import SHIPPED_PLANS, PlanTable
from app.services.access.keys import create_key
from app.storage.database import Database
from benchmarks.own_work import cpu_seconds, send_documents
from benchmarks.queries import misspell, read
from tests.server import Server

CONNECTIONS = 8
"""Kept-alive connections to each service, enough to reach both of its workers."""

SAMPLE = 3
"""Number of pages kept in memory of each of the many sites, for the words of queries."""


class Pages:
    """Documents of sites, the same in every run.

    Args:
        file: JSON lines file with the documents; ``None`` generates documents.
    """

    def __init__(self, file: Path | None):
        self._chance = random.Random(3)
        self.words = [self._word() for _ in range(20_000)]
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, len(self.words) + 1)))
        self._file = file
        self._source: Iterator[dict[str, Any]] = iter(())

    def _word(self) -> str:
        syllables = self._chance.choice((1, 2, 2, 3, 3, 4))
        return "".join(self._chance.choice("bcdfghklmnprstvz") + self._chance.choice("aeiou") for _ in range(syllables))

    def take(self, count: int) -> list[dict[str, Any]]:
        """Return the next pages, with different IDs within the site."""
        return [{**self._next(), "id": str(number), "url": f"/pages/{number}"} for number in range(count)]

    def _next(self) -> dict[str, Any]:
        if self._file is None:
            words = self._chance.choices(self.words, cum_weights=self._weights, k=self._chance.randint(150, 450))
            return {"title": " ".join(words[:6]), "content": " ".join(words), "section": words[0]}
        page = next(self._source, None)
        if page is None:
            self._source = read(self._file)
            page = next(self._source)
        return page

    def query(self, page: dict[str, Any]) -> str:
        """Return one or two words of a page, the beginning of a word, or a word with a typo."""
        words = [word for word in page["content"].split() if word.isalpha() and len(word) > 3] or ["word"]
        word = self._chance.choice(words)
        match self._chance.choice(("one", "one", "one", "two", "two", "two", "prefix", "error")):
            case "two":
                return f"{word} {self._chance.choice(words)}"
            case "prefix":
                return word[:4]
            case "error" if len(word) > 4:
                return misspell(word, self._chance)
        return word


@dataclass(frozen=True)
class Holding:
    """Sums over processes: memory in MB, private memory without files, and counts."""

    rss: float
    private: float
    threads: int
    descriptors: int
    mappings: int

    @classmethod
    def of(cls, *pids: int) -> Holding:
        parts = [cls._of_one(pid) for pid in pids]
        return cls(*(sum(getattr(part, f.name) for part in parts) for f in fields(cls)))

    @classmethod
    def _of_one(cls, pid: int) -> Holding:
        process = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        mappings = (process / "maps").read_text().count("\n")
        rss, private = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
        return cls(rss, private, int(status["Threads"]), sum(1 for _ in (process / "fd").iterdir()), mappings)

    def __str__(self) -> str:
        return (
            f"RSS {self.rss:6.0f} MB, of it not files {self.private:6.0f} MB, {self.threads:5} threads, "
            f"{self.descriptors:5} descriptors, {self.mappings:6} mappings"
        )


class Target(NamedTuple):
    """A site, a key that may search it, and some of its pages."""

    id: int
    key: str
    pages: list[dict[str, Any]]


class Installation:
    """A running service with sites, and kept-alive connections to it."""

    def __init__(self, server: Server):
        self.server = server
        self.sites: list[Target] = []
        self._person = requests.Session()
        account = {"name": "Bench", "email": "bench@example.com", "password": "correct horse battery"}
        answer = self._person.post(f"{server.base_url}/register", json=account).json()
        self._person.headers["X-CSRF-Token"] = answer["csrf_token"]
        server.set_plan(
            account["email"], "enterprise", requests_per_minute=10**8, requests_per_day=10**8, searches_per_day=10**8
        )
        self.private_key = ""
        self._connections: Iterator[http.client.HTTPConnection] = iter(())

    def add_site(self, pages: list[dict[str, Any]]) -> None:
        """Create a site with these pages and a search key."""
        wish = {"name": "A site", "url": "https://example.com"}
        site: int = self._person.post(f"{self.server.base_url}/sites", json=wish).json()["site"]["id"]
        self.private_key = self.private_key or self.make_key(site, "private")
        self.sites.append(Target(site, self.make_key(site, "search"), pages[:SAMPLE]))
        self.write(self.sites[-1], pages)

    def write(self, site: Target, pages: list[dict[str, Any]]) -> None:
        """Index at most a thousand pages of a site."""
        send_documents(f"{self.server.base_url}/api/v1/index/bulk?site_id={site.id}", self.private_key, pages)

    def make_key(self, site: int, kind: str) -> str:
        """Create a key of a site."""
        address = f"{self.server.base_url}/api/sites/{site}/keys"
        return str(self._person.post(address, json={"name": kind, "type": kind}).json()["api_key"])

    def make_search_keys(self, targets: list[Target]) -> list[Target]:
        """Return targets with new keys, written to the stopped service's database, since a session has few requests."""
        secret, limits = self.server.environment["SECRET_KEY"], PlanTable(SHIPPED_PLANS)["enterprise"]
        made = []
        database = Database(f"sqlite:///{self.server.folder / 'service.db'}")
        with database.write() as session:
            for target in targets:
                account_id = session.get_one(Site, target.id).account_id
                _, key = create_key(
                    session,
                    account_id,
                    limits,
                    secret,
                    target.id,
                    name="search",
                    type="search",
                    expires_at=None,
                    caller_rights=None,
                )
                made.append(target._replace(key=key))
        database.dispose()
        return made

    def restart(self) -> float:
        """Restart the workers, so that no index is open. Returns seconds until the service was ready."""
        self.server.stop()
        started = time.perf_counter()
        self.server.start()
        ready = time.perf_counter() - started
        self.connect()
        return ready

    def connect(self) -> None:
        """Open new connections, since the service closes idle ones."""
        address = self.server.base_url.removeprefix("http://")
        self._connections = itertools.cycle(
            [http.client.HTTPConnection(address, timeout=60) for _ in range(CONNECTIONS)]
        )

    def search(self, site: Target, text: str) -> int:
        """Search one site, and return the number of hits."""
        connection = next(self._connections)
        path = f"/v1/search?site_id={site.id}&q={quote(text)}&limit=10&highlight=true"
        connection.request("GET", path, headers={"Authorization": f"Bearer {site.key}"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise SystemExit(f"{response.status} {answer[:300]!r}")
        return len(json.loads(answer)["results"]["hits"])

    def holding(self) -> Holding:
        """Return the memory of the workers."""
        return Holding.of(*self.server.worker_pids())

    def cpu(self) -> float:
        """Return the CPU seconds of the workers."""
        return sum(map(cpu_seconds, self.server.worker_pids()))
