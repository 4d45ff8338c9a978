"""Crawls of documentation packaged by Debian; each package is served as a separate website on loopback.

    apt-get install python3-doc postgresql-doc-15 python-django-doc libstdc++-12-doc
    python -m benchmarks.crawl /usr/share/doc/python3.11/html /usr/share/doc/postgresql-doc-15/html

There are four runs: the first one, a second one of the unchanged site, one after a page was removed, and one that is
killed midway. Without ``--polite``, the crawler does not pause between requests to a host, to show its own speed and
its largest effect on searches. The benchmark prints pages per second, the largest private memory of the crawling
processes, and the time of searches before and during the crawl. It fails if the second run fetches a body, if a removed
page stays, or if a run that continues a killed one reads a page again.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from app.application import create_app
from app.bounded_process import bound_arenas
from app.commands.crawl import crawl_parts
from app.config import load_settings
from app.crawl.run.worker import Worker
from app.crawl.run.worker_process import NICENESS
from app.crawl.sources import runs
from app.crawl.sources.sources import create_source
from app.models import Source, SourceRun
from app.runtime import Runtime
from app.services import sites
from app.services.access import keys
from app.services.access.credentials import credential_change
from app.services.accounts import accounts
from app.storage.migrate import upgrade
from schemas.sources import SourceCreateSchema
from tests.crawl.run.conftest import FreeTurns
from tests.crawl.run.websites import respond
from tests.server import running_server

TYPES = {".html": "text/html", ".htm": "text/html", ".txt": "text/plain", ".css": "text/css", ".js": "text/javascript"}
WORDS = ("string", "table", "function", "iterator", "connection", "exception", "create index", "class method", "config")
LOOK_SECONDS = 0.25
ROUND_SECONDS = 1.0


@dataclass
class DocSite:
    """A folder of documentation, served on its own loopback address, because politeness limits apply to each host.

    Attributes:
        removed: Paths that return 404.
        bodies: Number of times that each path's body was sent.
        unchanged: Number of requests that got a 304.
    """

    folder: Path
    host: str
    removed: set[str] = field(default_factory=set)
    bodies: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        """Reset the recorded requests."""
        self.bodies.clear()
        self.unchanged = 0

    def answer(self, target: str, condition: str | None) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers, and body of a response."""
        path = unquote(urlsplit(target).path)
        file = self.folder / path.lstrip("/")
        if file.is_dir():
            if not path.endswith("/"):
                return 301, {"Location": f"{path}/"}, b""
            file /= "index.html"
        if path in self.removed or not file.is_file() or ".." in file.parts:
            return 404, {}, b"not found"
        about = file.stat()
        etag = f'"{about.st_mtime_ns:x}-{about.st_size:x}"'
        headers = {"ETag": etag, "Last-Modified": formatdate(about.st_mtime, usegmt=True)}
        if condition == etag:
            with self._lock:
                self.unchanged += 1
            return 304, headers, b""
        with self._lock:
            self.bodies[path] += 1
        kind = TYPES.get(file.suffix, "application/octet-stream")
        return 200, headers | {"Content-Type": kind}, file.read_bytes()


class QuietServer(ThreadingHTTPServer):
    """A server that does not log the broken connections of killed crawlers."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(folders: list[Path]) -> Iterator[list[DocSite]]:
    """Serve each folder as a website."""
    found = [DocSite(folder, f"127.0.1.{number}") for number, folder in enumerate(folders, 1)]
    servers = []
    for site in found:

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1
            site: DocSite

            def do_GET(self) -> None:
                status, headers, body = self.site.answer(self.path, self.headers["If-None-Match"])
                respond(self, status, headers, body)

            def log_message(self, *args: Any) -> None:
                pass

        Handler.site = site
        server = QuietServer((site.host, 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        site.url = f"http://{site.host}:{server.server_port}/"
    try:
        yield found
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@dataclass
class Installation:
    """A running service with a site and a source for each folder."""

    part: Runtime
    base_url: str
    token: str
    environment: dict[str, str]
    sources: list[Source]
    polite: bool

    def request(self, *, sources: list[Source] | None = None) -> list[str]:
        """Queue runs."""
        ids = []
        for source in sources or self.sources:
            with self.part.database.write() as session:
                ids.append(runs.request_run(session, source).id)
        return ids

    def load(self, ids: list[str]) -> list[SourceRun]:
        """Return the stored runs."""
        with self.part.database.read() as session:
            return [session.get_one(SourceRun, run_id) for run_id in ids]

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a process that crawls until no run is queued."""
        command = [sys.executable, "-m", "benchmarks.crawl", "--work", *(["--polite"] if self.polite else [])]
        return subprocess.Popen(command, env=self.environment, start_new_session=True)

    def finish(self, ids: list[str]) -> tuple[list[SourceRun], float, int]:
        """Crawl until runs have ended. Returns the runs, seconds, and the largest private memory in KiB."""
        begun = time.monotonic()
        process = self.start_worker()
        memory = 0
        while process.poll() is None:
            memory = max(memory, memory_of(process.pid))
            time.sleep(LOOK_SECONDS)
        return self.load(ids), time.monotonic() - begun, memory


