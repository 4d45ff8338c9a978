"""Decisions about pages: whether a page becomes a document, is unchanged, or is skipped, and for which reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson

from app.crawl.fetch.addresses import host_of
from app.crawl.fetch.values import Fetched, NotIndexed, Page, Reason
from app.crawl.read.field_rules import VARIANTS
from app.crawl.run.frontier import has_document_elsewhere, pages_like, read_record, read_status
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, PageRecord, QueuedPage, is_failure, pack_links
from app.crawl.run.page_documents import clean_title, document_id, make_document, pack_headings
from app.crawl.run.recorder import batched_duplicate
from app.crawl.run.state import RunState
from app.crawl.sources.runs import IN_INDEX

MAX_LINKS = 5_000
"""Maximum number of links that a run follows from one page."""

MAX_REMEMBERED_URLS = 100_000
"""Maximum number of URLs that a run remembers in memory, so that it looks up fewer of them in SQL."""

_DOCUMENT_COLUMNS = ("digest", "text_digest", "title", "headings", "document_title", "path_section")
"""Columns of a page's record that describe its document."""


def decide_unchanged(state: RunState, queued: QueuedPage, record: PageRecord) -> Outcome | None:
    """Return the outcome of a page whose server reports that it has not changed.

    ``None`` means that its body is needed: it was skipped because of a canonical URL that is not a document anymore.
    """
    if record.reason in (Reason.CANONICAL, Reason.WRONG_CANONICAL):
        return _decide_by_record(state, queued, record)
    discovered = _discover(state, record.links, queued)
    if record.document_id is not None:
        return Outcome(
            queued.url,
            "unchanged",
            confirmed_id=record.document_id,
            text_digest=record.text_digest,
            discovered=discovered,
        )
    status = "waiting" if record.reason == Reason.DUPLICATE else "skipped"
    return Outcome(queued.url, status, record.reason, discovered=discovered)


def decide_redirected(state: RunState, queued: QueuedPage, target: str) -> Outcome:
    """Return the outcome of a URL that redirects to another."""
    record = state.retry(read_record, queued.url)
    obsolete_id = None if record is None else record.document_id
    discovered = (DiscoveredUrl(target, queued.depth, queued.url),)
    return Outcome(queued.url, "skipped", Reason.CANONICAL, obsolete_id=obsolete_id, forget=True, discovered=discovered)


def decide_canonical(state: RunState, queued: QueuedPage, fetched: Fetched, page: Page, canonical: str) -> Outcome:
    """Return the outcome of a page that declares another URL as its canonical URL.

    It is skipped if that URL is a document, deferred until that URL has been read, and otherwise indexed itself.
    """
    if page.skip_reason is not None:
        return _skip_page(state, queued, fetched, page, page.skip_reason, canonical=canonical)
    canonical_is_document = _is_document(state, canonical, queued)
    if canonical_is_document:
        return _skip_page(state, queued, fetched, page, Reason.CANONICAL, canonical=canonical)
    if canonical_is_document is None:
        links = _followed_links(state, page.links)
        return Outcome(
            queued.url,
            "waiting",
            Reason.CANONICAL,
            # Without a digest, the document that the page may have had is out of date.
            page={
                **_validators(fetched, page), "reason": Reason.CANONICAL, "digest": None,
                "links": pack_links(_canonical_first(canonical, links)),
            },
            discovered=_discover(state, links, queued, canonical=canonical),
        )  # fmt: skip
    outcome = decide_page(state, queued, fetched, replace(page, canonical=None))
    if outcome.status not in IN_INDEX or outcome.page is None:
        return outcome
    links = _canonical_first(canonical, _followed_links(state, page.links))
    values = {**outcome.page, "reason": Reason.WRONG_CANONICAL, "links": pack_links(links)}
    return replace(outcome, reason=Reason.WRONG_CANONICAL, page=values)


def _canonical_first(canonical: str, links: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((canonical, *links)))


def _decide_by_record(state: RunState, queued: QueuedPage, record: PageRecord) -> Outcome | None:
    """Return the outcome of a page that named another canonical URL, and has not changed; ``None`` to read it again."""
    if not record.links:
        return None
    canonical, *links = record.links
    canonical_is_document = _is_document(state, canonical, queued)
    discovered = _discover(state, _followed_links(state, links), queued, canonical=canonical)
    if canonical_is_document:
        values = {"document_id": None, "reason": Reason.CANONICAL, **dict.fromkeys(_DOCUMENT_COLUMNS)}
        return Outcome(
            queued.url,
            "skipped",
            Reason.CANONICAL,
            obsolete_id=record.document_id,
            page=values if record.document_id is not None else None,
            discovered=discovered,
        )
    if canonical_is_document is None:
        return Outcome(queued.url, "waiting", Reason.CANONICAL, discovered=discovered)
    if not record.document_exists or record.digest is None:
        return None
    return Outcome(
        queued.url,
        "unchanged",
        Reason.WRONG_CANONICAL,
        confirmed_id=record.document_id,
        text_digest=record.text_digest,
        page={"reason": Reason.WRONG_CANONICAL},
        discovered=discovered,
    )


