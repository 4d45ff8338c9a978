"""Pages of a crawl without the network: read, decided, and recorded as a run does it, but in one thread."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from app.crawl.fetch.network import Network
from app.crawl.fetch.values import Fetched, Selectors
from app.crawl.read.reader import PageReader, read_page
from app.crawl.run.decisions import decide_page
from app.crawl.run.frontier import next_page
from app.crawl.run.outcomes import DiscoveredUrl, QueuedPage
from app.crawl.run.page_documents import field_rules
from app.crawl.run.recorder import add_outcome, write_batch
from app.crawl.run.state import CrawlParts, RunControl, RunState
from app.crawl.run.stored_run import add_discovered, load_run
from app.crawl.run.visits.admission import Admission
from app.crawl.run.visits.turns import SharedTurns
from app.crawl.run.visits.visitor import HostVisitor
from app.crawl.sources import runs
from app.operations.sources import create_source
from app.runtime import Runtime
from app.services.access.callers import Caller
from schemas.sources import SourceCreateSchema

PAGES = 20
"""Number of pages of a batch."""


def make_crawl(
    runtime: Runtime, owner: Caller, site_id: int, documents: list[dict[str, Any]]
) -> Callable[[str], object]:
    """Begin a run, and return a function that crawls its next pages, which have the texts of these documents."""
    create_source(
        runtime, owner, site_id, SourceCreateSchema().load({"kind": "website", "url": "https://example.com/"})
    )
    with runtime.database.write() as session:
        claim = runs.claim_run(session)
    assert claim is not None
    run, source, site = load_run(runtime.database, claim)
    turns, network, control = SharedTurns(runtime.database), Network(private_addresses=False), RunControl()
    parts = CrawlParts(
        runtime.database, runtime.writer, runtime.syncs, runtime.plans, network, PageReader(), turns, "Bot/1.0"
    )
    visitor = HostVisitor(network, turns, source, "Bot/1.0", control.wait)
    admission = Admission(source, visitor.scope)
    state = RunState(parts, claim, control, run, source, site, visitor, admission, None, 1_000_000)
    rounds = count()
    texts = {f"/{document['id']}": document for document in documents}

    def next_url() -> QueuedPage:
        while (queued := state.retry(next_page, deferred=False)) is None:
            state.retry(add_discovered, [DiscoveredUrl(f"https://example.com/{next(rounds)}{next(iter(texts))}", 0)])
        return queued

    def crawl(_: str) -> object:
        for _ in range(PAGES):
            queued = next_url()
            number, _, name = queued.url.removeprefix("https://example.com/").partition("/")
            body = _page(number, texts[f"/{name}"], texts)
            fetched = Fetched(queued.url, 200, {"content-type": "text/html"}, body)
            page = read_page(fetched, Selectors(**source.selectors), field_rules(source))
            add_outcome(state, decide_page(state, queued, fetched, page))
        assert {outcome.status for outcome in state.batch.outcomes.values()} == {"indexed"}
        return write_batch(state)

    return crawl


def _page(number: str, document: dict[str, Any], paths: Iterable[str]) -> bytes:
    """Return a page of HTML that links to all pages of its round."""
    menu = "".join(f'<li><a href="/{number}{path}">{path}</a></li>' for path in paths)
    title = html.escape(f"{document['title']}, {number}")
    parts = "".join(
        f"<p>{text}</p>" if len(text) > 60 or text.endswith((".", ":", "}")) else f"<h2>{text}</h2>"
        for text in html.escape(document["content"]).split("\n\n")
    )
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title></head><body><nav><ul>{menu}</ul></nav>"
        f"<main><h1>{title}</h1>{parts}</main><footer>Search</footer></body></html>"
    ).encode()
