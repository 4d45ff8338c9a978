"""IndexNow: the owner of a host says which of its pages changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from urllib.parse import urlsplit

from app.counters.base import WindowRequest
from app.crawl.fetch.addresses import normalize_url
from app.crawl.run.visits.rules import Rules
from app.crawl.sources import runs, sources
from app.errors import ApiError, ErrorCode, field_error
from app.models import Source
from app.operations.attempts import count_attempt
from app.runtime import Runtime
from app.services.access.quota import MINUTE_SECONDS

SUBMISSIONS = 60
"""Submissions a minute for a host: each is read, and the host is asked for the key."""

_KEY = re.compile(r"[A-Za-z0-9-]{8,128}", re.ASCII)
_PAGES = ("website", "sitemap")
"""Kinds of sources that read single pages; others are read as a whole."""


class Unprocessable(ApiError):
    """An address that is not of the host, or a key that is none. IndexNow answers it with 422."""

    def __init__(self, message: str):
        super().__init__(ErrorCode.VALIDATION_FAILED, message)

    @property
    def status(self) -> int:
        return 422


def submit(runtime: Runtime, host: str | None, key: str, key_location: str | None, urls: Sequence[str]) -> bool:
    """Have the sources on a host read pages that changed, if the host has the key.

    Args:
        host: With a port unless it is the scheme's own; ``None`` for that of the first address.
        key_location: Where the key is; ``None`` for a file of its name at the host's root.
        urls: At least one.

    Returns:
        Whether it begins now; else a run is under way, which it follows.

    Raises:
        ApiError: 400 for what is no address; 403 if the key is not there; 429 after too many submissions.
        Unprocessable: Nothing of the host is crawled, an address is not of the host or not below the key's folder, or
            the key is none.
        CountersUnavailable: Nobody can tell how many submissions there were.
    """
    if _KEY.fullmatch(key) is None:
        raise Unprocessable("key must have 8 to 128 letters, digits, and dashes.")
    start = _read("url", urls[0]) if host is None else _read("host", f"https://{host}/")
    host = urlsplit(start).netloc
    with runtime.database.read() as session:
        found = sources.find_on_host(session, host)
    if not found:
        raise Unprocessable(f"No source is on the host {host[:255]}.")
    window = WindowRequest(f"indexnow:{host}", SUBMISSIONS, MINUTE_SECONDS)
    count_attempt(runtime, [window], "submissions for this host")
    checked = [_read(f"urlList[{position}]", url) for position, url in enumerate(urls)]
    scheme = checked[0].partition("://")[0]
    location = _read("keyLocation", key_location or f"{scheme}://{host}/{key}.txt")
    path = _path_on(host, location)
    if "?" in path:
        raise Unprocessable("keyLocation must be the address of a file, without a query.")
    folder = path.rpartition("/")[0] + "/"
    for url in checked:
        if not _path_on(host, url).startswith(folder):
            raise Unprocessable(f"{url[:200]} is not in the folder of the key, {folder[:200]}.")
    words = runtime.previewer.read_key_file(location).split()
    # A page that repeats what it is asked for says more than keys.
    if key not in words or not all(map(_KEY.fullmatch, words)):
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, f"The file at {location} does not hold the key alone.")
    asked = [_ask(runtime, source, asked_urls) for source, asked_urls in _shared_out(found, checked)]
    return all(asked)


def _read(field: str, url: str) -> str:
    try:
        return normalize_url(url)
    except ValueError as error:
        raise field_error(field, "invalid_url", "must be an absolute http or https URL") from error


def _path_on(host: str, url: str) -> str:
    """Path and query of an address on the host, at whichever of its schemes."""
    own, _, rest = url.partition("://")[2].partition("/")
    if own != host:
        raise Unprocessable(f"{url[:200]} is not on the host {host[:255]}.")
    return f"/{rest}"


def _shared_out(found: Sequence[Source], urls: Sequence[str]) -> list[tuple[Source, list[str] | None]]:
    """The sources that are to read addresses, and each one's share of these; ``None`` for all that it has.

    Of each site, the first that wants an address reads it: two would take its document from each other. Feeds and
    blogs, which list what is new, come last and are read as a whole.
    """
    shares: list[tuple[Source, list[str] | None]] = []
    for _, of_site in groupby(found, lambda source: source.site_id):
        left = list(urls)
        for source in sorted(of_site, key=lambda source: source.kind not in _PAGES):
            rules = Rules(source.include, source.exclude)
            taken = {url for url in left if rules.allow(url)}
            left = [url for url in left if url not in taken]
            if taken:
                shares.append((source, sorted(taken) if source.kind in _PAGES else None))
    return shares


def _ask(runtime: Runtime, source: Source, urls: Sequence[str] | None) -> bool:
    """Tell whether the run begins now. Of a source that was deleted meanwhile, none does, and nobody waits for it."""
    with runtime.database.write() as session:
        current = session.get(Source, source.id)
        return current is None or runs.ask_run(session, current, urls).status == "queued"
