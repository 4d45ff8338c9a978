"""Selection of the URLs that a run reads: the source's ``include`` and ``exclude`` globs, and limits for traps.

Traps are URLs that a site generates endlessly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from urllib.parse import parse_qsl, urlsplit

from app import clock
from app.crawl.fetch.addresses import Scope, parse_url
from app.crawl.fetch.values import NotIndexed, Reason
from app.models import Source
from backends.globs import Glob


class UrlRules:
    """The ``include`` and ``exclude`` globs of a source, which match path and query."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]):
        self._include = [Glob(pattern) for pattern in include]
        self._exclude = [Glob(pattern) for pattern in exclude]

    def allow(self, url: str) -> bool:
        """Whether a URL may be read and indexed. ``exclude`` takes precedence over ``include``."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if any(glob.matches(path) for glob in self._exclude):
            return False
        return not self._include or any(glob.matches(path) for glob in self._include)


class Admission:
    """Decides which URLs a run reads."""

    def __init__(self, source: Source, scope: Scope):
        self._start = source.url
        self.is_in_scope = scope.contains
        """Returns whether a URL is on the source's host."""
        self.is_included = UrlRules(source.include, source.exclude).allow
        """Returns whether ``include`` and ``exclude`` allow a URL."""
        self._traps = Traps()

    def rejection_reason(self, url: str) -> str | None:
        """Return the reason not to read a URL, or ``None``. Call this once per URL, since it counts similar URLs."""
        if url == self._start:
            return None
        if not self.is_in_scope(url):
            return Reason.OTHER_HOST
        if not self.is_included(url):
            return Reason.EXCLUDED
        try:
            self._traps.check(url)
        except NotIndexed as error:
            return error.reason
        return None


MAX_URL_CHARACTERS = 2_048
MAX_SEGMENTS = 40
MAX_PARAMETERS = 12
MAX_REPETITIONS = 3
"""Maximum number of consecutive repetitions of path segments."""
MAX_DAYS_AHEAD = 400
"""Maximum number of days into the future for which calendar pages are read."""
MAX_CALENDAR_URLS = 1_000
"""Maximum number of URLs of one calendar in one run."""
MAX_COMBINATIONS = 1_000
"""Maximum number of parameter combinations for one path in one run, for URLs with at least four parameters."""

_MANY_PARAMETERS = 4
_MAX_COUNTED = 20_000
_REPEATED = re.compile(rf"((?:/[^/]+){{1,4}}?)\1{{{MAX_REPETITIONS},}}(?=/|$)")
_DATE = re.compile(
    r"(?<![0-9])(?P<year>1[6-9][0-9]{2}|[2-9][0-9]{3})"
    r"(?:(?P<separator>[-/_.]?)(?P<month>1[0-2]|0[1-9]|(?<=[-/_.])[1-9])"
    r"(?:(?P=separator)(?P<day>3[01]|[12][0-9]|0[1-9]|(?<=[-/_.])[1-9]))?)?(?![0-9])"
)
_YEAR_NAMES = {"y", "year", "yr", "cal_year", "calyear"}
_MONTH_NAMES = {"m", "month", "mon", "cal_month", "calmonth"}
_CALENDAR = re.compile(r"calend|kalend|agenda|event|termin|schedule", re.IGNORECASE)


class Traps:
    """Detects traps among the URLs of one run, with counters for at most 20,000 kinds of URLs."""

    def __init__(self) -> None:
        self._calendars: Counter[str] = Counter()
        self._combinations: Counter[str] = Counter()

    def check(self, url: str) -> None:
        """Check a URL, and count it. Call this once for each URL.

        Args:
            url: Normalized.

        Raises:
            NotIndexed: The URL is a trap.
        """
        if len(url) > MAX_URL_CHARACTERS:
            raise _trap("The URL is too long.")
        parsed = parse_url(url)
        path, query = parsed.pathname, parsed.search[1:]
        parameters = parse_qsl(query, keep_blank_values=True)
        if path.count("/") > MAX_SEGMENTS or _REPEATED.search(path):
            raise _trap("The URL repeats parts of its path.")
        if len(parameters) > MAX_PARAMETERS or _repeats(parameters):
            raise _trap("The URL has too many parameters.")
        day = _calendar_day(path, parameters)
        if day is not None:
            if day > clock.today() + timedelta(days=MAX_DAYS_AHEAD):
                raise _trap("The URL is a calendar page far in the future.")
            if self._exceeds(self._calendars, parsed.origin + _without_digits(path), MAX_CALENDAR_URLS):
                raise _trap("The calendar has too many URLs.")
        names = sorted({name for name, _ in parameters})
        if len(names) >= _MANY_PARAMETERS and self._exceeds(self._combinations, parsed.origin + path, MAX_COMBINATIONS):
            raise _trap("There are too many combinations of the URL's parameters.")

    def _exceeds(self, counter: Counter[str], kind: str, limit: int) -> bool:
        if kind not in counter and len(counter) >= _MAX_COUNTED // 2:
            counter.clear()
        counter[kind] += 1
        return counter[kind] > limit


def _trap(message: str) -> NotIndexed:
    return NotIndexed(Reason.TRAP, message)


def _repeats(parameters: list[tuple[str, str]]) -> bool:
    return any(count > MAX_REPETITIONS for count in Counter(parameters).values())


def _calendar_day(path: str, parameters: list[tuple[str, str]]) -> date | None:
    """Return the day in a calendar's URL, or the first day of its month or year; ``None`` for other URLs.

    A path that continues after a date belongs to an article of that day rather than to a calendar.
    """
    values = {name.lower(): value for name, value in parameters}
    year = next((value for name, value in values.items() if name in _YEAR_NAMES), "")
    month = next((value for name, value in values.items() if name in _MONTH_NAMES), "")
    if re.fullmatch(r"[1-9][0-9]{3}", year):
        return _day(int(year), int(month) if re.fullmatch(r"0?[1-9]|1[0-2]", month) else 1, 1)
    for _, value in parameters:
        match = _DATE.fullmatch(value[:10])
        if match and match["separator"]:
            return _matched_day(match)
    for match in _DATE.finditer(path):
        continuation = path[match.end() :].strip("/")
        if not continuation and (match["separator"] or _CALENDAR.search(path)):
            return _matched_day(match)
    return None


def _matched_day(match: re.Match[str]) -> date | None:
    return _day(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _without_digits(path: str) -> str:
    return re.sub(r"[0-9]+", "0", path)
