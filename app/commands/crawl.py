"""Commands that crawl websites."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import httpcore
import orjson
from ada_url import URL
from flask import Flask, current_app
from flask.cli import with_appcontext
from sqlalchemy import select

from app.bounded_process import bound_arenas
from app.clock import isoformat
from app.commands.cli import OperatorCommand
from app.crawl.fetch.browser import Browser
from app.crawl.fetch.network import Network
from app.crawl.fetch.values import user_agent
from app.crawl.read.reader import PageReader
from app.crawl.run.state import CrawlParts
from app.crawl.run.visits.turns import SharedTurns
from app.crawl.run.worker import Worker
from app.crawl.run.worker_process import end_with_parent, end_with_signals, keep_claim
from app.crawl.sources import runs
from app.crawl.sources.checks import check_url
from app.crawl.sources.sources import create_source
from app.errors import ApiError
from app.metrics import serve_processes
from app.models import Site, Source, SourceRun
from app.runtime import Runtime, runtime
from app.services.sites import account_suspended, get_account
from app.wording import counted, number
from schemas.sources import SourceCreateSchema


@contextmanager
def crawl_parts(runtime: Runtime) -> Iterator[CrawlParts]:
    """Provide the components shared by this process's runs. The demo crawls the service's own pages without network."""
    network, reader = _network(runtime), PageReader()
    settings = runtime.settings
    agent = user_agent(settings.public_url)
    browser = Browser(settings.crawl_browser, agent) if settings.crawl_browser else None
    public_network = Network(private_addresses=False) if browser is not None else None
    try:
        yield CrawlParts(
            runtime.database,
            runtime.writer,
            runtime.syncs,
            runtime.plans,
            network,
            reader,
            SharedTurns(runtime.database),
            agent,
            settings.public_url if settings.sends_email else None,
            browser,
            public_network,
        )
    finally:
        for part in (browser, public_network, reader, network):
            if part is not None:
                part.close()


def _network(runtime: Runtime) -> Network:
    private_addresses = runtime.settings.crawl_private_addresses
    base_url = (read_demo(runtime.settings.data_path) or {}).get("base_url")
    if base_url is None:
        return Network(private_addresses=private_addresses)
    app = current_app._get_current_object()  # type: ignore[attr-defined]  # The proxy's own method.
    app.extensions["jobs"].forgo()
    return InProcessNetwork(app, base_url, private_addresses=private_addresses)


def demo_file(folder: Path) -> Path:
    """Return the path of the demo's record, which contains its account, site, source, password, and keys."""
    return folder / "demo.json"


def read_demo(folder: Path) -> dict[str, Any] | None:
    """Return the demo's record, or ``None`` if the installation has no demo."""
    path = demo_file(folder)
    if not path.exists():
        return None
    record: dict[str, Any] = orjson.loads(path.read_bytes())
    return record


_DOCUMENTATION_ADDRESS = "192.0.2.1"
"""A client address reserved for documentation (RFC 5737), so that pages restricted to loopback reject the crawler."""


class InProcessNetwork(Network):
    """A network in which an application in this process serves one origin, without a socket.

    The crawler gets the same pages as an anonymous visitor over HTTP. It never connects to a private address, even if
    the application's host has one.

    Args:
        app: The application.
        base_url: URL of the application.
    """

    def __init__(self, app: Flask, base_url: str, *, private_addresses: bool):
        super().__init__(private_addresses=private_addresses)
        self._app = app
        self._origin = URL(base_url).origin

    def allows(self, target: URL) -> bool:
        return target.origin == self._origin or super().allows(target)

    @contextmanager
    def get(
        self, target: URL, headers: Mapping[str, str], on_sent: Callable[[], object] = lambda: None
    ) -> Iterator[httpcore.Response]:
        if target.origin != self._origin:
            with super().get(target, headers, on_sent) as response:
                yield response
            return
        on_sent()
        client = self._app.test_client(use_cookies=False)
        with client.get(
            target.pathname + target.search,
            base_url=self._origin,
            headers=dict(headers),
            environ_base={"REMOTE_ADDR": _DOCUMENTATION_ADDRESS},
        ) as response:
            yield httpcore.Response(
                response.status_code,
                headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()],
                content=response.get_data(),
            )


MAX_SHOWN = 20
LOOK_SECONDS = 0.3


@click.command("worker", cls=OperatorCommand)
@with_appcontext
@click.option("--runs", "runs_at_once", type=click.IntRange(1, 64), help="Sources crawled at the same time.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Port on which to serve the process's /metrics.")
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address on which to serve metrics.")
@click.option("--for-service", "claim", type=int, hidden=True, help="File descriptor of the machine's lock.")
def worker(runs_at_once: int | None, metrics_port: int | None, metrics_host: str, claim: int | None) -> None:
    if claim is not None:
        keep_claim(claim)
    current_runtime = runtime()
    bound_arenas()
    if metrics_port is not None:
        _serve_metrics(current_runtime, metrics_host, metrics_port)
    with crawl_parts(current_runtime) as parts:
        working = Worker(parts, runs_at_once=runs_at_once or current_runtime.settings.crawl_runs or 4)
        end_with_signals(working.stop)
        if claim is not None:
            end_with_parent(working.stop)
            working.run(until_idle=True)
        else:
            working.run()
        SharedTurns(current_runtime.database).forget_idle()
    _end_process(current_runtime)


