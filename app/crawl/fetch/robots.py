"""robots.txt (RFC 9309): allowed URLs, crawl delay, and sitemaps of a host."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Lock
from urllib.parse import quote

from protego import Protego

from app.crawl.fetch.addresses import normalize_url, parse_url
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import PRODUCT_TOKEN, Fetch, NotIndexed, Reason, TryLater

MAX_ROBOTS_BYTES = 500 * 1_024
MAX_CRAWL_DELAY_SECONDS = 60.0
MAX_SITEMAPS = 100

_MAX_HOSTS = 100
_MAX_CACHED_CHARACTERS = 2 * MAX_ROBOTS_BYTES
_FAILURE_SECONDS = 60.0
_UNAVAILABLE = {Reason.REDIRECT_LOOP, Reason.OTHER_HOST}
"""Reasons for a failed fetch, all of them bad redirects, after which RFC 9309 allows all URLs."""
_LINE = re.compile(
    r"(?:(?P<agent>user[ -]?agent)|(?P<rule>allow|dis{1,2}al{1,2}ow|diasllow|disallaw)|(?P<delay>crawl[ -]delay)"
    r"|(?P<sitemap>site-?maps?))[ \t]*(?::|[ \t])[ \t]*(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)
"""Relevant lines, with the misspellings and missing colons that the parser accepts."""
_LINE_END = re.compile(r"\r\n?|\n")
_OTHER_LINE_END = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Characters that the parser treats as line ends, although RFC 9309 does not."""
_TOKEN = re.compile(r"\*(?=\s|$)|[A-Za-z_-]*")


class RobotsRules:
    """The rules of one robots.txt for this crawler."""

    def __init__(self, text: str, token: str = PRODUCT_TOKEN):
        """
        Args:
            text: The file's text; empty if there is no file.
            token: The crawler's name in the file.
        """
        self.length = len(text)
        self._token = token
        self._parser = Protego.parse("\n".join(_relevant_lines(text, token)))
        self.crawl_delay: float = self._parser.crawl_delay(token) or 0.0
        """Seconds between two requests."""

    @classmethod
    def read(cls, body: bytes, token: str = PRODUCT_TOKEN) -> RobotsRules:
        """Decode and read a fetched file, which may begin with an incomplete byte order mark."""
        return cls(body.decode("utf-8-sig", "replace").removeprefix("\N{REPLACEMENT CHARACTER}"), token)

    def allows(self, url: str) -> bool:
        """Whether a page may be fetched."""
        return self._parser.can_fetch(url, self._token)

    def sitemaps(self, base: str) -> tuple[str, ...]:
        """Return the distinct URLs of the first hundred sitemaps in the file, normalized.

        Args:
            base: A URL on the same host.
        """
        urls: dict[str, None] = {}
        for line in self._parser.sitemaps:
            if len(urls) == MAX_SITEMAPS:
                break
            try:
                urls[normalize_url(line, base)] = None
            except ValueError:
                continue  # The line does not contain a URL.
        return tuple(urls)


