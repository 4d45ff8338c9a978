"""Decisions about pages: a document, the same one as before, or none, and for which reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson

from app.crawl.fetch.addresses import host_of
from app.crawl.fetch.values import Fetched, NotIndexed, Page, Reason
from app.crawl.read.field_rules import VARIANTS
from app.crawl.run.documents.page_documents import clean_title, document_id, make_document
from app.crawl.run.documents.path_sections import PathSections
from app.crawl.run.documents.source_documents import SourceDocuments
from app.crawl.run.documents.titles import strip
from app.crawl.run.frontier import Address, Found, Frontier, Known, pack_links
from app.crawl.run.outcome import Outcome
from app.crawl.run.recorder import Recorder
from app.crawl.run.visits.admission import Admission
from app.crawl.run.visits.visitor import is_failure
from app.models import Source

MAX_LINKS = 5_000
"""Links of a page that are followed."""

MAX_NOTED = 100_000
"""Addresses that a run remembers to have noted, so that it need not ask whether it has."""


class Decisions:
    """Decides about the pages of one run.

    Args:
        sections: Those of the pages that are documents already.
        follow: Whether pages lead to further ones.
        names_domains: Whether pages have their host as a field.
    """

    def __init__(
        self,
        source: Source,
        frontier: Frontier,
        documents: SourceDocuments,
        recorder: Recorder,
        admission: Admission,
        sections: PathSections,
        *,
        follow: bool,
        names_domains: bool,
    ):
        self._source = source
        self._frontier = frontier
        self._documents = documents
        self._recorder = recorder
        self._admission = admission
        self._sections = sections
        self._follow = follow
        self._names_domains = names_domains
        self._noted: set[int] = set()
        self.suffix = source.title_suffix
        """What titles share at their end."""
        self.start_error: NotIndexed | None = None
        """Why the source's own page could not be read."""

    def unchanged(self, address: Address, known: Known) -> Outcome:
        """The outcome of a page that did not change."""
        found = self._found(known.links, address)
        if known.document_id is not None:
            return Outcome(address.url, "unchanged", seen=known.document_id, text_digest=known.text_digest, found=found)
        status = "waiting" if known.reason == Reason.DUPLICATE else "skipped"
        return Outcome(address.url, status, known.reason, found=found)

    def redirected(self, address: Address, target: str) -> Outcome:
        """The outcome of an address that leads to another."""
        known = self._frontier.known(address.url)
        gone = None if known is None else known.document_id
        found = (Found(target, address.depth, address.url),)
        return Outcome(address.url, "skipped", Reason.CANONICAL, gone=gone, forget=True, found=found)

    def canonical_elsewhere(self, address: Address, fetched: Fetched, page: Page, canonical: str) -> Outcome:
        """The outcome of a page that names another address as its own."""
        further = (canonical,) if self._admission.is_in_scope(canonical) else ()
        return self._no_document(address, fetched, page, Reason.CANONICAL, further=further)

    def is_duplicate_still(self, url: str) -> bool:
        """Tell whether the text that a page had when it was last read is that of a page that is in the index."""
        known = self._frontier.known(url)
        if known is None or known.text_digest is None:
            return False
        like = self._frontier.pages_like(url, "", known.text_digest)
        return any(status in ("indexed", "unchanged") for status in like.values())

    def has_document(self, url: str) -> bool:
        """Tell whether a page is a document."""
        known = self._frontier.known(url)
        return known is not None and known.document_is_there

    def left_out(self, address: Address, error: NotIndexed) -> Outcome:
        """The outcome of a page that could not be had, or is none."""
        if address.url == self._source.url:
            self.start_error = error
        known = self._frontier.known(address.url)
        if is_failure(error.reason):
            found = () if known is None else self._found(known.links, address)
            seen = known.document_id if known is not None and known.document_is_there else None
            return Outcome(address.url, "failed", error.reason, seen=seen, found=found)
        gone = None if known is None else known.document_id
        return Outcome(address.url, "skipped", error.reason, gone=gone, forget=True)

    def _no_document(
        self,
        address: Address,
        fetched: Fetched,
        page: Page,
        reason: str,
        *,
        further: tuple[str, ...] = (),
        identity: str | None = None,
        text: bytes | None = None,
    ) -> Outcome:
        """The outcome of a page that was read and is not indexed.

        Args:
            further: Addresses that it leads to besides its links.
            identity, text: The id and the digest of the text, of a page that another one is the same as.
        """
        known = self._frontier.known(address.url)
        was = None if known is None else known.document_id
        links = self._links((*further, *page.links))
        return Outcome(
            address.url,
            "skipped",
            reason,
            gone=was if was != identity else None,
            page={
                **_kept(fetched), "document_id": None, "reason": reason, "digest": None, "text_digest": text,
                "title": None, "document_title": None, "path_section": None, "links": pack_links(links),
            },
            found=self._found(links, address, always=further),
        )  # fmt: skip

    def page(self, address: Address, fetched: Fetched | None, page: Page) -> Outcome:
        """The outcome of a page that was read: a document, unless it is as before, or another page is the same.

        Args:
            fetched: ``None`` if an API told of it.
        """
        fetched = fetched or Fetched(address.url, 200, {}, b"")
        if page.left_out is not None:
            return self._no_document(address, fetched, page, page.left_out)
        if not self._admission.is_wanted(address.url):
            return self._no_document(address, fetched, page, Reason.EXCLUDED)
        known = self._frontier.known(address.url)
        own_address = page.canonical or address.url
        identity = document_id(page, own_address)
        domain = host_of(own_address) if self._names_domains else None
        # Versions of a page are pages of their own, also where their text is the same.
        variant = {name: page.fields[name] for name in VARIANTS if name in page.fields}
        text_digest = _digest([page.title, page.content, *([variant] if variant else [])])
        digest = _digest(
            [identity, own_address, page.title, page.content, page.excerpt, page.author, page.date, page.lang,
             dict(page.fields), *([page.sections] if page.sections else []), *([domain] if domain else [])]
        )  # fmt: skip
        is_document = known is not None and known.document_is_there
        same = self._find_same(address, identity, text_digest, is_document=is_document)
        if same is not None and same.status == "waiting":
            return same
        if same is not None:
            return self._no_document(address, fetched, page, Reason.DUPLICATE, identity=identity, text=text_digest)
        links = self._links(page.links)
        title = clean_title(page.title)
        shown = strip(title, self.suffix)
        if known is None or known.document_id is None:
            self._sections.add(address.url)
        section = None if "section" in page.fields else self._sections.section(address.url)
        kept = {
            **_kept(fetched), "document_id": identity, "reason": None, "digest": digest, "text_digest": text_digest,
            "title": title, "document_title": shown, "path_section": section, "links": pack_links(links),
        }  # fmt: skip
        found = self._found(links, address)
        if known is not None and known.document_is_there and (known.document_id, known.digest) == (identity, digest):
            kept |= {"document_title": known.document_title, "path_section": known.path_section}
            return Outcome(address.url, "unchanged", seen=identity, text_digest=text_digest, page=kept, found=found)
        return Outcome(
            address.url,
            "indexed",
            document=make_document(page, own_address, shown, section, domain),
            gone=known.document_id if known is not None and known.document_id != identity else None,
            text_digest=text_digest,
            page=kept,
            found=found,
        )

    def _find_same(self, address: Address, identity: str, text_digest: bytes, *, is_document: bool) -> Outcome | None:
        """The outcome of a page that another one is the same as: left out, or put last until the other is read."""
        if self._recorder.find_like(address.url, identity, text_digest) is not None:
            return Outcome(address.url, "skipped", Reason.DUPLICATE)
        like = self._frontier.pages_like(address.url, identity, text_digest)
        if any(status in ("indexed", "unchanged") for status in like.values()):
            return Outcome(address.url, "skipped", Reason.DUPLICATE)
        if self._documents.sync_id is None:
            # The others are not read in this run.
            return Outcome(address.url, "skipped", Reason.DUPLICATE) if like and not is_document else None
        undecided = any(status in (None, "waiting") and url not in self._recorder for url, status in like.items())
        return Outcome(address.url, "waiting", Reason.DUPLICATE) if undecided and not address.deferred else None

    def _links(self, links: Iterable[str]) -> tuple[str, ...]:
        """The links of a page that are followed."""
        if not self._follow:
            return ()
        contains = self._admission.is_in_scope
        return tuple(dict.fromkeys(link for link in links if self.is_noted(link) or contains(link)))[:MAX_LINKS]

    def _found(self, links: Iterable[str], on: Address, always: tuple[str, ...] = ()) -> tuple[Found, ...]:
        """The addresses among ``links`` of a page that the run may not know yet.

        Args:
            always: Those that are followed whatever their depth.
        """
        if not self._follow:
            return ()
        deepest = self._source.max_depth
        if deepest is not None and on.depth >= deepest:
            return tuple(Found(link, on.depth, on.url) for link in always)
        fresh = [link for link in links if not self.is_noted(link)]
        if len(self._noted) + len(fresh) > MAX_NOTED:
            self._noted.clear()
        self._noted.update(map(hash, fresh))
        return tuple(Found(link, on.depth + 1, on.url) for link in fresh)

    def is_noted(self, url: str) -> bool:
        """Tell whether the run may have noted an address."""
        return hash(url) in self._noted


def _kept(fetched: Fetched) -> dict[str, Any]:
    """The parts of an answer that are kept, to ask later whether it changed."""
    etag, last_modified = fetched.headers.get("etag", ""), fetched.headers.get("last-modified", "")
    return {
        "etag": etag if 0 < len(etag) <= 512 else None,
        "last_modified": last_modified if 0 < len(last_modified) <= 64 else None,
    }


def _digest(values: Any) -> bytes:
    return hashlib.blake2b(orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=list), digest_size=16).digest()