def _is_document(state: RunState, url: str, queued: QueuedPage) -> bool | None:
    """Whether a canonical URL that a page declares is a document after this run; ``None`` if the run will read it."""
    outcome = state.batch.outcomes.get(url)
    status = outcome.status if outcome is not None else state.retry(read_status, url)
    if status in IN_INDEX:
        return True
    is_expected = status == "waiting" or (status is None and state.follows_links and state.admission.is_in_scope(url))
    if is_expected and not queued.deferred:
        return None
    # Documents of unread pages stay if the page failed, and in runs that do not remove what they have not seen.
    stays = status == "failed" or (status is None and (state.run.sync_id is None or state.source.kind == "feed"))
    return (stays and has_document(state, url)) or state.retry(has_document_elsewhere, url)


def decide_deferred(state: RunState, queued: QueuedPage) -> Outcome | None:
    """Return the outcome of a deferred page; ``None`` if it must be read again."""
    if queued.deferred == Reason.CANONICAL:
        record = state.retry(read_record, queued.url)
        return None if record is None else _decide_by_record(state, queued, record)
    if is_still_duplicate(state, queued.url):
        return Outcome(queued.url, "skipped", Reason.DUPLICATE)
    return None


def is_still_duplicate(state: RunState, url: str) -> bool:
    """Whether the text that a page had when it was last read equals the text of an indexed page."""
    record = state.retry(read_record, url)
    if record is None or record.text_digest is None:
        return False
    like = state.retry(pages_like, url, "", record.text_digest)
    return any(status in IN_INDEX for status in like.values())


def has_document(state: RunState, url: str) -> bool:
    """Whether a page is a document."""
    record = state.retry(read_record, url)
    return record is not None and record.document_exists


def decide_error(state: RunState, queued: QueuedPage, error: NotIndexed) -> Outcome:
    """Return the outcome of a page that cannot or must not be fetched or read."""
    if queued.url == state.source.url:
        state.start_error = error
    record = state.retry(read_record, queued.url)
    if is_failure(error.reason):
        discovered = () if record is None else _discover(state, record.links, queued)
        confirmed_id = record.document_id if record is not None and record.document_exists else None
        return Outcome(queued.url, "failed", error.reason, confirmed_id=confirmed_id, discovered=discovered)
    obsolete_id = None if record is None else record.document_id
    return Outcome(queued.url, "skipped", error.reason, obsolete_id=obsolete_id, forget=True)


def _skip_page(
    state: RunState,
    queued: QueuedPage,
    fetched: Fetched,
    page: Page,
    reason: str,
    *,
    canonical: str | None = None,
    identity: str | None = None,
    text_digest: bytes | None = None,
) -> Outcome:
    """Return the outcome of a page that was read but is not indexed.

    Args:
        canonical: The canonical URL that the page declares, if it is another page's.
        identity, text_digest: ID and text digest of the page, if it duplicates another page.
    """
    if is_failure(reason):
        return decide_error(state, queued, NotIndexed(reason, "The page is the error message of a server."))
    record = state.retry(read_record, queued.url)
    former_id = None if record is None else record.document_id
    links = _followed_links(state, page.links)
    stored_links = links if canonical is None else _canonical_first(canonical, links)
    return Outcome(
        queued.url,
        "skipped",
        reason,
        obsolete_id=former_id if former_id != identity else None,
        page={
            **_validators(fetched, page), "document_id": None, "reason": reason, **dict.fromkeys(_DOCUMENT_COLUMNS),
            "text_digest": text_digest, "links": pack_links(stored_links),
        },
        discovered=_discover(state, links, queued, canonical=canonical),
    )  # fmt: skip


