"""The plan for importing a DocSearch scraper configuration, and the conversion of its selectors.

Simple regular expressions for URLs become patterns in which ``*`` matches anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from app.crawl.sources.checks import is_css
from app.errors import field_error
from backends.globs import MAX_STARS, literals_of, star_count
from schemas.validation.sites import name_problem

MAX_ITEMS = 2_000
"""Maximum number of items in a list of a configuration."""
NAMES = {"language": "lang"}
"""Names of fields here by their DocSearch names, where the two differ."""
EVERYWHERE = "/*"


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source to create from a configuration.

    Attributes:
        origin: Path in the configuration, such as ``start_urls[0]``.
        values: The fields of the source, as in a request to create it.
    """

    origin: str
    values: dict[str, Any]


@dataclass(slots=True)
class Plan:
    """The sources to create from a configuration, and the paths of its settings that have no counterpart."""

    sources: list[PlannedSource] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)

    def ignore(self, *paths: str) -> None:
        """Record that the settings at these paths have no counterpart."""
        self.ignored.update(dict.fromkeys(paths))

    def ignore_others(self, value: Mapping[str, Any], used: Iterable[str], path: str = "") -> None:
        """Record that members outside ``used`` have no counterpart; for ``custom_settings``, each of its members."""
        for name in (name for name in value if name not in used):
            member_path = f"{path}.{name}" if path else name
            parts = value[name] if name == "custom_settings" and isinstance(value[name], dict) else {}
            self.ignore(*([f"{member_path}.{member}" for member in parts] or [member_path]))


def read_list(value: Any, path: str) -> list[Any]:
    """Return a list; any other value counts as a list with one item.

    Raises:
        ApiError: 400 if the list is too long.
    """
    items = value if isinstance(value, list) else [value]
    if len(items) > MAX_ITEMS:
        raise field_error(path, "too_long", f"must have at most {MAX_ITEMS} items")
    return items


def read_texts(value: Any, path: str) -> list[str]:
    """Return a list of strings; a string counts as a list with one item.

    Raises:
        ApiError: 400.
    """
    texts = read_list(value, path)
    if not all(isinstance(text, str) for text in texts):
        raise field_error(path, "type", "must be a string or a list of strings")
    return texts


def read_object(value: Any, path: str) -> dict[str, Any]:
    """Return a value that must be a JSON object.

    Raises:
        ApiError: 400.
    """
    if not isinstance(value, dict):
        raise field_error(path, "type", "must be a JSON object")
    return value


MAX_SELECTOR_LENGTH = 500
MAX_SELECTORS = 100
"""Maximum number of selectors that are read from a set."""

_LEVELS = tuple(f"lvl{number}" for number in range(7))
_TEXTS = ("text", "content")
_USED = frozenset(("selector", "type", "global", "default_value"))
_HEADING = re.compile(r"\bh[1-6]\b[^\s>+~]*$")
_TITLE = re.compile(r"\bh1\b[^\s>+~]*$")


