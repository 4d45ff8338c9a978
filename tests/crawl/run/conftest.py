"""Runs sources against a website that the test serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask

from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turn, Turns
from app.crawl.fetch.values import Fetched, Reason
from app.crawl.read.reader import PageReader
from app.crawl.run.execution import execute
from app.crawl.run.state import CrawlParts, RunControl
from app.crawl.sources import runs
from app.models import Source, SourceRun, StoredDocument
from app.runtime import Runtime
from tests.callers import Tenant
from tests.crawl.run.websites import Website, serving
from tests.crawl.sources.rows import add_source


class FreeTurns(Turns):
    """Grants every turn immediately and records the pauses that hosts request."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        return Turn(host, "token", 0.0)

    def give_back(self, turn: Turn, *, pause: float = 0.0) -> None:
        if pause:
            self.pauses.append(pause)


class Reader(PageReader):
    """Reads pages in the test's process."""

    def _read(self, broken: Reason, read: Callable[..., Any], fetched: Fetched, *arguments: Any) -> Any:
        return read(fetched, *arguments)


@dataclass
class Runner:
    """Runs sources of one tenant."""

    app: Flask
    tenant: Tenant
    website: Website
    parts: CrawlParts

    @property
    def part(self) -> Runtime:
        return self.app.extensions["runtime"]

    def add(self, path: str = "/", **values: Any) -> Source:
        """Add a source whose start URL is this path of the website."""
        return add_source(self.app, self.tenant, url=self.website.address(path), **values)

    def request(self, source: Source, **options: Any) -> str:
        """Queue a run."""
        with self.part.database.write() as session:
            return runs.request_run(session, source, **options).id

    def claim(self) -> runs.Claim:
        """Claim the queued run."""
        with self.part.database.write() as session:
            claim = runs.claim_run(session)
        assert claim is not None
        return claim

    def run(self, source: Source, control: RunControl | None = None, **options: Any) -> SourceRun:
        """Run a source to its end, and return the run."""
        run_id = self.request(source, **options)
        execute(self.parts, self.claim(), control or RunControl())
        return self.load(run_id)

    def load(self, run_id: str) -> SourceRun:
        """Load a run from the database."""
        with self.part.database.read() as session:
            return session.get_one(SourceRun, run_id)

    def left_out(self, run: SourceRun) -> dict[str, str | None]:
        """Return the path of each page that a run skipped, with its reason."""
        with self.part.database.read() as session:
            pages, _ = runs.list_reported(session, run, limit=1000, offset=0)
        return {page.url.removeprefix(self.website.url): page.reason for page in pages}

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return the site's documents by ID; IDs omit the website's origin."""
        import orjson
        from sqlalchemy import select

        with self.part.database.read() as session:
            bodies = session.scalars(
                select(StoredDocument.body).where(
                    StoredDocument.site_id == self.tenant.site_id, StoredDocument.body.is_not(None)
                )
            ).all()
        found = [orjson.loads(body) for body in bodies if body is not None]
        return {document["id"].removeprefix(self.website.url): document for document in found}


def counts(run: SourceRun) -> dict[str, int]:
    """Return a run's counts, without zeros."""
    names = ("found", "indexed", "unchanged", "skipped", "failed", "removed")
    return {name: getattr(run, name) for name in names if getattr(run, name)}


@pytest.fixture
def website() -> Iterator[Website]:
    with serving() as site:
        yield site


@pytest.fixture
def turns() -> FreeTurns:
    return FreeTurns()


@pytest.fixture
def runner(app: Flask, tenant: Tenant, website: Website, turns: FreeTurns) -> Iterator[Runner]:
    part: Runtime = app.extensions["runtime"]
    network = Network(private_addresses=True)
    parts = CrawlParts(
        part.database, part.writer, part.syncs, part.plans, network, Reader(), turns, "SiteSearchBot/1.0"
    )
    yield Runner(app, tenant, website, parts)
    network.close()