def decide_page(state: RunState, queued: QueuedPage, fetched: Fetched | None, page: Page) -> Outcome:
    """Return the outcome of a page that was read: a document, unless the page is unchanged or is a duplicate.

    Args:
        fetched: The response; ``None`` for a page from an API.
    """
    fetched = fetched or Fetched(queued.url, 200, {}, b"")
    if page.skip_reason is not None:
        return _skip_page(state, queued, fetched, page, page.skip_reason)
    if not state.admission.is_included(queued.url):
        return _skip_page(state, queued, fetched, page, Reason.EXCLUDED)
    record = state.retry(read_record, queued.url)
    page_url = page.canonical or queued.url
    identity = document_id(page, page_url)
    domain = host_of(page_url) if state.names_domains else None
    # Versions of a page are separate pages even if their text is the same.
    variant = {name: page.fields[name] for name in VARIANTS if name in page.fields}
    text_digest = _digest([page.title, page.content, *([variant] if variant else [])])
    digest = _digest(
        [identity, page_url, page.title, page.content, page.excerpt, page.author, page.date, page.lang,
         dict(page.fields), *([page.sections] if page.sections else []), *([domain] if domain else [])]
    )  # fmt: skip
    document_exists = record is not None and record.document_exists
    duplicate = _decide_duplicate(state, queued, identity, text_digest, document_exists=document_exists)
    if duplicate is not None and duplicate.status == "waiting":
        return duplicate
    if duplicate is not None:
        return _skip_page(state, queued, fetched, page, Reason.DUPLICATE, identity=identity, text_digest=text_digest)
    links = _followed_links(state, page.links)
    title = clean_title(page.title)
    headings = pack_headings(page)
    document_title = state.titles.document_title(title, headings)
    if record is None or record.document_id is None:
        state.sections.add(queued.url)
    section = None if "section" in page.fields else state.sections.section(queued.url)
    values = {
        **_validators(fetched, page), "document_id": identity, "reason": None, "digest": digest,
        "text_digest": text_digest, "title": title, "headings": headings, "document_title": document_title,
        "path_section": section, "links": pack_links(links),
    }  # fmt: skip
    discovered = _discover(state, links, queued)
    if record is not None and record.document_exists and (record.document_id, record.digest) == (identity, digest):
        # The stored document keeps its title and section until the end of the run, when all titles are compared.
        values |= {"document_title": record.document_title, "path_section": record.path_section}
        return Outcome(
            queued.url,
            "unchanged",
            confirmed_id=identity,
            text_digest=text_digest,
            page=values,
            discovered=discovered,
        )
    return Outcome(
        queued.url,
        "indexed",
        document=make_document(page, page_url, document_title, section, domain),
        obsolete_id=record.document_id if record is not None and record.document_id != identity else None,
        text_digest=text_digest,
        page=values,
        discovered=discovered,
    )


def _decide_duplicate(
    state: RunState, queued: QueuedPage, identity: str, text_digest: bytes, *, document_exists: bool
) -> Outcome | None:
    """Return the outcome for a duplicate page: skip it, or defer it until the original has been read."""
    skipped = Outcome(queued.url, "skipped", Reason.DUPLICATE)
    if batched_duplicate(state, queued.url, identity, text_digest) is not None:
        return skipped
    like = state.retry(pages_like, queued.url, identity, text_digest)
    if any(status in IN_INDEX for status in like.values()):
        return skipped
    if state.run.sync_id is None:
        # A run of single pages does not read the other pages, so their records decide.
        return skipped if like and not document_exists else None
    undecided = any(status in (None, "waiting") and url not in state.batch.outcomes for url, status in like.items())
    return Outcome(queued.url, "waiting", Reason.DUPLICATE) if undecided and not queued.deferred else None


def _followed_links(state: RunState, links: Iterable[str]) -> tuple[str, ...]:
    """Return the links of a page that the run follows."""
    if not state.follows_links:
        return ()
    is_in_scope = state.admission.is_in_scope
    return tuple(dict.fromkeys(link for link in links if is_remembered(state, link) or is_in_scope(link)))[:MAX_LINKS]


def _discover(
    state: RunState, links: Iterable[str], queued: QueuedPage, canonical: str | None = None
) -> tuple[DiscoveredUrl, ...]:
    """Return the links of a page that the run may not have stored yet.

    Args:
        canonical: The canonical URL that the page declares, which is followed at any depth.
    """
    if not state.follows_links:
        return ()
    always_followed = (canonical,) if canonical is not None and state.admission.is_in_scope(canonical) else ()
    max_depth = state.source.max_depth
    if max_depth is not None and queued.depth >= max_depth:
        return tuple(DiscoveredUrl(link, queued.depth, queued.url) for link in always_followed)
    links = dict.fromkeys((*always_followed, *links))
    new_links = [link for link in links if not is_remembered(state, link)]
    if len(state.remembered_urls) + len(new_links) > MAX_REMEMBERED_URLS:
        state.remembered_urls.clear()
    state.remembered_urls.update(map(hash, new_links))
    return tuple(DiscoveredUrl(link, queued.depth + 1, queued.url) for link in new_links)


def is_remembered(state: RunState, url: str) -> bool:
    """Whether the run remembers that it has stored a URL."""
    return hash(url) in state.remembered_urls


def _validators(fetched: Fetched, page: Page) -> dict[str, Any]:
    """Return the columns for a response's validators, with which the next run can make a conditional request."""
    # The server confirms a page although the time after which it must not be indexed has passed.
    if page.expires:
        return {"etag": None, "last_modified": None}
    etag, last_modified = fetched.headers.get("etag", ""), fetched.headers.get("last-modified", "")
    return {
        "etag": etag if 0 < len(etag) <= 512 else None,
        "last_modified": last_modified if 0 < len(last_modified) <= 64 else None,
    }


def _digest(values: Any) -> bytes:
    return hashlib.blake2b(orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=list), digest_size=16).digest()
