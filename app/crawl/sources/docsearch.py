"""Configurations of DocSearch's scraper, as sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any
from urllib.parse import urlsplit

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.values import RANK
from app.crawl.sources.checks import has_user
from app.crawl.sources.docsearch_parts import EVERYWHERE, NAMES, Plan, PlannedSource, read_list, read_object, read_texts
from app.crawl.sources.docsearch_selectors import DocSearchSelectors
from app.crawl.sources.sources import MAX_SOURCES
from app.crawl.sources.url_patterns import MAX_PATTERNS, NoPattern, expand
from app.errors import field_error
from schemas.validation.field_rules import MAX_RULES, name_problem

MAX_RANK = 5
MAX_PAGES = 200
"""Patterns of pages that all entries of ``start_urls`` stand for, and those of ``stop_urls`` that are looked at."""

_USED = frozenset(("start_urls", "sitemap_urls", "stop_urls", "selectors", "selectors_exclude"))
_USED_OF_START = frozenset(("url", "variables", "selectors_key", "page_rank", "tags", "extra_attributes"))


@dataclass(slots=True)
class _Start:
    """Pages on one host that an entry of ``start_urls`` names.

    Attributes:
        pages: Patterns of path and query, each with the fields of the pages there.
        selectors_key: Which selectors read them.
    """

    origin: str
    url: str
    host: str
    pages: dict[str, dict[str, str]]
    selectors_key: str

    def fields_at(self, glob: str) -> dict[str, str] | None:
        """The fields of the pages that a pattern stands for; ``None`` if they are not all of this entry."""
        return next((fields for own, fields in self.pages.items() if glob.startswith(own.removesuffix("*"))), None)

    def covers(self, other: _Start) -> bool:
        """Tell whether all pages of another entry are pages of this one."""
        return self.host == other.host and all(self.fields_at(glob) is not None for glob in other.pages)

    def reads_alike(self, other: _Start) -> bool:
        """Tell whether pages of another entry that it covers are read in the same way."""
        same_fields = all(self.fields_at(glob) == fields for glob, fields in other.pages.items())
        return self.selectors_key == other.selectors_key and same_fields


def read_config(config: Any) -> Plan:
    """The sources of a configuration.

    Each entry of ``start_urls`` is one; of two that share pages, the one with the longer address has them, and is none
    of its own if both read alike. A sitemap is a source unless a website's own run looks for it.

    Raises:
        ApiError: 400 for what is malformed.
    """
    return _Reading(read_object(config, "body")).plan


class _Reading:
    """Reads one configuration."""

    def __init__(self, config: Mapping[str, Any]):
        self._config = config
        self.plan = Plan()
        self._selectors = DocSearchSelectors(config, self.plan)
        self.plan.ignore_others(config, _USED)
        found: list[_Start] = []
        pages = 0
        for position, entry in enumerate(read_list(config.get("start_urls", []), "start_urls")):
            named = self._starts(position, entry)
            pages += sum(len(start.pages) for start in named)
            if pages > MAX_PAGES:
                raise field_error("start_urls", "too_long", f"must stand for at most {MAX_PAGES} patterns of addresses")
            found += named
        starts = self._kept(found)
        stops = list(self._stops())
        for start in starts[: MAX_SOURCES + 1]:
            nested = [glob for other in starts if other is not start and start.covers(other) for glob in other.pages]
            self._add("website", start.origin, start.url, [start], nested, stops, start.selectors_key)
        for position, url in enumerate(read_texts(config.get("sitemap_urls", []), "sitemap_urls")):
            try:
                host, path = urlsplit(normalize_url(url))[1:3]
            except ValueError as error:
                raise field_error(f"sitemap_urls[{position}]", "invalid_url", "must be an absolute URL") from error
            here = [start for start in starts if start.host == host]
            if not here or path != "/sitemap.xml":
                here.sort(key=lambda start: -len(start.url))
                self._add("sitemap", f"sitemap_urls[{position}]", url, here, [], stops, "default")
        if not self.plan.sources:
            raise field_error("start_urls", "required", "must have an address at which a source can begin")

    # Addresses

    def _starts(self, position: int, entry: Any) -> list[_Start]:
        """The entries of each host that one stands for, none if it is more than a pattern."""
        origin = f"start_urls[{position}]"
        given = {"url": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict) or not isinstance(given.get("url"), str):
            raise field_error(origin, "type", "must be a string or an object with url")
        self.plan.ignore_others(given, _USED_OF_START, origin)
        common = self._fields_of_start(given, origin)
        expression = given["url"].removeprefix("^")
        variables = self._variables(given, expression, origin)
        combinations = list(islice(product(*variables.values()), MAX_PATTERNS + 1))
        if len(combinations) > MAX_PATTERNS:
            self.plan.ignore(f"{origin}.variables")
        starts: dict[str, _Start] = {}
        try:
            for values in combinations[:MAX_PATTERNS]:
                chosen = dict(zip(variables, values, strict=True))
                fields = common | {NAMES.get(name, name): value for name, value in chosen.items() if value.strip()}
                for url, glob in _places(expression, chosen, origin):
                    new = _Start(origin, url, urlsplit(url).netloc, {}, str(given.get("selectors_key", "default")))
                    starts.setdefault(new.host, new).pages[glob] = fields
        except NoPattern:
            self.plan.ignore(origin)
            return []
        return list(starts.values())

    def _variables(self, given: Mapping[str, Any], expression: str, origin: str) -> dict[str, list[str]]:
        """The values of the groups in an address."""
        found = {}
        for name, values in read_object(given.get("variables", {}), f"{origin}.variables").items():
            if isinstance(values, list) and values and f"(?P<{name}>" in expression and not name_problem(name):
                found[name] = list(dict.fromkeys(read_texts(values, f"{origin}.variables.{name}")))
            else:
                self.plan.ignore(f"{origin}.variables.{name}")
        return found

    def _fields_of_start(self, given: Mapping[str, Any], origin: str) -> dict[str, str]:
        """The fields that an entry gives its pages."""
        fields = {}
        extra = read_object(given.get("extra_attributes", {}), f"{origin}.extra_attributes")
        told = {**extra, "tags": given.get("tags", [])}
        for name, values in told.items():
            path = f"{origin}.tags" if name == "tags" else f"{origin}.extra_attributes.{name}"
            texts = [text for text in read_texts(values, path) if text.strip()]
            if name_problem(NAMES.get(name, name)) is not None:
                self.plan.ignore(path)
            elif texts:
                fields[NAMES.get(name, name)] = texts[0]
                self.plan.ignore(*(f"{path}[{number}]" for number in range(1, len(texts))))
        rank = given.get("page_rank", 0)
        try:
            wanted = int(rank)
        except (TypeError, ValueError, OverflowError) as error:
            raise field_error(f"{origin}.page_rank", "type", "must be an integer") from error
        if abs(wanted) > MAX_RANK:
            self.plan.ignore(f"{origin}.page_rank")
        return fields | ({RANK: str(max(-MAX_RANK, min(wanted, MAX_RANK)))} if wanted else {})

    def _kept(self, starts: Sequence[_Start]) -> list[_Start]:
        """The entries that become sources, those of one address and its selectors joined."""
        kept: list[_Start] = []
        for start in starts:
            twin = next((other for other in kept if other.url == start.url), None)
            if twin is None:
                kept.append(start)
            elif twin.selectors_key == start.selectors_key:
                twin.pages = start.pages | twin.pages
            else:
                self.plan.ignore(start.origin)
        return [start for start in kept if not _is_within(start, kept)]

    def _stops(self) -> Iterator[tuple[str, str]]:
        """The addresses that are not read: path, and pattern of whole addresses."""
        count = 0
        for position, text in enumerate(read_texts(self._config.get("stop_urls", []), "stop_urls")):
            path = f"stop_urls[{position}]"
            begins, ends = text.startswith("^"), text.endswith("$") and not text.endswith(r"\$")
            try:
                found = expand(text[begins : len(text) - ends], {}) if count <= MAX_PAGES else []
            except NoPattern:
                found = []
            count += len(found)
            if not any(found) or count > MAX_PAGES:
                self.plan.ignore(path)
                continue
            is_whole = begins or re.match("https?:", text) is not None
            for pattern in filter(None, found):
                yield path, ("" if is_whole else "*") + pattern + ("" if ends else "*")

    # Sources

    def _add(
        self,
        kind: str,
        origin: str,
        url: str,
        starts: Sequence[_Start],
        nested: Iterable[str],
        stops: Sequence[tuple[str, str]],
        selectors_key: str,
    ) -> None:
        if len(self.plan.sources) > MAX_SOURCES:
            return  # It is refused whatever follows.
        selectors, rules = self._selectors.read(selectors_key, origin)
        found = [(glob, fields) for start in starts for glob, fields in start.pages.items()]
        if len(found) > MAX_PATTERNS:
            self.plan.ignore(f"{origin}.variables" if kind == "website" else origin)
        pages = dict(found[:MAX_PATTERNS])
        told = [fields for fields in pages.values() if fields]
        if told and all(fields == told[0] for fields in pages.values()):
            pages_told = {EVERYWHERE: told[0]}
        else:
            pages_told = {glob: fields for glob, fields in pages.items() if fields}
        room = max(0, MAX_RULES - len(rules))
        if len(pages_told) > room:
            self.plan.ignore(f"{origin}.variables")
        exclude = dict.fromkeys(islice(nested, MAX_PATTERNS))
        for path, pattern in stops:
            for glob in _at_host(pattern, urlsplit(url).netloc):
                if len(exclude) < MAX_PATTERNS:
                    exclude[glob] = None
                elif glob not in exclude:
                    self.plan.ignore(path)
        values = {
            "kind": kind,
            "url": url,
            "schedule": "daily",
            "include": [] if EVERYWHERE in pages else list(pages),
            "exclude": list(exclude),
            "selectors": selectors,
            "fields": [*({"path": glob, "set": fields} for glob, fields in islice(pages_told.items(), room)), *rules],
        }
        self.plan.sources.append(PlannedSource(origin, values))


def _places(expression: str, chosen: Mapping[str, str], origin: str) -> Iterator[tuple[str, str]]:
    """Addresses to start at, each with a pattern of the pages that begin like it.

    Raises:
        NoPattern: The expression is more than a pattern.
        ApiError: 400 for what is no address.
    """
    ends = expression.endswith("$")
    patterns = expand(expression.removesuffix("$"), {name: [value] for name, value in chosen.items()})
    for address in sorted(patterns, key=_is_plain):
        pattern = address.partition("#")[0]
        if has_user(pattern):
            message = "must not contain a user name or password; send them in headers"
            raise field_error(f"{origin}.url", "invalid_url", message)
        literal, star, _ = pattern.partition("*")
        begin = literal[: literal.rfind("/") + 1] if star else literal
        try:
            url = normalize_url(begin)
            whole = urlsplit(normalize_url(pattern))
        except ValueError as error:
            raise field_error(f"{origin}.url", "invalid_url", "must be an absolute http or https URL") from error
        if whole.netloc != urlsplit(url).netloc:
            raise NoPattern  # Any hosts.
        place = whole.path + (f"?{whole.query}" if whole.query else "")
        yield url, place if ends else f"{place.rstrip('*')}*"


def _is_plain(pattern: str) -> bool:
    return not pattern.startswith("https")


def _at_host(pattern: str, host: str) -> Iterator[str]:
    """Patterns of path and query on a host, for one of whole addresses."""
    scheme, found, rest = pattern.partition("://")
    if found and scheme in ("http", "https"):
        where, slash, path = rest.partition("/")
        if "*" in where:
            yield f"*{where.rpartition('*')[2]}{slash}{path}"
        elif where == host:
            yield f"/{path}" if slash else EVERYWHERE
    elif pattern.startswith("*"):
        where, slash, path = pattern.lstrip("*").partition("/")
        if slash and where and host.endswith(where):
            yield f"/{path}"
        else:
            yield pattern


def _is_within(start: _Start, starts: Iterable[_Start]) -> bool:
    """Tell whether the nearest of the entries that cover one reads alike."""
    above = [other for other in starts if other is not start and other.covers(start)]
    nearest = max(above, key=lambda other: len(other.url), default=None)
    return nearest is not None and nearest.reads_alike(start) and not start.covers(nearest)