def _end_process(runtime: Runtime) -> None:
    """Exit without waiting for requests in progress, since their runs have already returned to the queue."""
    runtime.close()
    # ``os._exit`` does not flush the buffers of the standard streams.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


@click.command("crawl", cls=OperatorCommand)
@with_appcontext
@click.option("--site", "site_id", type=int, required=True, help="ID of the site.")
@click.option("--max-removed-percent", type=click.IntRange(0, 100), help="Share of documents that may be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("url")
def crawl(site_id: int, url: str, max_removed_percent: int | None, as_json: bool) -> None:
    current_runtime = runtime()
    url = current_runtime.previewer.complete_url(url).url
    try:
        run_id = _request(current_runtime, site_id, url, max_removed_percent)
    except ApiError as error:
        raise click.ClickException(error.message) from error
    with crawl_parts(current_runtime) as parts:
        run = _work(current_runtime, parts, run_id, hidden=as_json)
    _report(current_runtime, run, as_json)
    sys.exit(0 if run.status == "finished" else 1)


def _request(runtime: Runtime, site_id: int, url: str, max_removed_percent: int | None) -> str:
    """Queue the run.

    Raises:
        ApiError: The URL is not on the site's hosts, or its account is suspended.
    """
    private_addresses = runtime.settings.crawl_private_addresses
    with runtime.database.write() as session:
        site = session.get(Site, site_id)
        if site is None:
            raise click.ClickException(f"Site {site_id} does not exist.")
        account = get_account(session, site.account_id)
        if account.suspended_at is not None:
            raise account_suspended(account.suspension_reason)
        address = check_url(site, url, private_addresses=private_addresses)
        source = session.scalar(
            select(Source).where(Source.site_id == site_id, Source.kind == "website", Source.url == address)
        )
        if source is not None:
            return runs.request_run(session, source, max_removed_percent=max_removed_percent).id
        fields = SourceCreateSchema().load({"kind": "website", "url": address, "schedule": "none"})
        _, run = create_source(session, site.account_id, site_id, fields, private_addresses=private_addresses)
        return run.id


def _serve_metrics(runtime: Runtime, host: str, port: int) -> None:
    try:
        server = serve_processes(host, port, runtime.settings.metrics_token)
    except OSError as error:
        raise click.ClickException(f"Metrics cannot be served at {host}:{port}: {error}") from error
    click.echo(f"Metrics: http://{host}:{server.server_port}/metrics", err=True)


def _work(runtime: Runtime, parts: CrawlParts, run_id: str, *, hidden: bool) -> SourceRun:
    """Execute a run, or wait if another process is executing it, and return the ended run."""
    working = Worker(parts, runs_at_once=1, only=run_id)
    end_with_signals(working.stop)
    thread = threading.Thread(target=working.run, daemon=True)
    thread.start()
    run = _load(runtime, run_id)
    # The number of discovered URLs grows during the run, so both the length and the position are updated.
    with click.progressbar(length=max(1, run.found), label="Crawling", hidden=hidden, show_eta=False) as bar:
        while run.status in runs.OPEN and (thread.is_alive() or not working.is_stopping):
            thread.join(timeout=LOOK_SECONDS)
            run = _load(runtime, run_id)
            bar.length = max(1, run.found)
            bar.label = f"Crawling: {number(_settled(run))} of {number(run.found)} pages"
            bar.update(_settled(run) - bar.pos)
    if run.status in runs.OPEN:
        raise click.Abort
    return run


def _settled(run: SourceRun) -> int:
    return run.indexed + run.unchanged + run.skipped + run.failed


def _load(runtime: Runtime, run_id: str) -> SourceRun:
    with runtime.database.read() as session:
        run = session.get(SourceRun, run_id)
    if run is None:
        raise click.ClickException("The source was deleted.")
    return run


def _report(runtime: Runtime, run: SourceRun, as_json: bool) -> None:
    with runtime.database.read() as session:
        pages, total = runs.list_reported(session, run, limit=MAX_SHOWN, offset=0)
        reasons = runs.count_reasons(session, run)
    if as_json:
        names = ("id", "status", "error", "found", "indexed", "unchanged", "removed", "failed", "skipped", "rendered")
        encoded = {name: getattr(run, name) for name in names} | {"reasons": reasons}
        encoded |= {name: moment and isoformat(moment) for name, moment in _moments(run)}
        click.echo(orjson.dumps(encoded, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(
        f"{counted(run.indexed, 'page')} indexed, {number(run.unchanged)} unchanged, {number(run.removed)} removed; "
        f"{number(run.skipped + run.failed)} skipped."
    )
    for reason, count in reasons.items():
        click.echo(f"  {number(count):>8}  {reason}")
    for page in pages:
        click.echo(f"{page.reason:<12} {page.url}", err=True)
    if total > len(pages):
        click.echo(f"and {number(total - len(pages))} more", err=True)
    if run.error is not None:
        click.echo(f"The run failed: {run.error['message']}", err=True)


def _moments(run: SourceRun) -> Iterator[tuple[str, datetime | None]]:
    yield "started_at", run.started_at
    yield "finished_at", run.finished_at
