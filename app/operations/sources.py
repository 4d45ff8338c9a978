"""Creating, changing, and running sources."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from marshmallow import ValidationError
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.values import WindowRequest
from app.crawl.run import lookup
from app.crawl.run.lookup import PageLookup
from app.crawl.run.preview import Preview
from app.crawl.sources import removal, runs, sources
from app.crawl.sources.checks import check_url
from app.crawl.sources.docsearch import read_config
from app.crawl.sources.sources import SourceView
from app.errors import ApiError, ErrorCode, field_error, validation_error
from app.models import Site, SourceRun
from app.operations import change, changing
from app.operations.attempts import count_attempt, counting
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import site_record
from app.services.search.search import find_ids_at
from app.services.sites import get_site, site_inactive
from app.services.usage.quota import MINUTE_SECONDS, read_pages_window
from schemas.sources import SourceCreateSchema
from schemas.validation.sites import complete_url


def create_source(runtime: Runtime, caller: Caller, site_id: int, fields: Mapping[str, Any]) -> SourceView:
    """Create a source and queue its first run.

    Raises:
        ApiError: 404, 403, and 400 as in :func:`sources.create_source`; 400 without a browser that it requires.
    """
    _check_render(runtime, fields)
    fields = _with_scheme(runtime, caller, site_id, fields)
    private_addresses = runtime.settings.crawl_private_addresses
    created = change(runtime, caller, sources.create_source, site_id, fields, private_addresses=private_addresses)
    return sources.view(*created)


def import_config(runtime: Runtime, caller: Caller, site_id: int, config: Any) -> tuple[list[SourceView], list[str]]:
    """Create all sources of a DocSearch scraper configuration, or none if one is invalid, and queue their first runs.

    Returns the sources, and the paths of settings without a counterpart.

    Raises:
        ApiError: 400 for a malformed configuration; errors of :func:`create_source`, with the path of each problem.
        ValidationError: A source would be invalid.
    """
    views = []
    plan = read_config(config)
    with changing(runtime, caller) as session:
        for planned in plan.sources:
            try:
                fields = SourceCreateSchema().load(planned.values)
                source, run = sources.create_source(
                    session,
                    caller.account.id,
                    site_id,
                    fields,
                    private_addresses=runtime.settings.crawl_private_addresses,
                )
            except ApiError as error:
                if error.code is not ErrorCode.VALIDATION_FAILED:
                    raise
                details = [replace(detail, field=f"{planned.origin}.{detail.field}") for detail in error.details]
                raise validation_error(details) from error
            except ValidationError as error:
                raise ValidationError({planned.origin: error.messages}) from error
            views.append(sources.view(source, run))
    return views, list(plan.ignored)


def update_source(
    runtime: Runtime, caller: Caller, site_id: int, source_id: str, changes: Mapping[str, Any]
) -> SourceView:
    """Change a source.

    Raises:
        ApiError: 404 and 400 as in :func:`sources.update_source`; 400 without a browser that it requires.
    """
    _check_render(runtime, changes)
    changes = _with_scheme(runtime, caller, site_id, changes)
    with runtime.database.write() as session:
        source = sources.update_source(
            session,
            caller.account.id,
            site_id,
            source_id,
            changes,
            private_addresses=runtime.settings.crawl_private_addresses,
        )
        return sources.view(source, runs.newest_runs(session, [source.id]).get(source.id))


def _check_render(runtime: Runtime, fields: Mapping[str, Any]) -> None:
    if fields.get("render") == "always" and not runtime.settings.crawl_browser:
        problem = field_error("render", "browser_unavailable", "requires a browser, which this service does not have")
        raise ApiError(ErrorCode.BROWSER_UNAVAILABLE, problem.message, details=problem.details)


def _with_scheme(runtime: Runtime, caller: Caller, site_id: int, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add a missing scheme to a URL: the scheme with which the URL responds, or else the site's scheme.

    Raises:
        ApiError: 404; 400 for a URL outside the site, which is not requested.
    """
    typed = fields.get("url", "")
    completed = complete_url(typed)
    if completed == typed:
        return fields
    with runtime.database.read() as session:
        site = get_site(session, caller.account.id, site_id)
    check_url(site, completed, private_addresses=runtime.settings.crawl_private_addresses)
    return {**fields, "url": runtime.previewer.complete_url(typed, urlsplit(site.url).scheme).url}