class Robots:
    """The robots.txt files of the hosts of one run, each fetched when first needed. Thread-safe.

    The rules of up to a hundred hosts are cached, with at most 1,000 KiB of text, which may take 100 MiB once parsed.
    Other files are fetched again.
    """

    def __init__(self, fetch: Fetch, now: Callable[[], float] = time.monotonic):
        """
        Args:
            fetch: Fetches a robots.txt; it must not check rules itself.
            now: Returns the current time in seconds.
        """
        self._fetch = fetch
        self._now = now
        self._cache: OrderedDict[str, tuple[float, RobotsRules | NotIndexed]] = OrderedDict()
        self._lock = Lock()

    def check(self, url: str) -> RobotsRules:
        """Return the rules of a URL's host if they allow the URL.

        Raises:
            NotIndexed: The rules forbid the URL or require a Crawl-delay of more than 60 seconds; or the rules are
                unknown because robots.txt cannot be fetched at the moment (``http_503``, ``timeout``, …).
        """
        rules = self.rules(url)
        if not rules.allows(url):
            raise NotIndexed(Reason.ROBOTS, "robots.txt does not allow this URL.")
        if rules.crawl_delay > MAX_CRAWL_DELAY_SECONDS:
            raise NotIndexed(
                Reason.ROBOTS,
                f"robots.txt asks for a Crawl-delay of {rules.crawl_delay:.0f} seconds; the crawler waits for at most "
                f"{MAX_CRAWL_DELAY_SECONDS:.0f}.",
            )
        return rules

    def rules(self, url: str) -> RobotsRules:
        """Return the rules of a URL's host.

        Raises:
            NotIndexed: robots.txt cannot be fetched at the moment. It is requested again after a minute.
        """
        origin = parse_url(url).origin
        # Held during the fetch, so that several threads of a run do not request the same file.
        with self._lock:
            until, entry = self._cache.pop(origin, (0.0, None))
            if entry is None or self._now() >= until:
                until, entry = self._read(origin)
            self._cache[origin] = until, entry
            self._evict()
        if isinstance(entry, NotIndexed):
            raise entry
        return entry

    def _evict(self) -> None:
        """Remove the least recently used files while the cache exceeds its limits."""
        characters = sum(rules.length for _, rules in self._cache.values() if isinstance(rules, RobotsRules))
        while len(self._cache) > _MAX_HOSTS or characters > _MAX_CACHED_CHARACTERS:
            _, (_, rules) = self._cache.popitem(last=False)
            characters -= rules.length if isinstance(rules, RobotsRules) else 0

    def _read(self, origin: str) -> tuple[float, RobotsRules | NotIndexed]:
        try:
            with guarded("list", f"{origin}/robots.txt"):
                fetched = self._fetch(f"{origin}/robots.txt", any_type=True, max_bytes=MAX_ROBOTS_BYTES, truncate=True)
                rules = RobotsRules.read(fetched.body)
        except TryLater:
            raise
        except NotIndexed as error:
            # RFC 9309, section 2.3.1.3: a missing file allows everything. Section 2.3.1.4: an unreachable one forbids
            # everything. By its letter, 429 would be a missing file, but it means "not now", as search engines agree.
            is_missing = error.reason.startswith("http_4") and error.reason != "http_429"
            if error.reason in _UNAVAILABLE or is_missing:
                return float("inf"), RobotsRules("")
            failure = NotIndexed(error.reason, f"robots.txt cannot be read, so no page is crawled: {error.message}")
            return self._now() + _FAILURE_SECONDS, failure
        # For the rest of the run, which is far shorter than the 24 hours that RFC 9309 allows.
        return float("inf"), rules


def _relevant_lines(text: str, token: str) -> Iterator[str]:
    """Yield the relevant lines in a form that the parser groups as RFC 9309 requires.

    Only rules should end a group of agents, but the parser also ends it at unknown lines and delays. A token should
    match in full, but the parser also accepts ``site`` for this crawler. All other agents get the same short name,
    since the parser would otherwise store each of thousands of rules for each of thousands of agents.
    """
    agents: dict[str, None] = {}
    has_rules = has_delay = is_split = False
    for line in _LINE_END.split(text):
        match = _LINE.fullmatch(line.partition("#")[0].strip())
        if match is None:
            continue
        value = _OTHER_LINE_END.sub(lambda character: quote(character[0]), match["value"])
        if match["agent"]:
            if has_rules:
                agents.clear()
                has_rules = has_delay = is_split = False
            # The delay above ended the group for the parser, so repeat the agents before the next rule: the delay
            # applies only to the agents above it, but the rules apply to all of them.
            is_split = is_split or has_delay
            agent = f"User-agent: {_agent(value, token)}"
            agents[agent] = None
            yield agent
        elif match["rule"]:
            if is_split:
                yield from agents
            has_rules, is_split = True, False
            yield f"{match['rule']}: {value}"
        elif match["delay"]:
            has_delay = True
            yield f"Crawl-delay: {value}"
        else:
            yield f"Sitemap: {value}"


def _agent(value: str, token: str) -> str:
    match = _TOKEN.match(value)
    name = match[0] if match else ""
    if name == "*":
        return name
    return token if name.lower() == token.lower() else "another"
