"""Conversion of DocSearch scraper configurations to sources."""

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
from app.crawl.sources.docsearch_plan import (
    EVERYWHERE,
    MAX_PATTERNS,
    NAMES,
    DocSearchSelectors,
    NotAPattern,
    Plan,
    PlannedSource,
    expand,
    read_list,
    read_object,
    read_texts,
)
from app.crawl.sources.sources import MAX_SOURCES
from app.errors import field_error
from schemas.validation.sites import MAX_RULES, name_problem

MAX_RANK = 5
MAX_PAGES = 200
"""Maximum total number of patterns in ``start_urls``, and in ``stop_urls``."""

_USED = frozenset(("start_urls", "sitemap_urls", "stop_urls", "selectors", "selectors_exclude"))
_USED_OF_START = frozenset(("url", "variables", "selectors_key", "page_rank", "tags", "extra_attributes"))


@dataclass(slots=True)
class _Start:
    """The pages of one ``start_urls`` entry on one host.

    Attributes:
        pages: Patterns for path and query, each with the fields of the matching pages.
        selectors_key: Key of the selector set for the pages.
    """

    origin: str
    url: str
    host: str
    pages: dict[str, dict[str, str]]
    selectors_key: str

    def fields_at(self, glob: str) -> dict[str, str] | None:
        """Return the fields of the pages that match a pattern; ``None`` if this entry doesn't cover all these pages."""
        return next((fields for page, fields in self.pages.items() if glob.startswith(page.removesuffix("*"))), None)

    def covers(self, other: _Start) -> bool:
        """Whether this entry covers all pages of another entry."""
        return self.host == other.host and all(self.fields_at(glob) is not None for glob in other.pages)

    def selects_alike(self, other: _Start) -> bool:
        """Whether a covered entry has the same selectors and fields."""
        same_fields = all(self.fields_at(glob) == fields for glob, fields in other.pages.items())
        return self.selectors_key == other.selectors_key and same_fields


def read_config(config: Any) -> Plan:
    """Convert a configuration to sources.

    Each entry of ``start_urls`` becomes a source. If an entry covers another, their common pages belong to the inner
    entry. The inner entry is merged into the outer entry if both read pages in the same way. A sitemap becomes a source
    unless the run of a website finds it anyway.

    Raises:
        ApiError: 400 for a malformed configuration.
    """
    return _Reading(read_object(config, "body")).plan


class _Reading:
    """Reads one configuration."""

    def __init__(self, config: Mapping[str, Any]):
        self._config = config
        self.plan = Plan()
        self._selectors = DocSearchSelectors(config, self.plan)
        self.plan.ignore_others(config, _USED)
        all_starts: list[_Start] = []
        pages = 0
        for position, entry in enumerate(read_list(config.get("start_urls", []), "start_urls")):
            entry_starts = self._starts(position, entry)
            pages += sum(len(start.pages) for start in entry_starts)
            if pages > MAX_PAGES:
                raise field_error("start_urls", "too_long", f"must result in at most {MAX_PAGES} URL patterns")
            all_starts += entry_starts
        starts = self._merge(all_starts)
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
            raise field_error("start_urls", "required", "must contain at least one URL that can be crawled")

    # URLs

    def _starts(self, position: int, entry: Any) -> list[_Start]:
        """Return the pages of an entry by host; empty if its expression cannot be converted to patterns."""
        origin = f"start_urls[{position}]"
        settings = {"url": entry} if isinstance(entry, str) else entry
        if not isinstance(settings, dict) or not isinstance(settings.get("url"), str):
            raise field_error(origin, "type", "must be a string or an object with url")
        self.plan.ignore_others(settings, _USED_OF_START, origin)
        common = self._fields_of_start(settings, origin)
        expression = settings["url"].removeprefix("^")
        variables = self._variables(settings, expression, origin)
        combinations = list(islice(product(*variables.values()), MAX_PATTERNS + 1))
        if len(combinations) > MAX_PATTERNS:
            self.plan.ignore(f"{origin}.variables")
        starts: dict[str, _Start] = {}
        try:
            for values in combinations[:MAX_PATTERNS]:
                variable_values = dict(zip(variables, values, strict=True))
                named = {name: value for name, value in variable_values.items() if value.strip()}
                fields = common | {NAMES.get(name, name): value for name, value in named.items()}
                for url, glob in _start_urls(expression, variable_values, origin):
                    new = _Start(origin, url, urlsplit(url).netloc, {}, str(settings.get("selectors_key", "default")))
                    starts.setdefault(new.host, new).pages[glob] = fields
        except NotAPattern:
            self.plan.ignore(origin)
            return []
        return list(starts.values())

    def _variables(self, settings: Mapping[str, Any], expression: str, origin: str) -> dict[str, list[str]]:
        """Return the values of the named groups in a URL."""
        variables = {}
        for name, values in read_object(settings.get("variables", {}), f"{origin}.variables").items():
            if isinstance(values, list) and values and f"(?P<{name}>" in expression and not name_problem(name):
                variables[name] = list(dict.fromkeys(read_texts(values, f"{origin}.variables.{name}")))
            else:
                self.plan.ignore(f"{origin}.variables.{name}")
        return variables

    def _fields_of_start(self, settings: Mapping[str, Any], origin: str) -> dict[str, str]:
        """Return the fields that an entry sets on its pages."""
        fields = {}
        extra = read_object(settings.get("extra_attributes", {}), f"{origin}.extra_attributes")
        attributes = {**extra, "tags": settings.get("tags", [])}
        for name, values in attributes.items():
            path = f"{origin}.tags" if name == "tags" else f"{origin}.extra_attributes.{name}"
            texts = [text for text in read_texts(values, path) if text.strip()]
            if name_problem(NAMES.get(name, name)) is not None:
                self.plan.ignore(path)
            elif texts:
                fields[NAMES.get(name, name)] = texts[0]
                self.plan.ignore(*(f"{path}[{index}]" for index in range(1, len(texts))))
        rank = settings.get("page_rank", 0)
        try:
            number = int(rank)
        except (TypeError, ValueError, OverflowError) as error:
            raise field_error(f"{origin}.page_rank", "type", "must be an integer") from error
        if abs(number) > MAX_RANK:
            self.plan.ignore(f"{origin}.page_rank")
        return fields | ({RANK: str(max(-MAX_RANK, min(number, MAX_RANK)))} if number else {})

    def _merge(self, starts: Sequence[_Start]) -> list[_Start]:
        """Merge entries with the same URL and selectors, and drop entries that a broader entry makes redundant."""
        merged: list[_Start] = []
        for start in starts:
            twin = next((other for other in merged if other.url == start.url), None)
            if twin is None:
                merged.append(start)
            elif twin.selectors_key == start.selectors_key:
                twin.pages = start.pages | twin.pages
            else:
                self.plan.ignore(start.origin)
        return [start for start in merged if not _is_within(start, merged)]

    def _stops(self) -> Iterator[tuple[str, str]]:
        """Yield each ``stop_urls`` entry as a pattern for whole URLs, after its path in the configuration."""
        count = 0
        for position, text in enumerate(read_texts(self._config.get("stop_urls", []), "stop_urls")):
            path = f"stop_urls[{position}]"
            begins, ends = text.startswith("^"), text.endswith("$") and not text.endswith(r"\$")
            try:
                patterns = expand(text[begins : len(text) - ends], {}) if count <= MAX_PAGES else []
            except NotAPattern:
                patterns = []
            count += len(patterns)
            if not any(patterns) or count > MAX_PAGES:
                self.plan.ignore(path)
                continue
            is_whole = begins or re.match("https?:", text) is not None
            for pattern in filter(None, patterns):
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
            return  # The plan is rejected anyway.
        selectors, rules = self._selectors.read(selectors_key, origin)
        all_pages = [(glob, fields) for start in starts for glob, fields in start.pages.items()]
        if len(all_pages) > MAX_PATTERNS:
            self.plan.ignore(f"{origin}.variables" if kind == "website" else origin)
        pages = dict(all_pages[:MAX_PATTERNS])
        field_sets = [fields for fields in pages.values() if fields]
        if field_sets and all(fields == field_sets[0] for fields in pages.values()):
            field_pages = {EVERYWHERE: field_sets[0]}
        else:
            field_pages = {glob: fields for glob, fields in pages.items() if fields}
        free_rules = max(0, MAX_RULES - len(rules))
        if len(field_pages) > free_rules:
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
            "fields": [
                *({"path": glob, "set": fields} for glob, fields in islice(field_pages.items(), free_rules)),
                *rules,
            ],
        }
        self.plan.sources.append(PlannedSource(origin, values))