def renew_hook(runtime: Runtime, caller: Caller, site_id: int, source_id: str) -> SourceView:
    """Replace the URL of a source's deploy hook.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        source = sources.get_source(session, caller.account.id, site_id, source_id, lock=True)
        source.hook_salt = secrets.token_hex(8)
        source.updated_at = now()
        session.flush()
        return sources.view(source, runs.newest_runs(session, [source.id]).get(source.id))


def delete_source(
    runtime: Runtime, caller: Caller, site_id: int, source_id: str, *, keep_documents: bool = False
) -> None:
    """Delete a source with its documents, or keep the documents as if they had been sent through the API.

    Raises:
        ApiError: 404.
    """
    removal.delete_source(runtime.database, caller.account.id, site_id, source_id, keep_documents=keep_documents)
    runtime.run_engine_tasks()


def request_run(
    runtime: Runtime, caller: Caller, site_id: int, source_id: str, options: Mapping[str, Any]
) -> SourceRun:
    """Queue a run of a source, or return the run that is already waiting or running.

    Args:
        options: ``urls`` and ``max_removed_percent``; either may be ``None``.

    Raises:
        ApiError: 404; 403 if the site is paused; 400 for a URL outside the site.
    """
    private_addresses = runtime.settings.crawl_private_addresses
    with runtime.database.write() as session:
        site = get_site(session, caller.account.id, site_id)
        source = sources.get_source(session, caller.account.id, site_id, source_id, lock=True)
        if not site.active:
            raise site_inactive()
        urls = _check_addresses(site, options["urls"], private_addresses=private_addresses)
        return runs.request_run(session, source, urls=urls, max_removed_percent=options["max_removed_percent"])


def run_by_hook(runtime: Runtime, token: str, urls: Sequence[str] | None) -> SourceRun:
    """Ensure that a crawl starts after this call: reuse the queued run, or queue one behind the current run.

    Returns the queued run, or the current run that the new run follows.

    Args:
        token: Token of the source's deploy hook.
        urls: Limit the run to these URLs; ``None`` crawls everything.

    Raises:
        ApiError: 404; 403 if the site is paused; 400 for a URL outside the site; 429 within a minute of the last call.
        CountersUnavailable: The time of the last call is unknown.
    """
    settings = runtime.settings
    with runtime.database.read() as session:
        source, site = sources.find_by_hook(session, token, settings.secret_key)
    window = WindowRequest(f"hook:{source.id}", 1, MINUTE_SECONDS)
    # Counted before the URLs are checked, since checking 100 URLs takes several times as long as a rejection.
    with counting(runtime, [window], "runs by this hook"):
        checked = _check_addresses(site, urls, private_addresses=settings.crawl_private_addresses)
        with runtime.database.write() as session:
            source, _ = sources.find_by_hook(session, token, settings.secret_key, lock=True)
            return runs.ensure_later_run(session, source, checked)


def _check_addresses(site: Site, urls: Sequence[str] | None, *, private_addresses: bool) -> list[str] | None:
    if urls is None:
        return None
    return [
        check_url(site, url, private_addresses=private_addresses, field=f"urls[{position}]")
        for position, url in enumerate(urls)
    ]


def cancel_run(runtime: Runtime, caller: Caller, site_id: int, source_id: str) -> SourceRun:
    """Stop the waiting or current run of a source.

    Raises:
        ApiError: 404, also if the source has no such run.
    """
    with runtime.database.write() as session:
        source = sources.get_source(session, caller.account.id, site_id, source_id, lock=True)
        return runs.cancel_run(session, source)


def preview_page(
    runtime: Runtime,
    caller: Caller,
    site_id: int,
    fields: Mapping[str, Any],
    *,
    kind: str = "website",
    source_id: str | None = None,
) -> Preview:
    """Fetch and read one page of a site without storing it.

    Args:
        fields: ``url``, ``selectors``, ``fields``, ``headers``, and ``render``.
        kind: For kinds other than ``website``, the first page that the URL lists is read.
        source_id: Source whose stored headers are sent to its host, and whose rules apply if none are sent.

    Raises:
        ApiError: 404; 400 for a URL outside the site; 429 after too many pages; 503 while too many are being read.
    """
    count_attempt(runtime, [read_pages_window(caller.account.id)], "pages")
    fields = _with_scheme(runtime, caller, site_id, fields)
    headers, headers_url, rules, mode = fields["headers"], None, fields["fields"], fields["render"]
    with runtime.database.read() as session:
        site = get_site(session, caller.account.id, site_id)
        if source_id is not None:
            source = sources.get_source(session, caller.account.id, site_id, source_id)
            if not headers:
                headers, headers_url = source.headers, source.url
            rules = source.fields if rules is None else rules
            mode = mode or source.render
    return runtime.previewer.preview(
        site,
        fields["url"],
        kind=kind,
        selectors=fields["selectors"],
        fields=rules or (),
        headers=headers,
        headers_url=headers_url,
        render=mode or "auto",
    )


def look_up_page(runtime: Runtime, caller: Caller, site_id: int, url: str) -> PageLookup:
    """Look up a URL: whether it is searchable, the reason if not, and the pages that link to it.

    Raises:
        ApiError: 404; 400 for an invalid URL.
        BackendUnavailable: The lookup requires the engine, which is unavailable.
    """
    with runtime.database.read() as session:
        site = get_site(session, caller.account.id, site_id)
        lookup_result = _look_up(session, site, url)
    if lookup_result.status == "indexed":
        return lookup_result
    parts = urlsplit(url)
    on_site = {urlsplit(address).netloc for address in (site.url, *site.domains)}
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    addresses = (url, path) if parts.netloc in on_site else (url,)
    ids = find_ids_at(runtime.searcher, site_record(site), addresses, 1)
    if not ids:
        return lookup_result
    with runtime.database.read() as session:
        return _look_up(session, site, url, ids)


def _look_up(session: Session, site: Site, url: str, document_ids: Sequence[str] = ()) -> PageLookup:
    try:
        return lookup.look_up(session, site, url, document_ids)
    except ValueError as error:
        raise field_error("url", "invalid_url", "must be an absolute http or https URL") from error
