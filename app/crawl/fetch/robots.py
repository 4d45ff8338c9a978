"""robots.txt (RFC 9309): what a host allows, how fast, and where its sitemaps are."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Lock
from urllib.parse import quote

from protego import Protego

from app.crawl.fetch.addresses import normalize_url, parse_url
from app.crawl.fetch.values import PRODUCT_TOKEN, Fetch, NotIndexed, Reason, TryLater

MAX_ROBOTS_BYTES = 500 * 1_024
MAX_CRAWL_DELAY_SECONDS = 60.0
MAX_SITEMAPS = 100

_MAX_HOSTS = 100
_MAX_HELD_CHARACTERS = 2 * MAX_ROBOTS_BYTES
_FAILURE_SECONDS = 60.0
_UNAVAILABLE = {Reason.REDIRECT_LOOP, Reason.OTHER_HOST}
"""RFC 9309 counts redirects that lead nowhere as no robots.txt."""
_LINE = re.compile(
    r"(?:(?P<agent>user[ -]?agent)|(?P<rule>allow|dis{1,2}al{1,2}ow|diasllow|disallaw)|(?P<delay>crawl[ -]delay)"
    r"|(?P<sitemap>site-?maps?))[ \t]*(?::|[ \t])[ \t]*(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)
"""The lines that say something to us, with the misspellings and missing colons that the parser takes."""
_LINE_END = re.compile(r"\r\n?|\n")
_OTHER_LINE_END = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What the parser takes for line ends besides those of RFC 9309."""
_TOKEN = re.compile(r"\*(?=\s|$)|[A-Za-z_-]*")


class Rules:
    """Rules of one robots.txt that hold for us."""

    def __init__(self, text: str, token: str = PRODUCT_TOKEN):
        """
        Args:
            text: The file's text; empty if there is none.
            token: Our name in it.
        """
        self.length = len(text)
        self._token = token
        self._parser = Protego.parse("\n".join(_for_us(text, token)))
        self.crawl_delay: float = self._parser.crawl_delay(token) or 0.0
        """Seconds from one request to the next."""

    @classmethod
    def read(cls, body: bytes, token: str = PRODUCT_TOKEN) -> Rules:
        """The rules of a file as it was fetched. Of a byte order mark a part may be missing."""
        return cls(body.decode("utf-8-sig", "replace").removeprefix("\N{REPLACEMENT CHARACTER}"), token)

    def allows(self, url: str) -> bool:
        """Tell whether a page may be fetched."""
        return self._parser.can_fetch(url, self._token)

    def sitemaps(self, base: str) -> tuple[str, ...]:
        """Addresses of the first hundred sitemaps that it names, absolute and normalized, each once.

        Args:
            base: An address on the same host.
        """
        found: dict[str, None] = {}
        for named in self._parser.sitemaps:
            if len(found) == MAX_SITEMAPS:
                break
            try:
                found[normalize_url(named, base)] = None
            except ValueError:
                continue  # A line that names no address names no sitemap.
        return tuple(found)


class Robots:
    """The robots.txt files of the hosts of one run, each read when first needed. Thread-safe.

    Holds the rules of a hundred hosts, and at most 1,000 KiB of text, which may take 100 MiB once parsed. Those of
    other hosts are read again.
    """

    def __init__(self, fetch: Fetch, now: Callable[[], float] = time.monotonic):
        """
        Args:
            fetch: Fetches a robots.txt; it must not ask for rules itself.
            now: Seconds.
        """
        self._fetch = fetch
        self._now = now
        self._known: OrderedDict[str, tuple[float, Rules | NotIndexed]] = OrderedDict()
        self._lock = Lock()

    def check(self, url: str) -> Rules:
        """The rules that hold for an address that may be fetched.

        Raises:
            NotIndexed: They forbid it, ask for a Crawl-delay of more than 60 seconds, or cannot be had now: then the
                reason is that of the robots.txt (``http_503``, ``timeout``, …), since nobody knows what they say.
        """
        rules = self.rules(url)
        if not rules.allows(url):
            raise NotIndexed(Reason.ROBOTS, "robots.txt does not allow this address.")
        if rules.crawl_delay > MAX_CRAWL_DELAY_SECONDS:
            raise NotIndexed(
                Reason.ROBOTS,
                f"robots.txt asks for a Crawl-delay of {rules.crawl_delay:.0f} seconds; the crawler waits for at most "
                f"{MAX_CRAWL_DELAY_SECONDS:.0f}.",
            )
        return rules

    def rules(self, url: str) -> Rules:
        """The rules of an address's host.

        Raises:
            NotIndexed: They cannot be had now. It is tried again after a minute.
        """
        origin = parse_url(url).origin
        with self._lock:
            until, known = self._known.pop(origin, (0.0, None))
            if known is None or self._now() >= until:
                until, known = self._read(origin)
            self._known[origin] = until, known
            self._forget()
        if isinstance(known, NotIndexed):
            raise known
        return known

    def _forget(self) -> None:
        """Forget the hosts that were asked for longest ago, as far as there are too many."""
        held = sum(rules.length for _, rules in self._known.values() if isinstance(rules, Rules))
        while len(self._known) > _MAX_HOSTS or held > _MAX_HELD_CHARACTERS:
            _, (_, rules) = self._known.popitem(last=False)
            held -= rules.length if isinstance(rules, Rules) else 0

    def _read(self, origin: str) -> tuple[float, Rules | NotIndexed]:
        try:
            fetched = self._fetch(f"{origin}/robots.txt", any_type=True, max_bytes=MAX_ROBOTS_BYTES, truncate=True)
        except TryLater:
            raise
        except NotIndexed as error:
            if error.reason in _UNAVAILABLE or error.reason.startswith("http_4"):
                return float("inf"), Rules("")
            why = NotIndexed(error.reason, f"robots.txt cannot be read, so nothing is: {error.message}")
            return self._now() + _FAILURE_SECONDS, why
        return float("inf"), Rules.read(fetched.body)


def _for_us(text: str, token: str) -> Iterator[str]:
    """The lines that say something to us, so that the parser groups them as RFC 9309 says.

    Only rules end a group; the parser takes unknown lines and delays for its end, too. A token matches as a whole (the
    parser also takes ``site`` for us). Agents that are not ours have one short name: thousands of agents above
    thousands of rules would have each rule stored for each agent.
    """
    agents: dict[str, None] = {}
    has_rules = has_delay = is_parted = False
    for line in _LINE_END.split(text):
        match = _LINE.fullmatch(line.partition("#")[0].strip())
        if match is None:
            continue
        value = _OTHER_LINE_END.sub(lambda found: quote(found[0]), match["value"])
        if match["agent"]:
            if has_rules:
                agents.clear()
                has_rules = has_delay = is_parted = False
            # For the parser the delay above ended the group: it is for those above it alone, rules are for all.
            is_parted = is_parted or has_delay
            agent = f"User-agent: {_agent(value, token)}"
            agents[agent] = None
            yield agent
        elif match["rule"]:
            if is_parted:
                yield from agents
            has_rules, is_parted = True, False
            yield f"{match['rule']}: {value}"
        elif match["delay"]:
            has_delay = True
            yield f"Crawl-delay: {value}"
        else:
            yield f"Sitemap: {value}"


def _agent(value: str, token: str) -> str:
    named = _TOKEN.match(value)
    name = named[0] if named else ""
    if name == "*":
        return name
    return token if name.lower() == token.lower() else "another"