class DocSearchSelectors:
    """Converts the selector sets of one configuration."""

    def __init__(self, config: Mapping[str, Any], plan: Plan):
        self._config = config
        self._plan = plan
        self._sets: dict[str, tuple[dict[str, str], list[dict[str, Any]]]] = {}

    def read(self, key: str, origin: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Return the selectors and the field rules of a source. Settings without a counterpart are added to the plan.

        Args:
            key: The key of a selector set.
            origin: Path of the entry of ``start_urls`` that contains the key.

        Raises:
            ApiError: 400 for malformed selectors.
        """
        value = read_object(self._config.get("selectors", {}), "selectors")
        sets = {name: members for name, members in value.items() if _is_set(members)}
        if key not in sets and key != "default":
            self._plan.ignore(f"{origin}.selectors_key")
        path = f"selectors.{key}" if key in sets else "selectors"
        if path not in self._sets:
            selected = sets[key] if key in sets else {name: value[name] for name in value if name not in sets}
            self._plan.ignore(*(f"{path}.{name}" for name in islice(selected, MAX_SELECTORS, None)))
            self._sets[path] = self._read_set(path, dict(islice(selected.items(), MAX_SELECTORS)))
        return self._sets[path]

    def _read_set(self, path: str, value: Mapping[str, Any]) -> tuple[dict[str, str], list[dict[str, Any]]]:
        css = {name: self._css(entry, f"{path}.{name}", name) for name, entry in value.items()}
        defaults = {name: entry.get("default_value") for name, entry in value.items() if isinstance(entry, dict)}
        title = _title_level(value, css)
        rules: list[dict[str, Any]] = []
        content: dict[str, str] = {}
        for name, selector in css.items():
            default = defaults.get(name)
            field_name = "section" if name == "lvl0" and title != "lvl0" else NAMES.get(name, name)
            if field_name in (*_LEVELS, *_TEXTS):
                if default:
                    self._plan.ignore(f"{path}.{name}.default_value")
                content |= {name: selector} if selector and name != title else {}
                if selector and name not in (title, *_TEXTS) and not all(map(_HEADING.search, _parts(selector))):
                    self._plan.ignore(f"{path}.{name}")
            elif name_problem(field_name) is not None:
                self._plan.ignore(f"{path}.{name}")
            else:
                rules += [{"name": field_name, "selector": selector}] if selector else []
                if isinstance(default, str) and default.strip():
                    rules.append({"path": EVERYWHERE, "set": {field_name: default}})
        selectors = {"title": css[title]} if title is not None else {}
        if any(name in content for name in _TEXTS):
            first = sorted(content, key=lambda name: name not in _TEXTS)
            selectors["content"] = self._joined([(content[name], f"{path}.{name}") for name in first])
        excluded = read_texts(self._config.get("selectors_exclude", []), "selectors_exclude")
        removed = [(entry, f"selectors_exclude[{position}]") for position, entry in enumerate(excluded)]
        return selectors | {"remove": self._joined(removed)}, rules

    def _css(self, value: Any, path: str, name: str) -> str:
        """Return a selector, or ``""`` if it cannot be used."""
        entry = value if isinstance(value, dict) else {"selector": value}
        selector = entry.get("selector", "")
        if not isinstance(selector, str):
            raise field_error(path, "type", "must be a string or an object with selector")
        self._plan.ignore_others(entry, _USED, path)
        selector = selector.strip()
        if selector and (entry.get("type") == "xpath" or len(selector) > MAX_SELECTOR_LENGTH or not is_css(selector)):
            # The language of a page is detected without a selector.
            if NAMES.get(name, name) != "lang":
                self._plan.ignore(path)
            return ""
        return selector

    def _joined(self, selectors: Iterable[tuple[str, str]]) -> str:
        """Join selectors up to the length limit.

        Args:
            selectors: Pairs of a selector and its path in the configuration.
        """
        joined = ""
        for selector, path in selectors:
            longer = f"{joined}, {selector}" if joined else selector
            if len(longer) <= MAX_SELECTOR_LENGTH and is_css(selector):
                joined = longer
            else:
                self._plan.ignore(path)
        return joined


def _is_set(value: Any) -> bool:
    return isinstance(value, dict) and "selector" not in value and not value.keys().isdisjoint((*_LEVELS, *_TEXTS))


def _parts(selector: str) -> list[str]:
    return [part.strip() for part in selector.split(",")]


def _title_level(value: Mapping[str, Any], css: Mapping[str, str]) -> str | None:
    """Return a page's title level: the first that selects ``h1``, or else the first non-global level of the top two."""
    levels = [name for name in _LEVELS if css.get(name)]
    plain = [name for name in levels[:2] if not (isinstance(value[name], dict) and value[name].get("global"))]
    headings = [name for name in levels if any(map(_TITLE.search, _parts(css[name])))]
    return next(iter([*headings, *plain]), None)


MAX_PATTERNS = 50
"""Maximum number of patterns for one expression."""
MAX_GROUPS = 20
MAX_LENGTH = 2_048
"""Maximum number of characters in an expression or a pattern, equal to the limit for URLs."""
ANY = "*"

_GROUP = re.compile(r"\((\?P<(\w+)>|\?:)?")
_PLAIN = re.compile(r"[^\\()\[\]{}|.*+?^$]+(?![*+?{])")
"""Literal characters, except a last character that a quantifier repeats."""
_REPEAT = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\??")


class NotAPattern(ValueError):
    """The expression cannot be converted to patterns, or would result in too many."""


def expand(expression: str, variables: Mapping[str, Sequence[str]]) -> list[str]:
    """Convert a regular expression to patterns: a URL that it matches begins with one of them.

    A dot without a quantifier counts as a literal dot, since few people escape the dots of a host. ``^`` and ``$`` are
    rejected.

    Args:
        variables: Values of named groups.

    Raises:
        NotAPattern: The expression cannot be converted to patterns, or would result in too many.
    """
    if len(expression) > MAX_LENGTH or expression.count("(") > MAX_GROUPS:
        raise NotAPattern
    patterns, end = _alternatives(expression, 0, variables)
    if end < len(expression):
        raise NotAPattern
    # Stop URLs get another star at both ends.
    if any(star_count(pattern) > MAX_STARS - 2 for pattern in patterns):
        raise NotAPattern
    return list(dict.fromkeys(ANY.join(literals_of(pattern)) for pattern in patterns))


def _alternatives(text: str, offset: int, variables: Mapping[str, Sequence[str]]) -> tuple[list[str], int]:
    """Return the patterns from an offset to the end of its group, and the end offset."""
    patterns, current = [], [""]
    while offset < len(text) and text[offset] != ")":
        if text[offset] == "|":
            patterns += current
            current, offset = [""], offset + 1
            continue
        is_dot = text[offset] == "."
        parts, offset = _element(text, offset, variables)
        repeat = _REPEAT.match(text, offset)
        if repeat is not None:
            offset = repeat.end()
            parts = [ANY] if is_dot and repeat[0] != "?" else _repeated(parts, repeat[0], is_last=offset == len(text))
        if len(current) * len(parts) + len(patterns) > MAX_PATTERNS:
            raise NotAPattern
        current = [before + part for before, part in product(current, parts)]
        if max(map(len, current)) > MAX_LENGTH:
            raise NotAPattern
    return patterns + current, offset


def _element(text: str, offset: int, variables: Mapping[str, Sequence[str]]) -> tuple[list[str], int]:
    """Return the patterns of the element at an offset, and the element's end offset."""
    character = text[offset]
    if character == "(":
        group = _GROUP.match(text, offset)
        assert group is not None
        if text.startswith("?", group.end()):
            raise NotAPattern  # A lookaround, or flags.
        parts, offset = _alternatives(text, group.end(), variables)
        if offset == len(text):
            raise NotAPattern
        return list(variables.get(group[2] or "", parts)), offset + 1
    if character == "\\":
        escaped = text[offset + 1 : offset + 2]
        if not escaped or escaped.isalnum() or escaped == ANY:
            raise NotAPattern  # A character class, or a literal star, which patterns cannot express.
        return [escaped], offset + 2
    if character in "[*+?{^$":
        raise NotAPattern
    plain = _PLAIN.match(text, offset)
    return ([character], offset + 1) if plain is None else ([plain[0]], plain.end())


def _repeated(parts: list[str], repeat: str, *, is_last: bool) -> list[str]:
    if repeat[0] == "?":
        return ["", *parts]
    if is_last and repeat[0] in "*+":
        return ["" if repeat[0] == "*" else part for part in parts]  # A pattern also matches anything after its end.
    raise NotAPattern