def _start_urls(expression: str, variable_values: Mapping[str, str], origin: str) -> Iterator[tuple[str, str]]:
    """Yield URLs to start at, each with a pattern for the pages that the expression matches.

    Raises:
        NotAPattern: The expression cannot be converted to patterns.
        ApiError: 400 for an invalid URL.
    """
    ends = expression.endswith("$")
    patterns = expand(expression.removesuffix("$"), {name: [value] for name, value in variable_values.items()})
    for candidate in sorted(patterns, key=_is_plain):
        pattern = candidate.partition("#")[0]
        if has_user(pattern):
            message = "must not contain a user name or password; send them in headers"
            raise field_error(f"{origin}.url", "invalid_url", message)
        literal, star, _ = pattern.partition("*")
        begin = literal[: literal.rfind("/") + 1] if star else literal
        try:
            url = normalize_url(begin)
            parsed = urlsplit(normalize_url(pattern))
        except ValueError as error:
            raise field_error(f"{origin}.url", "invalid_url", "must be an absolute http or https URL") from error
        if parsed.netloc != urlsplit(url).netloc:
            raise NotAPattern  # The host contains a star.
        path_and_query = parsed.path + (f"?{parsed.query}" if parsed.query else "")
        yield url, path_and_query if ends else f"{path_and_query.rstrip('*')}*"


def _is_plain(pattern: str) -> bool:
    return not pattern.startswith("https")


def _at_host(pattern: str, host: str) -> Iterator[str]:
    """Convert a pattern for whole URLs to patterns for path and query on a host."""
    scheme, separator, address = pattern.partition("://")
    if separator and scheme in ("http", "https"):
        pattern_host, slash, path = address.partition("/")
        if "*" in pattern_host:
            yield f"*{pattern_host.rpartition('*')[2]}{slash}{path}"
        elif pattern_host == host:
            yield f"/{path}" if slash else EVERYWHERE
    elif pattern.startswith("*"):
        pattern_host, slash, path = pattern.lstrip("*").partition("/")
        if slash and pattern_host and host.endswith(pattern_host):
            yield f"/{path}"
        else:
            yield pattern


def _is_within(start: _Start, starts: Iterable[_Start]) -> bool:
    """Whether an entry is redundant because the most specific broader entry reads its pages in the same way."""
    broader = [other for other in starts if other is not start and other.covers(start)]
    nearest = max(broader, key=lambda other: len(other.url), default=None)
    return nearest is not None and nearest.selects_alike(start) and not start.covers(nearest)