def memory_of(pid: int) -> int:
    """Return the private memory of a process and its children, in KiB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children += (thread / "children").read_text().split() if thread.name != str(pid) else []
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
    return own + sum(memory_of(int(child)) for child in children)


@contextmanager
def installation(found: list[DocSite], *, polite: bool) -> Iterator[Installation]:
    """Start a service whose crawls are run by processes of the benchmark."""
    with tempfile.TemporaryDirectory(prefix="crawl-") as name:
        folder = Path(name)
        settings = {"CRAWL_PRIVATE_ADDRESSES": "true", "CRAWL_RUNS": "0", "LOG_LEVEL": "WARNING"}
        with running_server(folder, **settings) as server:
            app = create_app(load_settings(server.environment), background=False)
            part: Runtime = app.extensions["runtime"]
            upgrade(part.database)
            with part.database.write() as session:
                account = accounts.create_account(
                    session, name="Crawl", email="crawl@example.com", password_hash="none", plan="enterprise"
                )
            limits = part.plans["enterprise"]
            sources = []
            token = ""
            for site in found:
                with credential_change(part.database, part.counters, account.id) as session:
                    record = sites.create_site(
                        session, account.id, limits, part.engines.default.identity, name=site.host, url=site.url
                    )
                    fields = SourceCreateSchema().load({"kind": "website", "url": site.url, "schedule": "none"})
                    source, _ = create_source(session, account.id, record.id, fields, private_addresses=True)
                    sources.append(source)
                    if not token:
                        _, token = keys.create_key(
                            session, account.id, limits, part.settings.secret_key, record.id,
                            name="Search", type="search", expires_at=None, caller_rights=None,
                        )  # fmt: skip
            yield Installation(part, server.base_url, token, server.environment, sources, polite)
            part.database.dispose()


class Searches:
    """Sends searches one after another in a thread, and records their times."""

    def __init__(self, base_url: str, token: str):
        self._address = urlsplit(base_url).netloc
        self._headers = {"Authorization": f"Bearer {token}"}
        self._stopping = threading.Event()
        self.milliseconds: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Searches:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        connection = http.client.HTTPConnection(self._address)
        number = 0
        while not self._stopping.wait(0.02):
            word = WORDS[number % len(WORDS)].replace(" ", "+")
            number += 1
            begun = time.perf_counter()
            connection.request("GET", f"/v1/search?q={word}&highlight=true&limit=20", headers=self._headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise SystemExit(f"a search failed: {answer.status} {body[:300]!r}")
            self.milliseconds.append((time.perf_counter() - begun) * 1000)


def work(*, polite: bool) -> None:
    """Crawl queued runs in a separate process."""
    app = create_app(background=False)
    part: Runtime = app.extensions["runtime"]
    os.nice(NICENESS)
    bound_arenas()
    with crawl_parts(part) as parts:
        if not polite:
            from dataclasses import replace

            parts = replace(parts, turns=FreeTurns())
        worker = Worker(parts, runs_at_once=4)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        worker.run(until_idle=True)
    sys.stdout.flush()
    os._exit(0)


def check(condition: bool, promise: str) -> None:
    """Fail if a promise is broken."""
    print(f"  {'kept' if condition else 'BROKEN'}: {promise}", flush=True)
    if not condition:
        raise SystemExit(1)


def show(title: str, found: list[SourceRun], seconds: float, memory: int) -> None:
    """Print the results of runs."""
    pages = sum(run.found for run in found)
    print(f"{title}: {pages} pages, {seconds:.1f} s, {pages / seconds:.1f} pages/s, {memory / 1024:.0f} MB")
    for run in found:
        print(f"    {run.status} found {run.found} indexed {run.indexed} unchanged {run.unchanged} "
              f"skipped {run.skipped} failed {run.failed} removed {run.removed} {run.error or ''}")  # fmt: skip


def digest(path: str) -> int:
    """Return a number by which to choose paths."""
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:4], "big")


def main(folders: list[Path], *, polite: bool) -> None:
    """Crawl folders of documentation."""
    with serving(folders) as found, installation(found, polite=polite) as service:
        first, seconds, memory = service.finish(service.request())
        show("first run", first, seconds, memory)
        check(all(run.status == "finished" for run in first), "every run finishes")
        check(
            all(run.found == run.indexed + run.unchanged + run.skipped + run.failed for run in first), "counts add up"
        )

        for site in found:
            site.forget()
        second, seconds, memory = service.finish(service.request())
        show("second run, nothing changed", second, seconds, memory)
        bodies = sum(count for site in found for count in site.bodies.values())
        check(bodies == 0, f"a second run fetches no body ({sum(site.unchanged for site in found)} answers 304)")
        check([run.unchanged for run in second] == [run.indexed for run in first], "all pages are unchanged")

        gone = removable(service, found[0])
        found[0].removed.add(gone)
        third, _, _ = service.finish(service.request(sources=service.sources[:1]))
        check(third[0].removed == 1, f"a page that went is gone after the next run ({gone})")

        with service.part.database.write() as session:
            for source in service.sources:
                forget_pages(session, source.id)
        for site in found:
            site.forget()
        ids = service.request()
        process = service.start_worker()
        half = sum(run.found for run in first) // 2
        held, beside = compare(service, process, lambda: sum(settled(run) for run in service.load(ids)) >= half)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before = [settled(run) for run in service.load(ids)]
        done = done_paths(service, ids)
        for site in found:
            site.forget()
        time.sleep(runs.LEASE.total_seconds() + 1)
        ended, seconds, memory = service.finish(ids)
        show(f"continued after {sum(before)} pages were done", ended, seconds, memory)
        again = [path for site in found for path in site.bodies if (site.url.rstrip("/") + path) in done]
        check(all(run.status == "finished" for run in ended), "a killed run goes on")
        check(not again, f"nothing that was done is fetched again {again[:3]}")
        for title, searches in (("while the crawl is held", held), ("beside the crawl", beside)):
            late = statistics.quantiles(searches, n=20)[-1]
            print(f"{len(searches)} searches {title}: median {statistics.median(searches):.2f} ms, 95th {late:.1f} ms")
        print(f"medians: {statistics.median(beside) / statistics.median(held):.2f}")


def compare(
    service: Installation, process: subprocess.Popen[bytes], over: Callable[[], bool]
) -> tuple[list[float], list[float]]:
    """Search alternately while a crawl is paused and while it runs, so that noise affects both alike.

    Returns:
        Milliseconds of the searches during pauses, and of the searches beside the crawl.
    """
    held: list[float] = []
    beside: list[float] = []
    while not over():
        os.killpg(process.pid, signal.SIGSTOP)
        with Searches(service.base_url, service.token) as searches:
            time.sleep(ROUND_SECONDS)
        held += searches.milliseconds
        os.killpg(process.pid, signal.SIGCONT)
        with Searches(service.base_url, service.token) as searches:
            time.sleep(ROUND_SECONDS)
        beside += searches.milliseconds
    return held, beside


def settled(run: SourceRun) -> int:
    """Return the number of finished pages of a run."""
    return run.indexed + run.unchanged + run.skipped + run.failed


def done_paths(service: Installation, ids: list[str]) -> set[str]:
    """Return the URLs that runs have finished."""
    from sqlalchemy import select

    from app.models import RunPage

    with service.part.database.read() as session:
        done = select(RunPage.url).where(RunPage.run_id.in_(ids), RunPage.status != "waiting")
        return set(session.scalars(done))


def removable(service: Installation, site: DocSite) -> str:
    """Return the path of a random indexed page whose links are all on other pages, too."""
    from sqlalchemy import select

    from app.models import SourcePage

    with service.part.database.read() as session:
        urls = session.scalars(
            select(SourcePage.url).where(
                SourcePage.source_id == service.sources[0].id,
                SourcePage.document_id.is_not(None),
                SourcePage.url != site.url,
            )
        ).all()
    return unquote(urlsplit(min(urls, key=digest)).path)


def forget_pages(session: Any, source_id: str) -> None:
    """Delete all data about pages, so that the next run is like a first run."""
    from sqlalchemy import delete

    from app.models import SourcePage

    session.execute(delete(SourcePage).where(SourcePage.source_id == source_id))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="Folders of HTML pages with an index.html.")
    parser.add_argument("--polite", action="store_true", help="Wait between requests, as the service does.")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(polite=arguments.polite)
    elif not arguments.folders:
        parser.error("name the folders")
    else:
        main(arguments.folders, polite=arguments.polite)
