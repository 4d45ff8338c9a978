"""``demo``: set up an account and a site with three keys, crawl the product's documentation into it, and serve."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import orjson
from flask.cli import with_appcontext

from app.clock import now
from app.commands.cli import OperatorCommand
from app.commands.crawl import crawl_parts, demo_file, read_demo
from app.commands.serve import check_server, run_server
from app.config import ConfigurationError, docs_search_key_file
from app.crawl.run.execution import execute
from app.crawl.run.state import RunControl
from app.crawl.sources import runs
from app.documentation import RANKS, SYNONYMS, documentation_files
from app.models import Account, Site, Source, SourceRun
from app.operations.accounts import acting_for
from app.operations.keys import create_key
from app.operations.operator import create_account, set_password
from app.operations.search_settings import update_settings
from app.operations.sites import create_site, update_site
from app.runtime import Runtime, runtime
from app.services import sites
from app.services.access.credentials import site_record
from app.services.accounts.members import find_members
from app.services.analytics.examples import ExampleResult, add_examples
from app.services.search.site_queries import for_site
from app.storage.migrate import upgrade
from backends.query import SearchQuery

EMAIL = "demo@example.com"
KEY_NAMES = {"private": "Server", "search": "Search from a server", "public": "Search box in the browser"}


@click.command("demo", cls=OperatorCommand)
@with_appcontext
@click.option("--base-url", help="URL at which the service will run. Default: the address on which it listens.")
@click.option("--serve/--no-serve", "serves", default=True, help="Whether to serve afterwards, as `serve` does.")
def demo(base_url: str | None, serves: bool) -> None:
    if serves:
        environment = check_server()
        base_url = base_url or environment.base_url
    current_runtime = runtime()
    click.echo("Setting up the database …")
    upgrade(current_runtime.database)
    # The crawl requests the service's own pages and creates an index, both of which would be logged at INFO.
    logging.getLogger("app").setLevel(logging.WARNING)
    click.echo(make_demo(current_runtime, base_url or "http://127.0.0.1:8000"))
    if serves:
        click.echo("Starting the server. Press Ctrl+C to stop it.")
        run_server(current_runtime)


def make_demo(runtime: Runtime, base_url: str) -> str:
    """Create the missing parts of the demo, crawl the documentation, and return the text to print.

    The demo's password and tokens are stored in DATA_DIR/demo.json, which only its owner may read, so that the next
    call prints them again. The search box of the service's own documentation uses the demo's public key.
    """
    path = demo_file(runtime.settings.data_path)
    demo = read_demo(runtime.settings.data_path)
    if demo is None or not _exists(runtime, demo):
        demo = _create(runtime, base_url)
    state = _documentation_state(base_url)
    if demo.get("crawled") != state:
        demo["base_url"] = base_url
        demo["source_id"] = _put_source(runtime, demo, base_url)
        # Written before the crawl, which requests the pages of this base URL.
        _write(path, orjson.dumps(demo))
        click.echo("Crawling the documentation into the demo's site: about ten seconds …")
        _crawl(runtime, demo)
        demo["crawled"] = state
    if not demo.get("has_examples"):
        _add_examples(runtime, demo)
        demo["has_examples"] = True
    _write(path, orjson.dumps(demo))
    _write(docs_search_key_file(runtime.settings.data_path), demo["keys"]["public"].encode())
    return _text(demo, base_url, _count_pages(runtime, demo))


def _documentation_state(base_url: str) -> str:
    """Return a text that changes with the documentation and its URLs, so that it is crawled only then."""
    digest = hashlib.sha256(f"{base_url} {version('site-search-service')}".encode())
    for file in documentation_files().values():
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _count_pages(runtime: Runtime, demo: dict[str, Any]) -> int:
    with runtime.database.read() as session:
        return session.get_one(Site, demo["site_id"]).document_count


EXAMPLE_QUERIES = (
    "api key", "webhook", "rate limit", "search box", "filters", "synonyms", "quickstart", "crawl a website",
    "pin a page", "typo tolerance", "facets", "docker", "analytics", "dark mode", "shopify", "bulk", "sort by date",
    "javascript client", "sharepoint", "pricing", "semantic search", "backup", "invite members", "sitemap", "pdf",
    "graphql", "two-factor authentication", "react", "highlighting", "wordpress", "redis", "kubernetes", "zapier",
    "delete documents", "export csv", "how do i hide a page", "multilingual", "salesforce",
)  # fmt: skip
"""Queries of the example searches, the most frequent first. A few find nothing, as on every site."""


def _add_examples(runtime: Runtime, demo: dict[str, Any]) -> None:
    with runtime.database.read() as session:
        site = site_record(session.get_one(Site, demo["site_id"]))

    def find(text: str) -> ExampleResult:
        searcher = runtime.searcher
        query = for_site(SearchQuery(text, limit=8, returned_fields=frozenset({"id"})), site)
        result = searcher.run(site, query).result
        return ExampleResult(result.total, result.matched.value, [hit.id for hit in result.hits])

    add_examples(runtime.database, site.id, EXAMPLE_QUERIES, find)


def _exists(runtime: Runtime, demo: dict[str, Any]) -> bool:
    with runtime.database.read() as session:
        account = session.get(Account, demo["account_id"])
        return account is not None and account.email == EMAIL and sites.count_sites(session, account.id) > 0


def _create(runtime: Runtime, base_url: str) -> dict[str, Any]:
    password = secrets.token_urlsafe(12)
    with runtime.database.read() as session:
        account = next((member.account for member in find_members(session, EMAIL)), None)
    if account is None:
        account = create_account(runtime, name="Demo", email=EMAIL, password=password, plan="pro")
    else:
        set_password(runtime, EMAIL, password)
    owner = acting_for(runtime, account)
    site = create_site(runtime, owner, {"name": "Documentation", "url": base_url})
    update_site(runtime, owner, site.id, {"agents": True})
    boosts = [{"path": path, "rank": rank} for path, rank in RANKS.items()]
    update_settings(runtime, owner, site.id, {"synonyms": SYNONYMS, "boosts": boosts})
    tokens = {
        kind: create_key(runtime, owner, site.id, {"name": name, "type": kind, "expires_at": None})[1]
        for kind, name in KEY_NAMES.items()
    }
    return {"account_id": account.id, "site_id": site.id, "password": password, "keys": tokens}


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _put_source(runtime: Runtime, demo: dict[str, Any], base_url: str) -> str:
    """Set the URLs of the site and its source to the service's current URL. Returns the source's ID."""
    moment = now()
    values = {
        "url": f"{base_url}/docs",
        "include": ["/docs", "/docs/*", "/plans"],
        "exclude": [],
        # Samples and error lists repeat the same words for every operation, and would outrank the guides about them.
        "selectors": {"remove": ".samples, .your-key, .errors, .copy"},
        "updated_at": moment,
    }
    with runtime.database.write() as session:
        sites.update_site(session, demo["account_id"], demo["site_id"], {"url": base_url})
        source = session.get(Source, demo.get("source_id", ""))
        if source is None:
            source = Source(
                id=f"src_{secrets.token_hex(8)}", site_id=demo["site_id"], kind="website", schedule="none",
                headers={}, created_at=moment, **values,
            )  # fmt: skip
            session.add(source)
        for name, value in values.items():
            setattr(source, name, value)
    return source.id


def _crawl(runtime: Runtime, demo: dict[str, Any]) -> None:
    """Crawl the documentation.

    Raises:
        ConfigurationError: The documentation cannot be crawled.
    """
    with runtime.database.write() as session:
        source = session.get_one(Source, demo["source_id"])
        # If the service's URL has changed, the new pages replace all old ones.
        run_id = runs.request_run(session, source, max_removed_percent=100).id
        claim = runs.claim_run(session, run_id)
    if claim is not None:
        with crawl_parts(runtime) as parts:
            execute(parts, claim, RunControl())
    with runtime.database.read() as session:
        run = session.get_one(SourceRun, run_id)
    if run.status == "failed" and run.error is not None:
        raise ConfigurationError(f"the documentation could not be crawled: {run.error['message']}")


def _text(demo: dict[str, Any], base_url: str, count: int) -> str:
    tokens = demo["keys"]
    search = f"{base_url}/v1/search?q=quota&fields=title,url&highlight=true&limit=3"
    return f"""
The demo is ready: its site has {count} pages of the documentation, and a month of example searches.

  Private key  {tokens["private"]}
  Search key   {tokens["search"]}
  Public key   {tokens["public"]}

  Try a search:
    curl '{search}' -H 'Authorization: Bearer {tokens["search"]}'

  For agents   {base_url}/mcp/{tokens["public"]}

  Dashboard    {base_url}/dashboard
  Log in with  {EMAIL} and {demo["password"]}
"""
